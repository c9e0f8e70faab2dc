"""A module that holds others is made and not called: it is named, and the line that passes its input on."""

from pathlib import Path

import reprod_align
from tests.alignment.lines.test_lines import load, plant

import numpy as np
import torch

PORT = """\
from paddle import nn


class Layer(nn.Layer):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(x)))


class Stack(nn.Layer):
    def __init__(self):
        super().__init__()
        self.layers = nn.LayerList(Layer() for _ in range(2))

    def forward(self, x, scale):
        for layer in self.layers:
            x = layer(x) * scale
        return x


class Encoder(nn.Layer):
    def __init__(self):
        super().__init__()
        self.norm, self.stack = nn.LayerNorm(8), Stack()

    def forward(self, x):
        given = self.norm(x)
        made = self.stack(given, 1.0)
        return made


class Model(nn.Layer):
    def __init__(self):
        super().__init__()
        self.encoder, self.head = Encoder(), nn.Linear(8, 3)

    def forward(self, x):
        return self.head(self.encoder(x))
"""


class Layer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = torch.nn.Linear(8, 16), torch.nn.Linear(16, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(torch.nn.functional.gelu(self.up(x)))


class Encoder(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(8)
        self.layers = torch.nn.ModuleList(Layer() for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.norm(x)
        for layer in self.layers:
            x = layer(x)
        return x


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.head = Encoder(), torch.nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.encoder(x))


def judge(port: Path) -> reprod_align.Report:
    torch.manual_seed(0)
    x = np.random.default_rng(0).standard_normal((2, 5, 8))
    return reprod_align.align(Model(), load(port).Model(), (x,))


def test_a_module_that_is_never_called_is_named(tmp_path: Path) -> None:
    path = tmp_path / "whole.py"
    path.write_text(PORT)
    assert judge(path).passed
    port, changed = plant(path, "self.stack(given, 1.0)", "given", tmp_path)
    finding = judge(port).findings[0]
    assert finding.paddle_name == "encoder" and finding.paddle_line == f"{port}:{changed}"
    assert "Paddle never calls `self.stack`" in finding.message
