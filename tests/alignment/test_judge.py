"""The stages in order, and a port that raises."""

import sys
from typing import Any

from reprod_align import align
from reprod_align.alignment.comparing import compare_pass
from reprod_align.alignment.judge import find_rank, judge
from reprod_align.pair import PairSpec, paddle_side, torch_side
from reprod_align.report import Finding, say_result
from tests.alignment.small import PaddleNet, TorchNet, X, mean_square

import numpy as np
import paddle
import torch


def verdict_on(torch_model: Any, paddle_model: Any) -> Any:
    reference, port = torch_side(torch_model, mean_square), paddle_side(paddle_model, mean_square)
    with reference.working("float64"), port.working("float64"):
        return judge(PairSpec(reference, port, (X,), steps=1), "float64")


def test_a_faithful_pair_goes_through_all_stages() -> None:
    report = verdict_on(TorchNet(), PaddleNet())
    assert report.passed and report.verdict == "faithful"
    stages = [check.stage for check in report.checks]
    assert stages == [
        *["forward"] * 3, *["loss"] * 2, "backward", "forward", *["backward"] * 2,
    ]  # fmt: skip


def test_findings_are_in_causal_order_and_settings_are_added_to_them() -> None:
    sides = torch.nn.LayerNorm(5, eps=1e-5), paddle.nn.LayerNorm(5, epsilon=0.1)
    report = verdict_on(TorchNet(last=sides[0]), PaddleNet(last=sides[1]))
    assert report.verdict == "diverges"
    first = report.findings[0]
    assert (first.stage, first.place) == ("forward", "second")
    assert "Settings differ: eps" in first.message


def test_a_port_that_raises_is_a_finding_at_the_module_that_raised() -> None:
    def fail(x: Any) -> Any:
        raise ValueError("no such axis")

    report = verdict_on(TorchNet(), PaddleNet(fail))
    assert report.port_raised
    assert "the Paddle model raises ValueError: no such axis" in report.findings[0].message


def test_places_alone_are_enough_where_float32_is_asked_for() -> None:
    def narrow(x: Any) -> Any:
        return 3 * x.astype("float32").astype("float64")

    reports = []
    for places_only in (False, True):
        reference, port = torch_side(TorchNet()), paddle_side(PaddleNet(narrow))
        with reference.working("float64"), port.working("float64"):
            pair = PairSpec(reference, port, (X,), steps=1)
            reports.append(judge(pair, "float64", places_only=places_only))
        assert pair.asked_float32
    full, brief = reports
    assert [found.place for found in brief.findings] == [found.place for found in full.findings]
    assert full.findings[0].paddle_code and not brief.findings[0].paddle_code
    assert len(full.checks) > len(brief.checks)


def test_what_train_mode_repeats_is_not_compared_again(monkeypatch: Any) -> None:
    taken: list[bool] = []
    compared = lambda runner, reference, training, *rest: (  # noqa: E731
        taken.append(training) or compare_pass(runner, reference, training, *rest)
    )
    monkeypatch.setattr(sys.modules[judge.__module__], "compare_pass", compared)
    for factor, checked in ((1.0, 3), (2.0, 4)):  # eval mode's gradients only where outputs differ
        report = verdict_on(TorchNet(), PaddleNet(lambda x, by=factor: x * by))
        checks = [check for check in report.checks if "mode" in check.what]
        assert [check.passed for check in checks] == [factor == 1.0] * checked
    assert taken == [False, True, False, False]
    taken.clear()

    class Drops(PaddleNet):
        def forward(self, x: Any) -> Any:
            return super().forward(x) * (2.0 if self.training else 1.0)

    assert verdict_on(TorchNet(), Drops()).verdict == "diverges"
    assert taken == [False, True, False]  # the last with eval mode's gradients


def test_a_fault_of_train_mode_alone_is_named_with_its_module_and_line() -> None:
    class Doubles(paddle.nn.Linear):
        def forward(self, x: Any) -> Any:
            return super().forward(x) * (2.0 if self.training else 1.0)

    drop = torch.nn.Dropout(0.5), paddle.nn.Dropout(0.5)
    for layers in ((lambda x: x, lambda x: x), drop):
        report = verdict_on(TorchNet(layers[0]), PaddleNet(layers[1], Doubles(5, 2)))
        found = report.findings[0]
        assert (found.place, found.stage) == ("second", "forward")
        assert "(2.0 if self.training" in (found.paddle_code or "")


