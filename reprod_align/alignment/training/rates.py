"""Compares learning rates: of the steps taken, and of the schedules alone far beyond."""

from collections.abc import Sequence, Set

from reprod_align.alignment.audit import OptimizerDifference
from reprod_align.alignment.findings import Findings
from reprod_align.alignment.runner import Runner
from reprod_align.alignment.training.schedule_causes import explain_rates
from reprod_align.base.difference import RELATIVE_TOLERANCE, gap
from reprod_align.base.text import count
from reprod_align.model.settings import OptimizerSettings
from reprod_align.model.side import Step
from reprod_align.report import Stage

import numpy as np

HORIZON = 1000
"""steps of a schedule that are compared without training"""
_Rates = Sequence[Sequence[float]]  # per step, one for each parameter group


def compare_rates(
    runner: Runner,
    findings: Findings,
    taken: Sequence[Step],
    natural: Sequence[Step],
    first_rates: Set[float],
) -> bool:
    """Compare the learning rates of PyTorch's steps and Paddle's; True if they agree.

    first_rates: those that Paddle's parameters start with; empty if PyTorch's start with others.
    """
    scheduled = runner.reference.scheduler is not None or runner.port.scheduler is not None
    ours: _Rates = [step.rates for step in taken]
    theirs: _Rates = [step.rates for step in natural]
    if scheduled:
        ours, theirs = runner.reference.rates(HORIZON), runner.port.rates(HORIZON)
    first, second = _closest_groups(ours, theirs, first_rates)
    length = min(len(first), len(second))
    if len(first) != len(second) and length < len(taken):  # one schedule ends before the training
        length = 0
    expected, actual = np.array(first[:length]), np.array(second[:length])
    found = gap(expected, actual)
    findings.check_gaps("schedule", f"learning rate, {count(length, 'step')}", [found])
    if not found.ok:
        scale = RELATIVE_TOLERANCE * max(float(np.abs(expected).max()), 1e-300)
        at = int(np.argmax(np.abs(actual - expected) > scale))
        text = (
            f"learning rate at step {at}: {expected[at]:.9g} in PyTorch, {actual[at]:.9g} in Paddle"
        )
        stage: Stage = "schedule" if scheduled else "optimizer"
        cause = explain_rates(expected, actual) if scheduled else ""
        findings.add(stage, "", "", text, found, cause=cause, kind="learning-rate")
    return found.ok


def leave_to_schedule(
    differences: Sequence[OptimizerDifference], settings: OptimizerSettings
) -> list[OptimizerDifference]:
    """Return the differences without a learning rate that differs by one factor for all parameters.

    `compare_rates` judges it step by step: a scheduler may set it before the first step.
    settings: of PyTorch's optimizer.
    """
    rates = [d for d in differences if d.setting == "lr"]
    concerned = {name for d in rates for name in d.torch_names}
    trained = {name for name, values in settings.parameters.items() if not values["frozen"]}
    ratios = {round(d.paddle_value / (d.torch_value or 1.0), 12) for d in rates}
    if len(ratios) == 1 and concerned >= trained:
        return [d for d in differences if d.setting != "lr"]
    return list(differences)


def _closest_groups(
    ours: _Rates, theirs: _Rates, first_rates: Set[float]
) -> tuple[list[float], list[float]]:
    """Return one number a step: the rates of the two groups that are closest to each other.

    Paddle's groups have factors of one rate, which need not be the rate of any group.
    """
    base = [step[0] for step in theirs]
    factors = {rate / base[0] for rate in first_rates} if base[0] else set()
    scaled = [[rate * factor for rate in base] for factor in factors or {1.0}]
    pairs = [(list(group), rates) for group in zip(*ours, strict=True) for rates in scaled]
    return min(pairs, key=lambda p: max(abs(a - b) for a, b in zip(*p, strict=False)))
