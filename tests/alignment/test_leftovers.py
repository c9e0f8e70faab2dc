"""Parameters without a counterpart: at fault if the outputs depend on them."""

from reprod_align.alignment.leftovers import add_leftovers, add_split_ties
from tests.alignment.small import PaddleNet, TorchNet, at_work, messages

import paddle
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
    assert "second is made without a bias in PyTorch" in messages(findings)[0]


def test_a_tie_that_paddle_lacks_is_a_finding() -> None:
    ours, theirs = TorchNet(last=torch.nn.Linear(5, 5)), PaddleNet(last=paddle.nn.Linear(5, 5))
    ours.third, theirs.third = torch.nn.Linear(5, 5), paddle.nn.Linear(5, 5)
    ours.third.weight = ours.second.weight
    ours.between, theirs.between = lambda x: ours.third(x), lambda x: theirs.third(x)
    with at_work(ours, theirs) as (runner, findings):
        add_split_ties(runner.pairing, findings)
    assert len(messages(findings)) == 1 and "tied to third.weight" in messages(findings)[0]
    assert runner.pairing.untied == {"second.weight", "third.weight"}
