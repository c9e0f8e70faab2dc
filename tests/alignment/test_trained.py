"""Tensors that one side alone trains: a buffer or a frozen parameter on the other."""

from typing import Any

from reprod_align.alignment import align
from reprod_align.alignment.leftovers import judge_one_sided
from reprod_align.report import Report
from tests.alignment.given import left
from tests.alignment.small import PaddleNet, TorchNet, X, at_work

import paddle
import pytest
import torch

CONSTANT = paddle.nn.initializer.Constant(0.5)
Use = Any
"""what the model multiplies its layer's output by, given the tensor"""


class TorchScaled(torch.nn.Module):
    def __init__(self, kind: str, use: Use) -> None:
        super().__init__()
        self.layer, self.use = torch.nn.Linear(3, 3), use
        if kind == "buffer":
            self.register_buffer("scale", torch.full((3,), 0.5))
        else:
            self.scale = torch.nn.Parameter(torch.full((3,), 0.5), kind == "trained")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x) * self.use(self.scale)


class PaddleScaled(paddle.nn.Layer):
    def __init__(self, kind: str, use: Use) -> None:
        super().__init__()
        self.layer, self.use = paddle.nn.Linear(3, 3), use
        if kind == "buffer":
            self.register_buffer("scale", paddle.full([3], 0.5))
        else:
            self.scale = self.create_parameter([3], default_initializer=CONSTANT)
            self.scale.stop_gradient = kind == "frozen"

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return self.layer(x) * self.use(self.scale)


def compare(ours: str, theirs: str, use: Use = lambda scale: scale) -> Report:
    return align(TorchScaled(ours, use), PaddleScaled(theirs, use), (X,))


@pytest.mark.parametrize(
    "ours, theirs, words",
    [
        ("trained", "buffer", "a buffer in Paddle, trained in PyTorch"),
        ("trained", "frozen", "frozen in Paddle (stop_gradient=True), trained in PyTorch"),
        ("buffer", "trained", "a buffer in PyTorch, trained in Paddle"),
        ("frozen", "trained", "frozen in PyTorch (requires_grad=False), trained in Paddle"),
    ],
)
def test_a_tensor_that_one_side_alone_trains_is_a_finding(
    ours: str, theirs: str, words: str
) -> None:
    for use in (lambda scale: scale, lambda scale: 1 + 0 * scale):  # a gradient of zero too
        (finding,) = compare(ours, theirs, use).findings
        assert (finding.torch_name, finding.message) == ("scale", words)


@pytest.mark.parametrize("kinds", [("trained",) * 2, ("buffer", "frozen"), ("frozen", "buffer")])
def test_a_constant_is_the_same_whatever_it_is_kept_as(kinds: tuple[str, str]) -> None:
    report = compare(*kinds)
    assert report.verdict == "faithful" and not report.not_judged


def test_without_any_gradient_it_is_not_judged() -> None:
    report = compare("trained", "buffer", lambda scale: scale.detach())
    assert report.verdict == "faithful"
    assert left(report, "gradient") == [
        "trained on one side alone, and no gradient reaches them: scale"
    ]


def test_without_gradients_nothing_is_known() -> None:
    with at_work(TorchNet(), PaddleNet()) as (runner, findings):
        judge_one_sided(runner.pairing, findings, ())
    assert not findings.report.findings and not findings.report.not_judged
