"""The faithful port of `torch_masks`, with Paddle's own attention; the tests change one line at a time."""

import paddle
from paddle import nn


def hide(kept: paddle.Tensor, length: int) -> paddle.Tensor:
    later = paddle.tensor.triu(paddle.full([length, length], -1e4), 1)
    padding = (1.0 - kept.unsqueeze([1, 2]).astype(later.dtype)) * -1e4
    return later + padding


class Encoder(nn.Layer):
    def __init__(self, d: int = 8) -> None:
        super().__init__()
        self.words = nn.Embedding(30, d)
        self.places = nn.Embedding(12, d)
        self.attention = nn.MultiHeadAttention(d, 2)
        self.norm = nn.LayerNorm(d)

    def forward(self, ids: paddle.Tensor, kept: paddle.Tensor) -> paddle.Tensor:
        ones = paddle.ones_like(ids)
        counted = paddle.cumsum(ones, axis=1)
        x = self.words(ids) + self.places(counted)
        mask = hide(kept, ids.shape[1])
        return self.norm(x + self.attention(x, x, x, mask))
