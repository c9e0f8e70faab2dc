"""Judges each element by what rounding can do there, not by the largest value of the tensor.

    |a - e| <= relative * max(row, spread * tensor) + floor

row and tensor: the largest |expected| in the element's row (along the last axis) and in the tensor,
without values that stand apart (`base/apart.py`): masks, sentinels and rare outliers are no scale for
others, and each is judged by its own size. Nothing is allowed that `gap` does not allow.
"""

import math
from dataclasses import dataclass
from functools import cached_property

from reprod_align.base.apart import Sizes, measure_sizes
from reprod_align.base.difference import (
    RELATIVE_TOLERANCE,
    Array,
    Gap,
    blocks,
    by_place,
    distances,
    gap,
)

import numpy as np

SPREAD = 1e-2
"""in float64: the share of the largest row's tolerance that every row has (docs/tolerances.md)"""
_OUTLIERS = 1e-3  # of that share: what a rare outlier adds
_ULPS = 16.0  # that a constant may be off


@dataclass(frozen=True)
class Allowance:
    """How far the elements of a tensor may be off."""

    relative: float = RELATIVE_TOLERANCE
    floor: float = 0.0
    spread: float = SPREAD
    noise: Array | None = None
    """of each element, in the tensor's shape: what rounding is known to do there; allowed as far as
    the largest ordinary value of the tensor allows it"""


def judge(expected: Array, actual: Array, allowance: Allowance = Allowance()) -> Gap:
    """Compare as `gap` does, and each element with what is allowed at its own place."""
    found = gap(expected, actual, allowance.relative, allowance.floor)
    return find_beyond(expected, actual, allowance, found) or found


def find_beyond(expected: Array, actual: Array, allowance: Allowance, found: Gap) -> Gap | None:
    """Return the element that is furthest beyond what its place allows; None if all are within.

    found: what `gap` says. None also where that fails and nothing stands apart.
    """
    if not 0 < found.tolerance < math.inf or not found.difference > allowance.floor:
        return None
    sizes = measure_sizes(expected, allowance.relative, allowance.spread, found.scale)
    places = _Places(expected, actual, allowance, sizes)
    if found.difference <= places.least or not (sizes.apart or found.ok):
        return None
    times, difference, tolerance, at = places.find_worst()
    if times <= 1:
        return None
    values = at, expected.shape, expected.flat[at], actual.flat[at]
    scale = sizes.ordinary if difference > places.most else tolerance / allowance.relative
    return Gap(difference, tolerance, scale, worst=values, local=found.ok)


@dataclass(frozen=True)
class _Places:
    """What is allowed at each place of a tensor."""

    expected: Array
    actual: Array
    allowance: Allowance
    sizes: Sizes

    @property
    def least(self) -> float:
        """What every element may be off that does not stand apart."""
        rule = self.allowance
        outliers = (group.high for group in self.sizes.apart if group.computed)
        scale = max(self.sizes.ordinary, _OUTLIERS * max(outliers, default=0.0))
        return rule.relative * rule.spread * scale + rule.floor

    @property
    def most(self) -> float:
        """What no element may exceed that does not stand apart."""
        return self.allowance.relative * self.sizes.ordinary + self.allowance.floor

    def find_worst(self) -> tuple[float, float, float, int]:
        """Return times its allowance, the difference, the allowance and the number of the worst element."""
        worst = (0.0, 0.0, 0.0, 0)
        for start, distance, ours, theirs in distances(self.expected, self.actual):
            with np.errstate(invalid="ignore"):
                distance = by_place(distance, ours, theirs).reshape(-1)
            at = np.flatnonzero(distance > self.least)
            if at.size:
                tolerance = self._allow(np.abs(ours.reshape(-1)[at]), start + at)
                with np.errstate(divide="ignore"):
                    times = distance[at] / tolerance
                most = int(times.argmax())
                found = (float(times[most]), float(distance[at[most]]), float(tolerance[most]))
                worst = max(worst, (*found, start + int(at[most])), key=lambda one: one[0])
        return worst

    def _allow(self, sizes: Array, at: Array) -> Array:
        """Return what elements of these sizes at these numbers may be off."""
        rule = self.allowance
        rows = self._rows[at // self._row]
        tolerance: Array = np.maximum(rule.relative * rows + rule.floor, self.least)
        if rule.noise is not None:
            noise = np.minimum(rule.noise.reshape(-1)[at], self.most)
            tolerance = np.maximum(tolerance, np.where(np.isnan(noise), 0.0, noise))
        ulps = _ULPS * self._epsilon
        for group in self.sizes.apart:
            inside = (sizes >= group.low) & (sizes <= group.high)
            own = min(max(group.tolerance, ulps), rule.relative)
            tolerance[inside] = own * sizes[inside] + rule.floor
        return tolerance

    @property
    def _row(self) -> int:
        """How many elements are a row."""
        return self.expected.shape[-1] if self.expected.ndim else 1

    @property
    def _epsilon(self) -> float:
        """The coarser dtype's."""
        kinds = [one.dtype for one in (self.expected, self.actual) if one.dtype.kind in "fc"]
        return max(float(np.finfo(kind).eps) for kind in kinds)

    @cached_property
    def _rows(self) -> Array:
        """The largest ordinary magnitude in each row."""
        row, rows = self._row, np.zeros(self.expected.size // self._row)
        lowest = min((group.low for group in self.sizes.apart), default=np.inf)
        for start, part, _ in blocks(self.expected, self.expected):
            sizes = np.abs(part).reshape(-1)
            sizes = np.where(np.isfinite(sizes) & (sizes < lowest), sizes, 0.0)
            first, last = start // row, (start + sizes.size - 1) // row
            begins = np.maximum(np.arange(first, last + 1) * row - start, 0)
            here = rows[first : last + 1]
            np.maximum(here, np.maximum.reduceat(sizes, begins), out=here)
        return rows
