"""Blocks that a method calls, and one that is called once more."""

import torch  # noqa: F401  (what is planted reads it)
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.dense, self.norm = nn.Linear(8, 8), nn.LayerNorm(8)

    def forward(self, x):
        return x + self.norm(nn.functional.relu(self.dense(x)))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.head = nn.Linear(4, 8), nn.Linear(8, 2)
        self.blocks = nn.ModuleList([Block() for _ in range(3)])

    def encode(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return x

    def scale(self, x):
        return 2 * nn.functional.relu(x)

    def forward(self, x):
        x = self.scale(self.encode(x))
        return self.head(self.blocks[0](x))
