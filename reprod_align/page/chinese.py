"""The page's Chinese: words, the sentences that the judge prints, and the punctuation of both.

A sentence whose Chinese is not known here stays in English: it is the one that the terminal prints.
"""

import re
from typing import Final

WORDS: Final[dict[str, str]] = {
    "faithful": "一致",
    "agrees to float32": "在 float32 精度内一致",
    "diverges": "不一致",
    "aligned": "已对齐",
    "NOT aligned": "未对齐",
    "passed": "通过", "failed": "未通过", "not run": "未运行", "not compared": "未比较",
    "not judged": "未判定",
    "ok": "一致", "DIFFERENT": "不同", "agrees": "一致", "parts": "分开", "spike": "尖峰",
    "the model": "整个模型",
    "step": "步骤", "official": "官方规则", "strict": "严格规则", "worst tensor": "差异最大的张量",
    "relative difference": "相对差异", "seconds": "秒",
    "stage": "阶段", "what": "内容", "result": "结果", "largest relative difference": "最大相对差异",
    "audit": "设置", "weights": "权重", "forward": "前向", "loss": "损失", "backward": "反向",
    "optimizer": "优化器", "schedule": "学习率", "data": "数据", "metric": "指标", "training": "训练",
    "Checks": "各项比较", "Weights": "权重", "Settings that differ": "不同的设置", "Inputs": "输入",
    "Pairs of tensors": "成对的张量", "Losses": "损失", "Curves": "曲线", "Values": "数值",
    "Tensors": "张量", "Only in one trace": "仅一方有", "trace": "轨迹",
    "PyTorch": "PyTorch", "Paddle": "Paddle", "module": "模块", "setting": "设置", "shape": "形状",
    "dtype": "类型", "name": "名称", "how": "转换", "tensor": "张量", "curve": "曲线", "steps": "步数",
    "largest difference": "最大差异", "first step outside": "首个超出的步", "verdict": "结论",
    "difference": "差异", "limit": "上限", "phase": "阶段", "effect": "影响",
    "part swapped": "交换的部分", "gap left with PyTorch's": "换成 PyTorch 后剩余的差距",
    "gap that Paddle's makes alone": "仅换成 Paddle 时产生的差距",
    "as it is": "不变", "transposed": "转置", "not paired": "没有对应",
    "changes the numbers": "影响数值", "may have no effect here": "此处可能没有影响",
    "mean (float64)": "平均差异 (float64)", "max (float64)": "最大差异 (float64)",
    "mean (float32)": "平均差异 (float32)", "max (float32)": "最大差异 (float32)",
    "fix": "修复", "evidence": "证据", "settings": "设置", "see": "参见",
    "date": "日期", "command": "命令", "machine": "机器", "band": "噪声带", "profile": "配置",
    "Pairs of modules": "成对的模块",
    "outputs, eval mode": "输出，eval 模式", "outputs, train mode": "输出，train 模式",
    "gradients, eval mode": "梯度，eval 模式", "gradients, train mode": "梯度，train 模式",
    "gradients of the inputs": "输入的梯度", "loss on the same outputs": "相同输出上的损失",
    "gradient of the loss": "损失的梯度",
    "outputs after calls in train mode": "train 模式下调用之后的输出",
    "weights as they came": "权重的初始值",
    "the port is faithful": "移植是忠实的",
}  # fmt: skip
"""what stands alone in a cell or as a heading"""
_ENDS: Final = {"last": "最后", "first": "第"}
_SUMS: Final = {"mean": "平均值", "sum": "和"}
_PHASES: Final = {"output": "输出", "input": "输入", "gradient": "梯度"}
_AMOUNTS: Final = {"values": "数值", "gradient": "梯度", "loss": "损失"}
_PATTERNS: Final = [(re.compile(pattern), chinese) for pattern, chinese in (
    (r"NOT aligned: (\d+) of (\d+) pairs of tensors differ, first the (\S+) of (\S+): ",
     lambda found: f"未对齐：{found[2]} 对张量中有 {found[1]} 对不同，最先是 {found[4]} 的"
     f"{_PHASES.get(found[3], found[3])}："),
    (r"^the model(?=: )", "整个模型"),
    (r"no edit could be tried: every copy of this process ended before it answered; "
     r"a limit of memory or of processes may be the reason",
     "无法尝试任何编辑：本进程的每个副本都在给出结果之前结束；原因可能是内存或进程数的限制"),
    (r"gradients are compared in train mode only: the (PyTorch|Paddle) backward pass raised: ",
     r"梯度只在 train 模式下比较：\1 的反向传播报错："),
    # where a finding is, and what was measured there
    (r"its inputs agree and its output does not", "其输入一致而输出不一致"),
    (r"its children agree and its own code does not", "其子模块一致而其自身代码不一致"),
    (r"the gradient diverges here", "梯度从这里开始不一致"),
    (r"its own code makes another mask or index", "其自身代码产生了不同的掩码或索引"),
    (r"its own code makes another constant or input", "其自身代码产生了不同的常量或输入"),
    (r"the outputs differ, but no single module makes the difference",
     "输出不同，但差异不是由某一个模块造成的"),
    (r"it differs, in its own code or in (.+) \(not comparable\)",
     r"差异出在其自身代码或 \1 中（后者无法比较）"),
    (r"the mask or index it hands to (\S+) is not what that layer takes",
     r"它交给 \1 的掩码或索引不是该层所要求的"),
    (r"the mask or index it hands to (\S+) is not the one that PyTorch makes there",
     r"它交给 \1 的掩码或索引与 PyTorch 在那里自己产生的不同"),
    (r"the mask or index it hands to (\S+) hides other places", r"它交给 \1 的掩码或索引遮住了别的位置"),
    (r"it has a mask or index that it does not hand to (\S+)", r"它有掩码或索引，却没有交给 \1"),
    (r"the (value|mask or index) it hands to (\S+): ",
     lambda found: f"它交给 {found[2]} 的{'值' if found[1] == 'value' else '掩码或索引'}："),
    (r"it reaches (\S+): ", r"它影响到 \1："),
    (r"the updates differ", "参数的更新不同"),
    (r" in (train|eval) mode", r"（\1 模式）"),
    (r"at (\([^)]*\)) expected (\S+), got (\S+)", r"在 \1 处期望 \2，得到 \3"),
    (r"shape (\([^)]*\)) expected, got (\([^)]*\))", r"期望形状 \1，得到 \2"),
    (r"its output( [\w.]+)?: shape (\([^)]*\)) in PyTorch, (\([^)]*\)) in Paddle",
     lambda found: f"其输出{found[1] or ''}：形状在 PyTorch 中为 {found[2]}，在 Paddle 中为 {found[3]}"),
    (r"shape (\([^)]*\)) in PyTorch, (\([^)]*\)) in Paddle", r"形状在 PyTorch 中为 \1，在 Paddle 中为 \2"),
    (r"its shape is (\([^)]*\)) in PyTorch and (\([^)]*\)) in Paddle",
     r"其形状在 PyTorch 中为 \1，在 Paddle 中为 \2"),
    (r"its output( [\w.]+)?: ", lambda found: f"其输出{found[1] or ''}："),
    (r"its input: ", "其输入："),
    (r"difference (\S+), tolerance (\S+)", r"差异 \1，容差 \2"),
    (r"with the first example alone", "只用第一个样本时"),
    (r"with length (\d+) in place of (\d+)", r"长度为 \1 而不是 \2 时"),
    (r"(时) and (?=长度)", r"\1，以及"),
    # causes; rows of the zoo that were judged before still say the next two and the one of an index
    (r"dropout of the output of ([\w.]*\w)", r"对 \1 的输出的 dropout"),
    (r"(PyTorch|Paddle) drops nothing", r"\1 不丢弃"), (r"(PyTorch|Paddle) drops (\S+%)", r"\1 丢弃 \2"),
    (r"only (PyTorch|Paddle) has a dropout here: it drops (\S+%)", r"只有 \1 在此处有 dropout：丢弃 \2"),
    (r"scaled as dropout with p = ([\d.e-]*\d)", r"缩放方式相当于 p = \1 的 dropout"),
    (r"index (\d+) of what ([\w.]+) returns", r"\2 返回值的第 \1 项"),
    (r"PyTorch draws random numbers of shape (.+) here, Paddle (.+)",
     r"此处抽取的随机数：PyTorch 的形状为 \1，Paddle 为 \2"),
    (r"the scores agree, but Paddle (?=attends|masks)", "注意力分数一致，但 Paddle "),
    (r"attends to positions that PyTorch masks: ", "关注了 PyTorch 遮住的位置："),
    (r"masks positions that PyTorch attends to: ", "遮住了 PyTorch 关注的位置："),
    (r"Paddle attends to exactly the positions that PyTorch masks: the mask is inverted",
     "Paddle 关注的恰好是 PyTorch 遮住的位置：掩码取反了"),
    (r"whole keys \(padding\): the padding mask is missing in (Paddle|PyTorch), or too weak "
     r"\(-1 or 0 for -inf\)",
     r"整个 key（padding）：\1 缺少 padding 掩码，或掩码太弱（用 -1 或 0 代替 -inf）"),
    (r"all later tokens: the causal mask is missing in (Paddle|PyTorch)",
     r"之后的全部 token：\1 缺少因果掩码"),
    (r"one token ahead: the causal mask is shifted by one", "多看一个 token：因果掩码错开一位"),
    (r"each token itself: the causal mask is shifted by one", "每个 token 自身：因果掩码错开一位"),
    (r"(Paddle|PyTorch) calls (`[^`]*`) here, and (Paddle|PyTorch) does not",
     r"\1 在此处调用了 \2，\3 没有"),
    (r"(Paddle|PyTorch) never calls (`[^`]*`)", r"\1 从未调用 \2"),
    (r"(Paddle|PyTorch) calls (\w+) inside (`[^`]*`) here, and (Paddle|PyTorch) does not",
     r"\1 在此处的 \3 内部执行了 \2，\4 没有"),
    (r"(Paddle|PyTorch) adds a mask inside (`[^`]*`) here, and (Paddle|PyTorch) does not",
     r"\1 在此处的 \2 内部加了掩码，\3 没有"),
    (r"PyTorch takes (.+), Paddle (.+)", r"PyTorch 取的是 \1，Paddle 取的是 \2"),
    (r"Paddle takes (.+), PyTorch (.+)", r"Paddle 取的是 \1，PyTorch 取的是 \2"),
    (r"PyTorch passes on (.+) here, Paddle (.+)", r"此处 PyTorch 传下去的是 \1，Paddle 传下去的是 \2"),
    (r"(取的是) index (\d+)", r"\1第 \2 项"),
    (r"the (last|first) along axis (\d+) of the output of ([\w.]*\w)",
     lambda found: f"{found[3]} 的输出在第 {found[2]} 轴上的{_ENDS[found[1]]}一项"),
    (r"the (last|first) along axis (\d+)",
     lambda found: f"第 {found[2]} 轴上的{_ENDS[found[1]]}一项"),
    (r"the mean over axis (\d+) without padding of the output of ([\w.]*\w)",
     r"\2 的输出在第 \1 轴上的平均值（不计 padding）"),
    (r"the (mean|sum) over axis (\d+) of the output of ([\w.]*\w)",
     lambda found: f"{found[3]} 的输出在第 {found[2]} 轴上的{_SUMS[found[1]]}"),
    (r"the (mean|sum) over axis (\d+)", lambda found: f"第 {found[2]} 轴上的{_SUMS[found[1]]}"),
    (r"the output of ([\w.]*\w)", r"\1 的输出"),
    (r"Paddle's (values|gradient|loss) (?:are|is) PyTorch's times ([\d.e+-]*\d)",
     lambda found: f"Paddle 的{_AMOUNTS[found[1]]}是 PyTorch 的 {found[2]} 倍"),
    (r"Paddle's (values|loss) (?:are|is) PyTorch's plus the constant ([\d.e+-]*\d)",
     lambda found: f"Paddle 的{_AMOUNTS[found[1]]}等于 PyTorch 的加上常数 {found[2]}"),
    (r"(`[^`]*`) in Paddle, (`[^`]*`) in PyTorch", r"Paddle 写的是 \1，PyTorch 写的是 \2"),
    (r"one side scales, the other does not", "一边做了缩放，另一边没有"),
    (r"the function is (.+?) in Paddle and (.+?) in PyTorch",
     r"所用的函数：Paddle 为 \1，PyTorch 为 \2"),
    (r"Paddle does not add (.+) \(a residual or another term is missing\)",
     r"Paddle 没有加上 \1（缺少残差或其他项）"),
    (r"Paddle adds (.+) once more than PyTorch", r"Paddle 比 PyTorch 多加了一次 \1"),
    (r"Paddle adds (.+) where PyTorch adds (.+)", r"Paddle 加的是 \1，PyTorch 加的是 \2"),
    (r"Paddle's axes are permuted by (\([^)]*\)): a transpose is missing or different",
     r"Paddle 的轴按 \1 重排了：缺少转置，或转置的方式不同"),
    (r"the values agree in order, but the shape is (\([^)]*\)) instead of (\([^)]*\)): reshape",
     r"数值依次一致，但形状是 \1 而不是 \2：需要 reshape"),
    (r"the order along axis (\d+) is reversed in Paddle", r"Paddle 在第 \1 轴上的顺序是反的"),
    (r"decoupled: the decay is taken off the weights \(AdamW\) in PyTorch, the decay is added to the "
     r"gradient \(L2\) in Paddle",
     "权重衰减的方式：PyTorch 直接从权重中减去（AdamW，解耦），Paddle 加到梯度上（L2）"),
    (r"decoupled: the decay is added to the gradient \(L2\) in PyTorch, the decay is taken off the "
     r"weights \(AdamW\) in Paddle",
     "权重衰减的方式：PyTorch 加到梯度上（L2），Paddle 直接从权重中减去（AdamW，解耦）"),
    (r"tied to (\S+) in PyTorch, a parameter of its own in Paddle: equal at first, they diverge in training",
     r"在 PyTorch 中与 \1 共享，在 Paddle 中是独立的参数：起初相等，训练后各不相同"),
    (r"the (Paddle|PyTorch) model has no counterpart of this (?:Paddle )?parameter",
     r"\1 模型中没有与此参数对应的参数"),
    (r"left in Paddle: (.+) \(name_map can pair them\)", r"Paddle 中未配对的有：\1（可用 name_map 配对）"),
    (r"its weights have no counterpart, since its settings differ", "设置不同，因此其权重没有对应"),
    (r"the (Paddle|PyTorch) (model|backward pass) raises (\w+): ",
     lambda found: f"{found[1]} {'模型' if found[2] == 'model' else '反向传播'}报错 {found[3]}："),
    (r"(.+) is (\S+) in Paddle and (\S+) in PyTorch", r"\1：Paddle 为 \2，PyTorch 为 \3"),
    # settings
    (r"settings differ without an effect seen here: ", "设置不同，但此处未见影响："),
    (r"settings differ; the port raised before it could show their effect: ",
     "设置不同；移植版在显出影响之前就报错了："),
    (r"[Ss]ettings differ: ", "设置不同："),
    (r"; set (\S+) in Paddle", r"；请在 Paddle 中设置 \1"),
    (r"which means (\S+) in PyTorch", r"相当于 PyTorch 的 \1"),
    (r"PyTorch's output (\S+) comes from here; the Paddle model has this module and its weights, does "
     r"not call it, and has no such output",
     r"PyTorch 的输出 \1 来自此处；Paddle 模型有这个模块及其权重，但没有调用它，也没有这个输出"),
    (r"(\S+) holds (\d+) layers? in Paddle and (\d+) in PyTorch",
     r"\1 在 Paddle 中有 \2 层，在 PyTorch 中有 \3 层"),
    (r"(`[^`]*`) decides it", r"由 \1 决定"),
    (r"(`[^`]*`) in place of (`[^`]*`) gives PyTorch's numbers", r"以 \1 代替 \2，即得 PyTorch 的数值"),
    (r"no gradient flows through what runs here", "梯度流不过这里运行的代码"),
    (r"PyTorch lets no gradient flow through what runs here", "PyTorch 不让梯度流过这里运行的代码"),
    (r"(\S+) is (\S+) in Paddle: (\S+) gives PyTorch's numbers",
     r"Paddle 中 \1 为 \2：改为 \3 即得 PyTorch 的数值"),
    (r"leaving out (`[^`]*`) gives PyTorch's numbers", r"去掉 \1，即得 PyTorch 的数值"),
    (r"adding (`[^`]*`) gives PyTorch's numbers", r"加上 \1，即得 PyTorch 的数值"),
    (r"\(see (`[^`]*`)\)", r"（参见 \1）"),
    (r"\(Paddle: ([^)]*)\)", r"（Paddle：\1）"),
    # records and traces
    (r"max difference (\S+) at (.+?): expected (\S+), got (\S+?)(?=;|$)",
     r"最大差异 \1，位于 \2：期望 \3，得到 \4"),
    (r"mean difference (\S+); ", r"平均差异 \1；"),
    (r"difference (\S+) at (.+?): expected (\S+), got (\S+?); tolerance (\S+) there \((\w+)\): larger values "
     r"elsewhere in the tensor do not widen it",
     r"差异 \1，位于 \2：期望 \3，得到 \4；该处容差 \5（\6）：张量中别处的大数不会放宽它"),
    (r"tolerance (\S+) \((\w+)\)", r"容差 \1（\2）"),
    (r"(\d+) of (\d+) elements differ,", r"\2 个元素中有 \1 个不同，"),
    (r"extra: only the actual record has it", "多余：只有实际的记录里有"),
    (r"missing: only the expected record has it", "缺少：只有期望的记录里有"),
    (r"\(limit (\S+)\)", r"（上限 \1）"),
    (r"its inputs agree, so the difference is made there", "其输入一致，差异就产生在那里"),
    (r"its inputs differ already, between the modules before it and this one",
     "其输入已经不同，差异产生在它与之前的模块之间"),
    # what it means, the verdict, remarks, what was not judged
    (r"(\d+) of (\d+) predictions flip", r"\2 个预测中有 \1 个翻转"),
    (r"no prediction can flip", "没有预测会翻转"),
    (r"all (\d+) predictions stay the same here, but some could flip",
     r"这里 \1 个预测都不变，但有些可能翻转"),
    (r"\(largest difference (\S+), smallest top-1 margin (\S+)\)",
     r"（最大差异 \1，最小的首位差距 \2）"),
    (r"KL divergence (\S+) on average, (\S+) at most", r"KL 散度平均 \1，最大 \2"),
    (r"loss on each side's own outputs: (\S+) in PyTorch, (\S+) in Paddle",
     r"各自输出上的损失：PyTorch \1，Paddle \2"),
    (r"learning rate at step (\d+): (\S+) in PyTorch, (\S+) in Paddle",
     r"第 \1 步的学习率：PyTorch \2，Paddle \3"),
    (r"the loss of the same outputs is (\S+) in Paddle and (\S+) in PyTorch",
     r"对相同的输出，损失在 Paddle 中为 \1，在 PyTorch 中为 \2"),
    (r"(.+) leaves the noise band at step (\d+)", r"\1 在第 \2 步离开噪声带"),
    (r"the logs agree: (\d+) curves? within the band", r"两份日志一致：\1 条曲线都在噪声带内"),
    (r"(\d+) findings?; the first is where the two models diverge",
     r"\1 处发现；第一处是两个模型开始不一致的地方"),
    (r"(\d+) comparisons?, all within tolerance", r"\1 项比较，均在容差之内"),
    (r"all (\d+) comparisons? passed", r"\1 项比较全部通过"),
    (r"(\d+) of (\d+) comparisons? did not pass, the first is (\S+)",
     r"\2 项比较中有 \1 项未通过，第一项是 \3"),
    (r"Which part of a step makes (.+) differ at step (\d+)", r"\1 在第 \2 步的差距由哪一部分造成"),
    (r"(\d+) pairs of tensors agree", r"\1 对张量一致"),
    (r"outputs, (\d+) further batch(?:es)?", r"输出，另外 \1 个批次"),
    (r"outputs in float32, (\S+) x PyTorch's rounding", r"float32 下的输出，为 PyTorch 舍入误差的 \1 倍"),
    (r"learning rate, (\d+) steps?", r"学习率，\1 步"),
    (r"loss of (\d+) training steps?", r"\1 个训练步的损失"),
    (r"updates of (\d+) steps?", r"\1 步的参数更新"),
    (r"(\d+) lines? never ran: ", r"有 \1 行从未运行："),
    (r"(\d+) of (\d+) statements that it reaches in (\S+) never ran",
     r"\3 中它会经过的 \2 条语句有 \1 条从未运行"),
    (r"the given batch reads rows (\d+) to (\d+) of (\d+) of (\S+) only",
     r"所给批次只读了 \4 全部 \3 行中的第 \1 至 \2 行"),
    (r"(.+): (PyTorch|Paddle)'s model makes other values than (?:PyTorch|Paddle)'s holds; the loaded weights "
     r"hide it, and a port trained from scratch would keep them",
     r"\1：\2 模型生成的值与对方不同；载入的权重掩盖了这一点，从零训练时会保留不同的值"),
    (r"(?:the )?outputs of the (PyTorch|Paddle) model without a counterpart", r"\1 模型中没有对应的输出"),
    (r"without a counterpart, and without effect on the outputs", "没有对应，且不影响输出"),
    (r"judged with float64 in place of the float32 that the models ask for",
     "模型要求 float32 的地方以 float64 评判"),
    (r"agrees to float32 only: the models compute in float32 in (.+); with float64 in its place everything "
     r"agrees", r"只在 float32 精度内一致：模型在 \1 中以 float32 计算，换成 float64 后全部一致"),
    (r"(\d+) tables? that float32 rounds in each framework's own way holds? (PyTorch|Paddle)'s numbers: (.+)",
     r"\1 张表在两个框架里的 float32 舍入不同，采用 \2 的数值：\3"),
    (r"the models compute in float32 in (.+); with float64 in its place everything agrees",
     r"模型在 \1 中以 float32 计算，换成 float64 后全部一致"),
    (r"(PyTorch|Paddle) rounds to float32 where (PyTorch|Paddle) does not: (.+)",
     r"\1 在 \2 不舍入的地方舍入到 float32：\3"),
    (r"agrees to float32 only: the model loses precision \(relative (\S+)\)",
     r"只在 float32 精度内一致：整个模型损失了精度（相对 \1）"),
    (r"agrees to float32 only: (\S+) loses precision \(relative (\S+)\)",
     r"只在 float32 精度内一致：\1 损失了精度（相对 \2）"),
    (r"agrees to float32 only: (\d+) places lose precision, from (\S+) to (\S+) \(relative (\S+) at most\)",
     r"只在 float32 精度内一致：从 \2 到 \3 共 \1 处损失了精度（相对差异最大 \4）"),
    (r"laid out by comparing outputs, since the shapes do not tell", "形状无法区分，因此按输出确定其布局"),
    (r"never called as a module \(unused, or used from outside\)",
     "从未作为模块调用（未使用，或由外部使用）"),
    (r"zero gradient on this batch, so not tested", "在此批次上梯度为零，因此未检验"),
    (r"no parameter gets a gradient: the backward pass is not tested", "没有参数得到梯度：反向传播未检验"),
    (r"judged in float32, since float64 does not run: the (PyTorch|Paddle) model raised in (\S+): ",
     r"以 float32 评判，因为 float64 无法运行：\1 模型在 \2 中报错 "),
    (r"\(no fault where the two classes use it differently\)", "（若两个类对它的用法不同，则不是错误）"),
    (r"with (\w+) in place of (\w+) the Paddle model does not run: ",
     r"以 \1 代替 \2 时 Paddle 模型报错 "),
    (r"the outputs are bit for bit the same, which is rare for two frameworks: check that both models "
     r"really compute", "输出逐位相同，这在两个框架之间很少见：请确认两个模型都真的做了计算"),
    (r"Paddle's batch norm keeps the biased running variance where PyTorch keeps the unbiased one: a "
     r"faithful port differs there",
     "Paddle 的 batch norm 保存有偏的滑动方差，PyTorch 保存无偏的：忠实的移植在这一项上也会不同"),
)]  # fmt: skip
_HAN: Final = "[\u3400-\u9fff，。；：（）]"
_CHINESE: Final = re.compile(_HAN)
_WIDE: Final = {",": "，", ";": "；", ":": "："}
_BESIDE: Final = (
    rf"(?<={_HAN})(?P<after>[,;:]) ?|(?P<before>[,;:]) ?(?={_HAN})|(?<={_HAN}) (?={_HAN})| (?=（)"
)
_MARK_BESIDE: Final = re.compile(_BESIDE)
"""a mark beside Chinese; a space that no Chinese text has"""
_MARK: Final = re.compile(rf"`[^`]*`|\([^()\u3400-\u9fff]*\)|{_BESIDE}|(?P<free>[,;:])(?: |$)")
"""the same and every other mark of a sentence, but not those of code and tuples"""
_QUOTED: Final = re.compile("`[^`]*`|报错 .*")  # code, and an error's own words
_ENGLISH: Final = re.compile(r"(?<![\w.])[A-Za-z]+(?:'s)?(?: [A-Za-z]+(?:'s)?){2,}")
"""three words in a row: a clause that no pattern knows"""
_FRAMEWORK = re.compile(r"\bPyTorch\b|\bPaddle\b")


