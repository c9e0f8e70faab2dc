"""Pairs that differ in what their code does around one Linear layer."""

from collections.abc import Callable
from typing import Any

from reprod_align.alignment import align
from reprod_align.report import Report
from tests.alignment.small import X

import paddle
import torch

Made = Callable[[Any, Any], Any]
"""what a model makes of its layer and its input"""


class TorchAround(torch.nn.Module):
    """A layer, and code of one's own around it."""

    def __init__(self, make: Made) -> None:
        super().__init__()
        self.layer, self.make = torch.nn.Linear(3, 3), make

    def forward(self, x: torch.Tensor) -> Any:
        return self.make(self.layer, x)


class PaddleAround(paddle.nn.Layer):
    """The same."""

    def __init__(self, make: Made) -> None:
        super().__init__()
        self.layer, self.make = paddle.nn.Linear(3, 3), make

    def forward(self, x: paddle.Tensor) -> Any:
        return self.make(self.layer, x)


def compare(ours: Made, theirs: Made, *losses: Any, x: Any = X) -> Report:
    """Align two models that make this of their layer and input."""
    return align(TorchAround(ours), PaddleAround(theirs), (x,), *losses)


def left(report: Report, kind: str) -> list[str]:
    """Return what the report leaves unjudged of a kind."""
    return [one.what for one in report.not_judged if one.kind == kind]
