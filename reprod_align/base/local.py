"""Judges each element by what rounding can do there, not by the largest value of the tensor.

    |a - e| <= relative * max(near, spread * tensor) + floor

or as much as large elements are off as a rule, if that is more: it shows how noisy the tensor is.
tensor: the largest |expected|; near: the largest in the element's row (along the last axis), or in its
channel (along all others) if that is smaller. Nothing is allowed that `gap` does not allow.

Values that stand apart, far above all others, do not count; each is judged by its own size. Masks and
sentinels (finfo.min, -1e9 and the like, alone or added to a score) are a few large constants; outliers are
rare. Between either and the rest lies a gap: no value at all over a factor of 1000. What is so small that it
may be rounding of the large values keeps them as its scale.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from reprod_align.base.blocks import Array, magnitude, measure_distances, read_blocks, read_span
from reprod_align.base.difference import RELATIVE_TOLERANCE, Gap, gap, settle_by_place

import numpy as np

_GAP = 2.0**10  # a factor without any value in between
_LEAST = 2.0**12  # a constant that hides others is at least so large: scores are smaller
_CONSTANTS = 4  # different ones in one group
_RARE = 3  # outliers: at most one for so many others
_ROUNDING = 1e-11  # of an outlier: what is smaller may be its rounding
_NEAR = 1e-12  # relative: equal but for rounding
_SAMPLE = 4096  # elements in which gaps are looked for, before all are read
_LIMITS = [float(np.finfo(kind).max) for kind in (np.float16, np.float32, np.float64)]
_LIMITS.append(2.0**128 - 2.0**120)  # of bfloat16
SPREAD = 1e-3
"""in float64: the share of the largest row's tolerance that every row has; in 15,000 comparisons of the
suite's faithful pairs no element needs more (docs/tolerances.md)"""
_OUTLIERS = 1e-2  # of that share: what a rare outlier adds to the tolerance of the others
_FEW = 2  # elements say how large their neighbours are; a single one does not
_LARGE = 1e-2  # of the largest
# times the median difference of large elements: what any element may be off. Measured on the suite's 167
# models, float32 against float64; without it the gradients of models of 48 layers fail
_SEEN = 30.0
_ULPS = 16.0  # that a constant may be off
_NAMES = ("logit", "score", "prob")
_AT_ONCE = 2**20  # scores


@dataclass(frozen=True)
class OutlierRange:
    """Elements far above the others: low <= |element| <= high."""

    low: float
    high: float
    tolerance: float
    """how far such an element may be off, relative to itself; 0: some units in the last place"""
    computed: bool
    """outliers, from which others may have their rounding; else constants"""


@dataclass(frozen=True)
class Sizes:
    """How large the elements of a tensor are."""

    ordinary: float
    """the largest finite magnitude that does not stand apart"""
    apart: tuple[OutlierRange, ...] = ()


def measure_sizes(
    array: Array, most: float, relative: float = RELATIVE_TOLERANCE, spread: float = 1.0
) -> Sizes:
    """Return how large the finite elements are; `array`: floats or complex, any shape, not empty.

    most: the largest finite magnitude. relative: what an outlier may be off. spread: the share of that for
    a constant with scores added.
    """
    edges = _find_edges(array, most)
    groups = _measure_groups(array, edges) if edges else []
    found: list[OutlierRange] = []
    while len(groups) > 1:
        *rest, below, top = groups
        if top.low < _GAP * below.high:  # the sample did not show what is between
            groups = [*rest, _Cluster(below.low, top.high, below.count + top.count)]
            continue
        largest = max((one.high for one in found if one.computed), default=top.high)
        one = _find_apart(array, top, [*rest, below], largest, relative, spread)
        if one is None:
            break
        found.append(one)
        groups = [*rest, below]
    return Sizes(groups[-1].high if groups else most, tuple(found))


def measure_ordinary(array: Array) -> float:
    """Return the largest finite magnitude that does not stand apart; 0 for what holds no floats."""
    if array.dtype.kind not in "fc" or not array.size:
        return 0.0
    return measure_sizes(array, magnitude(array)).ordinary


@dataclass(frozen=True)
class _Cluster:
    """The elements, zeros aside, between two gaps; without any it is the zeros alone."""

    low: float
    high: float
    count: int


def _find_edges(array: Array, most: float) -> list[float]:
    """Return a magnitude inside every gap that a sample of the elements shows, in rising order."""
    sizes = _sample_sizes(array)
    if most > 0 and (not sizes.size or most > sizes[-1]):
        sizes = np.append(sizes, most)
    if not sizes.size:
        return []
    if sizes[0] == 0:
        positive = sizes[sizes > 0]
        zeros_apart = positive.size > 0 and positive[0] >= _LEAST
        sizes = np.concatenate([[positive[0] / _GAP**2], positive]) if zeros_apart else positive
    gaps = np.flatnonzero(sizes[1:] / _GAP >= sizes[:-1])
    return [math.sqrt(sizes[at]) * math.sqrt(sizes[at + 1]) for at in gaps]


