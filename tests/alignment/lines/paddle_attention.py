"""The faithful port of `torch_attention`; the tests change one line of it at a time."""

import paddle
import paddle.nn.functional as F
from paddle import nn


class Attention(nn.Layer):
    def __init__(self, d: int = 8, h: int = 2) -> None:
        super().__init__()
        self.h, self.scale = h, (d // h) ** -0.5
        self.q = nn.Linear(d, d)
        self.k = nn.Linear(d, d)
        self.v = nn.Linear(d, d)
        self.out = nn.Linear(d, d)
        self.norm = nn.LayerNorm(d)

    def split(self, x: paddle.Tensor) -> paddle.Tensor:
        b, n, d = x.shape
        return x.reshape([b, n, self.h, d // self.h]).transpose([0, 2, 1, 3])

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        q, k, v = self.split(self.q(x)), self.split(self.k(x)), self.split(self.v(x))
        scores = paddle.matmul(q, k, transpose_y=True) * self.scale
        probs = F.softmax(scores, axis=-1)
        y = (probs @ v).transpose([0, 2, 1, 3]).reshape(x.shape)
        y = F.gelu(y)
        y = self.out(y)
        return self.norm(x + y)
