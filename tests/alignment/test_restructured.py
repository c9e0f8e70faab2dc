"""Modules divided otherwise raise no alarm, whatever differs elsewhere."""

from reprod_align import align
from tests.alignment.restructured import BATCH, cast, make_paddle, make_torch, round_quietly
from tests.alignment.small import same
from tests.alignment.test_port_patterns import lively
from tests.alignment.towers import PaddlePostTower, PaddlePreTower, TorchPostTower, TorchPreTower

import numpy as np
import paddle
import pytest
import torch

PAIRS = {
    "a norm ends one module and begins the next": (["fc norm", "fc tanh()"],
                                                   ["fc", "norm fc tanh()"]),
    "a norm begins one module and ends the one before": (["fc", "norm fc tanh()"],
                                                         ["fc norm", "fc tanh()"]),
    "dropout ends one module and begins the next": (["fc drop", "fc tanh()"],
                                                    ["fc", "drop fc tanh()"]),
    "norm and dropout move together": (["fc norm drop", "fc tanh()"], ["fc", "norm drop fc tanh()"]),
    "an activation module is a function in the next module": (["fc gelu", "fc norm"],
                                                              ["fc", "gelu() fc norm"]),
    "a function is an activation module in the next one": (["fc gelu()", "fc norm"],
                                                           ["fc", "gelu fc norm"]),
    "batch norms have a ReLU built in": (["conv bn relu", "conv bn relu"], ["conv bn.relu"] * 2),
    "and PyTorch calls a function": (["conv bn relu()", "conv bn relu()"], ["conv bn.relu"] * 2),
    "and PyTorch's next module calls it": (["conv bn", "relu() conv"], ["conv bn.relu", "conv"]),
    "and PyTorch's next module has it": (["conv bn", "relu conv"], ["conv bn.relu", "conv"]),
    "relu6": (["conv bn relu6"], ["conv bn.relu6"]),
    "hard_swish": (["conv bn hardswish", "fc"], ["conv bn.hard_swish", "fc"]),
    "swish": (["conv bn silu", "fc"], ["conv bn.swish", "fc"]),
}  # fmt: skip
restructured = pytest.mark.parametrize("pair", PAIRS.values(), ids=list(PAIRS))


def find_end(pair) -> str:
    """Return the name of the last module."""
    return str(1 + 2 * len(pair[0]))


@restructured
def test_a_faithful_port_passes(pair) -> None:
    report = align(make_torch(pair[0]), make_paddle(pair[1]), BATCH)
    assert report.verdict == "faithful", str(report)


@restructured
@pytest.mark.parametrize("step, at_end", [("cast()", False), ("round()", True)])
def test_float32_elsewhere_is_told_and_nothing_else(pair, step, at_end) -> None:
    lost = ("", step) if at_end else (step, "")
    report = align(make_torch(pair[0]), make_paddle(pair[1], lost=lost), BATCH)
    assert report.verdict == "agrees to float32", str(report)
    place = find_end(pair) if at_end else "0"
    (said,) = [text for text in report.remarks if "agrees to float32 only" in text]
    assert f"{place} loses precision" in said or f"float32 in {place};" in said, str(report)


@restructured
@pytest.mark.parametrize("epsilon, at_end", [(1e-3, False), (2e-5, True)])
def test_one_fault_elsewhere_is_the_only_finding(pair, epsilon, at_end) -> None:
    eps = (1e-5, epsilon) if at_end else (epsilon, 1e-5)
    report = align(make_torch(pair[0]), make_paddle(pair[1], eps=eps), BATCH)
    place = f"{find_end(pair) if at_end else 0}.norm"
    assert [finding.torch_name for finding in report.findings] == [place], str(report)
    assert "eps: PyTorch 1e-05" in report.findings[0].message


FAULTS = {
    "one batch norm lacks its ReLU": (["conv bn relu"] * 2, ["conv bn.relu", "conv bn"], "2", "ReLU"),
    "where PyTorch calls a function": (["conv bn relu()"] * 2, ["conv bn.relu", "conv bn"], "2", "ReLU"),
    "one has a ReLU too many": (["conv bn relu", "conv bn"], ["conv bn.relu"] * 2, "2.bn",
                                "act: PyTorch None, Paddle 'relu'; set act=None in Paddle"),
    "one has another activation": (["conv bn relu", "conv bn relu"], ["conv bn.relu", "conv bn.sigmoid"],
                                   "2.bn", "act: 2.relu is ReLU in PyTorch, Paddle 'sigmoid'"),
    "where PyTorch calls another function": (["conv bn relu()"] * 2, ["conv bn.relu", "conv bn.sigmoid"],
                                             "2", "bn.act is 'sigmoid' in Paddle: 'relu' gives PyTorch's"),
    "an activation is missing next to a moved norm": (["fc norm", "fc tanh() fc"], ["fc", "norm fc fc"],
                                                      "2", "tanh: PyTorch applies it here"),
    "another activation next to a moved norm": (["fc norm", "fc gelu()"], ["fc", "norm fc relu()"],
                                                "2", "ReLU (or ReLU6: the same here) in Paddle and gelu"),
}  # fmt: skip


