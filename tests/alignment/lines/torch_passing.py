"""A block that passes values on through functions of its own, a convolution and a module of two inputs."""

import torch
from torch import nn


class Mix(nn.Module):
    def __init__(self, d: int) -> None:
        super().__init__()
        self.dense = nn.Linear(d, d)
        self.norm = nn.LayerNorm(d)

    def forward(self, hidden: torch.Tensor, before: torch.Tensor) -> torch.Tensor:
        return self.norm(self.dense(hidden) + before)


class Encoder(nn.Module):
    def __init__(self, d: int) -> None:
        super().__init__()
        self.dense = nn.Linear(d, d)
        self.norm = nn.LayerNorm(d)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        before = nn.functional.dropout(x, 0.1, self.training)
        after = self.dense(before)
        return self.norm(after)


class Model(nn.Module):
    def __init__(self, d: int = 8) -> None:
        super().__init__()
        self.query, self.key, self.value = nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d)
        self.mix = Mix(d)
        self.inner = nn.LayerNorm(d)
        self.conv = nn.Conv1d(d, d, 3, padding=1)
        self.encoder = Encoder(d)
        self.head = nn.Linear(d, 3)

    def split(self, x: torch.Tensor) -> torch.Tensor:
        return x.reshape(x.shape[0], x.shape[1], 2, -1).permute(0, 2, 1, 3)

    def feed_forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.conv(x.permute(0, 2, 1))).permute(0, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first = self.query(x)
        second = self.key(x)
        third = self.value(x)
        query, key, value = self.split(first), self.split(second), self.split(third)
        shares = torch.softmax(query @ key.transpose(2, 3), -1)
        attended = (shares @ value).permute(0, 2, 1, 3).reshape(x.shape)
        mixed = self.mix(attended, x)
        mixed = self.inner(mixed + attended)
        return self.head(self.encoder(mixed + self.feed_forward(mixed)))