def _sample_sizes(array: Array) -> Array:
    """Return the magnitudes of finite elements, sorted: of all, or of places spread at random."""
    if array.size <= _SAMPLE:
        chosen = array.reshape(-1)
    else:
        places = np.arange(_SAMPLE, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        places = (places >> np.uint64(11)) % np.uint64(array.size)
        chosen = array[np.unravel_index(places.astype(np.int64), array.shape)]
    sizes = np.abs(chosen).astype(np.float64)
    return np.sort(sizes[np.isfinite(sizes)])


def _measure_groups(array: Array, edges: Sequence[float]) -> list[_Cluster]:
    """Return what lies between the edges, smallest first; the first group is there even if empty."""
    lows, highs = [math.inf] * (len(edges) + 1), [0.0] * (len(edges) + 1)
    counts = [0] * (len(edges) + 1)
    for sizes in _read_sizes(array):
        group = np.searchsorted(edges, sizes)
        for number in np.unique(group):
            part = sizes[group == number]
            lows[number] = min(lows[number], float(part.min()))
            highs[number] = max(highs[number], float(part.max()))
            counts[number] += part.size
    groups = [_Cluster(*one) for one in zip(lows, highs, counts, strict=True)]
    return [group for number, group in enumerate(groups) if group.count or not number]


def _read_sizes(array: Array) -> Iterator[Array]:
    """Yield the magnitudes of finite elements that are not zero, block by block."""
    for _, part in read_blocks(array):
        sizes = np.abs(part).astype(np.float64)
        yield sizes[np.isfinite(sizes) & (sizes > 0)]


def _find_apart(
    array: Array,
    top: _Cluster,
    rest: Sequence[_Cluster],
    largest: float,
    relative: float,
    spread: float,
) -> OutlierRange | None:
    """Return what the top group is if it stands apart from the rest.

    largest: of the outliers found before, or of this group: the rest may be what its rounding leaves.
    """
    below = rest[-1].high
    if top.low >= _LEAST:
        constants, distance = _find_constants(array, top, 4 * below)
        written = all(_is_written(constant, array.dtype) for constant in constants)
        if constants and (written or 2 * len(constants) <= top.count):
            equal = distance == 0 and top.count > 1
            return OutlierRange(top.low, top.high, 0.0 if equal else relative * spread, False)
    rare = top.count * _RARE <= sum(group.count for group in rest)
    if rare and below > _ROUNDING * largest:
        return OutlierRange(top.low, top.high, relative, True)
    return None


def _find_constants(array: Array, group: _Cluster, reach: float) -> tuple[list[float], float]:
    """Return the few magnitudes near which a group's elements lie, and how near; [] if they are too many."""
    constants: list[float] = []
    furthest = 0.0
    for sizes in _read_sizes(array):
        left = sizes[(sizes >= group.low) & (sizes <= group.high)]
        for constant in constants:
            left, furthest = _leave_out(left, constant, reach, furthest)
        while left.size:
            if len(constants) == _CONSTANTS:
                return [], math.inf
            constants.append(float(left[0]))
            left, furthest = _leave_out(left, constants[-1], reach, furthest)
    return constants, furthest


def _is_written(value: float, dtype: np.dtype[Any]) -> bool:
    """Tell whether a person wrote the number: 1e9 in one or two digits, or the largest of a dtype."""
    if any(value == limit for limit in _LIMITS):
        return True
    with np.errstate(over="ignore"):
        return bool(np.abs(dtype.type(float(f"{value:.1e}"))) == value)


def _leave_out(sizes: Array, constant: float, reach: float, furthest: float) -> tuple[Array, float]:
    """Return the sizes out of reach of a constant, and the largest distance of those within."""
    distance = np.abs(sizes - constant)
    near = distance <= max(reach, _NEAR * constant)
    return sizes[~near], max(furthest, float(distance[near].max(initial=0.0)))


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
    """Return the element that exceeds the tolerance of its own place the most; None if all are within.

    found: the result of `gap`. None also where that failed and nothing stands apart: it says enough then.
    """
    if not 0 < found.tolerance < math.inf or not found.difference > allowance.floor:
        return None
    sizes = measure_sizes(expected, found.scale, allowance.relative, allowance.spread)
    tolerances = _LocalTolerances(expected, actual, allowance, sizes)
    if found.difference <= tolerances.least or not (sizes.apart or found.ok):
        return None
    times, difference, tolerance, at = tolerances.find_worst()
    if times > 1 and found.ok:
        tolerances = replace(tolerances, seen=tolerances.measure_seen())
        times, difference, tolerance, at = tolerances.find_worst()
    if times <= 1:
        return None
    values = at, expected.shape, expected.flat[at], actual.flat[at]
    scale = tolerances.find_scale(at, difference, tolerance)
    return Gap(difference, tolerance, scale, worst=values, local=found.ok, mean=found.mean)


@dataclass(frozen=True)
class _LocalTolerances:
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
        """Return difference / allowance, difference, allowance and number of the worst element."""
        worst = (0.0, 0.0, 0.0, 0)
        for start, distance, ours, theirs in measure_distances(self.expected, self.actual):
            if not math.isfinite(distance.max()):
                distance = settle_by_place(distance, ours, theirs)
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
        for _, distance, ours, _ in measure_distances(self.expected, self.actual):
            sizes = np.abs(_widen(ours))
            with np.errstate(invalid="ignore"):
                large = (sizes >= _LARGE * self.sizes.ordinary) & (sizes <= self.sizes.ordinary)
            apart.append(distance[large])
        seen = np.concatenate(apart)
        return _SEEN * float(np.median(seen)) if seen.size else 0.0

    def find_scale(self, at: int, difference: float, tolerance: float) -> float:
        """Return the magnitude to which the difference of element number `at` is relative."""
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
        for start, sizes in self._read_ordinary_sizes():
            first, last = start // row, (start + sizes.size - 1) // row
            begins = np.maximum(np.arange(first, last + 1) * row - start, 0)
            here = rows[first : last + 1]
            np.maximum(here, np.maximum.reduceat(sizes, begins), out=here)
        return rows

    @cached_property
    def _channels(self) -> Array:
        """The largest ordinary magnitude in each channel."""
        row, channels = self._row, np.zeros(self._row)
        for start, sizes in self._read_ordinary_sizes():
            before = start % row
            padded = np.zeros(-(-(before + sizes.size) // row) * row)
            padded[before : before + sizes.size] = sizes
            np.maximum(channels, padded.reshape(-1, row).max(axis=0), out=channels)
        return channels

    def _read_ordinary_sizes(self) -> Iterator[tuple[int, Array]]:
        """Yield the magnitudes block by block, 0 for what stands apart, with the number of the first."""
        lowest = min((group.low for group in self.sizes.apart), default=np.inf)
        for start, part in read_blocks(self.expected):
            sizes = np.abs(part)
            yield start, np.where(sizes < lowest, sizes, 0.0)


def _widen(values: Array) -> Array:
    """Return values in at least float64: what is allowed is computed in it."""
    return values.astype(np.result_type(values, np.float64), copy=False)


def is_named_scores(name: str, array: Array) -> bool:
    """Tell whether an array is called scores, and can hold one for every class along its last axis."""
    last = name.rpartition(".")[2].lower()
    return may_be_scores(array) and any(word in last for word in _NAMES)


def may_be_scores(array: Array) -> bool:
    """Tell whether an array holds floats with two or more along its last axis."""
    return array.dtype.kind == "f" and array.ndim > 1 and array.shape[-1] > 1 and array.size > 0


def count_flips(expected: Array, actual: Array, tie: float = 0.0) -> int:
    """Return how many rows choose another class: (..., classes), both of one shape.

    tie: scores that are no further apart, relative to the largest ordinary one, are a tie, which
    rounding may settle either way. NaN is never chosen.
    """
    classes, flips = expected.shape[-1], 0
    least = tie * measure_ordinary(expected) if tie else 0.0
    step = max(1, _AT_ONCE // classes) * classes
    for start in range(0, expected.size, step):
        stop = min(start + step, expected.size)
        sides = (read_span(side, start, stop).reshape(-1, classes) for side in (expected, actual))
        margins = _measure_flips(*sides)
        flips += int((margins > least).sum()) if tie else len(margins)
    return flips


def _measure_flips(expected: Array, actual: Array) -> Array:
    """Return how much lower `expected` scores the class that `actual` chooses, for each row that flips."""
    ours, theirs = (np.where(np.isnan(scores), -np.inf, scores) for scores in (expected, actual))
    chosen = [scores.argmax(axis=-1) for scores in (ours, theirs)]
    rows = np.flatnonzero(chosen[0] != chosen[1])
    with np.errstate(invalid="ignore"):
        margins: Array = ours[rows, chosen[0][rows]] - ours[rows, chosen[1][rows]]
    return margins
