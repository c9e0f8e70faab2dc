"""Attention, transformer layers and masks."""

from typing import Any

from reprod_align.api.entry import Convention, Entry, numbers, paddle, torch

import numpy as np

CHINESE = "注意力、Transformer 层与掩码"

_LAYOUT = "no fault where the model transposes its tensors to match"


def _torch_attention(**settings: Any) -> Any:
    """Return an attention of 2 heads over 4 features with known weights."""
    layer = torch.nn.MultiheadAttention(4, 2, batch_first=True, **settings)
    layer.in_proj_weight.data = torch.tensor(numbers(12, 4))
    layer.in_proj_bias.data = torch.tensor(numbers(12))
    layer.out_proj.weight.data = torch.tensor(numbers(4, 4))
    layer.out_proj.bias.data = torch.tensor(numbers(4))
    return layer


def _paddle_attention(**settings: Any) -> Any:
    """Return the same from Paddle: three projections for in_proj, all weights transposed."""
    layer = paddle.nn.MultiHeadAttention(4, 2, **settings)
    weights, biases = np.split(numbers(12, 4), 3), np.split(numbers(12), 3)
    for name, weight, bias in zip(("q_proj", "k_proj", "v_proj"), weights, biases, strict=True):
        getattr(layer, name).weight.set_value(weight.T)
        getattr(layer, name).bias.set_value(bias)
    layer.out_proj.weight.set_value(numbers(4, 4).T)
    layer.out_proj.bias.set_value(numbers(4))
    return layer


class AttentionWeights(Entry):
    """in_proj_weight (3 E, E) becomes q_proj, k_proj and v_proj, each transposed; Paddle is batch first."""

    chinese = "in_proj_weight (3E, E) 拆成 q_proj、k_proj、v_proj，各自转置；Paddle 总是批次在前。"
    apis = "torch.nn.MultiheadAttention", "paddle.nn.MultiHeadAttention"
    sources = ("quick start 3.1 step 2",)
    keywords = "in_proj_weight q_proj convert batch_first"
    conventions = {"batch_first": Convention("", None, _LAYOUT)}

    def torch_side(self) -> Any:
        x = torch.tensor(numbers(2, 3, 4))
        return _torch_attention()(x, x, x)[0]

    def paddle_side(self) -> Any:
        x = paddle.to_tensor(numbers(2, 3, 4))
        return _paddle_attention()(x, x, x)


class AttentionBooleanMask(Entry):
    """A boolean mask hides the True places in PyTorch's MultiheadAttention and the False places in Paddle's."""

    chinese = "布尔掩码：PyTorch 的 MultiheadAttention 隐藏 True 的位置，Paddle 隐藏 False 的位置。"
    apis = "torch.nn.MultiheadAttention(attn_mask=)", "paddle.nn.MultiHeadAttention(attn_mask=)"
    keywords = "mask key_padding_mask inverted"

    def torch_side(self) -> Any:
        x, hidden = torch.tensor(numbers(2, 3, 4)), torch.ones(3, 3).triu(1).bool()
        return _torch_attention()(x, x, x, attn_mask=hidden)[0]

    def paddle_side(self) -> Any:
        x, hidden = paddle.to_tensor(numbers(2, 3, 4)), paddle.ones([3, 3]).triu(1).astype("bool")
        return _paddle_attention()(x, x, x, attn_mask=~hidden)

    def plain(self) -> Any:
        x, hidden = paddle.to_tensor(numbers(2, 3, 4)), paddle.ones([3, 3]).triu(1).astype("bool")
        return _paddle_attention()(x, x, x, attn_mask=hidden)


class AttentionProbabilities(Entry):
    """PyTorch returns them by default, averaged over the heads; Paddle on need_weights=True, head by head."""

    chinese = "PyTorch 默认返回注意力权重且对各头取平均；Paddle 要 need_weights=True，且逐头返回。"
    apis = (
        "torch.nn.MultiheadAttention(need_weights=)",
        "paddle.nn.MultiHeadAttention(need_weights=)",
    )
    keywords = "need_weights average_attn_weights"

    def torch_side(self) -> Any:
        x = torch.tensor(numbers(2, 3, 4))
        return _torch_attention()(x, x, x)[1]

    def paddle_side(self) -> Any:
        x = paddle.to_tensor(numbers(2, 3, 4))
        return _paddle_attention(need_weights=True)(x, x, x)[1].mean(1)

    def plain(self) -> Any:
        x = paddle.to_tensor(numbers(2, 3, 4))
        return _paddle_attention(need_weights=True)(x, x, x)[1]

    def as_described(self, expected: Any, found: Any) -> bool:
        return bool(found.shape == (2, 2, 3, 3) and np.allclose(found.mean(1), expected))


