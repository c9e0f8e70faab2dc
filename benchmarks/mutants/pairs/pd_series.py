"""Forecasting: reversible normalization, trend and season, rotary attention over patches."""

import math

import paddle
import paddle.nn as nn


class Reversible(nn.Layer):
    def __init__(self, columns, eps=1e-4):
        super().__init__()
        self.eps = eps
        self.weight = self.create_parameter([columns])
        self.bias = self.create_parameter([columns], is_bias=True)

    def forward(self, x, mode):
        if mode == "norm":
            self.mean = paddle.mean(x, axis=1, keepdim=True)
            variance = paddle.var(x, axis=1, keepdim=True, unbiased=False)
            self.spread = paddle.sqrt(variance + self.eps)
            return (x - self.mean) / self.spread * self.weight + self.bias
        x = (x - self.bias) / (self.weight + self.eps**2)
        return x * self.spread + self.mean


class Decomposition(nn.Layer):
    def __init__(self, kernel):
        super().__init__()
        self.kernel = kernel
        self.average = nn.AvgPool1D(kernel, stride=1)

    def forward(self, x):
        half = (self.kernel - 1) // 2
        front = paddle.tile(x[:, :1], [1, half, 1])
        back = paddle.tile(x[:, -1:], [1, half, 1])
        padded = paddle.concat([front, x, back], axis=1)
        trend = self.average(padded.transpose([0, 2, 1])).transpose([0, 2, 1])
        return x - trend, trend


class Rotary(nn.Layer):
    def __init__(self, dim, length, base=1000.0):
        super().__init__()
        rates = 1.0 / base ** (paddle.arange(0, dim, 2).astype("float32") / dim)
        angles = paddle.outer(paddle.arange(length).astype("float32"), rates)
        self.register_buffer("cos", paddle.tile(angles.cos(), [1, 2]), persistable=False)
        self.register_buffer("sin", paddle.tile(angles.sin(), [1, 2]), persistable=False)

    def forward(self, x):
        first, second = paddle.chunk(x, 2, axis=-1)
        turned = paddle.concat([-second, first], axis=-1)
        size = x.shape[-2]
        return x * self.cos[:size] + turned * self.sin[:size]


class Mixer(nn.Layer):
    def __init__(self, dim, heads, length, dropout):
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim, bias_attr=False)
        self.rotary = Rotary(dim // heads, length)
        self.out = nn.Linear(dim, dim)
        self.slopes = self.create_parameter([heads])
        self.dropout = nn.Dropout(dropout)

    def distance(self, size):
        at = paddle.arange(size)
        return (at.unsqueeze(1) - at.unsqueeze(0)).clip(min=0)

    def forward(self, x, mask):
        batch, size, dim = x.shape
        width = dim // self.heads
        qkv = self.qkv(self.norm(x)).reshape([batch, size, 3, self.heads, width])
        q, k, v = qkv.transpose([2, 0, 3, 1, 4]).unbind(0)
        scores = paddle.matmul(self.rotary(q), self.rotary(k), transpose_y=True) / math.sqrt(width)
        slopes = self.slopes.abs().reshape([-1, 1, 1])
        scores = scores - slopes * self.distance(size).astype(scores.dtype)
        scores = paddle.where(mask, paddle.full_like(scores, float("-inf")), scores)
        probs = self.dropout(nn.functional.softmax(scores, axis=-1))
        merged = paddle.matmul(probs, v).transpose([0, 2, 1, 3]).reshape([batch, size, dim])
        return x + self.out(merged)


class Forecaster(nn.Layer):
    def __init__(self, columns=3, length=16, patch=4, stride=2, horizon=5, dim=16, heads=2):
        super().__init__()
        self.patch, self.stride, self.horizon = patch, stride, horizon
        count = (length - patch) // stride + 1
        self.reversible = Reversible(columns)
        self.split = Decomposition(5)
        self.embed = nn.Linear(patch, dim)
        at = paddle.arange(count).astype("float32").unsqueeze(1)
        rates = paddle.exp(paddle.arange(0, dim, 2).astype("float32") * -(math.log(500.0) / dim))
        positions = paddle.zeros([count, dim])
        positions[:, 0::2] = paddle.sin(at * rates)
        positions[:, 1::2] = paddle.cos(at * rates)
        self.register_buffer("positions", positions)
        self.mixers = nn.LayerList([Mixer(dim, heads, count, 0.1) for _ in range(2)])
        self.trend = nn.Linear(length, horizon)
        self.head = nn.Linear(count * dim, horizon)

    def causal(self, size):
        return paddle.triu(paddle.ones([size, size]), diagonal=1).astype("bool")

    def cut(self, x):
        first = range(0, x.shape[-1] - self.patch + 1, self.stride)
        return paddle.stack([x[:, :, at : at + self.patch] for at in first], axis=2)

    def forward(self, x, hour):
        x = self.reversible(x, "norm")
        season, trend = self.split(x)
        patches = self.cut(season.transpose([0, 2, 1]))
        batch, columns, count, _ = patches.shape
        h = self.embed(patches).flatten(0, 1) + self.positions
        phase = paddle.sin(hour * 2 * math.pi / 24)
        h = h + paddle.repeat_interleave(phase, columns, 0).reshape([-1, 1, 1])
        for mixer in self.mixers:
            h = mixer(h, self.causal(count))
        season = self.head(h.flatten(1)).reshape([batch, columns, self.horizon])
        out = season + self.trend(trend.transpose([0, 2, 1]))
        return self.reversible(out.transpose([0, 2, 1]), "denorm")


def make():
    return Forecaster()
