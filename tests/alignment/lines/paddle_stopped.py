"""A port of torch_stopped, in which a block or a decorator may stop gradients."""

from contextlib import nullcontext

import paddle  # noqa: F401  (what is planted reads it)
from paddle import nn


class Block(nn.Layer):
    def __init__(self):
        super().__init__()
        self.dense, self.norm = nn.Linear(8, 8), nn.LayerNorm(8)

    def forward(self, x):
        return x + self.norm(nn.functional.relu(self.dense(x)))


class Model(nn.Layer):
    def __init__(self):
        super().__init__()
        self.stem, self.head = nn.Linear(4, 8), nn.Linear(8, 2)
        self.blocks = nn.LayerList([Block() for _ in range(3)])

    def encode(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return x

    def scale(self, x):
        x = 2 * nn.functional.relu(x)
        return x

    def forward(self, x):
        x = self.scale(self.encode(x))
        with nullcontext():
            # what the head takes
            x = self.blocks[0](x)
        return self.head(x)
