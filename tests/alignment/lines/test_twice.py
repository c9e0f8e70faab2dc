"""A module whose call is left out of `x + f(x)`: the line that passes its input on is named, not the sum."""

from pathlib import Path

import reprod_align
from tests.alignment.lines.test_lines import load, plant

import numpy as np
import torch

PORT = """\
from paddle import nn


class Mixer(nn.Layer):
    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(8, 8)

    def forward(self, x):
        return self.mix(x).tanh()


class Layer(nn.Layer):
    def __init__(self):
        super().__init__()
        self.mixer, self.drop, self.norm = Mixer(), nn.Dropout(0.1), nn.LayerNorm(8)

    def forward(self, x):
        residual = x
        x = self.mixer(x)

        x = residual + self.drop(x)
        return self.norm(x)


class Model(nn.Layer):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(Layer(), Layer())

    def forward(self, x):
        return self.layers(x)
"""


class Mixer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mix = torch.nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.mix(x))


class Output(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.drop, self.norm = torch.nn.Dropout(0.1), torch.nn.LayerNorm(8)

    def forward(self, mixed: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        made: torch.Tensor = self.norm(self.drop(mixed) + x)
        return made


class Layer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mixer, self.output = Mixer(), Output()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        made: torch.Tensor = self.output(self.mixer(x), x)
        return made


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(Layer(), Layer())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        made: torch.Tensor = self.layers(x)
        return made


def test_the_line_that_passes_the_input_on_is_named(tmp_path: Path) -> None:
    path = tmp_path / "whole.py"
    path.write_text(PORT)
    port, changed = plant(path, "x = self.mixer(x)", "x = x", tmp_path)
    torch.manual_seed(0)
    x = np.random.default_rng(0).standard_normal((2, 5, 8))
    assert reprod_align.align(Model(), load(path).Model(), (x,)).passed
    finding = reprod_align.align(Model(), load(port).Model(), (x,)).findings[0]
    assert finding.paddle_line == f"{port}:{changed}", finding
    assert "self.mixer" in finding.message
