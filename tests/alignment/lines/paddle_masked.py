"""Faithful port of `torch_masked`."""

import math

import paddle
import paddle.nn.functional as F
from paddle import nn


class Words(nn.Layer):
    def __init__(self, d):
        super().__init__()
        self.table, self.place = nn.Embedding(30, d), nn.Embedding(40, d)
        self.register_buffer("numbers", paddle.arange(12) + 2, persistable=False)

    def forward(self, ids, kinds=None):
        counted = paddle.cumsum((ids != 0).astype("int64"), axis=1)
        first = self.place(self.numbers[: ids.shape[1]])
        words = self.table(ids)
        return words + self.place(counted + 14) + first


class Scale(nn.Layer):
    def __init__(self, d, eps=1e-6):
        super().__init__()
        self.weight = self.create_parameter([d])
        self.eps = eps

    def forward(self, x):
        return self.weight * x * paddle.rsqrt((x * x).mean(-1, keepdim=True) + self.eps)


class Attention(nn.Layer):
    def __init__(self, d):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d)
        self.scale = math.sqrt(d)

    def forward(self, x, mask):
        q, k, v = self.q(x), self.k(x), self.v(x)
        scores = q @ k.transpose([0, 2, 1])
        scores = scores / self.scale
        if mask is not None:
            scores = scores + mask
        return F.softmax(scores, axis=-1) @ v


class Block(nn.Layer):
    def __init__(self, d):
        super().__init__()
        self.attention, self.norm = Attention(d), Scale(d, eps=1e-6)
        self.out = nn.Linear(d, d)

    def forward(self, x, mask=None):
        return self.norm(x + self.out(self.attention(x, mask)))


class Model(nn.Layer):
    def __init__(self, d=8):
        super().__init__()
        self.words, self.block, self.head = Words(d), Block(d), nn.Linear(d, 3)

    def forward(self, ids, kept):
        x = self.words(ids)
        mask = (1.0 - kept.unsqueeze(1).astype(x.dtype)) * -1e4
        return self.head(self.block(x, mask=mask))
