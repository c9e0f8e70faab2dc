"""A U-Net that is told the step and the class, with attention in the middle and a stack of skips."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


def embed_step(step, dim, period=1000):
    half = dim // 2
    rates = torch.exp(-math.log(period) * torch.arange(half) / half)
    angles = step[:, None] * rates[None]
    return torch.cat([torch.cos(angles), torch.sin(angles)], dim=-1)


class Residual(nn.Module):
    def __init__(self, before, after, time, groups=2, dropout=0.1, scale_shift=True):
        super().__init__()
        self.norm1 = nn.GroupNorm(groups, before, eps=1e-5)
        self.conv1 = nn.Conv2d(before, after, 3, padding=1)
        self.time = nn.Linear(time, 2 * after if scale_shift else after)
        self.norm2 = nn.GroupNorm(groups, after, eps=1e-5)
        self.dropout = nn.Dropout2d(dropout)
        self.conv2 = nn.Conv2d(after, after, 3, padding=1)
        self.skip = nn.Conv2d(before, after, 1) if before != after else nn.Identity()
        self.scale_shift = scale_shift

    def forward(self, x, time):
        h = self.conv1(F.silu(self.norm1(x)))
        told = self.time(F.silu(time))[:, :, None, None]
        if self.scale_shift:
            scale, shift = told.chunk(2, dim=1)
            h = self.norm2(h) * (1 + scale) + shift
        else:
            h = self.norm2(h + told)
        return (self.skip(x) + self.conv2(self.dropout(F.silu(h)))) / math.sqrt(2)


class SpatialAttention(nn.Module):
    def __init__(self, channels, groups=2):
        super().__init__()
        self.norm = nn.GroupNorm(groups, channels)
        self.qkv = nn.Conv1d(channels, 3 * channels, 1)
        self.out = nn.Conv1d(channels, channels, 1)

    def forward(self, x):
        n, c, height, width = x.shape
        h = self.norm(x).flatten(2)
        q, k, v = self.qkv(h).split(c, dim=1)
        scores = torch.einsum("bct,bcs->bts", q, k) * c**-0.5
        h = torch.einsum("bts,bcs->bct", scores.softmax(dim=-1), v)
        return x + self.out(h).view(n, c, height, width)


class Down(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, stride=2)

    def forward(self, x):
        return self.conv(F.pad(x, (0, 1, 0, 1)))


class Up(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.ConvTranspose2d(channels, channels, 4, stride=2, padding=1)

    def forward(self, x, gain=1.0):
        return self.conv(x) * gain


class Denoiser(nn.Module):
    def __init__(self, channels=3, width=8, factors=(1, 2), classes=5, time=16):
        super().__init__()
        self.width = width
        self.step = nn.Sequential(nn.Linear(width, time), nn.SiLU(), nn.Linear(time, time))
        self.label = nn.Embedding(classes, time)
        self.first = nn.Conv2d(channels, width, 3, padding=1)
        self.down, self.shrink = nn.ModuleList(), nn.ModuleList()
        self.up, self.grow = nn.ModuleList(), nn.ModuleList()
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
        self.last = nn.Conv2d(before, channels, 3, padding=1)

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
            h = torch.cat([grow(h, gain=gain), skips.pop()], dim=1)
            h = block(h, time)
        return x - self.last(F.silu(self.norm(h)))


def make():
    return Denoiser()


def inputs():
    drawn = np.random.default_rng(0)
    images = drawn.standard_normal((2, 3, 8, 8)).astype("float32")
    return {"x": images, "step": np.array([3.0, 41.0], "float32"), "label": np.array([1, 4])}
