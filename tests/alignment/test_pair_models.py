"""Pairing at work: outputs, modules without tensors, and what has no counterpart."""

from typing import Any

from reprod_align import align
from reprod_align.errors import ReprodError
from tests.alignment.small import PaddleNet, TorchNet, X, at_work, messages

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


def build_with_pooler(nn: Any, base: type, pools: bool, has_one: bool = True) -> Any:
    class Net(base):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.dense = nn.Linear(3, 4)
            if has_one:
                self.pooler = nn.Sequential(nn.Linear(4, 4), nn.Tanh())

        def forward(self, x: Any) -> Any:
            hidden = self.dense(x)
            return (
                {"hidden": hidden, "pooled": self.pooler(hidden)} if pools else {"hidden": hidden}
            )

    return Net()


@pytest.mark.parametrize("has_one", [True, False], ids=["idle", "absent"])
def test_an_output_of_a_module_that_the_port_has_and_does_not_call_is_a_fault(
    has_one: bool,
) -> None:
    torch.manual_seed(0)
    ours = build_with_pooler(torch.nn, torch.nn.Module, True)
    theirs = build_with_pooler(paddle.nn, paddle.nn.Layer, False, has_one)
    report = align(ours, theirs, (X,))
    found = [(one.kind, one.torch_name, one.paddle_name) for one in report.findings]
    if has_one:
        assert found == [("output-missing", "pooler", "pooler")]
        assert not [one for one in report.not_judged if "pooled" in one.what]
    else:  # the port has no weights for it: a part of the model that is not ported
        assert report.verdict == "faithful"
        assert [one.what for one in report.not_judged if one.kind == "output"] == [
            "outputs of the PyTorch model without a counterpart: pooled"
        ]
