"""A table that the port's module makes for itself: the line that makes it is named, proven by replacement."""

from pathlib import Path

import reprod_align
from reprod_align.alignment.locating.experiment import Experiment
from tests.alignment.lines.test_lines import load

import numpy as np
import pytest
import torch

PORT = """import paddle
from paddle import nn


class Places(nn.Layer):
    def __init__(self, d):
        super().__init__()
        rates = 1.0 / (100.0 ** (paddle.arange(d, dtype="float64") / d))

        self.register_buffer("rates", rates, persistable=False)

    def forward(self, x):
        steps = paddle.arange(x.shape[1], dtype=x.dtype)
        return x + paddle.sin(steps.unsqueeze(1) * self.rates).sum()


class Model(nn.Layer):
    def __init__(self):
        super().__init__()
        self.dense = nn.Linear(8, 8)
        self.places = Places(8)

    def forward(self, x):
        return self.places(self.dense(x))
"""


class Model(torch.nn.Module):
    table: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.dense = torch.nn.Linear(8, 8)
        rates = 1.0 / (100.0 ** (torch.arange(8, dtype=torch.float64) / 8))
        self.register_buffer("table", rates, persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.dense(x)
        steps = torch.arange(x.shape[1], dtype=x.dtype)
        return x + torch.sin(steps[:, None] * self.table).sum()


def judge(text: str, folder: Path, model: type[torch.nn.Module] = Model) -> reprod_align.Report:
    """Return the report on the port that a text makes, beside PyTorch's `model`."""
    path = folder / "port.py"
    path.write_text(text)
    torch.manual_seed(0)
    x = np.random.default_rng(0).normal(size=(2, 5, 8))
    return reprod_align.align(model(), load(path).Model(), (x,))


def test_a_faithful_table_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Experiment, "explain_tensor", None)
    assert judge(PORT, tmp_path).verdict == "faithful"


@pytest.mark.parametrize(
    ("before", "after"), [("1.0 / (100.0", "1.0 * (100.0"), ("100.0 **", "50.0 **")]
)
def test_the_line_that_makes_it_is_named(before: str, after: str, tmp_path: Path) -> None:
    finding = judge(PORT.replace(before, after), tmp_path).findings[0]
    assert finding.paddle_line == f"{tmp_path / 'port.py'}:8"
    assert "rates, a tensor that Paddle's module makes, is not PyTorch's table" in finding.message


def test_another_fault_beside_it_is_not_the_table_s(tmp_path: Path) -> None:
    finding = judge(PORT.replace("paddle.sin(", "paddle.cos("), tmp_path).findings[0]
    assert "a tensor that" not in finding.message
