"""The gradients of float inputs that one side stops or changes, and outputs that are no tensors."""

from dataclasses import replace
from itertools import count
from typing import Any

from reprod_align.alignment.comparing import compare_pass
from reprod_align.alignment.ends import judge_input_gradients, note_left
from reprod_align.alignment.findings import NOT_COMPARABLE
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


@pytest.mark.parametrize("grown", [True, False])
def test_where_rounding_has_grown_the_gradients_of_inputs_are_not_judged(grown: bool) -> None:
    """As in a batch norm of two values: the outputs differ by what float32 has rounded before it."""
    with at_work(TorchNet(), PaddleNet()) as (runner, findings):
        ours = runner.run_reference(True, of_inputs=True)
        done = compare_pass(runner, ours, True, runner.run_port(True, "outputs", of_inputs=True))
        done.natural.input_gradients = {"0": 2 * done.reference.input_gradients["0"]}
        findings.note_float32("a layer", 1e-8)
        if grown:
            done = replace(done, outputs=[(pair, NOT_COMPARABLE) for pair, _ in done.outputs])
        judge_input_gradients(runner, findings, done)
    said = [one.kind for one in findings.report.not_judged]
    assert (said, len(findings.report.findings)) == ((["input gradient"], 0) if grown else ([], 1))


def test_gradients_that_no_run_has_are_not_judged() -> None:
    with at_work(TorchNet(), PaddleNet()) as (runner, findings):
        judge_input_gradients(runner, findings, compare_pass(runner, runner.expected, False))
    assert [one.kind for one in findings.report.not_judged] == ["input gradient"]


class Cache:
    """An object of a model's own."""


def with_cache(layer: Any, x: Any) -> Any:
    return {"y": layer(x), "cache": Cache()}


def test_objects_are_listed_and_are_no_alarm() -> None:
    report = compare(with_cache, with_cache)
    assert report.verdict == "faithful"
    assert left(report, "output") == [
        "outputs that are neither tensors nor plain values: cache (Cache)"
    ]


def test_a_value_of_one_side_alone_is_listed() -> None:
    bare, more = (lambda layer, x: layer(x)), (lambda layer, x: (layer(x), 3))
    for sides, framework in (((more, bare), "PyTorch"), ((bare, more), "Paddle")):
        report = compare(*sides)
        text = f"outputs of the {framework} model without a counterpart: [1]"
        assert report.verdict == "faithful" and left(report, "output") == [text]


def test_a_tensor_of_paddles_where_pytorch_has_none_is_one_more() -> None:
    report = compare(lambda layer, x: (layer(x), None), lambda layer, x: (layer(x), x.sum()))
    assert report.verdict == "faithful"
    assert left(report, "output") == ["outputs of the Paddle model without a counterpart: [1]"]


def test_what_changes_from_run_to_run_is_not_judged() -> None:
    ours, theirs = count(), count(1000)
    report = compare(
        lambda layer, x: (layer(x), next(ours)), lambda layer, x: (layer(x), next(theirs))
    )
    assert report.verdict == "faithful"
    assert left(report, "output") == ["[1] is another one in each run of the PyTorch model"]


def test_float32_in_a_number_is_no_fault() -> None:
    report = compare(
        lambda layer, x: (layer(x), float(layer(x).sum())),
        lambda layer, x: (layer(x), np.float32(layer(x).sum().item())),
    )
    assert report.verdict == "agrees to float32" and "[1]" in report.remarks[-1]


def test_a_gradient_that_a_number_ends_is_said() -> None:
    report = compare(
        lambda layer, x: (layer(x), layer(x).sum()),
        lambda layer, x: (layer(x), float(layer(x).sum())),
    )
    assert report.verdict == "faithful"
    assert left(report, "gradient") == ["the gradient through [1]: it is no tensor in Paddle"]


def test_where_tensors_differ_what_is_made_of_them_follows() -> None:
    report = compare(
        lambda layer, x: (layer(x), float(layer(x).sum())),
        lambda layer, x: (2 * layer(x), float(2 * layer(x).sum())),
    )
    assert not any("[1] is" in finding.message for finding in report.findings)


def test_objects_of_either_side_are_named() -> None:
    with at_work(TorchNet(), PaddleNet()) as (runner, findings):
        done = compare_pass(runner, runner.expected, training=False)
        done.natural.objects["state"] = "Cache"
        note_left(runner.pairing, findings, done)
    (note,) = findings.report.not_judged
    assert note.kind == "output" and "state (Cache)" in note.what


def test_a_text_that_differs_beside_a_tensor_that_does_is_said() -> None:
    report = compare(lambda layer, x: (layer(x), "a"), lambda layer, x: (layer(x) + 1, "b"))
    assert report.verdict == "diverges"
    (told,) = left(report, "output")
    assert "may follow: [1]" in told


def test_a_short_array_that_differs_is_shown() -> None:
    report = compare(
        lambda layer, x: (layer(x), np.array([4, 5])), lambda layer, x: (layer(x), np.array([4, 6]))
    )
    assert "[4, 6] in Paddle and an array of shape (2,) [4, 5]" in report.findings[0].message