class AttentionExtraKeys(Entry):
    """add_bias_kv and add_zero_attn have no twin: append the key and value yourself."""

    chinese = "add_bias_kv、add_zero_attn 没有对应参数：自己拼接键和值。"
    apis = "torch.nn.MultiheadAttention(add_zero_attn=)", "no argument in Paddle"
    keywords = "add_bias_kv add_zero_attn"
    conventions = {"add_bias_kv": Convention(""), "add_zero_attn": Convention("")}

    def torch_side(self) -> Any:
        x = torch.tensor(numbers(2, 3, 4))
        return _torch_attention(add_zero_attn=True)(x, x, x)[0]

    def paddle_side(self) -> Any:
        x, layer = paddle.to_tensor(numbers(2, 3, 4)), _paddle_attention()
        query, key, value = layer.q_proj(x), layer.k_proj(x), layer.v_proj(x)
        zero = paddle.zeros([2, 1, 4])
        parts = [query, paddle.concat([key, zero], 1), paddle.concat([value, zero], 1)]
        heads = [part.reshape([2, -1, 2, 2]).transpose([0, 2, 1, 3]) for part in parts]
        scores = heads[0] @ heads[1].transpose([0, 1, 3, 2]) / 2**0.5
        mixed = paddle.nn.functional.softmax(scores) @ heads[2]
        return layer.out_proj(mixed.transpose([0, 2, 1, 3]).reshape([2, 3, 4]))

    def plain(self) -> Any:
        return paddle.nn.MultiHeadAttention(4, 2, add_zero_attn=True)

    raises = "TypeError: add_zero_attn"


class ScaledDotProductLayout(Entry):
    """Paddle's function takes (batch, length, heads, size), PyTorch's (batch, heads, length, size)."""

    chinese = (
        "Paddle 的输入是 (batch, length, heads, size)，PyTorch 是 (batch, heads, length, size)。"
    )
    apis = (
        "torch.nn.functional.scaled_dot_product_attention",
        "paddle.nn.functional.scaled_dot_product_attention",
    )
    keywords = "sdpa flash attention layout"

    def torch_side(self) -> Any:
        parts = [torch.tensor(numbers(2, 3, 4, 5, seed=seed)) for seed in range(3)]
        return torch.nn.functional.scaled_dot_product_attention(*parts)

    def paddle_side(self) -> Any:
        parts = [paddle.to_tensor(numbers(2, 3, 4, 5, seed=seed)) for seed in range(3)]
        moved = [part.transpose([0, 2, 1, 3]) for part in parts]
        attend = paddle.nn.functional.scaled_dot_product_attention
        return attend(*moved).transpose([0, 2, 1, 3])

    def plain(self) -> Any:
        parts = [paddle.to_tensor(numbers(2, 3, 4, 5, seed=seed)) for seed in range(3)]
        return paddle.nn.functional.scaled_dot_product_attention(*parts)

    def as_described(self, expected: Any, found: Any) -> bool:
        return bool(found.shape == expected.shape)


class ScaledDotProductMask(Entry):
    """A boolean mask keeps the True places, in both functions: the opposite of nn.MultiheadAttention's."""

    chinese = "布尔掩码在两个函数中都表示保留 True 的位置：与 nn.MultiheadAttention 相反。"
    apis = (
        "torch.nn.functional.scaled_dot_product_attention(attn_mask=)",
        "paddle.nn.functional.scaled_dot_product_attention(attn_mask=)",
    )
    keywords = "sdpa boolean mask is_causal"

    def torch_side(self) -> Any:
        parts = [torch.tensor(numbers(2, 1, 4, 5, seed=seed)) for seed in range(3)]
        kept = torch.ones(4, 4).tril().bool()
        return torch.nn.functional.scaled_dot_product_attention(*parts, attn_mask=kept)

    def paddle_side(self) -> Any:
        parts = [paddle.to_tensor(numbers(2, 1, 4, 5, seed=seed)) for seed in range(3)]
        moved = [part.transpose([0, 2, 1, 3]) for part in parts]
        kept = paddle.ones([4, 4]).tril().astype("bool")
        attend = paddle.nn.functional.scaled_dot_product_attention
        return attend(*moved, attn_mask=kept).transpose([0, 2, 1, 3])


