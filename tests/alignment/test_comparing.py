"""One pass of both sides compared."""

from typing import Any

from reprod_align.alignment.comparing import (
    compare_gradients,
    compare_pass,
    find_value,
    judge_all_gradients,
)
from reprod_align.model.trace import Trace
from tests.alignment.given import compare
from tests.alignment.small import PaddleNet, TorchNet, at_work

import numpy as np
import paddle
import pytest
import torch


def test_a_faithful_port_agrees_in_outputs_and_gradients() -> None:
    with at_work(TorchNet(), PaddleNet()) as (runner, _):
        done = compare_pass(runner, runner.expected, training=False)
    assert done.outputs_ok and done.gradients_ok and done.mode == "eval"
    assert len(done.gradients) == 4 and done.gradient_noise is None
    assert done.outputs_noise < 1e-12


def test_a_wrong_factor_shows_in_outputs_and_gradients() -> None:
    for factor in (1.5, 1 + 1e-7):
        with at_work(TorchNet(), PaddleNet(lambda x, by=factor: by * x)) as (runner, _):
            done = compare_pass(runner, runner.expected, training=False)
            assert not done.outputs_ok and not done.gradients_ok
            assert done.gradient_noise is None  # the outputs tell that more than noise differs
            assert judge_all_gradients(runner.pairing, done).gradient_noise is not None


def test_noise_is_measured_where_gradients_alone_differ_as_little_as_it_can() -> None:
    for share in (0.5, 1e-7):
        detour = lambda x, by=share: x + by * (x - x.detach())  # noqa: E731
        with at_work(TorchNet(), PaddleNet(detour)) as (runner, _):
            done = compare_pass(runner, runner.expected, training=False)
        assert done.outputs_ok and not done.gradients_ok
        assert (done.gradient_noise is not None) is (share < 0.1)


def test_gradients_that_agree_are_not_kept() -> None:
    with at_work(TorchNet(), PaddleNet()) as (runner, _):
        done = compare_pass(runner, runner.expected, training=False)
    assert done.gradients_ok and not done.natural.gradients


def test_a_gradient_that_never_arrives_is_zero() -> None:
    with at_work(TorchNet(), PaddleNet(lambda x: x.detach())) as (runner, _):
        done = compare_pass(runner, runner.expected, training=False)
        wrong = {
            name
            for name, _, found in compare_gradients(runner.pairing, done, done.natural)
            if not found.ok
        }
    assert done.outputs_ok and wrong == {"first.weight", "first.bias"}


def beside(extra: Any) -> Any:
    """Return what gives the layer's output with something beside it."""
    return lambda layer, x: {"y": layer(x), "more": extra(layer(x)) if callable(extra) else extra}


SAME = {
    "a whole number": (3, 3),
    "a number that the model computes": (lambda y: float(y.sum()), lambda y: y.sum().item()),
    "a number of numpy's": (lambda y: float(y.sum()), lambda y: np.float64(y.sum().item())),
    "a tensor for a number": (3, paddle.to_tensor(3)),
    "a number for a tensor": (torch.tensor(3), 3),
    "a tensor for a truth value": (True, paddle.to_tensor(True)),
    "a tensor for an array": (np.arange(4), paddle.arange(4)),
    "another kind of number": (3, 3.0),
    "a list of texts": (["cat", "dog"], ["cat", "dog"]),
    "nothing": (None, None),
    "a shape": (lambda y: y.shape, lambda y: y.shape),
    "NaN": (float("nan"), float("nan")),
    "more than numpy's integers hold": (10**30, 10**30),
}
OTHER = {
    "a whole number": (3, 4),
    "a number that the model computes": (lambda y: float(y.sum()), lambda y: float(y.mean())),
    "a number that is nearly the same": (
        lambda y: float(y.sum()),
        lambda y: float(y.sum()) * (1 + 1e-4),
    ),
    "a tensor for a number": (3, paddle.to_tensor(4)),
    "a truth value": (True, False),
    "a text": (["cat", "dog"], ["cat", "cow"]),
    "no text": ("", "a"),
    "an array": (np.arange(4), np.arange(4)[::-1].copy()),
    "a set": ({1, 2}, {1, 3}),
    "None for a number": (3, None),
    "None for a tensor": (lambda y: y.sum(), None),
    "a number for None": (None, 3),
    "a list that lost one": ({"n": [1, 2, 3]}, {"n": [1, 2]}),
    "more than numpy's integers hold": (10**30, 10**31),
}


@pytest.mark.parametrize("name", SAME)
def test_values_that_agree_are_faithful_without_a_word(name: str) -> None:
    ours, theirs = SAME[name]
    report = compare(beside(ours), beside(theirs))
    assert report.verdict == "faithful" and not report.not_judged and not report.remarks, report


@pytest.mark.parametrize("name", OTHER)
def test_a_value_that_differs_is_a_finding_that_names_it(name: str) -> None:
    ours, theirs = OTHER[name]
    report = compare(beside(ours), beside(theirs))
    assert report.verdict == "diverges"
    assert len(report.findings) == 1 and "more" in report.findings[0].message, report


def test_values_without_names_in_common_are_paired_in_order() -> None:
    for number, verdict in ((3, "faithful"), (4, "diverges")):
        report = compare(
            lambda layer, x: {"y": layer(x), "n": 3}, lambda layer, x, n=number: (layer(x), n)
        )
        assert report.verdict == verdict


def test_a_value_that_differs_on_a_further_batch_alone_is_a_finding() -> None:
    report = compare(
        lambda layer, x: (layer(x), len(x) == 1), lambda layer, x: (layer(x), bool(len(x) == 0))
    )
    assert report.verdict == "diverges" and "further batches" in str(report)


def test_a_value_is_found_by_its_path() -> None:
    run = Trace(values={"n": np.array(3)})
    assert find_value(run, "n") == 3 and find_value(run, "m") is None
