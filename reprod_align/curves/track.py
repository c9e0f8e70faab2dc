"""Two curves on their common steps: the difference, the band, and where one leaves the other."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from reprod_align.curves.band import Limits, noise_band
from reprod_align.curves.log import Array, Curve, at_common_steps

import numpy as np

AGREES, SPIKE, UNSTEADY = "agrees", "spike", "comes and goes"
DIVERGES, LATE = "parts", "parts at the end"
NOTHING: Final = "not compared"  # no step could be judged

_SPIKE_STEPS: Final = 3  # a spike has at most so many steps
_SPIKE_SHARE: Final = 0.05  # of the steps after it may lie outside too
_SUSTAINED: Final = 0.9  # of all later steps lie outside: the curves stay apart
ENOUGH: Final = 5
"""Steps it takes to tell a spike from a divergence, or a shifted count from chance."""


@dataclass(frozen=True)
class Track:
    """Two curves at the steps that both have and that can be judged."""

    steps: Array
    """(N,) int64"""
    expected: Array
    """(N,) float64: the reference"""
    actual: Array
    """(N,) float64"""
    limit: Array
    """(N,) float64: the band"""
    measured: bool
    """True if the band comes from a twin"""
    remarks: tuple[str, ...] = ()

    @cached_property
    def difference(self) -> Array:
        """|actual - expected|, (N,); NaN where either is NaN or infinite."""
        finite = np.isfinite(self.expected) & np.isfinite(self.actual)
        with np.errstate(invalid="ignore", over="ignore"):
            gap: Array = np.where(finite, np.abs(self.actual - self.expected), np.nan)
        return gap

    @cached_property
    def outside(self) -> Array:
        """Where the difference is not within the band, (N,) bool; a NaN never is."""
        out: Array = ~(self.difference <= self.limit)
        return out

    @cached_property
    def first(self) -> int | None:
        """The place of the first step outside the band; None if there is none."""
        return int(np.argmax(self.outside)) if np.any(self.outside) else None

    @cached_property
    def back(self) -> int:
        """The place of the first step within the band after `first`; N if there is none."""
        within = np.flatnonzero(~self.outside[self.first or 0 :])
        return (self.first or 0) + int(within[0]) if len(within) else len(self.steps)

    @cached_property
    def sustained(self) -> int | None:
        """The place from which at least 9 of 10 steps lie outside, if enough steps follow."""
        remaining = np.arange(len(self.steps), 0, -1)
        share = np.cumsum(self.outside[::-1])[::-1] / remaining
        places = np.flatnonzero(self.outside & (share >= _SUSTAINED) & (remaining > ENOUGH))
        return int(places[0]) if len(places) else None

    @cached_property
    def behaviour(self) -> str:
        """One of AGREES, SPIKE, DIVERGES, UNSTEADY, LATE, NOTHING."""
        if not len(self.steps):
            return NOTHING
        if self.first is None:
            return AGREES
        if len(self.steps) - self.first <= ENOUGH:
            return LATE
        if self.sustained is not None:
            return DIVERGES
        rest = self.outside[self.back :]
        alone = len(rest) > 0 and np.mean(rest) <= _SPIKE_SHARE
        return SPIKE if alone and self.back - self.first <= _SPIKE_STEPS else UNSTEADY


def follow(reference: Curve, other: Curve, twins: Sequence[Curve], limits: Limits) -> Track:
    """Return both curves on their common steps, with the band there."""
    steps, ours, theirs = at_common_steps(reference, other)
    band = noise_band(steps, ours, theirs, reference, twins, limits)
    kept = slice(0, band.judged)
    return Track(
        steps[kept], ours[kept], theirs[kept], band.limit[kept], band.measured, band.remarks
    )


def agree_when_shifted(
    reference: Curve, other: Curve, by: int, twins: Sequence[Curve], limits: Limits
) -> bool:
    """Return True if the curves agree once `by` is added to the other's steps.

    False where that says nothing: few common steps, or a curve that hardly changes.
    """
    track = follow(reference, other.shifted(by), twins, limits)
    if len(track.steps) < ENOUGH or track.first is not None:
        return False
    moves = np.abs(np.diff(track.expected))
    return bool(np.mean(moves > track.limit[1:]) > 0.5)