@pytest.mark.parametrize("ours, theirs, place, words", FAULTS.values(), ids=list(FAULTS))
def test_a_fault_at_such_a_place_is_caught(ours, theirs, place, words) -> None:
    report = align(make_torch(ours, 1), make_paddle(theirs, times=1), BATCH)
    assert [finding.torch_name for finding in report.findings] == [place], str(report)
    assert words in report.findings[0].message


gelu, relu = paddle.nn.functional.gelu, paddle.nn.functional.relu
towers = pytest.mark.parametrize(
    "ours, theirs", [(TorchPostTower, PaddlePostTower), (TorchPreTower, PaddlePreTower)]
)


def judge_tower(ours, theirs, lost=same, eps=1e-5, act=gelu):
    """Return the report on two towers; eps, act: of the port's second block."""
    made = [(1e-5, gelu), (eps, act), (1e-5, gelu)]
    port = theirs(lambda block, number: block(*made[number]), lost)
    return align(lively(ours()), port, (BATCH[0][:, 0],))


@towers
def test_norms_that_stand_in_the_block_before_or_after_pass(ours, theirs) -> None:
    report = judge_tower(ours, theirs)
    assert report.verdict == "faithful", str(report)


@towers
@pytest.mark.parametrize("lost", [cast, round_quietly])
def test_float32_after_such_blocks_is_told_and_nothing_else(ours, theirs, lost) -> None:
    report = judge_tower(ours, theirs, lost=lost)
    assert report.verdict == "agrees to float32", str(report)
    said = [text for text in report.remarks if "agrees to float32 only" in text]
    assert len(said) == 1 and "the model loses precision" in said[0], str(report)


WRONG = {
    "eps": ({"eps": 1e-3}, "eps: PyTorch 1e-05, Paddle 0.001"),
    "act": ({"act": relu}, "ReLU (or ReLU6: the same here) in Paddle and gelu"),
}


@towers
@pytest.mark.parametrize("wrong, words", WRONG.values(), ids=list(WRONG))
def test_one_fault_in_such_a_block_is_the_only_finding(ours, theirs, wrong, words) -> None:
    report = judge_tower(ours, theirs, **wrong)
    (found,) = report.findings
    assert found.paddle_name.startswith("blocks.1") and words in found.message, str(report)


class TorchCellLoop(torch.nn.Module):
    """A cell in a loop, and a gradient that stops nowhere."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.cell, self.head = (
            torch.nn.Linear(4, 6), torch.nn.GRUCell(6, 5), torch.nn.Linear(5, 3))  # fmt: skip

    def forward(self, x):
        x, state, tops = self.first(x), x.new_zeros(len(x), 5), []
        for step in range(x.shape[1]):
            state = self.cell(x[:, step], state)
            tops.append(self.head(state))
        return torch.stack(tops, 1)


class PaddleCellLoop(paddle.nn.Layer):
    """The same: a cell of Paddle gives its state twice, and both are used; `pull` of the gradient."""

    def __init__(self, pull: float) -> None:
        super().__init__()
        self.first, self.cell, self.head = (
            paddle.nn.Linear(4, 6), paddle.nn.GRUCell(6, 5), paddle.nn.Linear(5, 3))  # fmt: skip
        self.pull = pull

    def forward(self, x):
        x, state, tops = self.first(x), paddle.zeros([x.shape[0], 5], x.dtype), []
        x = x.detach() + self.pull * (x - x.detach())
        for step in range(x.shape[1]):
            given, state = self.cell(x[:, step], state)
            tops.append(self.head(given))
        return paddle.stack(tops, 1)


@pytest.mark.parametrize("pull", [1.0, 1.1])
def test_a_gradient_that_reaches_a_cell_by_both_its_outputs_counts_once(pull: float) -> None:
    x = np.random.default_rng(0).normal(size=(3, 6, 4))
    report = align(TorchCellLoop(), PaddleCellLoop(pull), (x,))
    places = [finding.paddle_name for finding in report.findings]
    assert places == ([] if pull == 1.0 else [""]), str(report)
