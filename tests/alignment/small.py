"""Small pairs at work, for tests of single modules of `alignment`."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from reprod_align.alignment.findings import Findings
from reprod_align.alignment.pair_models import pair_models
from reprod_align.alignment.runner import Runner
from reprod_align.pair import paddle_side, torch_side

import numpy as np
import paddle
import torch

X = np.random.default_rng(0).normal(size=(4, 3))
Between = Callable[[Any], Any]


def same(value: Any) -> Any:
    return value


class TorchNet(torch.nn.Module):
    """Two Linear layers, with code of one's own between them."""

    def __init__(self, between: Between = same, last: Any = None) -> None:
        super().__init__()
        self.first, self.between = torch.nn.Linear(3, 5), between
        self.second = last or torch.nn.Linear(5, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.between(torch.tanh(self.first(x))))


class PaddleNet(paddle.nn.Layer):
    """The same."""

    def __init__(self, between: Between = same, last: Any = None) -> None:
        super().__init__()
        self.first, self.between = paddle.nn.Linear(3, 5), between
        self.second = last or paddle.nn.Linear(5, 2)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return self.second(self.between(paddle.tanh(self.first(x))))


@contextmanager
def at_work(
    torch_model: Any, paddle_model: Any, *functions: Any, inputs: Any = (X,)
) -> Iterator[tuple[Runner, Findings]]:
    """Yield a paired runner, and findings; `functions`: (torch, paddle) losses, then optimizers."""
    sides = zip(*functions, strict=True) if functions else [(), ()]
    of_torch, of_paddle = sides
    reference, port = torch_side(torch_model, *of_torch), paddle_side(paddle_model, *of_paddle)
    findings = Findings()
    with warnings.catch_warnings(), reference.working("float64"), port.working("float64"):
        warnings.simplefilter("ignore")  # of Paddle's batch norm, as `align` does
        yield pair_models(reference, port, inputs, "float64", None, True, findings), findings


def mean_square(output: Any) -> Any:
    return (output**2).mean()


def messages(findings: Findings) -> list[str]:
    return [str(finding) for finding in findings.report.findings]
