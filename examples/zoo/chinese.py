"""The Chinese texts of the pages: each English sentence of a fault or a note with its translation."""

from collections.abc import Mapping
from typing import Final

VERDICTS: Final[Mapping[str, str]] = {
    "faithful": "忠实",
    "agrees to float32": "仅差 float32 舍入",
    "diverges": "有差异",
    "does not build": "无法构建",
    "cannot be judged": "无法判定",
    "not run": "未运行",
}
STAGES: Final[Mapping[str, str]] = {
    "weights": "权重", "forward": "前向", "backward": "反向", "optimizer": "优化器",
}  # fmt: skip
TITLES: Final[Mapping[str, str]] = {
    "transformers and PaddleNLP": "transformers 与 PaddleNLP",
    "torch.nn and paddle.nn": "torch.nn 与 paddle.nn",
    "diffusers and ppdiffusers": "diffusers 与 ppdiffusers",
    "timm, torchvision and PaddleClas": "timm、torchvision 与 PaddleClas",
    "torchvision and paddle.vision": "torchvision 与 paddle.vision",
    "transformers and PaddleFormers": "transformers 与 PaddleFormers",
}
_SCALED = "Dropout 以 mode='downscale_in_infer' 构建：eval 模式下数值被乘以 1 - p，因此用 PyTorch 的权重得到不同的输出"
_INVERTED = "传入的 attention_mask 被原样乘以 -1e4：遮住的是词元，显露的是填充"
SENTENCES: Final[Mapping[str, str]] = {
    "x / 2 * m is (x / 2) * m, where the original divides by 2 * m: with a magnitude of 3 the latents are "
    "nine times as large, and clipped":
        "x / 2 * m 即 (x / 2) * m，而原实现除以 2 * m：幅度为 3 时潜变量是原来的九倍，并被截断",
    "end_logits is made from start_logits: an answer always ends where it starts":
        "end_logits 由 start_logits 得出：答案总是在起点处结束",
    "The head's LayerNorm ignores config.layer_norm_eps (1e-12) and keeps the default 1e-5":
        "头的 LayerNorm 忽略 config.layer_norm_eps（1e-12），沿用默认值 1e-5",
    "The head is a parameter of its own although the configuration says tie_word_embeddings=True: a "
    "checkpoint that stores the table alone leaves the head random, and training moves the two apart":
        "配置为 tie_word_embeddings=True，头却是独立参数：只存词表的检查点会让头保持随机，训练也会使两者分离",
    "The dropout before the classifier is built and never called, and its rate is that of the hidden states "
    "instead of classifier_dropout_prob":
        "分类器之前的 dropout 建了却从未调用，其比率是隐藏状态的而不是 classifier_dropout_prob",
    "The classifier's dropout has the rate of the hidden states instead of classifier_dropout_prob":
        "分类器的 dropout 用了隐藏状态的比率，而不是 classifier_dropout_prob",
    "Encoder and decoder have word tables of their own: `shared` is made and never used":
        "编码器和解码器各有自己的词表：`shared` 建了却从未使用",
    "A given attention_mask is multiplied by -1e4 as it stands: it hides the tokens and shows the padding; "
    "the decoder is given no mask but that of the padding's id":
        f"{_INVERTED}；解码器只得到由填充 id 推出的掩码",
    "A given attention_mask is multiplied by -1e4 as it stands: it hides the tokens and shows the padding":
        _INVERTED,
    "paddle.where takes a condition of booleans, and the mask is a float buffer: the model raises ValueError "
    "on every input with Paddle 3":
        "paddle.where 的条件须为布尔，而掩码是浮点缓冲区：在 Paddle 3 下任何输入都抛出 ValueError",
    "Masked scores become -inf: a row that is masked throughout (each padded query) is NaN after the "
    "softmax, where transformers' finfo.min gives equal shares":
        "被遮住的分数变为 -inf：整行被遮住时（每个填充的查询）softmax 之后是 NaN，而 transformers 用 finfo.min 得到均匀分布",
    "XDropout.backward returns two gradients, and Paddle wants one for each tensor that forward was given: "
    "training raises ValueError":
        "XDropout.backward 返回两个梯度，而 Paddle 要求 forward 的每个张量各一个：训练抛出 ValueError",
    "Paddle's TransformerEncoderLayer drops out the attention's output; DistilBERT does not":
        "Paddle 的 TransformerEncoderLayer 对注意力的输出做 dropout；DistilBERT 不做",
    "squeeze() without an axis also takes the batch away where it has one example, and the sequence where it "
    "has one token":
        "不带轴的 squeeze() 在批次只有一个样本时去掉批次轴，在序列只有一个词元时去掉序列轴",
    "The Fourier transform runs over the batch as well: an example's output depends on its neighbours":
        "傅里叶变换也跨批次进行：一个样本的输出取决于同批的其他样本",
    "A given attention_mask of two dimensions is added to the scores as it stands, 1 for a token and 0 for "
    "padding: padding is not hidden at all":
        "传入的二维 attention_mask（词元为 1、填充为 0）被原样加到分数上：填充完全没有被遮住",
    "The words are dropped out once more before the head, which drops them out itself":
        "在头之前多做了一次 dropout，而头自己已经做了",
    "The attention's output layer is given the pair of values and probabilities: the model raises ValueError "
    "on every input":
        "注意力的输出层得到的是（值，概率）二元组：任何输入都抛出 ValueError",
    "The batch norm's momentum is PyTorch's 0.1, which in Paddle keeps a tenth of the old mean in place of "
    "nine tenths":
        "批归一化的 momentum 照搬了 PyTorch 的 0.1：在 Paddle 中它表示只保留旧均值的十分之一，而不是十分之九",
    "bicubic interpolation with align_corners=True computes its ratio in float32 in Paddle's kernel, 1.3e-5 "
    "in float64":
        "Paddle 的内核在 align_corners=True 的双三次插值中用 float32 计算缩放比例，float64 下相差 1.3e-5",
    "The head is given the pooler's output, which PyTorch's model does not have, instead of the first token: "
    "published weights leave the pooler random":
        "头得到的是 PyTorch 模型没有的 pooler 的输出，而不是第一个词元：已发布的权重会让 pooler 保持随机",
    "config.intermediate_size is ignored: the feed-forward part is always four times as wide":
        "config.intermediate_size 被忽略：前馈部分总是四倍宽",
    "Without return_dict the base model returns a tuple, which is indexed with a name: the model raises "
    "TypeError unless return_dict=True":
        "不带 return_dict 时基础模型返回元组，却用名称索引：除非 return_dict=True，否则抛出 TypeError",
    "The constructor asks for num_labels beside the configuration, so that from_pretrained and every caller "
    "of the other heads' kind raise TypeError":
        "构造函数除配置外还要求 num_labels，因此 from_pretrained 以及按其他头的方式调用都会抛出 TypeError",
    "The layer norms' epsilon is a constant, 1e-6, where the published configurations say 1e-12":
        "层归一化的 epsilon 是常数 1e-6，而已发布的配置为 1e-12",
    "Without entities the head is given None, and raises ValueError: entity_ids are optional by the "
    "signature":
        "没有实体时头得到 None 并抛出 ValueError：而按签名 entity_ids 是可选的",
    "The pooled output of the vision model lacks the second layer norm":
        "视觉模型的池化输出缺少第二个层归一化",
    "paddle.where returns vectors since Paddle 3, so an expert's weights have one axis and do not multiply "
    "its rows: the model raises ValueError":
        "自 Paddle 3 起 paddle.where 返回向量，专家的权重因此只有一个轴，不能与它的各行相乘：模型抛出 ValueError",
    "Padding is given a position: transformers sets it to -1 before the offset, and so a padded row differs "
    "there":
        "填充也得到位置：transformers 在加偏移前将其设为 -1，因此填充行不同",
    "The mask is tiled example by example, and the heads lie example after example: with more than one "
    "example, an example's heads are given the masks of others":
        "掩码按样本循环平铺，而各个头按样本依次排列：多于一个样本时，一个样本的头会得到其他样本的掩码",
    "The head lacks the dropout before its dense layer: it classifies with the pooler instead":
        "头缺少全连接层之前的 dropout：它用 pooler 来分类",
    "The number of choices is a setting (num_choices) and not the input's second axis, as it is in PaddleNLP's "
    "ALBERT and RoBERTa: with num_choices=2 and three or four choices the scores of several examples are put "
    "into rows of two, without an error":
        "选项数取自配置项 num_choices，而不像 PaddleNLP 的 ALBERT 和 RoBERTa "
        "那样取自输入的第二个轴：num_choices=2 而实际有三四个选项时，几个样本的分数会混在一起、每行两个，且不报错",
    "The head is given the pooler's output, dropped out; PyTorch's is given the last token's own: published "
    "weights leave the pooler random":
        "头得到的是经过 dropout 的 pooler 输出；PyTorch 的头得到最后一个词元的输出：已发布的权重会让 pooler 保持随机",
    "The head is a dropout and one layer on the pooler's output; PyTorch's is dropout, dense, GELU, dropout "
    "and a projection on the first token: a published head has no place to go, and the pooler stays random":
        "头是 pooler 输出上的 dropout 和一个线性层；PyTorch 的头在第一个词元上依次为 dropout、全连接、GELU、dropout "
        "和投影：已发布的头没有位置可放，pooler 保持随机",
    "The decoder is a Linear whose bias nobody adds, beside decoder_bias: dead numbers in each checkpoint, "
    "and the bias of PyTorch's decoder has two places to go":
        "decoder 是一个 Linear，它的偏置从未被加上（另有 decoder_bias）：每个检查点中都有无用的数，PyTorch decoder 的偏置也有两个去处",
    "The head is one layer; PyTorch's has a block of its own before it (BigBirdIntermediate and "
    "BigBirdOutput, which the port has too and does not use), marks the question by token types and bars its "
    "positions (prepare_question_mask, unused as well)":
        "头只有一层；PyTorch 的头之前还有一个块（BigBirdIntermediate 和 BigBirdOutput，移植中也有却未使用），并用 token type "
        "标记问题、屏蔽其位置（prepare_question_mask，同样未使用）",
    "pooler_hidden_size and pooler_dropout are asked of a configuration whose class does not define them: "
    "one that does not name them raises AttributeError":
        "向配置读取 pooler_hidden_size 和 pooler_dropout，而配置类并未定义它们：没有写出它们的配置会抛出 AttributeError",
    "Without return_dict encoder and decoder return tuples, which are asked for names: the model raises "
    "AttributeError unless return_dict=True":
        "不带 return_dict 时编码器和解码器返回元组，却按名称读取：除非 return_dict=True，否则抛出 AttributeError",
    "The entities' head is a parameter of its own; PyTorch's is the entities' table":
        "实体的头是独立参数；PyTorch 的头就是实体表",
    "The streams that predict lie as (ngram, batch, time) and are reshaped, not transposed, to (ngram, time, "
    "batch): with more than one example, an example's relative positions are weighted with the words of "
    "others":
        "预测流按 (ngram, 批次, 时间) 排列，却被 reshape 而不是转置为 (ngram, 时间, "
        "批次)：多于一个样本时，一个样本的相对位置会用其他样本的词来加权",
    "transformers permutes its relative positions by (0, 2, 1, 4, 3) and reads them as (batch, ngram, head, "
    "time), modeling_prophetnet.py:868":
        "transformers 把相对位置按 (0, 2, 1, 4, 3) 转置，却当作 (批次, ngram, 头, 时间) 读取，见 modeling_prophetnet.py:868",
    "With use_cache the cache stands before the n-grams' logits in what is returned, where the original has "
    "it after them":
        "use_cache 时返回值中缓存排在 n-gram 的 logits 之前，而原实现排在其后",
    "The dropout before the classifier has the rate of the hidden states instead of classifier_dropout_prob":
        "分类器之前的 dropout 用了隐藏状态的比率，而不是 classifier_dropout_prob",
    "The logits keep an axis of one, (batch, length, 1), where the docstring promises (batch, length)":
        "logits 保留了长度为一的轴 (批次, 长度, 1)，而文档字符串承诺 (批次, 长度)",
    "The head returns hidden_size numbers a token in place of vocab_size, its inner size is not "
    "output_embedding_size, and its LayerNorm ignores config.layer_norm_eps":
        "头对每个词元返回 hidden_size 个数而不是 vocab_size 个，内部宽度不是 output_embedding_size，LayerNorm 忽略 "
        "config.layer_norm_eps",
    "The positional convolution is built without weight_norm, so that a checkpoint's magnitudes and "
    "directions have no place to go; and its forward pass prints the weight":
        "位置卷积没有使用 weight_norm，检查点中的幅度和方向没有位置可放；其前向还会打印权重",
    "The prenet's dropout draws a mask for each example; PyTorch's is one for the whole batch":
        "prenet 的 dropout 为每个样本各抽一个掩码；PyTorch 整个批次只用一个",
    "masked_fill returns its result, which is dropped: the decoder's causal mask bars every position, those "
    "before as well, so that attention is uniform over all of them, later ones included":
        "masked_fill 的返回值被丢弃：解码器的因果掩码屏蔽了所有位置（包括之前的），注意力因此在所有位置上均匀，包括之后的",
    "A typing error, stop_gradiet: the input's gradient stays stopped":
        "拼写错误 stop_gradiet：输入的梯度仍然被停止",
    "forward takes no attention_mask: padding is hidden by its id alone, and a batch as the tokenizer makes "
    "it raises TypeError":
        "forward 不接受 attention_mask：填充只凭 id 遮住，分词器产生的批次会抛出 TypeError",
    "The head is one layer; PyTorch's has a projection to num_labels before it, which a checkpoint's "
    "sequence_summary belongs to":
        "头只有一层；PyTorch 的头之前还有到 num_labels 的投影，检查点中的 sequence_summary 属于它",
    "The head drops out its input as well; PyTorch's drops out after the activation alone":
        "头对输入也做 dropout；PyTorch 的头只在激活之后做",
    "The head returns num_labels numbers a choice in place of one, and without return_dict the scores are "
    "not put into a row for each example":
        "头对每个选项返回 num_labels 个数而不是一个；不带 return_dict 时分数没有按样本排成行",
    "Dropout is built with mode='downscale_in_infer': in eval mode the values are multiplied by 1 - p, so "
    "that PyTorch's weights give other outputs": _SCALED,
    "The pools drop an incomplete last window: torchvision's have ceil_mode=True":
        "池化丢弃最后不完整的窗口：torchvision 的池化为 ceil_mode=True",
    "The first convolution pads; torchvision's (and the original's) does not":
        "第一个卷积有填充；torchvision（以及原实现）没有",
    "Dropout is built with mode='downscale_in_infer': in eval mode the values are multiplied by 1 - p, so "
    "that PyTorch's weights give other outputs; and p is 0.2 where torchvision has 0.5":
        f"{_SCALED}；并且 p 为 0.2，而 torchvision 为 0.5",
    "The adaptive pool before the classifier is missing: an image that is not 224 x 224 raises ValueError, "
    "where torchvision takes it":
        "缺少分类器之前的自适应池化：不是 224 x 224 的图像会抛出 ValueError，而 torchvision 可以接受",
    "The words are dropped out after the positions are added, together with them; PyTorch drops them out "
    "before": "词在加上位置之后与位置一起做 dropout；PyTorch 在加位置之前做",
    'cast("byte") is int8, as in NumPy, where PyTorch\'s byte() is uint8: each latent in the upper half wraps '
    "to a negative number":
        'cast("byte") 与 NumPy 一样是 int8，而 PyTorch 的 byte() 是 uint8：上半区间的每个潜变量都会回绕成负数',
    "The dropout before the classifier is missing: torchvision's and the original's has p = 0.2":
        "缺少分类器之前的 dropout：torchvision 和原实现的 p 为 0.2",
    "The gates' hard sigmoid has the slope 0.2; the paper's is 1/6":
        "门控的 hard sigmoid 斜率为 0.2；论文中为 1/6",
    "The attention calls F.scaled_dot_product_attention_, which ppdiffusers adds to Paddle for a GPU or an NPU "
    "alone: elsewhere the model raises AttributeError on every input":
        "注意力调用 F.scaled_dot_product_attention_，而 ppdiffusers 只在有 GPU 或 NPU 时才把它加到 Paddle "
        "中：在其他设备上任何输入都抛出 AttributeError",
    "A LayerNorm without elementwise_affine has a bias nevertheless: no checkpoint holds it, and training moves "
    "it":
        "不带 elementwise_affine 的 LayerNorm 仍有偏置：检查点中没有它，而训练会改变它",
    "The mean of the last split leaves padding out; the original's counts it":
        "最后一份的平均池化不计填充；原实现计入填充",
    "The first block of the first stage is built as the ones after it: its splits are added up and the last one "
    "is not pooled, where the original's first block of each stage keeps them apart":
        "第一个阶段的首个块与其后的块构造相同：各份逐个相加，最后一份不池化；而原实现中每个阶段的首个块让各份保持独立",
    "Windows are shifted, and masked, where one window holds the whole image too, as in the last stage of each "
    "published Swin: the original has no shift there":
        "整幅图像只有一个窗口时（如每个已发布 Swin 的最后一个阶段）窗口仍被移位并加掩码：原实现此处不移位",
    # notes
    "by design: pixel_pos lies as in the authors' code, (1, pixels, width), and timm's is (1, width, 4, 4)":
        "有意为之：pixel_pos 与作者的代码一样按 (1, 像素, 宽度) 排列，而 timm 为 (1, 宽度, 4, 4)",
    "by design: the authors' first version, with gates that are clipped and squeeze to a quarter without "
    "rounding, and a batch norm in the head":
        "有意为之：作者的第一个版本，门控用截断并压缩到四分之一且不取整，头中有批归一化",
    "by design: a convolution on the first shortcut, unless use_first_short_conv=False":
        "有意为之：第一个捷径上有卷积，除非 use_first_short_conv=False",
    "by design: the first block expands too, as in the paper's table, by a factor of 1":
        "有意为之：第一个块也做扩展，与论文的表一致，倍数为 1",
    "by design: the first block expands too, the gates squeeze to a quarter without rounding, the head is "
    "1280 wide without a bias, and the batch norms keep Paddle's defaults":
        "有意为之：第一个块也做扩展，门控压缩到四分之一且不取整，头宽 1280 且没有偏置，批归一化沿用 Paddle 的默认值",
    "[Paddle's kernel](zoo/paddle.md#the-backward-pass-of-prelu-crashes)":
        "[Paddle 的内核](zoo/paddle_cn.md#prelu-的反向会崩溃)",
    "[Paddle's kernel](zoo/paddle.md#the-backward-pass-of-instancenorm-raises)":
        "[Paddle 的内核](zoo/paddle_cn.md#instancenorm-的反向会报错)",
    "by design: Paddle's exclusive=True leaves padding out of the mean":
        "有意为之：Paddle 的 exclusive=True 不把填充计入均值",
    "by design: the paper's network, without torchvision's batch norms":
        "有意为之：论文中的网络，没有 torchvision 的批归一化",
    "by design: the ReLU before the classifier is TinyBERT's own":
        "有意为之：分类器之前的 ReLU 是 TinyBERT 自己的",
    "none: the port drops out the words and takes the first, PyTorch the other way round; the distribution "
    "is one":
        "不是错误：移植先对各词做 dropout 再取第一个，PyTorch 相反；分布相同",
}  # fmt: skip
