"""Layers that Paddle builds in another way: ports of small sources that end faithful."""

from pathlib import Path

from reprod_align.porting.port import port
from reprod_align.porting.source import open_source

import numpy as np
import pytest

_HEAD = "import torch\nfrom torch import nn\n\n"
_X = np.random.default_rng(0).standard_normal
CASES = {
    "recurrent layers without biases": (
        '''
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.LSTM(6, 8, 2, bias=False, batch_first=True)
        self.second = nn.GRU(8, 5, bias=False, bidirectional=True, batch_first=True)
        self.third = nn.RNN(10, 3, bias=False, batch_first=True)

    def forward(self, x):
        for layer in (self.first, self.second, self.third):
            x, _ = layer(x)
        return x[:, -1]
''',
        _X((3, 5, 6)),
        "drop_biases(paddle.nn.GRU(8, 5, direction='bidirect', time_major=False))",
    ),
    "running statistics that are means": (
        '''
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 6, 3)
        self.norm = nn.BatchNorm2d(6, momentum=None)

    def forward(self, x):
        return torch.relu(self.norm(self.conv(x))).mean((2, 3))
''',
        _X((4, 3, 8, 8)),
        "average_statistics(paddle.nn.BatchNorm2D(6))",
    ),
    "a parametrization": (
        '''
from torch.nn.utils import parametrize


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).transpose(-1, -2)


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.arange(1.0, 7.0))

    def forward(self, x):
        return x * self.scale[:, None]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(6, 6)
        parametrize.register_parametrization(self.mix, "weight", Symmetric())
        parametrize.register_parametrization(self.mix, "weight", Scaled())

    def forward(self, x):
        return torch.tanh(self.mix(x))
''',
        _X((4, 6)),
        "register_parametrization(self.mix, 'weight', Scaled())",
    ),
    "a base that is called by its name, and a table that is drawn anew": (
        '''
class Masked(nn.Linear):
    def __init__(self, inputs, outputs, mask):
        nn.Linear.__init__(self, inputs, outputs)
        self.register_buffer("mask", mask)

    def forward(self, x):
        return nn.functional.linear(x, self.mask * self.weight, self.bias)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(5, 4)
        self.table.reset_parameters()
        self.masked = Masked(4, 4, torch.ones(4, 4).tril())

    def forward(self, x):
        return self.masked(self.table(x))
''',
        np.array([[0, 3], [4, 1]]),
        "paddle.compat.nn.Linear.__init__(self, inputs, outputs)",
    ),
}  # fmt: skip
"""a source, its input, and what stands in the port"""


@pytest.mark.parametrize("name", CASES)
def test_the_port_is_faithful(name: str, tmp_path: Path) -> None:
    text, values, part = CASES[name]
    module = f"helpers_{list(CASES).index(name)}"
    path = tmp_path / f"{module}.py"
    path.write_text(_HEAD + text)
    made = port(open_source(path, f"{module}:Net()"), (values,), tmp_path / "out")
    assert made.verdict == "faithful" and not made.course.steps, made.left
    assert part in (tmp_path / "out" / f"{module}_paddle.py").read_text()
