"""Running statistics after one step in train mode."""

from reprod_align.alignment.statistics_check import compare_statistics
from tests.alignment.small import PaddleNet, TorchNet, at_work, messages

import paddle
import pytest
import torch


@pytest.mark.parametrize(("momentum", "faithful"), [(0.9, True), (0.1, False)])
def test_the_momentum_shows_and_paddles_biased_variance_is_no_fault(
    momentum: float, faithful: bool
) -> None:
    ours = TorchNet(last=torch.nn.BatchNorm1d(5, momentum=0.1))
    theirs = PaddleNet(last=paddle.nn.BatchNorm1D(5, momentum=momentum))
    with at_work(ours, theirs) as (runner, findings):
        reference, port = runner.run_reference(True), runner.run_port(True, "all")
        compare_statistics(runner, findings, reference, port)
    assert findings.report.checks[0].what == "2 running statistics after a step"
    assert findings.report.checks[0].passed == faithful
    assert ["running statistic" in text for text in messages(findings)] == [True] * (not faithful)
    if faithful:
        assert any("biased running variance" in text for text in findings.report.remarks)
