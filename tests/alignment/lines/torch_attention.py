"""PyTorch attention whose lines the tests compare. `paddle_attention` is its faithful port."""

import torch
import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    def __init__(self, d: int = 8, h: int = 2) -> None:
        super().__init__()
        self.h, self.scale = h, (d // h) ** -0.5
        self.q = nn.Linear(d, d)
        self.k = nn.Linear(d, d)
        self.v = nn.Linear(d, d)
        self.out = nn.Linear(d, d)
        self.norm = nn.LayerNorm(d)

    def split(self, x: torch.Tensor) -> torch.Tensor:
        b, n, d = x.shape
        return x.view(b, n, self.h, d // self.h).permute(0, 2, 1, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.split(self.q(x)), self.split(self.k(x)), self.split(self.v(x))
        scores = q @ k.transpose(-1, -2) * self.scale
        probs = F.softmax(scores, dim=-1)
        y = (probs @ v).permute(0, 2, 1, 3).reshape(x.shape)
        y = F.gelu(y)
        y = self.out(y)
        return self.norm(x + y)
