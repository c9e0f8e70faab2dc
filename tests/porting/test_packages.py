"""A file whose package gives its classes in ways of its own: by settings, a look-up, as a mode's kind."""

from tests.porting.conftest import PortSource

import numpy as np

FILES = {
    "__init__.py": "",
    "modes.py": """
from enum import Enum

import torch.nn.functional as F


class Mode(Enum):
    NEAREST = "nearest"
    BICUBIC = "bicubic"


def resize(x, size, mode=Mode.BICUBIC):
    if not isinstance(mode, Mode):
        raise TypeError("mode must be a Mode")
    return F.interpolate(x, size, mode=mode.value)
""",
    "acts.py": """
from torch import nn

ACTS = {"relu": nn.ReLU, "gelu": nn.GELU}


def find(name):
    return ACTS[name]
""",
    "settings.py": """
from .acts import find


def read(words):
    return [[{"width": int(width), "act": find(act)}] for width, act in (one.split() for one in words)]
""",
    "lookup.py": """
from importlib import import_module


def optional_import(module, name):
    return getattr(import_module(module), name), True
""",
    "layers.py": """
from torch import nn


class Gate(nn.Module):
    def forward(self, x):
        return x * x.sigmoid()
""",
    "net.py": """
import torch.nn.functional as F
from torch import nn

from . import modes
from .lookup import optional_import
from .settings import read

Gate = optional_import(__name__.rpartition(".")[0] + ".layers", name="Gate")[0]


class MaxPoolSame(nn.MaxPool2d):
    def __init__(self, size, stride):
        super().__init__((size, size), (stride, stride), (0, 0), (1, 1))

    def forward(self, x):
        wide = [n * (m - 1) // 2 for n, m in zip(self.dilation, self.kernel_size)]
        x = F.pad(x, (wide[0], 0, wide[1], 0), value=-float("inf"))
        return F.max_pool2d(x, self.kernel_size, self.stride, (0, 0), self.dilation)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        ((first,), (second,)) = read(["4 gelu", "7 relu"])
        self.first = nn.Conv2d(2, first["width"], 3)
        self.second = nn.Conv2d(first["width"], second["width"], 3)
        self.act1, self.act2 = first["act"](), second["act"]()
        self.pool, self.gate = MaxPoolSame(3, 2), Gate()
        self.pooler = nn.AdaptiveAvgPool1d(1)

    def forward(self, x):
        x = modes.resize(x, (9, 10), mode=modes.Mode.NEAREST)
        x = self.pool(self.act1(self.first(x)))
        x = self.gate(self.act2(self.second(F.pad(x, (1, 1, 1, 1)))))
        return self.pooler(x.flatten(2)).flatten(1)
""",
}


def test_classes_come_along_however_the_package_gives_them(port_source: PortSource) -> None:
    image = np.random.default_rng(6).standard_normal((2, 2, 7, 8))
    result, text = port_source(FILES, (image,))
    assert result.verdict == "faithful" and not result.course.steps, result.left
    assert "self.ksize" in text and "(1, 1)" in text, "a pool's settings"
    assert "OwnAdaptiveAvgPool1D(1)" in text
    assert "class Mode(Enum)" in text and "modes.Mode" not in text
    assert "class Gate(nn.Layer)" in text and "optional_import" not in text
    assert "def read(" in text
