"""A decoder that hides what comes later by a switch, with its table of positions made once for all layers."""

import torch
from torch import nn
from torch.nn import functional as F


def turn(x: torch.Tensor) -> torch.Tensor:
    first, second = x.chunk(2, -1)
    return torch.cat([-second, first], -1)


class Table(nn.Module):
    def forward(self, length: int) -> tuple[torch.Tensor, torch.Tensor]:
        angles = torch.outer(torch.arange(length).double(), torch.tensor([1.0, 0.1]).double())
        angles = torch.cat([angles, angles], -1)
        return angles.cos(), angles.sin()


class Attention(nn.Module):
    def __init__(self, d: int) -> None:
        super().__init__()
        self.query, self.key, self.value = nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d)
        self.out = nn.Linear(d, d)

    def split(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(x.shape[0], x.shape[1], -1, 4).transpose(1, 2)

    def forward(self, hidden: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        query, key = self.split(self.query(hidden)), self.split(self.key(hidden))
        value = self.split(self.value(hidden))
        query = query * cos + turn(query) * sin
        key = key * cos + turn(key) * sin
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(hidden.shape))


class Layer(nn.Module):
    def __init__(self, d: int) -> None:
        super().__init__()
        self.norm, self.attention, self.after = nn.LayerNorm(d), Attention(d), nn.LayerNorm(d)

    def forward(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        return self.after(x + self.attention(self.norm(x), cos, sin))


class Words(nn.Embedding):
    def __init__(self, count: int, d: int) -> None:
        super().__init__(count, d)
        self.factor = 1.0

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return super().forward(ids) * self.factor


class Model(nn.Module):
    def __init__(self, d: int = 8) -> None:
        super().__init__()
        self.words, self.table = Words(20, d), Table()
        self.first, self.second = Layer(d), Layer(d)
        self.pooler = nn.Linear(d, d)

    def forward(self, ids: torch.Tensor) -> dict[str, torch.Tensor]:
        x = self.words(ids)
        cos, sin = (one.to(x.dtype) for one in self.table(ids.shape[1]))
        x = self.second(self.first(x, cos, sin), cos, sin)
        return {"hidden": x, "pooled": self.pooler(x[:, 0])}
