"""A U-Net that is told the step and the class, with attention in the middle and a stack of skips."""

import math

import paddle
import paddle.nn.functional as F
from paddle import nn


def embed_step(step, dim, period=1000):
    half = dim // 2
    rates = paddle.exp(-math.log(period) * paddle.arange(half).astype(step.dtype) / half)
    angles = step.unsqueeze(1) * rates.unsqueeze(0)
    return paddle.concat([paddle.cos(angles), paddle.sin(angles)], axis=-1)


class Residual(nn.Layer):
    def __init__(self, before, after, time, groups=2, dropout=0.1, scale_shift=True):
        super().__init__()
        self.norm1 = nn.GroupNorm(groups, before, epsilon=1e-5)
        self.conv1 = nn.Conv2D(before, after, 3, padding=1)
        self.time = nn.Linear(time, 2 * after if scale_shift else after)
        self.norm2 = nn.GroupNorm(groups, after, epsilon=1e-5)
        self.dropout = nn.Dropout2D(dropout)
        self.conv2 = nn.Conv2D(after, after, 3, padding=1)
        self.skip = nn.Conv2D(before, after, 1) if before != after else nn.Identity()
        self.scale_shift = scale_shift

    def forward(self, x, time):
        h = self.conv1(F.silu(self.norm1(x)))
        told = self.time(F.silu(time)).unsqueeze([2, 3])
        if self.scale_shift:
            scale, shift = paddle.chunk(told, 2, axis=1)
            h = self.norm2(h) * (1 + scale) + shift
        else:
            h = self.norm2(h + told)
        h = self.conv2(self.dropout(F.silu(h)))
        return (self.skip(x) + h) / math.sqrt(2)


class SpatialAttention(nn.Layer):
    def __init__(self, channels, groups=2):
        super().__init__()
        self.norm = nn.GroupNorm(groups, channels)
        self.qkv = nn.Conv1D(channels, 3 * channels, 1)
        self.out = nn.Conv1D(channels, channels, 1)

    def forward(self, x):
        n, c, height, width = x.shape
        h = paddle.flatten(self.norm(x), start_axis=2)
        q, k, v = paddle.split(self.qkv(h), 3, axis=1)
        scores = paddle.matmul(q, k, transpose_x=True) * c**-0.5
        h = paddle.matmul(v, F.softmax(scores, axis=-1), transpose_y=True)
        return x + paddle.reshape(self.out(h), [n, c, height, width])


class Down(nn.Layer):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2D(channels, channels, 3, stride=2)

    def forward(self, x):
        return self.conv(F.pad(x, [0, 1, 0, 1]))


class Up(nn.Layer):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2DTranspose(channels, channels, 4, stride=2, padding=1)

    def forward(self, x, gain=1.0):
        return self.conv(x) * gain


class Denoiser(nn.Layer):
    def __init__(self, channels=3, width=8, factors=(1, 2), classes=5, time=16):
        super().__init__()
        self.width = width
        self.step = nn.Sequential(nn.Linear(width, time), nn.Silu(), nn.Linear(time, time))
        self.label = nn.Embedding(classes, time)
        self.first = nn.Conv2D(channels, width, 3, padding=1)
        self.down, self.shrink = nn.LayerList(), nn.LayerList()
        self.up, self.grow = nn.LayerList(), nn.LayerList()
        sizes = [width * factor for factor in factors]
        before = width
        for size in sizes:
            self.down.append(Residual(before, size, time))
            self.shrink.append(Down(size))
            before = size
        self.middle = Residual(before, before, time, scale_shift=False)
        self.attention = SpatialAttention(before)
        for size in reversed(sizes):
            self.grow.append(Up(before))
            self.up.append(Residual(before + size, size, time))
            before = size
        self.norm = nn.GroupNorm(2, before)
        self.last = nn.Conv2D(before, channels, 3, padding=1)

    def forward(self, x, step, label=None, gain=0.5):
        time = self.step(embed_step(step, self.width))
        if label is not None:
            time = time + self.label(label)
        h, skips = self.first(x), []
        for block, shrink in zip(self.down, self.shrink):
            h = block(h, time)
            skips.append(h)
            h = shrink(h)
        h = self.attention(self.middle(h, time))
        for block, grow in zip(self.up, self.grow):
            h = paddle.concat([grow(h, gain=gain), skips.pop()], axis=1)
            h = block(h, time)
        return x - self.last(F.silu(self.norm(h)))


def make():
    return Denoiser()
