"""Forecasting: reversible normalization, trend and season, rotary attention over patches."""

import math

import numpy as np
import torch
import torch.nn as nn


class Reversible(nn.Module):
    def __init__(self, columns, eps=1e-4):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(columns))
        self.bias = nn.Parameter(torch.zeros(columns))

    def forward(self, x, mode):
        if mode == "norm":
            self.mean = x.mean(1, keepdim=True)
            self.spread = torch.sqrt(x.var(1, keepdim=True, unbiased=False) + self.eps)
            return (x - self.mean) / self.spread * self.weight + self.bias
        x = (x - self.bias) / (self.weight + self.eps**2)
        return x * self.spread + self.mean


class Decomposition(nn.Module):
    def __init__(self, kernel):
        super().__init__()
        self.kernel = kernel
        self.average = nn.AvgPool1d(kernel, stride=1)

    def forward(self, x):
        half = (self.kernel - 1) // 2
        padded = torch.cat([x[:, :1].repeat(1, half, 1), x, x[:, -1:].repeat(1, half, 1)], dim=1)
        trend = self.average(padded.transpose(1, 2)).transpose(1, 2)
        return x - trend, trend


class Rotary(nn.Module):
    def __init__(self, dim, length, base=1000.0):
        super().__init__()
        rates = 1.0 / base ** (torch.arange(0, dim, 2).float() / dim)
        angles = torch.outer(torch.arange(length).float(), rates)
        self.register_buffer("cos", angles.cos().repeat(1, 2), persistent=False)
        self.register_buffer("sin", angles.sin().repeat(1, 2), persistent=False)

    def forward(self, x):
        first, second = x.chunk(2, dim=-1)
        turned = torch.cat([-second, first], dim=-1)
        size = x.shape[-2]
        return x * self.cos[:size] + turned * self.sin[:size]


class Mixer(nn.Module):
    def __init__(self, dim, heads, length, dropout):
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.rotary = Rotary(dim // heads, length)
        self.out = nn.Linear(dim, dim)
        self.slopes = nn.Parameter(torch.randn(heads))
        self.dropout = nn.Dropout(dropout)

    def distance(self, size):
        at = torch.arange(size)
        return (at[:, None] - at[None, :]).clamp(min=0)

    def forward(self, x, mask):
        batch, size, dim = x.shape
        qkv = self.qkv(self.norm(x)).reshape(batch, size, 3, self.heads, dim // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        scores = self.rotary(q) @ self.rotary(k).transpose(-2, -1) / math.sqrt(dim // self.heads)
        scores = scores - self.slopes.abs()[:, None, None] * self.distance(size)
        scores = scores.masked_fill(mask, float("-inf"))
        probs = self.dropout(scores.softmax(-1))
        return x + self.out((probs @ v).transpose(1, 2).reshape(batch, size, dim))


class Forecaster(nn.Module):
    def __init__(self, columns=3, length=16, patch=4, stride=2, horizon=5, dim=16, heads=2):
        super().__init__()
        self.patch, self.stride, self.horizon = patch, stride, horizon
        count = (length - patch) // stride + 1
        self.reversible = Reversible(columns)
        self.split = Decomposition(5)
        self.embed = nn.Linear(patch, dim)
        positions = torch.zeros(count, dim)
        rates = torch.exp(torch.arange(0, dim, 2) * -(math.log(500.0) / dim))
        positions[:, 0::2] = torch.sin(torch.arange(count)[:, None] * rates)
        positions[:, 1::2] = torch.cos(torch.arange(count)[:, None] * rates)
        self.register_buffer("positions", positions)
        self.mixers = nn.ModuleList([Mixer(dim, heads, count, 0.1) for _ in range(2)])
        self.trend = nn.Linear(length, horizon)
        self.head = nn.Linear(count * dim, horizon)

    def causal(self, size):
        return torch.triu(torch.ones(size, size, dtype=torch.bool), diagonal=1)

    def forward(self, x, hour):
        x = self.reversible(x, "norm")
        season, trend = self.split(x)
        patches = season.transpose(1, 2).unfold(-1, self.patch, self.stride)
        batch, columns, count, _ = patches.shape
        h = self.embed(patches).flatten(0, 1) + self.positions
        h = h + torch.sin(hour * 2 * math.pi / 24).repeat_interleave(columns, 0)[:, None, None]
        for mixer in self.mixers:
            h = mixer(h, self.causal(count))
        season = self.head(h.flatten(1)).reshape(batch, columns, self.horizon)
        out = season + self.trend(trend.transpose(1, 2))
        return self.reversible(out.transpose(1, 2), "denorm")


def make():
    return Forecaster()


def inputs():
    drawn = np.random.default_rng(0)
    walk = drawn.standard_normal((2, 16, 3)).cumsum(1)
    return walk.astype("float32"), drawn.uniform(0, 24, 2).astype("float32")