class TransformerEncoderLayer(Entry):
    """norm_first is normalize_before; attention dropout is its own setting in Paddle; weights are transposed."""

    chinese = "norm_first 叫 normalize_before；注意力 dropout 在 Paddle 中单独设置；权重要转置。"
    apis = "torch.nn.TransformerEncoderLayer", "paddle.nn.TransformerEncoderLayer"
    sources = ("quick start 3.1, source analysis", "guide 4.1.3")
    keywords = "normalize_before pre-norm post-norm d_model nhead attn_dropout act_dropout"
    conventions = {"norm_first": Convention("normalize_before")}

    def torch_side(self) -> Any:
        layer = torch.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True, norm_first=True)
        layer.self_attn = _torch_attention()
        layer.linear1.weight.data = torch.tensor(numbers(8, 4))
        layer.linear2.weight.data = torch.tensor(numbers(4, 8))
        for linear in (layer.linear1, layer.linear2):
            linear.bias.data.fill_(0.1)
        return layer.eval()(torch.tensor(10 * numbers(2, 3, 4)))

    def paddle_side(self) -> Any:
        layer = paddle.nn.TransformerEncoderLayer(4, 2, 8, normalize_before=True)
        layer.self_attn = _paddle_attention()
        layer.linear1.weight.set_value(numbers(8, 4).T)
        layer.linear2.weight.set_value(numbers(4, 8).T)
        for linear in (layer.linear1, layer.linear2):
            linear.bias.set_value(np.full(linear.bias.shape, 0.1))
        layer.eval()
        return layer(paddle.to_tensor(10 * numbers(2, 3, 4)))


class CausalMask(Entry):
    """Both make a float mask of 0 and -inf above the diagonal; Paddle's is a method of an instance."""

    chinese = "两边都生成对角线以上为 -inf 的浮点掩码；Paddle 的是实例方法。"
    apis = (
        "torch.nn.Transformer.generate_square_subsequent_mask",
        "paddle.nn.Transformer().generate_square_subsequent_mask",
    )
    keywords = "triu causal"

    def torch_side(self) -> Any:
        return torch.nn.Transformer.generate_square_subsequent_mask(3)

    def paddle_side(self) -> Any:
        transformer = paddle.nn.Transformer(4, 2, 1, 1, 8)
        return transformer.generate_square_subsequent_mask(3).astype("float64")


class Triu(Entry):
    """diagonal=1 leaves out the diagonal in both."""

    chinese = "diagonal=1 在两边都不含主对角线。"
    apis = "torch.triu", "paddle.triu"
    keywords = "tril causal mask diagonal"

    def torch_side(self) -> Any:
        x = torch.tensor(numbers(3, 3))
        return torch.triu(x, diagonal=1), torch.tril(x, diagonal=-1)

    def paddle_side(self) -> Any:
        x = paddle.to_tensor(numbers(3, 3))
        return paddle.triu(x, diagonal=1), paddle.tril(x, diagonal=-1)


class MaskedFill(Entry):
    """Paddle has masked_fill today, as a function and a method; the sources' where does the same."""

    chinese = "如今 Paddle 有 masked_fill（函数和方法）；原文档用 where 的写法结果相同。"
    apis = "torch.Tensor.masked_fill", "paddle.masked_fill"
    sources = ("guide 4.1.1", "FAQ: masked_fill")
    keywords = "where mask"

    def torch_side(self) -> Any:
        x = torch.tensor(numbers(3, 3))
        return x.masked_fill(x > 0, 2.0), x.masked_fill(x > 0, 2.0)

    def paddle_side(self) -> Any:
        x = paddle.to_tensor(numbers(3, 3))
        return x.masked_fill(x > 0, 2.0), paddle.where(x > 0, paddle.full_like(x, 2.0), x)