def translate(text: str) -> str:
    """Return the Chinese of a word or a sentence, as far as it is known.

    Commas, semicolons and colons of a Chinese sentence are full-width; those of code and tuples stay.
    """
    if text in WORDS:
        return WORDS[text]
    chinese = _translate(text)
    if is_whole(chinese):
        return chinese
    turned = _exchange(
        _translate(_exchange(text))
    )  # a sentence with Paddle's model as the reference
    return turned if is_whole(turned) else chinese


def _exchange(text: str) -> str:
    """Return the text with the frameworks' names exchanged."""
    return _FRAMEWORK.sub(lambda found: "Paddle" if found[0] == "PyTorch" else "PyTorch", text)


def _translate(text: str) -> str:
    chinese = text
    for pattern, words in _PATTERNS:
        chinese = pattern.sub(words, chinese)
    if chinese == text or not _CHINESE.search(chinese):
        return text
    mark = _MARK if is_whole(chinese) and "报错 " not in chinese else _MARK_BESIDE
    return mark.sub(_widen, chinese)


def _widen(found: re.Match[str]) -> str:
    """Return what stands for a match: a full-width mark, nothing for a space, code as it is."""
    mark = next(filter(None, found.groupdict().values()), "")
    return _WIDE[mark] if mark else found[0].strip(" ")


def is_whole(chinese: str) -> bool:
    """Tell whether a translation is Chinese throughout: outside code it has no clause in English."""
    plain = _QUOTED.sub("", chinese)
    return bool(_CHINESE.search(plain)) and not _ENGLISH.search(plain)
