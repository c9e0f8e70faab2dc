"""Which gap of two logs is explained."""

import math

from reprod_align.curves import compare_curves
from reprod_align.curves.explain import LoggedGap, find_gap
from reprod_align.curves.log import Curve, CurveLog
from reprod_align.errors import ReprodError

import numpy as np
import pytest


def logs(first: int, start: int = 1) -> list[CurveLog]:
    """Return two logs of 10 steps whose losses diverge at the `first`-th."""
    losses = np.linspace(1.0, 0.5, 10)
    apart = losses + 0.01 * (np.arange(1, 11) >= first)
    steps = np.arange(start, start + 10)
    return [
        CurveLog("log", "test", {"loss": Curve("loss", steps, values)})
        for values in (losses, apart)
    ]


def test_the_first_step_outside_is_taken() -> None:
    found = find_gap(compare_curves(*logs(4)), None)
    assert (found.curve, found.step, found.before, found.final) == ("loss", 4, 3, 10)
    assert found.largest(range(1, 4)) == 0 and found.largest(range(1, 6)) == pytest.approx(0.01)
    assert math.isnan(found.largest(range(20, 22)))


def test_a_log_that_counts_from_0() -> None:
    found = find_gap(compare_curves(*logs(4, start=0)), None)
    assert (found.step, found.final) == (4, 10)


def test_another_step_is_chosen() -> None:
    report = compare_curves(*logs(4))
    assert find_gap(report, 6).step == 6
    with pytest.raises(ReprodError, match="--at 11: loss has no such step in both logs"):
        find_gap(report, 11)


def test_logs_that_agree_have_no_gap() -> None:
    with pytest.raises(ReprodError, match="the logs agree"):
        find_gap(compare_curves(*logs(99)), None)


def test_a_replay_is_held_against_its_log() -> None:
    gap = LoggedGap("loss", 2, 1, 3, {1: (1.0, 1.0), 2: (0.5, 0.75), 3: (0.25, math.nan)})
    assert gap.distance(0, 2, np.array([0.5, 0.25])) == 0
    assert gap.distance(1, 2, np.array([0.5])) == 0.25
    assert gap.distance(1, 2, np.array([0.75, 0.5])) == math.inf  # the log has a NaN there
    assert gap.distance(0, 9, np.array([1.0])) is None
    assert 0 < gap.rounding < 1e-13
