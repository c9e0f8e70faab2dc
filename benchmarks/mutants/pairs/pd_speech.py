"""Speech: convolutions over time, conformer blocks, and a head with reversed gradients."""

import paddle
import paddle.nn.functional as F
from paddle import nn
from paddle.autograd import PyLayer


class Reverse(PyLayer):
    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x * 1.0

    @staticmethod
    def backward(ctx, gradient):
        return -ctx.strength * gradient


def padding_mask(lengths, size):
    return paddle.arange(size).unsqueeze(0) >= lengths.unsqueeze(1)


def fill(x, mask, value):
    return paddle.where(mask.expand_as(x), paddle.full_like(x, value), x)


class Subsample(nn.Layer):
    def __init__(self, features, dim):
        super().__init__()
        self.conv1 = nn.Conv1D(features, dim, 3, stride=2, padding=1)
        self.conv2 = nn.Conv1D(dim, dim, 5, padding=2, groups=dim)
        self.norm = nn.BatchNorm1D(dim, momentum=0.8)

    def forward(self, x):
        x = F.gelu(self.conv1(x.transpose([0, 2, 1])))
        return F.hardswish(self.norm(self.conv2(x))).transpose([0, 2, 1])


class RelativeAttention(nn.Layer):
    def __init__(self, dim, heads, span):
        super().__init__()
        self.heads, self.span, self.scale = heads, span, (dim // heads) ** -0.5
        self.q = nn.Linear(dim, dim)
        self.k = nn.Linear(dim, dim)
        self.v = nn.Linear(dim, dim)
        self.bias = nn.Embedding(2 * span + 1, heads)
        self.out = nn.Linear(dim, dim)
        self.dropout = nn.Dropout(0.1)

    def heads_of(self, x):
        return paddle.reshape(x, [x.shape[0], x.shape[1], self.heads, -1]).transpose([0, 2, 1, 3])

    def positions(self, size):
        at = paddle.arange(size)
        apart = paddle.clip(at.unsqueeze(0) - at.unsqueeze(1), -self.span, self.span) + self.span
        return self.bias(apart).transpose([2, 0, 1])

    def forward(self, x, mask):
        q, k, v = self.heads_of(self.q(x)), self.heads_of(self.k(x)), self.heads_of(self.v(x))
        scores = paddle.matmul(q * self.scale, k, transpose_y=True) + self.positions(x.shape[1])
        scores = fill(scores, mask.unsqueeze([1, 2]), -1e4)
        weights = self.dropout(F.softmax(scores, axis=-1))
        return self.out(paddle.matmul(weights, v).transpose([0, 2, 1, 3]).flatten(2))


class Convolution(nn.Layer):
    def __init__(self, dim, kernel=3):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.pointwise = nn.Conv1D(dim, 2 * dim, 1)
        self.depthwise = nn.Conv1D(dim, dim, kernel, padding=kernel // 2, groups=dim)
        self.last = nn.Conv1D(dim, dim, 1)

    def forward(self, x, mask):
        x = self.norm(x).transpose([0, 2, 1])
        x = F.glu(self.pointwise(x), axis=1)
        x = fill(x, mask.unsqueeze(1), 0.0)
        x = self.last(F.silu(self.depthwise(x)))
        return x.transpose([0, 2, 1])


class Conformer(nn.Layer):
    def __init__(self, dim, heads, span):
        super().__init__()
        self.before = nn.Sequential(
            nn.LayerNorm(dim), nn.Linear(dim, 2 * dim), nn.Silu(), nn.Linear(2 * dim, dim)
        )
        self.attention = RelativeAttention(dim, heads, span)
        self.convolution = Convolution(dim)
        self.norm = nn.LayerNorm(dim, epsilon=1e-6)

    def forward(self, x, mask):
        x = x + 0.5 * self.before(x)
        x = x + self.attention(x, mask)
        x = x + self.convolution(x, mask)
        return self.norm(x)


class SpeechNet(nn.Layer):
    def __init__(self, features=6, dim=16, heads=4, words=9, speakers=4, strength=0.7):
        super().__init__()
        self.strength = strength
        self.subsample = Subsample(features, dim)
        self.layers = nn.LayerList([Conformer(dim, heads, 3) for _ in range(2)])
        self.mix = self.create_parameter([2])
        self.words = nn.Linear(dim, words)
        self.speaker = nn.Linear(2 * dim, speakers)

    def pool(self, x, mask):
        kept = paddle.logical_not(mask).unsqueeze(-1).astype(x.dtype)
        count = kept.sum(axis=1)
        mean = (x * kept).sum(axis=1) / count
        spread = (paddle.square(x - mean.unsqueeze(1)) * kept).sum(axis=1) / count
        return paddle.concat([mean, (spread + 1e-5).sqrt()], axis=-1)

    def forward(self, waves, lengths):
        lengths = (lengths + 1) // 2
        x = self.subsample(waves)
        mask = padding_mask(lengths, x.shape[1])
        states = []
        for layer in self.layers:
            x = layer(x, mask)
            states.append(x)
        weights = F.softmax(self.mix, axis=0)
        x = sum(weight * state for weight, state in zip(weights, states))
        speaker = self.speaker(Reverse.apply(self.pool(x, mask), self.strength))
        return F.log_softmax(self.words(x), axis=-1), F.normalize(speaker, axis=-1)


def make():
    return SpeechNet()
