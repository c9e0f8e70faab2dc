"""Faithful port of `torch_switches`."""

import paddle
from paddle import nn


class Attention(nn.Layer):
    def __init__(self, d, scaled=True):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d)
        self.softmax = nn.Softmax(-1)
        self.out = nn.Linear(d, d)
        self.scaled = scaled
        self.narrow = 0.25
        self.gain = 1.5 if d == 8 else 1.0

    def split(self, x):
        x = x.reshape([x.shape[0], x.shape[1], 2, -1])
        return x.transpose([0, 2, 1, 3])

    def forward(self, x, mask=None):
        q = self.split(self.q(x))
        k = self.split(self.k(x))
        v = self.split(self.v(x))
        scores = q @ k.transpose([0, 1, 3, 2])
        if self.scaled:
            scores = scores / 2
        scores = scores * self.narrow
        scores = scores * self.gain
        if mask is not None and x.ndim == 3:
            scores = scores + mask
        probs = self.softmax(scores)
        return self.out((probs @ v).transpose([0, 2, 1, 3]).reshape(x.shape))


class Model(nn.Layer):
    def __init__(self, d=8):
        super().__init__()
        self.words = nn.Embedding(30, d)
        self.attention = Attention(
            d,
            scaled=True,
        )
        self.norm = nn.LayerNorm(d)
        self.head = nn.Linear(d, 3)

    def pool(self, y, first):
        y = y[:, 0]
        if not first:
            return y
        return paddle.tanh(y)

    def forward(self, ids, kept):
        x = self.words(ids)
        mask = (1.0 - kept.unsqueeze([1, 2]).astype(x.dtype)) * -1e4
        y = self.norm(x + self.attention(x, mask))
        return self.head(self.pool(y, first=True))


class Stack(nn.Layer):
    def __init__(self, d=8):
        super().__init__()
        self.words = nn.Embedding(30, d)
        layer = nn.TransformerEncoderLayer(d, 2, 16, 0.0)
        self.layers = nn.TransformerEncoder(layer, 2)
        self.heads = nn.LayerList([nn.Linear(d, 3)])

    def forward(self, ids):
        x = self.words(ids)
        x = paddle.tanh(x)
        x = self.layers(x)
        return self.heads[0](x)
