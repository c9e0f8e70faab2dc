"""What is said of outputs that are no tensors: findings, and what can't be compared."""

from itertools import count
from typing import Any

from reprod_align.alignment.comparing import compare_pass
from reprod_align.alignment.output_values import note_left
from tests.alignment.given import compare, left
from tests.alignment.small import PaddleNet, TorchNet, at_work

import numpy as np


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
