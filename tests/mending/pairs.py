"""A pair whose port has the faults that a test asks for, as a file."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from reprod_align.mending.bench import Bench
from reprod_align.pair.file import PairFile, open_file

PAIR = '''"""A pair."""
import numpy as np


def torch_model():
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.LayerNorm(6, eps=1e-12)
            self.query = nn.Linear(6, 6)
            self.key = nn.Linear(6, 6)
            self.out = nn.Linear(6, 6)

        def forward(self, x):
            h = self.norm(x)
            scores = self.query(h) @ self.key(h).transpose(1, 2) / 6**0.5
            mixed = torch.softmax(scores, dim=-1) @ h
            return torch.tanh(self.out(mixed)) + x

    torch.manual_seed(0)
    return Net()


def paddle_model():
    import paddle
    from paddle import nn
    from paddle.nn import functional as F

    class Net(nn.Layer):
        def __init__(self):
            super().__init__()
            self.norm = nn.LayerNorm(6, epsilon=1e-12)
            self.query = nn.Linear(6, 6)
            self.key = nn.Linear(6, 6)
            self.proj = nn.Linear(6, 6)

        def forward(self, x):
            h = self.norm(x)
            scores = self.query(h) @ self.key(h).transpose([0, 2, 1]) / 6**0.5
            mixed = F.softmax(scores, axis=-1) @ h
            return paddle.tanh(self.proj(mixed)) + x  # the residual

    return Net()


def inputs():
    return {"x": np.random.default_rng(0).normal(size=(3, 5, 6))}


def torch_loss(output):
    return (output**2).mean()


def paddle_loss(output):
    return (output**2).mean()
'''
FAULTS = {
    "an argument": ("epsilon=1e-12", "epsilon=1e-3"),
    "an axis": ("axis=-1", "axis=-2"),
    "a constant": ("/ 6**0.5\n            mixed = F", "/ 6**0.7\n            mixed = F"),
    "a call left out": ("h = self.norm(x)\n            scores = self.query(h) @ self.key(h).transpose([", (
        "h = x\n            scores = self.query(h) @ self.key(h).transpose([")),
    "a summand left out": (" + x  # the residual", "  # the residual"),
    "another length": (" + x  # the residual", " + x * (x.shape[1] / 5)  # the residual"),
    "a function": ("paddle.tanh", "F.sigmoid"),
    "another variable": ("F.softmax(scores, axis=-1) @ h", "F.softmax(scores, axis=-1) @ x"),
    "a bias": ("self.proj = nn.Linear(6, 6)", "self.proj = nn.Linear(6, 6, bias_attr=False)"),
    "the loss": ("def paddle_loss(output):\n    return (output**2).mean()", (
        "def paddle_loss(output):\n    return (output**2).sum()")),
}  # fmt: skip

LAYERS = '''"""A pair of layers whose settings the two frameworks write in different ways."""
import numpy as np


def torch_model():
    import torch
    from torch import nn

    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv1d(4, 6, 3, bias=False),
        nn.BatchNorm1d(6, momentum=0.2),
        nn.GELU(approximate="tanh"),
        nn.AvgPool1d(3, 1, padding=1, count_include_pad=False),
    )


def paddle_model():
    from paddle import nn

    return nn.Sequential(
        nn.Conv1D(4, 6, 3, bias_attr=False),
        nn.BatchNorm1D(6, momentum=0.8),
        nn.GELU(approximate=True),
        nn.AvgPool1D(3, 1, padding=1, exclusive=True),
    )


def inputs():
    return (np.random.default_rng(0).normal(size=(3, 4, 9)),)
'''
SETTINGS = {
    "a momentum": ("momentum=0.8", "momentum=0.2"),
    "a momentum left out": (", momentum=0.8", ""),
    "an approximation": ("approximate=True", ""),
    "what a pool counts": ("exclusive=True", "exclusive=False"),
}


def write_pair(folder: Path, *faults: str, text: str = PAIR) -> Path:
    """Write a pair with faults, each of which changes one place of the port."""
    for name in faults:
        before, after = (FAULTS | SETTINGS)[name]
        assert text.count(before) == 1, name
        text = text.replace(before, after)
    path = folder / "pair_net.py"
    path.write_text(text)
    return path


@contextmanager
def open_bench(path: Path) -> Iterator[Bench]:
    """Yield the bench of a pair file."""
    with open_file(path, PairFile) as file:
        yield Bench(file.pair(), lambda: file.side("paddle"))
