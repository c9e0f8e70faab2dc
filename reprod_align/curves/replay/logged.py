"""What the logs say of the gap to be explained: its curve, its step, and the losses of both sides."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from reprod_align.base.difference import gap
from reprod_align.curves.band import precision_of
from reprod_align.curves.log import Array
from reprod_align.curves.names import GRAD_NORM, LOSS, LR
from reprod_align.curves.report import CurveReport, CurveResult
from reprod_align.errors import ReprodError

import numpy as np

_OF_STEPS: Final = (LOSS, LR, GRAD_NORM)
_ULPS: Final = 64  # of a log's precision: what a replay in float64 may be off by


@dataclass(frozen=True)
class LoggedGap:
    """Which curve left the band, and where; steps are counted from 1."""

    curve: str
    step: int
    """the first outside the band"""
    before: int
    """the last step compared before it; 0 if there is none"""
    final: int
    """the last step compared"""
    losses: Mapping[int, tuple[float, float]]
    """step -> PyTorch's and Paddle's"""

    def largest(self, steps: Sequence[int]) -> float:
        """Return the largest difference of the two losses over `steps`; NaN if none is logged."""
        known = [self.losses[step] for step in steps if step in self.losses]
        return measure_gap(*np.array(known).T) if known else np.nan

    def distance(self, side: int, first: int, losses: Array) -> float | None:
        """Return how far `losses` of the steps from `first` on are from a side's log; None if it has none.

        side: 0 for PyTorch, 1 for Paddle.
        """
        pairs = [
            (self.losses[step][side], loss)
            for step, loss in enumerate(losses, first)
            if step in self.losses
        ]
        return measure_gap(*np.array(pairs).T) if pairs else None

    @property
    def rounding(self) -> float:
        """What a replay in float64 may be off by, given the log's precision."""
        known = np.array(list(self.losses.values()) or [(0.0, 0.0)])
        bits = min(precision_of(known[:, 0]), precision_of(known[:, 1]))
        return _ULPS * 2.0 ** (1 - bits) * float(np.abs(known[np.isfinite(known)]).max(initial=0.0))


def measure_gap(ours: Array, theirs: Array) -> float:
    """Return the largest difference; inf if one is NaN or infinite where the other is not."""
    return gap(ours, theirs).difference


def find_gap(report: CurveReport, at: int | None) -> LoggedGap:
    """Return the gap to be explained: at step `at` of the logs, else the first outside the band."""
    result = _choose_curve(report)
    track, place = result.track, result.track.first or 0
    if at is not None:
        place = int(np.searchsorted(track.steps, at))
        if at not in track.steps:
            raise ReprodError(f"--at {at}: {result.name} has no such step in both logs")
    begins = [int(curve.steps[0]) for curve in report.reference.curves.values()]
    shift = 1 if min(begins) == 0 else 0  # a log that counts its steps from 0
    steps = [int(step) + shift for step in track.steps]
    losses = {
        int(step) + shift: (float(ours), float(theirs))
        for each in (other.track for other in report.results if other.quantity == LOSS)
        for step, ours, theirs in zip(each.steps, each.expected, each.actual, strict=True)
    }
    before = steps[place - 1] if place else 0
    return LoggedGap(result.name, steps[place], before, max(steps[-1], *losses, 0), losses)


def _choose_curve(report: CurveReport) -> CurveResult:
    """Return the curve of training steps that leaves its band first."""
    if report.first is None:
        raise ReprodError("--explain: the logs agree, there is no gap to explain")
    if report.first.quantity in _OF_STEPS:
        return report.first
    outside = [result for result in report.results if result.first_step is not None]
    of_steps = [result for result in outside if result.quantity in _OF_STEPS]
    if of_steps:
        return min(of_steps, key=lambda result: result.first_step or 0)
    if any(result.quantity == LOSS for result in report.results):
        raise ReprodError(
            f"--explain: the losses agree and {report.first.name} does not: training steps do not "
            "make this gap, so look at the evaluation (eval mode, its data, the metric)"
        )
    return report.first
