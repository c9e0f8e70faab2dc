"""Which places get a finding."""

from typing import Any

import reprod_align
from reprod_align.alignment.comparing import compare_pass
from reprod_align.alignment.locating.blame import locate
from tests.alignment.restructured import BATCH, make_paddle, make_torch
from tests.alignment.small import PaddleNet, TorchNet, X, at_work

import paddle
import torch


def test_a_layer_that_cannot_be_compared_has_no_finding_beside_the_code_around_it() -> None:
    ours, theirs = ["conv bn relu()"] * 2, ["conv bn.relu", "conv bn.sigmoid"]
    models = make_torch(ours, 1), make_paddle(theirs, times=1)
    with at_work(*models, inputs=BATCH) as (runner, findings):
        locate(runner, findings, compare_pass(runner, runner.expected, training=False))
    found = [(finding.stage, finding.paddle_name) for finding in findings.report.findings]
    assert found == [("forward", "2")]


def test_the_one_layer_that_cannot_be_compared_has_the_finding_if_it_is_set_otherwise() -> None:
    ours, theirs = _Twice(last=torch.nn.Linear(5, 1)), _PaddleTwice(last=paddle.nn.Linear(5, 2))
    finding = reprod_align.align(ours, theirs, (X,)).findings[0]
    assert (finding.torch_name, finding.paddle_name) == ("second", "second")
    assert "out_features: PyTorch 1, Paddle 2" in finding.settings


class _Twice(TorchNet):
    """Its last layer's output is one of two, and loses its last axis if that is one."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.first(x), super().forward(x).squeeze(-1)  # type: ignore[return-value]


class _PaddleTwice(PaddleNet):
    """The same."""

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return self.first(x), super().forward(x).squeeze(-1)


def test_two_dropouts_of_other_rates_are_not_one_that_only_a_side_has() -> None:
    def make(nn: Any, rate: float) -> Any:
        return nn.Sequential(nn.Linear(3, 64), nn.Dropout(rate), nn.Linear(64, 2))

    finding = reprod_align.align(make(torch.nn, 0.1), make(paddle.nn, 0.2), (X,)).findings[0]
    assert "p: PyTorch 0.1, Paddle 0.2" in finding.settings
    assert finding.cause == ""
