"""Both sides on further batches."""

from typing import Any

from reprod_align.alignment.batches.derive import Batch
from reprod_align.alignment.batches.stage import Trials
from reprod_align.alignment.comparing import compare_pass
from tests.alignment.small import PaddleNet, TorchNet, X, at_work

import numpy as np
import paddle
import pytest


def halve_single(x):
    return x if len(x) > 1 else x / 2


ONE = Batch("with one example", (X[:1],))


def test_a_batch_that_is_accepted_is_compared_and_its_fault_located() -> None:
    with at_work(TorchNet(), PaddleNet(halve_single)) as (runner, _):
        trials = Trials(runner, compare_pass(runner, runner.expected, False))
        assert trials.accepts(ONE)
        done = trials.compare(ONE)
        assert not done.outputs_ok and len(done.natural.calls[0].outputs[""].array) == 1
        (finding,) = trials.locate(ONE).report.findings
        assert (finding.torch_name, finding.paddle_name) == ("", "")
        assert "hands to second" in finding.message


def test_a_batch_on_which_the_reference_raises_is_refused() -> None:
    with at_work(TorchNet(), PaddleNet()) as (runner, _):
        trials = Trials(runner, compare_pass(runner, runner.expected, False))
        assert not trials.accepts(Batch("with another width", (X[:, :2],)))
        assert trials.refused == ["with another width"]


@pytest.mark.parametrize("inputs", [X * np.nan, X * 0 + np.inf, X[:1]], ids=["NaN", "inf", "large"])
def test_a_batch_of_which_the_reference_makes_no_ordinary_numbers_is_refused(inputs: Any) -> None:
    def grow(x):
        return x * 1e6 if len(x) == 1 else x

    with at_work(TorchNet(grow), PaddleNet(grow)) as (runner, _):
        trials = Trials(runner, compare_pass(runner, runner.expected, False))
        assert not trials.accepts(Batch("with what is not ordinary", (inputs,)))
        assert trials.accepts(Batch("with two examples", (X[:2],)))


def test_gradients_are_off_under_no_grad_alone_and_the_place_is_found_there() -> None:
    def halve(x):
        return x if paddle.is_grad_enabled() else x / 2

    ungraded = Batch("under no_grad", (X,), graded=False)
    with at_work(TorchNet(), PaddleNet(halve)) as (runner, _):
        trials = Trials(runner, compare_pass(runner, runner.expected, False))
        assert trials.accepts(ungraded) and trials.accepts(ONE)
        assert trials.compare(ONE).outputs_ok and not trials.compare(ungraded).outputs_ok
        assert "hands to second" in trials.locate(ungraded).report.findings[0].message


def test_calls_that_come_first_are_made_on_both_sides() -> None:
    def count(x):
        counted.append(len(x))
        return x

    counted: list[int] = []
    again = Batch("again", (X,), before=(ONE.inputs, (X[:2],)))
    with at_work(TorchNet(count), PaddleNet(count)) as (runner, _):
        trials = Trials(runner, compare_pass(runner, runner.expected, False))
        counted.clear()
        assert trials.accepts(again) and trials.compare(again).outputs_ok
        assert counted == [1, 2, 4, 1, 2, 4]
