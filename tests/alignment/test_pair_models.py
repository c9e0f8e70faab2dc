"""Pairing at work: outputs, modules without tensors, and what has no counterpart."""

from typing import Any

from reprod_align.errors import ReprodError
from tests.alignment.small import PaddleNet, TorchNet, at_work, messages

import paddle
import pytest
import torch


class TorchList(TorchNet):
    def forward(self, x: Any) -> Any:
        return {"states": [self.first(x), super().forward(x)], "extra": x.sum()}


class PaddleList(PaddleNet):
    def forward(self, x: Any) -> Any:
        return {"states": [self.first(x)]}


def test_modules_and_outputs_are_paired_and_the_weights_loaded() -> None:
    with at_work(TorchNet(torch.nn.Tanh()), PaddleNet(paddle.nn.Tanh())) as (runner, findings):
        assert runner.pairing.modules["between"] == "between"
        assert len(runner.pairing.outputs or ()) == 1
        assert findings.report.pairs == runner.pairing.modules
        loaded = runner.port.values()["first.weight"]
        assert (loaded == runner.weights["first.weight"].T).all()


def test_outputs_without_a_counterpart_are_noted() -> None:
    with at_work(TorchList(), PaddleList()) as (_, findings):
        assert "states holds 2 tensors in PyTorch and 1 of them in Paddle" in messages(findings)[0]
        assert any("extra" in one.what for one in findings.report.not_judged)


def test_a_model_without_outputs_cannot_be_compared() -> None:
    class Silent(TorchNet):
        def forward(self, x: Any) -> Any:
            return None

    with pytest.raises(ReprodError, match="returns no tensor"), at_work(Silent(), PaddleNet()):
        pass
