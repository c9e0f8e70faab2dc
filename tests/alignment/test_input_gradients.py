"""The gradients of float inputs: those that one side stops or changes are findings."""

from typing import Any

from reprod_align.alignment.comparing import compare_pass
from reprod_align.alignment.input_gradients import judge_input_gradients
from tests.alignment.given import compare, left
from tests.alignment.small import PaddleNet, TorchNet, X, at_work

import numpy as np
import paddle
import pytest

MASK = np.repeat(np.array([[1.0, 1.0, 0.0]]), 4, axis=0)


def add(layer: Any, x: Any) -> Any:
    return x + layer(x)


SAME = {
    "nothing stopped": (add, add),
    "stopped on both sides": (lambda layer, x: layer(x.detach()),) * 2,
    "an output of the input alone": (lambda layer, x: (layer(x), 2 * x),) * 2,
    "changed in place": (
        lambda layer, x: layer(x.add_(1.0)), lambda layer, x: layer(x.add_(paddle.ones([1]))),
    ),
}  # fmt: skip
OTHER = {
    "one use of it is stopped": lambda layer, x: x.detach() + layer(x),
    "every use of it is stopped": lambda layer, x: x.detach() + layer(x.detach()),
    "a gradient twice as large": lambda layer, x: 2 * x - x.detach() + layer(x),
}


@pytest.mark.parametrize("name", SAME)
def test_equal_gradients_are_faithful_without_a_word(name: str) -> None:
    ours, theirs = SAME[name]
    report = compare(ours, theirs)
    assert report.verdict == "faithful" and not report.not_judged, report
    assert any(check.what == "gradients of the inputs" for check in report.checks)


@pytest.mark.parametrize("name", OTHER)
def test_another_gradient_is_a_finding_that_names_the_input(name: str) -> None:
    report = compare(add, OTHER[name])
    assert report.verdict == "diverges"
    assert "the gradient of the input 0" in report.findings[0].message, report


def test_a_gradient_that_pytorch_alone_stops_is_a_finding() -> None:
    report = compare(lambda layer, x: x.detach() + layer(x.detach()), add)
    assert "stopped in PyTorch" in report.findings[0].message, report


def test_a_model_that_takes_no_inputs_that_require_a_gradient_is_said() -> None:
    report = compare(
        lambda layer, x: layer(x) + float(x.numpy().sum()),
        lambda layer, x: layer(x) + float(x.numpy().sum()),
    )
    assert report.verdict == "faithful"
    assert left(report, "input gradient") == [
        "the gradients of the inputs: the PyTorch model raises if they require one"
    ]


def test_the_gradients_of_masks_may_differ() -> None:
    hide = lambda layer, x: layer(x * 0 + 1) + (1 - x) * -5.0  # noqa: E731
    report = compare(hide, lambda layer, x: hide(layer, x.detach()), x=MASK)
    assert report.verdict == "faithful"
    assert left(report, "input gradient") == [
        "the gradients of inputs of few values differ, as those of masks may: 0"
    ]


def test_a_slope_at_0_is_not_judged() -> None:
    given = np.where(X > 0.5, 0.0, X)
    report = compare(
        lambda layer, x: layer(x.relu()), lambda layer, x: layer(paddle.maximum(x, 0 * x)), x=given
    )
    assert report.verdict == "faithful"
    (text,) = left(report, "input gradient")
    assert "where it is 0" in text


def test_float32_inside_is_no_fault_and_hides_no_stop() -> None:
    narrow = lambda layer, x: layer(x.astype("float32").astype("float64"))  # noqa: E731
    keep = lambda layer, x: layer(x.float().double())  # noqa: E731
    report = compare(lambda layer, x: x + keep(layer, x), lambda layer, x: x + narrow(layer, x))
    assert report.passed, report
    report = compare(
        lambda layer, x: x + keep(layer, x), lambda layer, x: x.detach() + narrow(layer, x)
    )
    assert report.verdict == "diverges"


def test_gradients_that_no_run_has_are_not_judged() -> None:
    with at_work(TorchNet(), PaddleNet()) as (runner, findings):
        judge_input_gradients(runner, findings, compare_pass(runner, runner.expected, False))
    assert [one.kind for one in findings.report.not_judged] == ["input gradient"]
