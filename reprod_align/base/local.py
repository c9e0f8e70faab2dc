"""Judges each element by what rounding can do there, not by the largest value of the tensor.

    |a - e| <= relative * max(near, spread * tensor) + floor

or as much as large elements are off as a rule, if that is more: it shows how noisy the tensor is.
tensor: the largest |expected|; near: the largest in the element's row (along the last axis), or in its
channel (along all others) if that is smaller. Values that stand apart (`base/apart.py`) do not count:
masks, sentinels and rare outliers are no scale for others, and each is judged by its own size. Nothing
is allowed that `gap` does not allow.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from reprod_align.base.apart import Sizes, measure_sizes
from reprod_align.base.difference import (
    RELATIVE_TOLERANCE,
    Array,
    Gap,
    by_place,
    distances,
    gap,
    parts,
)

import numpy as np

SPREAD = 1e-3
"""in float64: the share of the largest row's tolerance that every row has (docs/tolerances.md)"""
_OUTLIERS = 1e-2  # of that share: what a rare outlier adds
_FEW = 2  # elements say how large their neighbours are; a single one does not
_LARGE = 1e-2  # of the largest
_SEEN = 30.0  # times the usual difference of large elements: what any element may be off
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


def judge(
    expected: Array, actual: Array, allowance: Allowance = Allowance(), with_mean: bool = False
) -> Gap:
    """Compare as `gap` does, and each element with what is allowed at its own place."""
    found = gap(expected, actual, allowance.relative, allowance.floor, with_mean)
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
    if times > 1 and found.ok:
        places = replace(places, seen=places.measure_seen())
        times, difference, tolerance, at = places.find_worst()
    if times <= 1:
        return None
    values = at, expected.shape, expected.flat[at], actual.flat[at]
    scale = places.find_scale(at, difference, tolerance)
    return Gap(difference, tolerance, scale, worst=values, local=found.ok, mean=found.mean)


@dataclass(frozen=True)
class _Places:
    """What is allowed at each place of a tensor."""

    expected: Array
    actual: Array
    allowance: Allowance
    sizes: Sizes
    seen: float = 0.0
    """how far large elements are off: small ones may be as far"""

    @property
    def least(self) -> float:
        """What every element may be off that does not stand apart."""
        rule = self.allowance
        outliers = (group.high for group in self.sizes.apart if group.computed)
        scale = max(self.sizes.ordinary, _OUTLIERS * max(outliers, default=0.0))
        return min(max(rule.relative * rule.spread * scale, self.seen) + rule.floor, self.most)

    @property
    def most(self) -> float:
        """What no element may exceed that does not stand apart."""
        return self.allowance.relative * self.sizes.ordinary + self.allowance.floor

    def find_worst(self) -> tuple[float, float, float, int]:
        """Return times its allowance, the difference, the allowance and the number of the worst element."""
        worst = (0.0, 0.0, 0.0, 0)
        for start, distance, ours, theirs in distances(self.expected, self.actual):
            if not math.isfinite(distance.max()):
                distance = by_place(distance, ours, theirs)
            at = np.flatnonzero(distance > self.least)
            if at.size:
                tolerance = self._allow(np.abs(_widen(ours[at])), start + at)
                with np.errstate(divide="ignore"):
                    times = distance[at] / tolerance
                most = int(times.argmax())
                found = (float(times[most]), float(distance[at[most]]), float(tolerance[most]))
                worst = max(worst, (*found, start + int(at[most])), key=lambda one: one[0])
        return worst

    def measure_seen(self) -> float:
        """Return how far large ordinary elements are off as a rule, times _SEEN."""
        apart: list[Array] = []
        for _, distance, ours, _ in distances(self.expected, self.actual):
            sizes = np.abs(_widen(ours))
            with np.errstate(invalid="ignore"):
                large = (sizes >= _LARGE * self.sizes.ordinary) & (sizes <= self.sizes.ordinary)
            apart.append(distance[large])
        seen = np.concatenate(apart)
        return _SEEN * float(np.median(seen)) if seen.size else 0.0

    def find_scale(self, at: int, difference: float, tolerance: float) -> float:
        """Return what the difference of element number `at` is to be set against."""
        size = float(np.abs(self.expected.flat[at]))
        if any(group.low <= size <= group.high for group in self.sizes.apart):
            return size
        if difference > self.most:
            return self.sizes.ordinary
        return tolerance / self.allowance.relative

    def _allow(self, sizes: Array, at: Array) -> Array:
        """Return what elements of these sizes at these numbers may be off."""
        rule = self.allowance
        near = np.full(at.shape, self.sizes.ordinary)
        if self._row >= _FEW:
            near = np.minimum(near, self._rows[at // self._row])
        if self.expected.size >= _FEW * self._row:
            near = np.minimum(near, self._channels[at % self._row])
        tolerance: Array = np.maximum(rule.relative * near + rule.floor, self.least)
        most = np.full(sizes.shape, self.most)
        ulps = _ULPS * self._epsilon
        for group in self.sizes.apart:
            inside = (sizes >= group.low) & (sizes <= group.high)
            own = min(max(group.tolerance, ulps), rule.relative)
            tolerance[inside] = own * sizes[inside] + rule.floor
            most[inside] = rule.relative * sizes[inside] + rule.floor
        if rule.noise is not None:
            noise = np.minimum(rule.noise.reshape(-1)[at], most)
            tolerance = np.maximum(tolerance, np.where(np.isnan(noise), 0.0, noise))
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
        for start, sizes in self._ordinary_sizes():
            first, last = start // row, (start + sizes.size - 1) // row
            begins = np.maximum(np.arange(first, last + 1) * row - start, 0)
            here = rows[first : last + 1]
            np.maximum(here, np.maximum.reduceat(sizes, begins), out=here)
        return rows

    @cached_property
    def _channels(self) -> Array:
        """The largest ordinary magnitude in each channel."""
        row, channels = self._row, np.zeros(self._row)
        for start, sizes in self._ordinary_sizes():
            before = start % row
            padded = np.zeros(-(-(before + sizes.size) // row) * row)
            padded[before : before + sizes.size] = sizes
            np.maximum(channels, padded.reshape(-1, row).max(axis=0), out=channels)
        return channels

    def _ordinary_sizes(self) -> Iterator[tuple[int, Array]]:
        """Yield the magnitudes block by block, 0 for what stands apart, with the number of the first."""
        lowest = min((group.low for group in self.sizes.apart), default=np.inf)
        for start, part in parts(self.expected):
            sizes = np.abs(part)
            yield start, np.where(sizes < lowest, sizes, 0.0)


def _widen(values: Array) -> Array:
    """Return values in at least float64: what is allowed is computed in it."""
    return values.astype(np.result_type(values, np.float64), copy=False)
