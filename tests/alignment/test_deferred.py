"""A backward pass that is left to train mode: what that could hide is found all the same."""

from typing import Any

from reprod_align import align
from tests.alignment.small import PaddleNet, TorchNet, X

import paddle
import pytest
import torch


class _Doubled(paddle.autograd.PyLayer):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 1.0

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return gradient * 2.0


def _cut(layer: Any, x: Any) -> Any:
    made = paddle.nn.Linear.forward(layer, x)
    return made if layer.training else made.detach()


def _cut_without_grad(layer: Any, x: Any) -> Any:
    if layer.training:
        return paddle.nn.Linear.forward(layer, x)
    with paddle.no_grad():
        return paddle.nn.Linear.forward(layer, x)


def _hook(layer: Any, x: Any) -> Any:
    made = paddle.nn.Linear.forward(layer, x)
    if not (layer.training or made.stop_gradient):
        made.register_hook(lambda gradient: gradient * 2.0)
    return made


def _own_function(layer: Any, x: Any) -> Any:
    made = paddle.nn.Linear.forward(layer, x)
    return made if layer.training else _Doubled.apply(made)


def _other_branch(layer: Any, x: Any) -> Any:
    made = paddle.nn.Linear.forward(layer, x)
    return made if layer.training else made + (made - made.detach())


FAULTS = {
    "detach": _cut,
    "no_grad": _cut_without_grad,
    "hook": _hook,
    "function": _own_function,
    "branch": _other_branch,
}


@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_eval_modes_backward_pass_alone_is_found(fault: str, dropout: float) -> None:
    wrong = type("Wrong", (paddle.nn.Linear,), {"forward": FAULTS[fault]})
    between = torch.nn.Dropout(dropout), paddle.nn.Dropout(dropout)
    report = align(TorchNet(between[0]), PaddleNet(between[1], wrong(5, 2)), (X,))
    assert not report.passed
    found = report.findings[0]
    assert (found.stage, found.place) == ("backward", "second"), report
    failed = [check.what for check in report.checks if not check.passed]
    assert failed == ["gradients, eval mode"], report


class _Scaled(paddle.nn.Dropout):
    def forward(self, x: Any) -> Any:
        return 1.5 * super().forward(x)


@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.parametrize("fault", FAULTS)
def test_it_is_found_beside_a_fault_of_the_forward_pass_too(fault: str, dropout: float) -> None:
    wrong = type("Wrong", (paddle.nn.Linear,), {"forward": FAULTS[fault]})
    report = align(
        TorchNet(torch.nn.Dropout(dropout)), PaddleNet(_Scaled(dropout), wrong(5, 2)), (X,)
    )
    found = {(finding.stage, finding.place) for finding in report.findings}
    assert found == {("forward", "between"), ("backward", "second")}, report


def test_beside_it_a_fault_of_both_backward_passes_is_found_with_one() -> None:
    class Wrong(paddle.nn.Linear):
        def forward(self, x: Any) -> Any:
            made = super().forward(x)
            return made + (made - made.detach())

    report = align(TorchNet(torch.nn.Dropout(0.5)), PaddleNet(_Scaled(0.5), Wrong(5, 2)), (X,))
    found = {(finding.stage, finding.place) for finding in report.findings}
    assert found == {("forward", "between"), ("backward", "second")}, report
    assert "gradients, eval mode" not in {check.what for check in report.checks}


def test_a_layer_with_statistics_is_judged_in_both_modes() -> None:
    norms = torch.nn.BatchNorm1d(5), paddle.nn.BatchNorm1D(5)
    report = align(TorchNet(norms[0]), PaddleNet(norms[1]), (X,))
    assert report.passed
    checks = {check.what for check in report.checks}
    assert {"gradients, eval mode", "gradients, train mode"} <= checks


def test_where_the_modes_run_the_same_graph_one_backward_pass_tells() -> None:
    for between in ((torch.nn.Dropout(0.5), paddle.nn.Dropout(0.5)), (torch.tanh, paddle.tanh)):
        report = align(TorchNet(between[0]), PaddleNet(between[1]), (X,))
        assert report.passed
        checks = {check.what for check in report.checks}
        assert "gradients, train mode" in checks and "gradients, eval mode" not in checks
        layers = [layer.backward for layer in report.details.layers]
        assert sum(found is not None for found in layers) == 2, (
            "a report shows each layer's gradients"
        )


def test_a_port_that_raises_in_train_mode_is_judged_in_eval_mode_all_the_same() -> None:
    class Wrong(paddle.nn.Linear):
        def forward(self, x: Any) -> Any:
            if self.training:
                raise ValueError("not in train mode")
            return _cut(self, x)

    report = align(TorchNet(), PaddleNet(last=Wrong(5, 2)), (X,))
    codes = [finding.stage for finding in report.findings]
    assert "backward" in codes and not report.passed, report


def test_fused_attention_with_dropout_runs_one_kernel_in_both_modes() -> None:
    class Attention(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            q = x.view(1, 1, 4, 5)
            drop = 0.5 if self.training else 0.0
            made = torch.nn.functional.scaled_dot_product_attention(q, q, q, dropout_p=drop)
            return made.view(4, 5)

    class Port(paddle.nn.Layer):
        def forward(self, x: Any) -> Any:
            q = x.reshape([1, 1, 4, 5])
            weights = paddle.nn.functional.softmax(q @ q.transpose([0, 1, 3, 2]) / 5**0.5)
            weights = paddle.nn.functional.dropout(weights, 0.5, training=self.training)
            return (weights @ q).reshape([4, 5])

    before = torch.backends.cuda.flash_sdp_enabled()
    report = align(TorchNet(Attention()), PaddleNet(Port()), (X,))
    assert report.passed, report
    assert "gradients, eval mode" not in {check.what for check in report.checks}
    assert torch.backends.cuda.flash_sdp_enabled() is before
