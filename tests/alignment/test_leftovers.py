"""Parameters without a counterpart: at fault if the outputs depend on them."""

from typing import Any

from reprod_align.alignment import align
from reprod_align.alignment.findings import Findings
from reprod_align.alignment.leftovers import (
    add_differing_weights,
    add_leftovers,
    add_split_ties,
    judge_one_sided,
)
from reprod_align.match import Match, TensorPair
from reprod_align.report import Report
from tests.alignment.given import left
from tests.alignment.small import PaddleNet, TorchNet, X, at_work, messages

import numpy as np
import paddle
import pytest
import torch


def test_a_bias_that_paddle_lacks_is_a_finding_and_an_unused_layer_a_remark() -> None:
    ours = TorchNet()
    ours.idle = torch.nn.Linear(7, 7)
    theirs = PaddleNet(last=paddle.nn.Linear(5, 2, bias_attr=False))
    with at_work(ours, theirs) as (runner, findings):
        add_leftovers(runner, findings)
    assert len(messages(findings)) == 1 and "second" in messages(findings)[0]
    assert "no counterpart" in messages(findings)[0]
    assert any("idle.weight" in remark for remark in findings.report.remarks)


def test_a_bias_that_paddle_lacks_is_a_setting_of_its_layer_whatever_the_layer_is_called() -> None:
    theirs = PaddleNet(last=paddle.nn.Linear(5, 2, bias_attr=False))
    theirs.last, layer = theirs.second, theirs.second
    del theirs.second
    theirs.second = lambda x: layer(x)
    with at_work(TorchNet(), theirs) as (runner, findings):
        add_leftovers(runner, findings)
    (finding,) = findings.report.findings
    assert (finding.torch_name, finding.paddle_name) == ("second", "last")
    assert "bias: PyTorch True" in finding.settings


def test_a_parameter_that_only_paddle_has_is_a_finding() -> None:
    theirs = PaddleNet()
    theirs.scale = paddle.create_parameter([5], "float32")
    theirs.between = lambda x: x * (1 + theirs.scale)
    with at_work(TorchNet(), theirs) as (runner, findings):
        add_leftovers(runner, findings)
    assert "the PyTorch model has no counterpart of this Paddle parameter" in messages(findings)[0]


def test_a_bias_that_only_paddle_has_is_laid_to_bias_attr() -> None:
    with at_work(TorchNet(last=torch.nn.Linear(5, 2, bias=False)), PaddleNet()) as (
        runner,
        findings,
    ):
        add_leftovers(runner, findings)
    (finding,) = findings.report.findings
    assert (finding.torch_name, finding.paddle_name) == ("second", "second")
    assert "set bias_attr=False in Paddle" in finding.settings


def test_a_tie_that_paddle_lacks_is_a_finding() -> None:
    ours, theirs = TorchNet(last=torch.nn.Linear(5, 5)), PaddleNet(last=paddle.nn.Linear(5, 5))
    ours.third, theirs.third = torch.nn.Linear(5, 5), paddle.nn.Linear(5, 5)
    ours.third.weight = ours.second.weight
    ours.between, theirs.between = lambda x: ours.third(x), lambda x: theirs.third(x)
    with at_work(ours, theirs) as (runner, findings):
        add_split_ties(runner.pairing, findings)
    assert len(messages(findings)) == 1 and "tied to second.weight" in messages(findings)[0]
    assert runner.pairing.untied == {"second.weight", "third.weight"}


W = np.random.default_rng(0).normal(size=(6, 6))
OTHER = np.random.default_rng(1).normal(size=(6, 6))


PAIRS = [TensorPair(("w",), ("w",), (True,)), TensorPair(("v",), ("v",), (True,))]


@pytest.mark.parametrize(
    ("held", "words"),
    [
        (W.T, ""),
        (W.T.astype(np.float32).astype(np.float64), ""),
        (W, "not transposed"),
        (-W.T, "the weight is -1 times PyTorch's"),
        (W.T[::-1], "the order along axis 0 is reversed"),
        (np.roll(W.T, 1, 0), "rolled forward by 1 along axis 0"),
        (
            np.concatenate([W.T[3:], W.T[:3]]),
            "along axis 0 the 2 blocks (q k v, gates, halves) are in the order (1, 0)",
        ),
        (W.T * 0, "all zeros in Paddle"),
        (W.T.astype(np.float16).astype(np.float64), "rounded to float16"),
        (W.T * 3, "the weight is 3 times PyTorch's"),
        (OTHER.T, "the weight differs; at"),
        (W.T[:3], "the weight differs; shape (6, 6) expected, got (3, 6)"),
    ],
)
def test_what_was_done_to_a_weight_is_named(held: np.ndarray, words: str) -> None:
    findings = Findings()
    torch = {"w": W, "v": OTHER + 1}
    add_differing_weights(Match(PAIRS), torch, {"w": held, "v": (OTHER + 1).T}, findings)
    assert [words in f.message for f in findings.report.findings] == [True] * bool(words)
    assert findings.report.checks[0].passed == (not words)


def test_weights_that_were_exchanged() -> None:
    findings = Findings()
    add_differing_weights(Match(PAIRS), {"w": W, "v": OTHER}, {"w": OTHER.T, "v": W.T}, findings)
    assert "the values that belong here are in v" in findings.report.findings[0].message


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