def test_a_parameter_without_elements_is_judged_as_any_other() -> None:
    ours, theirs = TorchNet(), PaddleNet()
    ours.empty = torch.nn.Parameter(torch.zeros(0, 3))
    theirs.empty = theirs.create_parameter([0, 3])
    ours.between = lambda x: x + ours.empty.sum()
    theirs.between = lambda x: x + theirs.empty.sum()
    assert verdict_on(ours, theirs).verdict == "faithful"


def test_modules_whose_settings_differ_alike_are_one_remark() -> None:
    class Torch(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.convs = torch.nn.ModuleList(torch.nn.Conv2d(3, 3, 3) for _ in range(5))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for conv in self.convs:
                x = conv(x)
            return x

    class Last(paddle.nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            convs = [paddle.nn.Conv2D(3, 3, 3, data_format="NHWC") for _ in range(5)]
            self.convs = paddle.nn.LayerList(convs)

        def forward(self, x: paddle.Tensor) -> paddle.Tensor:
            x = x.transpose([0, 2, 3, 1])
            for conv in self.convs:
                x = conv(x)
            return x.transpose([0, 3, 1, 2])

    images = np.random.default_rng(0).normal(size=(2, 3, 12, 12))
    report = align(Torch(), Last(), (images,))
    assert report.verdict == "faithful", str(report)
    (said,) = report.remarks
    start = "convs.0, convs.1, convs.2 and 2 more: settings differ without an effect seen here: "
    assert said.startswith(start + "data_format")


def test_settings_that_explain_missing_weights_are_named_once() -> None:
    """They stood in the finding and once more behind it; several layers alike are one finding."""
    ours = torch.nn.Sequential(*(torch.nn.GroupNorm(1, 3) for _ in range(2)))
    theirs = paddle.nn.Sequential(*(paddle.nn.GroupNorm(1, 3, bias_attr=False) for _ in range(2)))
    report = align(ours, theirs, (np.random.default_rng(0).normal(size=(2, 3, 4)),))
    (finding,) = report.findings
    assert finding.message.count("bias: PyTorch True") == 1, finding.message
    assert finding.message.count("Settings differ") == 1 and finding.places == ("1",)


def test_a_port_that_raises_shows_no_settings_to_be_without_effect() -> None:
    class Port(paddle.nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.norm = paddle.nn.LayerNorm(3, epsilon=0.1)

        def forward(self, x: paddle.Tensor) -> paddle.Tensor:
            return self.norm(x.reshape([7, -1]))

    class Reference(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = torch.nn.LayerNorm(3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.norm(x)

    report = align(Reference(), Port(), (np.ones((2, 3)),))
    (said,) = [remark for remark in report.remarks if "settings differ" in remark]
    assert said.startswith("norm: settings differ; the port raised before"), said


def round_off(tensor: Any) -> Any:
    """Return the tensor with its values rounded as float32, the gradient unchanged."""
    values = tensor.detach().numpy()
    rounded = values.astype("float32").astype("float64") - values
    return tensor + paddle.to_tensor(rounded)


def test_rows_of_float32_stay_so_beside_a_fault_of_the_optimizer() -> None:
    x = np.random.default_rng(0).normal(size=(4, 3))
    torch.manual_seed(0)
    report = align(
        TorchNet(), PaddleNet(round_off), (x,), torch.mean, paddle.mean,
        lambda model: torch.optim.SGD(model.parameters(), 1e-3),
        lambda model: paddle.optimizer.SGD(2e-3, parameters=model.parameters()),
    )  # fmt: skip
    words = {check.what: say_result(check, report.passed) for check in report.checks}
    assert [one.stage for one in report.findings] == ["optimizer"], str(report)
    assert words["outputs, eval mode"] == words["gradients, train mode"] == "float32"
    assert words["updates of 3 steps"] == "DIFFERENT"


def test_what_a_fault_makes_is_never_called_float32() -> None:
    torch.manual_seed(0)
    x = np.random.default_rng(0).normal(size=(4, 3))
    report = align(TorchNet(), PaddleNet(lambda value: 1.001 * round_off(value)), (x,))
    assert not report.passed and not any(check.float32 for check in report.checks)


def test_what_no_single_module_makes_comes_last() -> None:
    """Train mode's batch norms make rounding larger: a gradient that is cut explains more."""
    apart = "the outputs differ", 1e-5, 0.0
    lost = Finding("forward", "", "", *apart, kind="outputs")
    cut = Finding("backward", "a", "a", *apart, kind="gradient")
    exchanged = Finding("forward", "", "", *apart, kind="outputs", cause="outputs are exchanged")
    assert sorted([lost, cut, exchanged], key=find_rank) == [exchanged, cut, lost]
