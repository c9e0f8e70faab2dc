"""How a curve leaves the band: spike, divergence, too few steps."""

from reprod_align.curves import compare_curves
from reprod_align.curves.band import SPIKE, Limits, follow
from reprod_align.curves.log import Curve
from tests.curves.runs import one, said

import numpy as np


def test_a_spike_is_not_a_divergence() -> None:
    loss = np.linspace(1, 0.5, 100)
    spiked = loss.copy()
    spiked[40:42] += 0.1
    report = compare_curves({"loss": loss}, {"loss": spiked})
    assert one(report).verdict == "spike" and report.exit_code == 1
    assert "isolated spike at step 41, back within the band at step 43" in said(report)
    assert one(report).diverged_step is None


def test_a_spike_before_a_divergence() -> None:
    loss = np.linspace(1, 0.5, 100)
    other = loss.copy()
    other[10] += 0.1
    other[60:] += 0.1
    report = compare_curves({"loss": loss}, {"loss": other})
    assert (one(report).first_step, one(report).diverged_step) == (11, 61)
    assert "outside at step 11, stays outside from step 61" in said(report)


def test_the_last_steps_are_too_few_to_tell() -> None:
    loss = np.linspace(1, 0.5, 100)
    other = np.where(np.arange(100) >= 97, loss + 0.1, loss)
    report = compare_curves({"loss": loss}, {"loss": other})
    assert one(report).verdict == "parts at the end" and "too few steps follow" in said(report)


def test_a_nan_lies_outside_whatever_the_band() -> None:
    steps = np.arange(1, 9)
    ours = Curve("loss", steps, np.linspace(1.0, 0.5, 8))
    theirs = Curve("loss", steps, np.where(steps == 3, np.nan, ours.values))
    track = follow(ours, theirs, [], Limits(tolerance=1e9))
    assert track.first == 2 and track.back == 3 and track.behaviour == SPIKE
    assert np.isnan(track.difference[2]) and track.outside.sum() == 1
