"""Learning rates: of the steps, of schedules, and of groups."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from reprod_align.alignment.audit import OptimizerDifference
from reprod_align.alignment.findings import Findings
from reprod_align.alignment.training.steps import compare_rates, leave_to_schedule
from reprod_align.model.settings import OptimizerSettings
from tests.alignment.small import messages

import pytest


def steps(*rates: Sequence[float]) -> Any:
    return [SimpleNamespace(rates=list(step)) for step in rates]


def runner(ours: Any = None, theirs: Any = None) -> Any:
    sides = [
        SimpleNamespace(scheduler=given, rates=lambda _, given=given: given)
        for given in (ours, theirs)
    ]
    return SimpleNamespace(reference=sides[0], port=sides[1])


@pytest.mark.parametrize(
    ("theirs", "words"),
    [(steps([0.1], [0.05]), ""), (steps([0.1], [0.06]), "step 1: 0.05 in PyTorch, 0.06 in Paddle")],
)
def test_rates_of_the_steps(theirs: Any, words: str) -> None:
    findings = Findings()
    assert compare_rates(runner(), findings, steps([0.1], [0.05]), theirs, set()) == (not words)
    assert [words in text for text in messages(findings)] == [True] * bool(words)
    assert findings.report.checks[0].what == "learning rate, 2 steps"


def test_schedules_are_compared_far_beyond_the_steps_that_were_taken() -> None:
    findings = Findings()
    known = runner([[0.1]] * 10, [[0.1]] * 9 + [[0.2]])
    assert not compare_rates(known, findings, steps([0.1]), steps([0.1]), set())
    assert findings.report.findings[0].stage == "schedule"
    assert "step 9" in messages(findings)[0]


def test_a_group_of_paddles_is_a_factor_of_its_rate() -> None:
    findings = Findings()
    taken, natural = steps([0.1, 0.01], [0.2, 0.02]), steps([1.0], [2.0])
    assert compare_rates(runner(), findings, taken, natural, {0.1, 0.01})


def test_a_rate_that_differs_by_one_factor_everywhere_is_left_to_the_schedule() -> None:
    whole = OptimizerDifference("lr", 0.1, 0.2, ("a", "b"), ("a", "b"), "lr: 0.1 and 0.2")
    part = OptimizerDifference("lr", 0.1, 0.2, ("a",), ("a",), "lr: 0.1 and 0.2")
    eps = OptimizerDifference("eps", 1e-8, 1e-6, ("a",), ("a",), "eps")
    held = {name: {"frozen": False, "lr": 0.1} for name in "ab"}
    settings = OptimizerSettings("SGD", "SGD", held, None)
    assert leave_to_schedule([whole, eps], settings) == [eps]
    assert leave_to_schedule([part, eps], settings) == [part, eps]
