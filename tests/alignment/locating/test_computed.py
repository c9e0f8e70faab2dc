"""A table that the port makes once and PyTorch in each run: its line and its edit are named."""

from pathlib import Path

from reprod_align.alignment.tables import shape_as_rows
from tests.alignment.locating.test_held import judge

import numpy as np
import pytest
import torch

PORT = """import paddle
from paddle import nn


class Rotary(nn.Layer):
    def __init__(self, width, longest=32):
        super().__init__()
        self.rates = 1.0 / (100.0 ** (paddle.arange(width, dtype="float32") / width))
        angles = paddle.arange(longest, dtype="float32").unsqueeze(1) * self.rates
        self.cosines = angles.cos()[:, None, :]
        self.sines = angles.sin()[:, None, :]

    def forward(self, x):
        return self.cosines[: x.shape[1], 0], self.sines[: x.shape[1], 0]


class Turn(nn.Layer):
    def __init__(self, width):
        super().__init__()
        self.dense = nn.Linear(width, width)
        self.rotary = Rotary(width)

    def forward(self, x):
        cosines, sines = self.rotary(x)
        return self.dense(x) * cosines + x.roll(1, -1) * sines


class Model(nn.Layer):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 8)
        self.turn = Turn(8)
        self.last = nn.Linear(8, 8)

    def forward(self, x):
        return self.last(self.turn(self.first(x)))
"""


class Turn(torch.nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.dense = torch.nn.Linear(width, width)

    def forward(self, x: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor) -> torch.Tensor:
        return self.dense(x) * cosines + x.roll(1, -1) * sines


class Model(torch.nn.Module):
    rates: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(8, 8)
        self.turn = Turn(8)
        self.last = torch.nn.Linear(8, 8)
        rates = 1.0 / (100.0 ** (torch.arange(8, dtype=torch.float32) / 8))
        self.register_buffer("rates", rates, persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        steps = torch.arange(x.shape[1], dtype=x.dtype)
        angles = (steps[:, None] * self.rates)[None].expand(len(x), -1, -1)
        turned = self.turn(self.first(x), angles.cos(), angles.sin())
        made: torch.Tensor = self.last(turned)
        return made


def scale(x: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    return x * table


class ScalingTurn(Turn):
    """The same by a function, in which both tables have one name."""

    def forward(self, x: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor) -> torch.Tensor:
        return scale(self.dense(x), cosines) + scale(x.roll(1, -1), sines)


class ScalingModel(Model):
    def __init__(self) -> None:
        super().__init__()
        self.turn = ScalingTurn(8)


def test_a_faithful_table_is_none(tmp_path: Path) -> None:
    report = judge(PORT, tmp_path, Model)
    assert report.passed, report.summary()


TWO = [
    ("angles.cos()", "angles.sin()"),  # a value that PyTorch computes too, for another table
    ("angles.sin()", "angles.cos()"),
    ("angles.cos()[:", "(angles * 2).cos()[:"),
]


@pytest.mark.edits(400)
@pytest.mark.parametrize(
    ("before", "after", "model"),
    [
        *((*change, model) for change in TWO for model in (Model, ScalingModel)),
        ("100.0 **", "50.0 **", Model),  # both tables are made of it
    ],
)
def test_the_line_that_makes_the_table_is_named(
    before: str, after: str, model: type[Model], tmp_path: Path
) -> None:
    finding = judge(PORT.replace(before, after), tmp_path, model).findings[0]
    line = 1 + PORT[: PORT.index(before)].count("\n")
    assert finding.paddle_line == f"{tmp_path / 'port.py'}:{line}", finding
    assert finding.edit is not None and finding.edit.line == line


def test_another_fault_beside_it_is_not_the_table_s(tmp_path: Path) -> None:
    finding = judge(PORT.replace("x.roll(1, -1) *", "x.roll(2, -1) *"), tmp_path, Model).findings[0]
    assert "a tensor that" not in finding.message


@pytest.mark.parametrize(
    ("due", "held", "shape"),
    [
        ((1, 5, 8), (32, 1, 8), (5, 1, 8)),
        ((3, 5, 8), (1, 32, 8), (1, 5, 8)),  # of each example of a batch, the same
        ((1, 5, 8), (4, 8), None),  # more positions than are kept
        ((5, 8), (32, 4), None),
        ((1,), (8,), None),
    ],
)
def test_which_values_may_be_rows_of_a_table(
    due: tuple[int, ...], held: tuple[int, ...], shape: tuple[int, ...] | None
) -> None:
    one = np.random.default_rng(0).normal(size=due[-2:])
    found = shape_as_rows(np.broadcast_to(one, due), np.zeros(held))
    assert (None if found is None else found.shape) == shape
