"""PyTorch calls a function whole, the port writes it out: the step that differs is named, at its line."""

from pathlib import Path

import reprod_align
from tests.alignment.lines.test_lines import load, plant

import numpy as np
import pytest
import torch
from torch.nn import functional as F

PORT = """import paddle
from paddle import nn
from paddle.nn import functional as F


class Conv(nn.Conv2D):
    def __init__(self):
        super().__init__(3, 4, 3)

    def forward(self, x):
        w = self.weight
        v, m = paddle.var(w, axis=[1, 2, 3], keepdim=True, unbiased=False), paddle.mean(
            w, axis=[1, 2, 3], keepdim=True
        )
        w = (w - m) / paddle.sqrt(v + 1e-6)
        return F.conv2d(x, w, self.bias)


class Model(nn.Layer):
    def __init__(self):
        super().__init__()
        self.conv = Conv()

    def forward(self, x):
        return self.conv(x).mean([2, 3])
"""


class Conv(torch.nn.Conv2d):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        flat = self.weight.reshape(1, self.out_channels, -1)
        normed = F.batch_norm(flat, None, None, training=True, momentum=0.0, eps=1e-6)
        return F.conv2d(x, normed.reshape_as(self.weight), self.bias)


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = Conv(3, 4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv(x).mean((2, 3))


def judge(port: Path) -> reprod_align.Report:
    image = np.random.default_rng(0).normal(size=(2, 3, 8, 8))
    return reprod_align.align(Model(), load(port).Model(), (image,))


@pytest.mark.parametrize(
    "after",
    [
        "(paddle.sqrt(v + 1e-6)) / w - m",
        "w / paddle.sqrt(v + 1e-6)",
        "(w + m) / paddle.sqrt(v + 1e-6)",
    ],
)
def test_a_step_of_a_norm_that_the_port_writes_out_is_named(after: str, tmp_path: Path) -> None:
    file = tmp_path / "faithful.py"
    file.write_text(PORT)
    assert judge(file).passed
    port, changed = plant(file, "(w - m) / paddle.sqrt(v + 1e-6)", after, tmp_path)
    finding = judge(port).findings[0]
    assert finding.paddle_line == f"{port}:{changed}", f"{finding} {finding.paddle_code}"
