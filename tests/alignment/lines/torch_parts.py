"""A stack of layers that hands a mask on, returns what each layer gives, and pools by a class of its own."""

import torch
from torch import nn


class Pool(nn.MaxPool1d):
    def __init__(self, kernel_size: int, stride: int) -> None:
        super().__init__(kernel_size, stride)


class Stack(nn.Module):
    def __init__(self, d: int) -> None:
        super().__init__()
        self.first = nn.Linear(d, d)
        self.second = nn.Linear(d, d)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = torch.tanh(self.first(x))
        return y, torch.tanh(self.second(y))


class Model(nn.Module):
    def __init__(self, d: int = 8) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(d, 2, 16, 0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.stack = Stack(d)
        self.pool = Pool(3, 2)
        self.head = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mask = torch.full((x.shape[1], x.shape[1]), -1e4, dtype=x.dtype).triu(1)
        x = self.layers(x, mask=mask)
        found = self.stack(x)
        last = found[-1]
        return self.head(self.pool(last))
