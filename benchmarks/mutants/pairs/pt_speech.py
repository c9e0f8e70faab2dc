"""Speech: convolutions over time, conformer blocks, and a head with reversed gradients."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x * 1.0

    @staticmethod
    def backward(ctx, gradient):
        return -ctx.strength * gradient, None


def padding_mask(lengths, size):
    return torch.arange(size)[None] >= lengths[:, None]


class Subsample(nn.Module):
    def __init__(self, features, dim):
        super().__init__()
        self.conv1 = nn.Conv1d(features, dim, 3, stride=2, padding=1)
        self.conv2 = nn.Conv1d(dim, dim, 5, padding=2, groups=dim)
        self.norm = nn.BatchNorm1d(dim, momentum=0.2)

    def forward(self, x):
        x = F.gelu(self.conv1(x.transpose(1, 2)))
        return F.hardswish(self.norm(self.conv2(x))).transpose(1, 2)


class RelativeAttention(nn.Module):
    def __init__(self, dim, heads, span):
        super().__init__()
        self.heads, self.span, self.scale = heads, span, (dim // heads) ** -0.5
        self.q, self.k, self.v = (nn.Linear(dim, dim) for _ in range(3))
        self.bias = nn.Embedding(2 * span + 1, heads)
        self.out = nn.Linear(dim, dim)
        self.dropout = nn.Dropout(0.1)

    def heads_of(self, x):
        return x.view(x.shape[0], x.shape[1], self.heads, -1).transpose(1, 2)

    def positions(self, size):
        at = torch.arange(size)
        apart = torch.clamp(at[None, :] - at[:, None], -self.span, self.span) + self.span
        return self.bias(apart).permute(2, 0, 1)

    def forward(self, x, mask):
        q, k, v = self.heads_of(self.q(x)), self.heads_of(self.k(x)), self.heads_of(self.v(x))
        scores = torch.matmul(q * self.scale, k.transpose(2, 3)) + self.positions(x.shape[1])
        scores = scores.masked_fill(mask[:, None, None, :], -1e4)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return self.out(torch.matmul(weights, v).transpose(1, 2).flatten(2))


class Convolution(nn.Module):
    def __init__(self, dim, kernel=3):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.pointwise = nn.Conv1d(dim, 2 * dim, 1)
        self.depthwise = nn.Conv1d(dim, dim, kernel, padding=kernel // 2, groups=dim)
        self.last = nn.Conv1d(dim, dim, 1)

    def forward(self, x, mask):
        x = F.glu(self.pointwise(self.norm(x).transpose(1, 2)), dim=1)
        x = x.masked_fill(mask.unsqueeze(1), 0.0)
        return self.last(F.silu(self.depthwise(x))).transpose(1, 2)


class Conformer(nn.Module):
    def __init__(self, dim, heads, span):
        super().__init__()
        self.before = nn.Sequential(
            nn.LayerNorm(dim), nn.Linear(dim, 2 * dim), nn.SiLU(), nn.Linear(2 * dim, dim)
        )
        self.attention = RelativeAttention(dim, heads, span)
        self.convolution = Convolution(dim)
        self.norm = nn.LayerNorm(dim, eps=1e-6)

    def forward(self, x, mask):
        x = x + 0.5 * self.before(x)
        x = x + self.attention(x, mask)
        x = x + self.convolution(x, mask)
        return self.norm(x)


class SpeechNet(nn.Module):
    def __init__(self, features=6, dim=16, heads=4, words=9, speakers=4, strength=0.7):
        super().__init__()
        self.strength = strength
        self.subsample = Subsample(features, dim)
        self.layers = nn.ModuleList([Conformer(dim, heads, 3) for _ in range(2)])
        self.mix = nn.Parameter(torch.zeros(2))
        self.words = nn.Linear(dim, words)
        self.speaker = nn.Linear(2 * dim, speakers)

    def pool(self, x, mask):
        kept = (~mask).unsqueeze(-1).to(x.dtype)
        count = kept.sum(1)
        mean = (x * kept).sum(1) / count
        spread = ((x - mean.unsqueeze(1)) ** 2 * kept).sum(1) / count
        return torch.cat([mean, (spread + 1e-5).sqrt()], dim=-1)

    def forward(self, waves, lengths):
        lengths = (lengths + 1) // 2
        x = self.subsample(waves)
        mask = padding_mask(lengths, x.shape[1])
        states = []
        for layer in self.layers:
            x = layer(x, mask)
            states.append(x)
        weights = self.mix.softmax(0)
        x = sum(weight * state for weight, state in zip(weights, states))
        speaker = self.speaker(Reverse.apply(self.pool(x, mask), self.strength))
        return F.log_softmax(self.words(x), dim=-1), F.normalize(speaker, dim=-1)


def make():
    return SpeechNet()


def inputs():
    waves = np.random.default_rng(0).standard_normal((3, 14, 6)).astype("float32")
    return waves, np.array([14, 9, 6])
