"""The page's words in both languages, and the Chinese of the sentences that say what was found.

A sentence that is not known here stays in English: it is the one that the terminal prints.
"""

import re
from typing import Final

CHINESE: Final[dict[str, str]] = {
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
    "its inputs agree and its output does not": "其输入一致而输出不一致",
    "its children agree and its own code does not": "其子模块一致而其自身代码不一致",
    "the gradient diverges here": "梯度从这里开始不一致",
    "the port is faithful": "移植是忠实的", "Pairs of modules": "成对的模块",
}  # fmt: skip

_PATTERNS: Final = [(re.compile(pattern), chinese) for pattern, chinese in (
    (r"its inputs agree and its output does not", "其输入一致而输出不一致"),
    (r"its children agree and its own code does not", "其子模块一致而其自身代码不一致"),
    (r"the gradient diverges here", "梯度从这里开始不一致"),
    (r"its own code makes another mask or index", "其自身代码产生了不同的掩码或索引"),
    (r" in (train|eval) mode", r"（\1 模式）"),
    (r"at (\([^)]*\)) expected (\S+), got (\S+)", r"在 \1 处期望 \2，得到 \3"),
    (r"shape (\([^)]*\)) expected, got (\([^)]*\))", r"期望形状 \1，得到 \2"),
    (r"[Ss]ettings differ: ", "设置不同："),
    (r"(`[^`]*`) in place of (`[^`]*`) gives PyTorch's numbers", r"以 \1 代替 \2，即得 PyTorch 的数值"),
    (r"; its output: ", "；其输出："),
    (r"; its input: ", "；其输入："),
    (r"\(see (`[^`]*`)\)", r"（参见 \1）"),
    (r"difference (\S+), tolerance (\S+)", r"差异 \1，容差 \2"),
    (r"; set (\S+) in Paddle", r"；请在 Paddle 中设置 \1"),
    (r"(\d+) of (\d+) predictions flip", r"\2 个预测中有 \1 个翻转"),
    (r"no prediction can flip", "没有预测会翻转"),
    (r"all (\d+) predictions stay the same here, but some could flip",
     r"这里 \1 个预测都不变，但有些可能翻转"),
    (r"\(largest difference (\S+), smallest top-1 margin (\S+)\)",
     r"（最大差异 \1，最小的首位差距 \2）"),
    (r"KL divergence (\S+) on average, (\S+) at most", r"KL 散度平均 \1，最大 \2"),
    (r"loss on each side's own outputs: (\S+) in PyTorch, (\S+) in Paddle",
     r"各自输出上的损失：PyTorch \1，Paddle \2"),
    (r"settings differ without an effect seen here: ", "设置不同，但此处未见影响："),
    (r"settings differ; the port raised before it could show their effect: ",
     "设置不同；移植版在显出影响之前就报错了："),
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
)]  # fmt: skip


_WIDE: Final = {",": "，", ";": "；", ":": "："}
_HAN: Final = "[\u3400-\u9fff，。；：（）]"
_MARK_BESIDE_CHINESE: Final = re.compile(f"(?<={_HAN})([,;:]) ?|([,;:]) ?(?={_HAN})| (?=（)")


def translate(text: str) -> str:
    """Return the Chinese of a word or a sentence, as far as it is known.

    Commas, semicolons and colons beside Chinese are full-width, and no space stands before （.
    """
    if text in CHINESE:
        return CHINESE[text]
    chinese = text
    for pattern, words in _PATTERNS:
        chinese = pattern.sub(words, chinese)
    if chinese == text:
        return text
    return _MARK_BESIDE_CHINESE.sub(lambda found: _WIDE.get(found[0].strip(), ""), chinese)
