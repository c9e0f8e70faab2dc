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
    "transformers 5.23.0 and PaddleNLP 2.8.1": "transformers 5.23.0 与 PaddleNLP 2.8.1",
    "transformers 4.57.6 and PaddleNLP 3.0.0b4": "transformers 4.57.6 与 PaddleNLP 3.0.0b4",
}
_SCALED = "Dropout 用了 mode='downscale_in_infer'：eval 模式下数值会乘以 1 - p，载入 PyTorch 的权重后输出不同"
_INVERTED = (
    "传入的 attention_mask 直接乘以 -1e4，没有先取反：真正的 token 被遮住，padding 反而露了出来"
)
SENTENCES: Final[Mapping[str, str]] = {
    "since transformers 5 the pooled output that CLIPModel returns is projected; logits and embeddings agree":
        "transformers 5 起，CLIPModel 返回的 pooled output 经过了投影；logits 和 embedding 一致",
    "x / 2 * m is (x / 2) * m, where the original divides by 2 * m: with a magnitude of 3 the latents are "
    "nine times as large, and clipped":
        "x / 2 * m 等于 (x / 2) * m，而原实现是除以 2 * m：幅度为 3 时，隐变量变成原来的九倍，随后被截断",
    "end_logits is made from start_logits: an answer always ends where it starts":
        "end_logits 误用了 start_logits：答案的终点永远等于起点",
    "The head's LayerNorm ignores config.layer_norm_eps (1e-12) and keeps the default 1e-5":
        "任务头的 LayerNorm 没有使用 config.layer_norm_eps（1e-12），仍是默认的 1e-5",
    "The head is a parameter of its own although the configuration says tie_word_embeddings=True: a "
    "checkpoint that stores the table alone leaves the head random, and training moves the two apart":
        "配置写明 tie_word_embeddings=True，输出头却是独立的参数：checkpoint 若只存了词表，输出头就保持随机初始化；训练中两者还会越走越远",
    "The dropout before the classifier is built and never called, and its rate is that of the hidden states "
    "instead of classifier_dropout_prob":
        "分类器之前的 dropout 定义了却没有调用，概率用的还是 hidden_dropout_prob，而不是 classifier_dropout_prob",
    "The classifier's dropout has the rate of the hidden states instead of classifier_dropout_prob":
        "分类器的 dropout 用了 hidden_dropout_prob，而不是 classifier_dropout_prob",
    "Encoder and decoder have word tables of their own: `shared` is made and never used":
        "编码器和解码器各用一张词表，`shared` 定义了却没有使用",
    "A given attention_mask is multiplied by -1e4 as it stands: it hides the tokens and shows the padding; "
    "the decoder is given no mask but that of the padding's id":
        f"{_INVERTED}；解码器不用传入的掩码，只用由 pad id 推出的掩码",
    "A given attention_mask is multiplied by -1e4 as it stands: it hides the tokens and shows the padding":
        _INVERTED,
    "paddle.where takes a condition of booleans, and the mask is a float buffer: the model raises ValueError "
    "on every input with Paddle 3":
        "paddle.where 的条件必须是布尔型，而掩码是浮点型 buffer：在 Paddle 3 上，任何输入都会抛出 ValueError",
    "Masked scores become -inf: a row that is masked throughout (each padded query) is NaN after the "
    "softmax, where transformers' finfo.min gives equal shares":
        "被遮住的分数填成 -inf：整行都被遮住时（每个 padding 位置的 query 都是如此），softmax 得到 NaN；transformers 填的是 finfo.min，得到均匀分布",
    "XDropout.backward returns two gradients, and Paddle wants one for each tensor that forward was given: "
    "training raises ValueError":
        "XDropout.backward 返回了两个梯度，而 Paddle 要求与 forward 的张量输入一一对应：训练时抛出 ValueError",
    "Paddle's TransformerEncoderLayer drops out the attention's output; DistilBERT does not":
        "Paddle 的 TransformerEncoderLayer 对注意力的输出做 dropout；DistilBERT 不做",
    "squeeze() without an axis also takes the batch away where it has one example, and the sequence where it "
    "has one token":
        "squeeze() 没有指定轴：batch 只有一条样本时会去掉 batch 轴，序列只有一个 token 时会去掉序列轴",
    "The Fourier transform runs over the batch as well: an example's output depends on its neighbours":
        "傅里叶变换把 batch 轴也算了进去：一条样本的输出会受同一 batch 其他样本的影响",
    "A given attention_mask of two dimensions is added to the scores as it stands, 1 for a token and 0 for "
    "padding: padding is not hidden at all":
        "传入的二维 attention_mask（token 为 1、padding 为 0）未经换算就加到分数上：padding 完全没有遮住",
    "The words are dropped out once more before the head, which drops them out itself":
        "任务头之前多做了一次 dropout，而任务头里本来就有",
    "The attention's output layer is given the pair of values and probabilities: the model raises ValueError "
    "on every input":
        "传给注意力输出层的是（值，概率）二元组，没有取出第一项：任何输入都会抛出 ValueError",
    "The batch norm's momentum is PyTorch's 0.1, which in Paddle keeps a tenth of the old mean in place of "
    "nine tenths":
        "批归一化的 momentum 照搬了 PyTorch 的 0.1：在 Paddle 中它表示只保留旧均值的十分之一，而不是十分之九",
    "bicubic interpolation with align_corners=True computes its ratio in float32 in Paddle's kernel, 1.3e-5 "
    "in float64":
        "Paddle 的内核在 align_corners=True 的双三次插值中用 float32 计算缩放比例，float64 下相差 1.3e-5",
    "The head is given the pooler's output, which PyTorch's model does not have, instead of the first token: "
    "published weights leave the pooler random":
        "任务头接的是 pooler 的输出，而 PyTorch 的模型没有 pooler，接的是第一个 token：载入已发布的权重后，pooler 仍是随机的",
    "config.intermediate_size is ignored: the feed-forward part is always four times as wide":
        "没有使用 config.intermediate_size：前馈层的宽度固定为 hidden_size 的四倍",
    "Without return_dict the base model returns a tuple, which is indexed with a name: the model raises "
    "TypeError unless return_dict=True":
        "没有 return_dict 时，基础模型返回元组，代码却按名字取值：除非 return_dict=True，否则抛出 TypeError",
    "The constructor asks for num_labels beside the configuration, so that from_pretrained and every caller "
    "of the other heads' kind raise TypeError":
        "构造函数在 config 之外还要求 num_labels：from_pretrained，以及像其他任务头那样构造，都会抛出 TypeError",
    "The layer norms' epsilon is a constant, 1e-6, where the published configurations say 1e-12":
        "层归一化的 epsilon 是常数 1e-6，而已发布的配置为 1e-12",
    "Without entities the head is given None, and raises ValueError: entity_ids are optional by the "
    "signature":
        "不传实体时，任务头收到 None，抛出 ValueError：可签名里 entity_ids 是可选的",
    "The pooled output of the vision model lacks the second layer norm":
        "视觉模型的池化输出缺少第二个层归一化",
    "paddle.where returns vectors since Paddle 3, so an expert's weights have one axis and do not multiply "
    "its rows: the model raises ValueError":
        "自 Paddle 3 起 paddle.where 返回向量，专家的权重因此只有一个轴，不能与它的各行相乘：模型抛出 ValueError",
    "Padding is given a position: transformers sets it to -1 before the offset, and so a padded row differs "
    "there":
        "给 padding 也编了位置：transformers 在加偏移之前把它们设为 -1，所以 padding 处的结果不同",
    "The mask is tiled example by example, and the heads lie example after example: with more than one "
    "example, an example's heads are given the masks of others":
        "掩码用 tile 按样本循环复制，注意力头却是按样本连续排列：batch 不止一条样本时，会用错其他样本的掩码",
    "The head lacks the dropout before its dense layer: it classifies with the pooler instead":
        "任务头少了全连接层之前的 dropout：它直接用 pooler 的输出分类",
    "The number of choices is a setting (num_choices) and not the input's second axis, as it is in PaddleNLP's "
    "ALBERT and RoBERTa: with num_choices=2 and three or four choices the scores of several examples are put "
    "into rows of two, without an error":
        "选项数取自配置项 num_choices，而不像 PaddleNLP 的 ALBERT 和 RoBERTa "
        "那样取自输入的第二个轴：num_choices=2 而实际有三四个选项时，几个样本的分数会混在一起、每行两个，且不报错",
    "The head is given the pooler's output, dropped out; PyTorch's is given the last token's own: published "
    "weights leave the pooler random":
        "任务头接的是 pooler 的输出（还做了 dropout），PyTorch 接的是最后一个 token：载入已发布的权重后，pooler 仍是随机的",
    "The head is a dropout and one layer on the pooler's output; PyTorch's is dropout, dense, GELU, dropout "
    "and a projection on the first token: a published head has no place to go, and the pooler stays random":
        "任务头只是在 pooler 的输出上做 dropout 和一个线性层；PyTorch 则在第一个 token 上依次做 dropout、全连接、GELU、dropout "
        "和投影：已发布的任务头权重无处载入，pooler 仍是随机的",
    "The decoder is a Linear whose bias nobody adds, beside decoder_bias: dead numbers in each checkpoint, "
    "and the bias of PyTorch's decoder has two places to go":
        "decoder 是一个 Linear，它的偏置从未被加上（另有 decoder_bias）：每个检查点中都有无用的数，PyTorch decoder 的偏置也有两个去处",
    "The head is one layer; PyTorch's has a block of its own before it (BigBirdIntermediate and "
    "BigBirdOutput, which the port has too and does not use), marks the question by token types and bars its "
    "positions (prepare_question_mask, unused as well)":
        "任务头只有一层；PyTorch 在它之前还有一个模块（BigBirdIntermediate 和 BigBirdOutput，移植版里有，但没有用上），并用 token type "
        "区分问题与文章、屏蔽问题所在的位置（prepare_question_mask，也没有用上）",
    "pooler_hidden_size and pooler_dropout are asked of a configuration whose class does not define them: "
    "one that does not name them raises AttributeError":
        "向配置读取 pooler_hidden_size 和 pooler_dropout，而配置类并未定义它们：没有写出它们的配置会抛出 AttributeError",
    "Without return_dict encoder and decoder return tuples, which are asked for names: the model raises "
    "AttributeError unless return_dict=True":
        "不带 return_dict 时编码器和解码器返回元组，却按名称读取：除非 return_dict=True，否则抛出 AttributeError",
    "The entities' head is a parameter of its own; PyTorch's is the entities' table":
        "预测实体的输出头是独立的参数；PyTorch 的输出头就是实体 embedding 表",
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
        "use_cache 时，返回值里缓存排在 n-gram 的 logits 前面；原实现排在后面",
    "The dropout before the classifier has the rate of the hidden states instead of classifier_dropout_prob":
        "分类器之前的 dropout 用了隐藏状态的比率，而不是 classifier_dropout_prob",
    "The logits keep an axis of one, (batch, length, 1), where the docstring promises (batch, length)":
        "logits 多了一个长度为 1 的轴，形状是 (batch, 长度, 1)，而文档字符串写的是 (batch, 长度)",
    "The head returns hidden_size numbers a token in place of vocab_size, its inner size is not "
    "output_embedding_size, and its LayerNorm ignores config.layer_norm_eps":
        "任务头对每个 token 返回 hidden_size 个数，应为 vocab_size 个；中间宽度不是 output_embedding_size；LayerNorm 也没有使用 "
        "config.layer_norm_eps",
    "The positional convolution is built without weight_norm, so that a checkpoint's magnitudes and "
    "directions have no place to go; and its forward pass prints the weight":
        "位置卷积没有套用 weight_norm，checkpoint 里的幅度和方向无处载入；前向时还会把权重打印出来",
    "The prenet's dropout draws a mask for each example; PyTorch's is one for the whole batch":
        "prenet 的 dropout 给每条样本各抽一个掩码；PyTorch 整个 batch 共用一个",
    "masked_fill returns its result, which is dropped: the decoder's causal mask bars every position, those "
    "before as well, so that attention is uniform over all of them, later ones included":
        "masked_fill 的返回值被丢弃：解码器的因果掩码屏蔽了所有位置（包括之前的），注意力因此在所有位置上均匀，包括之后的",
    "A typing error, stop_gradiet: the input's gradient stays stopped":
        "拼写错误 stop_gradiet：输入的梯度仍被截断",
    "forward takes no attention_mask: padding is hidden by its id alone, and a batch as the tokenizer makes "
    "it raises TypeError":
        "forward 没有 attention_mask 参数：padding 只能靠 id 识别，直接传入 tokenizer 的输出会抛出 TypeError",
    "The head is one layer; PyTorch's has a projection to num_labels before it, which a checkpoint's "
    "sequence_summary belongs to":
        "任务头只有一层；PyTorch 在它之前还有一个到 num_labels 的投影，checkpoint 里的 sequence_summary 就是它的权重",
    "The head drops out its input as well; PyTorch's drops out after the activation alone":
        "任务头对输入也做了 dropout；PyTorch 只在激活之后做",
    "The head returns num_labels numbers a choice in place of one, and without return_dict the scores are "
    "not put into a row for each example":
        "任务头给每个选项返回 num_labels 个分数，应为一个；没有 return_dict 时，分数也没有按样本排成一行",
    "Dropout is built with mode='downscale_in_infer': in eval mode the values are multiplied by 1 - p, so "
    "that PyTorch's weights give other outputs": _SCALED,
    "The pools drop an incomplete last window: torchvision's have ceil_mode=True":
        "池化丢掉了末尾不完整的窗口：torchvision 用的是 ceil_mode=True",
    "The first convolution pads; torchvision's (and the original's) does not":
        "第一个卷积做了 padding；torchvision（以及原实现）没有",
    "Dropout is built with mode='downscale_in_infer': in eval mode the values are multiplied by 1 - p, so "
    "that PyTorch's weights give other outputs; and p is 0.2 where torchvision has 0.5":
        f"{_SCALED}；并且 p 为 0.2，而 torchvision 为 0.5",
    "The adaptive pool before the classifier is missing: an image that is not 224 x 224 raises ValueError, "
    "where torchvision takes it":
        "分类器之前少了自适应池化：图像不是 224 x 224 就抛出 ValueError，torchvision 则可以接受",
    "The words are dropped out after the positions are added, together with them; PyTorch drops them out "
    "before": "词在加上位置之后与位置一起做 dropout；PyTorch 在加位置之前做",
    'cast("byte") is int8, as in NumPy, where PyTorch\'s byte() is uint8: each latent in the upper half wraps '
    "to a negative number":
        'cast("byte") 与 NumPy 一样是 int8，而 PyTorch 的 byte() 是 uint8：上半区间的每个潜变量都会回绕成负数',
    "The dropout before the classifier is missing: torchvision's and the original's has p = 0.2":
        "分类器之前少了 dropout：torchvision 和原实现有，p = 0.2",
    "The gates' hard sigmoid has the slope 0.2; the paper's is 1/6":
        "门控的 hard sigmoid 斜率为 0.2；论文中为 1/6",
    "The attention calls F.scaled_dot_product_attention_, which ppdiffusers adds to Paddle for a GPU or an NPU "
    "alone: elsewhere the model raises AttributeError on every input":
        "注意力调用 F.scaled_dot_product_attention_，而 ppdiffusers 只在有 GPU 或 NPU 时才把它加到 Paddle "
        "中：在其他设备上任何输入都抛出 AttributeError",
    "A LayerNorm without elementwise_affine has a bias nevertheless: no checkpoint holds it, and training moves "
    "it":
        "elementwise_affine=False 的 LayerNorm 仍然带偏置：checkpoint 里没有它，训练却会更新它",
    "The mean of the last split leaves padding out; the original's counts it":
        "最后一份的平均池化没有把 padding 计入均值；原实现计入",
    "The first block of the first stage is built as the ones after it: its splits are added up and the last one "
    "is not pooled, where the original's first block of each stage keeps them apart":
        "第一个阶段的首个块与其后的块构造相同：各份逐个相加，最后一份不池化；而原实现中每个阶段的首个块让各份保持独立",
    "Windows are shifted, and masked, where one window holds the whole image too, as in the last stage of each "
    "published Swin: the original has no shift there":
        "整幅图像只有一个窗口时（每个已发布的 Swin，最后一个阶段都是如此），仍然做窗口移位并加掩码：原实现此时不移位",
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
