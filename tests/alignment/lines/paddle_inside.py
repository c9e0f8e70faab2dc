"""The same attention as a subclass of Paddle's own, whose code calls the method that turns them."""

from types import SimpleNamespace

import paddle
from paddle import nn
from paddle.nn import functional as F


def baddbmm(x: paddle.Tensor, batch1: paddle.Tensor, batch2: paddle.Tensor, alpha: float = 1.0):
    return x + alpha * paddle.matmul(batch1, batch2)


class Rotary(nn.Layer):
    def __init__(self, d: int) -> None:
        super().__init__()
        self.d = d

    def forward(self, x: paddle.Tensor, offset: int = 0) -> paddle.Tensor:
        places = paddle.arange(offset, offset + x.shape[2]).astype("float64")
        angles = paddle.outer(places, paddle.linspace(1.0, 0.1, self.d // 2, dtype="float64"))
        sin, cos = angles.sin().astype(x.dtype), angles.cos().astype(x.dtype)
        x1, x2 = x[..., 0::2], x[..., 1::2]
        return paddle.stack([x1 * cos - x2 * sin, x1 * sin + x2 * cos], -1).flatten(-2)


class Attention(nn.MultiHeadAttention):
    def __init__(self, d: int, heads: int) -> None:
        super().__init__(d, heads)
        self.rotary = Rotary(d // heads)

    def _prepare_qkv(self, query, key, value, cache=None):
        q = self.q_proj(query)
        q = paddle.reshape(q, [0, 0, self.num_heads, self.head_dim])
        q = paddle.transpose(q, [0, 2, 1, 3])
        k, v = self.compute_kv(key, value)
        q = self.rotary(q, offset=0)
        k = self.rotary(k, offset=0)
        return (q, k, v) if cache is None else (q, k, v, cache)


class Model(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.attention = nn.Embedding(20, 8), Attention(8, 2)
        self.norm, self.head = nn.LayerNorm(8), nn.Linear(8, 3)
        self.config = SimpleNamespace(eps=1e-12)
        self.apply(self.init_weights)

    def init_weights(self, layer: nn.Layer) -> None:
        if isinstance(layer, nn.LayerNorm):
            layer._epsilon = self.config.eps

    def forward(self, ids: paddle.Tensor) -> paddle.Tensor:
        x = self.words(ids)
        x = self.norm(x + self.attention(x))
        mixed = baddbmm(x, F.softmax(paddle.matmul(x, x, transpose_y=True), -1), x)
        return self.head(mixed + self.words(ids))
