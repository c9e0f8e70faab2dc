"""PyTorch model with switches and conditions. `paddle_switches` is its faithful port."""

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, d: int, scaled: bool = True) -> None:
        super().__init__()
        self.q, self.k, self.v = nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d)
        self.softmax = nn.Softmax(-1)
        self.out = nn.Linear(d, d)
        self.scaled = scaled
        self.width, self.gain = 4.0, 1.5

    def split(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(*x.shape[:2], 2, -1).transpose(1, 2)

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        q, k, v = self.split(self.q(x)), self.split(self.k(x)), self.split(self.v(x))
        scores = q @ k.transpose(-1, -2)
        if self.scaled:
            scores = scores / 2
        scores = scores / self.width
        scores = scores * self.gain
        if mask is not None:
            scores = scores + mask
        probs = self.softmax(scores)
        return self.out((probs @ v).transpose(1, 2).reshape(x.shape))


class Model(nn.Module):
    def __init__(self, d: int = 8) -> None:
        super().__init__()
        self.words = nn.Embedding(30, d)
        self.attention = Attention(d)
        self.norm = nn.LayerNorm(d)
        self.head = nn.Linear(d, 3)

    def pool(self, y: torch.Tensor, first: bool) -> torch.Tensor:
        return torch.tanh(y[:, 0]) if first else y[:, 0]

    def forward(self, ids: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
        x = self.words(ids)
        mask = (1.0 - kept[:, None, None, :].to(x.dtype)) * torch.finfo(x.dtype).min
        y = self.norm(x + self.attention(x, mask))
        return self.head(self.pool(y, True))


class Stack(nn.Module):
    def __init__(self, d: int = 8) -> None:
        super().__init__()
        self.words = nn.Embedding(30, d)
        layers = [nn.TransformerEncoderLayer(d, 2, 16, 0.0, batch_first=True) for _ in range(2)]
        self.layers = nn.ModuleList(layers)
        self.heads = nn.ModuleList([nn.Linear(d, 3)])

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = torch.tanh(self.words(ids))
        for layer in self.layers:
            x = layer(x)
        return self.heads[0](x)
