"""PyTorch model with tables and masks. `paddle_masked` is its faithful port."""

import math

import torch
from torch import nn


class Words(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.table, self.place = nn.Embedding(30, d), nn.Embedding(40, d)
        self.register_buffer("numbers", torch.arange(12) + 2, persistent=False)

    def forward(self, ids, kinds=None):
        if kinds is None:
            kinds = torch.zeros_like(ids)
        counted = torch.cumsum((ids != 0).long(), dim=1)
        first = self.place(self.numbers[: ids.shape[1]])
        words = self.table(ids)
        return words + self.place(counted + 14) + first + 0 * kinds.unsqueeze(-1)


class Scale(nn.Module):
    def __init__(self, d, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(d))
        self.eps = eps

    def forward(self, x):
        return self.weight * x * torch.rsqrt((x * x).mean(-1, keepdim=True) + self.eps)


class Attention(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d)
        self.scale = math.sqrt(d)

    def forward(self, x, mask):
        q, k, v = self.q(x), self.k(x), self.v(x)
        return nn.functional.scaled_dot_product_attention(q, k, v, mask, scale=1 / self.scale)


class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.attention, self.norm = Attention(d), Scale(d, eps=1e-6)
        self.out = nn.Linear(d, d)

    def forward(self, x, mask=None):
        return self.norm(x + self.out(self.attention(x, mask)))


class Model(nn.Module):
    def __init__(self, d=8):
        super().__init__()
        self.words, self.block, self.head = Words(d), Block(d), nn.Linear(d, 3)

    def forward(self, ids, kept):
        x = self.words(ids, kinds=torch.zeros_like(ids))
        mask = (1.0 - kept.unsqueeze(1).to(x.dtype)) * -1e4
        return self.head(self.block(x, mask=mask))
