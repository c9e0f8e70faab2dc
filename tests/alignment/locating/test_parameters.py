"""Parameters whose gradients differ although everything that meets them agrees."""

from reprod_align import align
from reprod_align.alignment.findings import Findings
from reprod_align.alignment.locating.parameters import (
    add_parameter_faults,
    find_incomparable_layers,
)
from tests.alignment.locating.pinned import pinned
from tests.alignment.small import PaddleNet, messages

import numpy as np
import paddle
import pytest
import torch
from torch.nn import functional as torch_functional


def test_a_frozen_parameter_is_named() -> None:
    theirs = PaddleNet()
    theirs.first.bias.stop_gradient = True
    with pinned(paddle_model=theirs) as (runner, done, free, given):
        findings = Findings()
        add_parameter_faults(runner, findings, done, free, given)
        assert find_incomparable_layers(runner.pairing, free) == {}
    (text,) = messages(findings)
    assert text.startswith("backward: first.bias: frozen in Paddle (stop_gradient=True)")


def test_a_module_that_has_a_finding_gets_no_other() -> None:
    theirs = PaddleNet()
    theirs.first.bias.stop_gradient = True
    with pinned(paddle_model=theirs) as (runner, done, free, given):
        findings = Findings()
        findings.add("forward", "first", "first", "its output does not agree", kind="module")
        add_parameter_faults(runner, findings, done, free, given)
    assert len(messages(findings)) == 1


class TorchGate(torch.nn.Module):
    """Channels weighed by what two convolutions of width 1 make of their means."""

    def __init__(self) -> None:
        super().__init__()
        self.before = torch.nn.Conv2d(3, 8, 3)
        self.reduce, self.expand = torch.nn.Conv2d(8, 4, 1), torch.nn.Conv2d(4, 8, 1)

    def forward(self, x):
        x = self.before(x)
        mean = x.mean((2, 3), keepdim=True)
        return x * torch_functional.hardsigmoid(self.expand(self.reduce(mean).relu()))


class PaddleGate(paddle.nn.Layer):
    """The same with Linear layers, whose numbers have two axes less; its kernel's slope is 0.1666667."""

    def __init__(self, weigh=paddle.nn.functional.hardsigmoid) -> None:
        super().__init__()
        self.before = paddle.nn.Conv2D(3, 8, 3)
        self.reduce, self.expand = paddle.nn.Linear(8, 4), paddle.nn.Linear(4, 8)
        self.weigh = weigh

    def forward(self, x):
        x = self.before(x)
        gate = self.expand(paddle.nn.functional.relu(self.reduce(x.mean([2, 3]))))
        return x * self.weigh(gate).unsqueeze([2, 3])


def pull_a_little_more(gate):
    """Return a hardsigmoid whose numbers are right and whose gradient is 1e-5 too large."""
    gate = paddle.nn.functional.hardsigmoid(gate)
    return gate + 1e-5 * (gate - gate.detach())


@pytest.mark.parametrize(
    "weigh, verdict",
    [
        (paddle.nn.functional.hardsigmoid, "agrees to float32"),
        (pull_a_little_more, "diverges"),
        (lambda gate: paddle.nn.functional.hardsigmoid(gate, slope=0.166668), "diverges"),
    ],
)
def test_gradients_at_layers_of_another_kind_may_show_what_float32_does_around_them(
    weigh, verdict
) -> None:
    torch.manual_seed(0)
    x = np.random.default_rng(0).normal(size=(4, 3, 12, 12))
    report = align(TorchGate(), PaddleGate(weigh), (x,))
    assert report.verdict == verdict, str(report)
    if report.imprecise:
        assert list(report.imprecise)[:1] == ["the model"]
