"""A call that changes a size is left out, and nothing inside can be compared: its line is named."""

from pathlib import Path

import reprod_align
from reprod_align.alignment.locating.experiment import Experiment
from reprod_align.alignment.locating.lines import LineFinder, Lines
from tests.alignment.lines.test_lines import load, plant

import numpy as np
import pytest
import torch

PORT = """from paddle import nn


class Layer(nn.Layer):
    def __init__(self):
        super().__init__()
        self.norm, self.conv = nn.BatchNorm2D(4), nn.Conv2D(4, 4, 3, padding=1)

    def forward(self, x):
        y = self.norm(x)
        return x + self.conv(y)


class Block(nn.Layer):
    def __init__(self):
        super().__init__()
        self.layers = nn.LayerList([Layer() for _ in range(2)])

    def forward(self, x):
        h = x
        for layer in self.layers:
            h = layer(h)
        return h


class Model(nn.Layer):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2D(3, 4, 3, padding=1)
        self.pool = nn.MaxPool2D(2, 2)
        self.block = Block()
        self.head = nn.Linear(4, 5)

    def forward(self, x):
        h = self.stem(x)
        h = self.pool(h)
        for block in [self.block]:
            h = block(h)
        return self.head(h.mean([2, 3]))
"""


class Layer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.conv = torch.nn.BatchNorm2d(4), torch.nn.Conv2d(4, 4, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.conv(self.norm(x))


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        stem, block = torch.nn.Conv2d(3, 4, 3, padding=1), torch.nn.Sequential(Layer(), Layer())
        self.features = torch.nn.Sequential(stem, torch.nn.MaxPool2d(2, 2), block)
        self.head = torch.nn.Linear(4, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.features(x).mean((2, 3)))


def judge(port: Path) -> reprod_align.Report:
    image = np.random.default_rng(0).normal(size=(2, 3, 8, 8))
    return reprod_align.align(Model(), load(port).Model(), (image,))


def test_the_line_of_a_pooling_that_is_left_out_is_named(tmp_path: Path) -> None:
    file = tmp_path / "faithful.py"
    file.write_text(PORT)
    assert judge(file).passed
    port, changed = plant(file, "h = self.pool(h)", "h = h", tmp_path)
    finding = judge(port).findings[0]
    assert (finding.stage, finding.paddle_name) == ("forward", "")
    assert "shape (2, 4, 4, 4) in PyTorch, (2, 4, 8, 8) in Paddle" in finding.evidence
    assert finding.paddle_line == f"{port}:{changed}", f"{finding} {finding.paddle_code}"


STAGES = """from paddle import nn
from paddle.nn import functional as F


class Conv(nn.Layer):
    def __init__(self, width, out):
        super().__init__()
        self.conv, self.norm = nn.Conv2D(width, out, 3, padding=1), nn.BatchNorm2D(out)

    def forward(self, x):
        return F.relu(self.norm(self.conv(x)))


class Encoder(nn.Layer):
    def __init__(self):
        super().__init__()
        self.stem = Conv(3, 4)
        self.stages = nn.LayerList([nn.Sequential(Conv(4, 6), Conv(6, 6)), nn.Sequential(Conv(6, 8))])

    def forward(self, x):
        x = self.stem(x)
        for stage in self.stages:
            x = F.max_pool2d(x, kernel_size=2)
            x = stage(x)
        return x


class Model(nn.Layer):
    def __init__(self):
        super().__init__()
        self.encode, self.head = Encoder(), nn.Linear(8, 5)

    def forward(self, x):
        return self.head(self.encode(x).mean([2, 3]))
"""


def convolve(width: int, *outs: int) -> torch.nn.Module:
    layers: list[torch.nn.Module] = []
    for before, out in zip((width, *outs), outs, strict=False):
        conv = torch.nn.Conv2d(before, out, 3, padding=1)
        layers += [conv, torch.nn.BatchNorm2d(out), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers)


class Stages(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = convolve(3, 4)
        self.down1 = torch.nn.Sequential(torch.nn.MaxPool2d(2), convolve(4, 6, 6))
        self.down2 = torch.nn.Sequential(torch.nn.MaxPool2d(2), convolve(6, 8))
        self.head = torch.nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.down2(self.down1(self.stem(x))).mean((2, 3)))


def test_what_a_module_is_handed_is_blamed_on_the_code_that_makes_it(tmp_path: Path) -> None:
    file, image = tmp_path / "faithful.py", np.random.default_rng(0).normal(size=(2, 3, 8, 8))
    file.write_text(STAGES)
    assert reprod_align.align(Stages(), load(file).Model(), (image,)).passed
    port, changed = plant(file, "F.max_pool2d", "F.avg_pool2d", tmp_path)
    finding = reprod_align.align(Stages(), load(port).Model(), (image,)).findings[0]
    assert finding.paddle_name == "encode", finding
    _, _, line = str(finding.paddle_line).rpartition(":")
    assert abs(int(line) - changed) <= 1, f"{finding} {finding.paddle_code}"


DEALT = """from paddle import nn


class Model(nn.Layer):
    def __init__(self):
        super().__init__()
        self.stem, self.expert, self.head = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 3)

    def forward(self, x):
        x = self.stem(x)
        kept = (x[:, :1] > 0).astype(x.dtype)
        mixed = self.expert(x) * kept
        return self.head(mixed * 2)
"""


class Dealt(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem, self.expert = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)
        self.head = torch.nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        kept = torch.nonzero(x[:, 0] > 0)[:, 0]
        mixed = torch.zeros_like(x).index_add_(0, kept, self.expert(x[kept]))
        return self.head(mixed * 2)


def test_rows_that_each_side_deals_out_in_its_own_way_are_no_evidence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    file, rows = tmp_path / "faithful.py", np.random.default_rng(0).normal(size=(7, 4))
    file.write_text(DEALT)
    assert reprod_align.align(Dealt(), load(file).Model(), (rows,)).passed
    port, _ = plant(file, "mixed * 2", "mixed * 3", tmp_path)
    # neither a line nor an edit tells
    monkeypatch.setattr(LineFinder, "find", lambda self, fault: Lines())
    monkeypatch.setattr(Experiment, "explain", lambda self, *given: None)
    finding = reprod_align.align(Dealt(), load(port).Model(), (rows,)).findings[0]
    assert "shape" not in finding.evidence and "hands to head" in finding.evidence
