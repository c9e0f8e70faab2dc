"""Finds the values of a tensor that stand apart: far above all others, and no scale for them.

Masks and sentinels (finfo.min, -1e9 and the like, alone or added to a score) are a few large constants;
outliers are rare. Between either and the rest lies a gap: no value at all over a factor of 1000.
What is so small that it may be rounding of the large values keeps them as its scale.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from reprod_align.base.difference import RELATIVE_TOLERANCE, Array, magnitude, parts

import numpy as np

_GAP = 2.0**10  # a factor without any value in between
_LEAST = 2.0**12  # a constant that hides others is at least so large: scores are smaller
_CONSTANTS = 4  # different ones in one group
_RARE = 3  # outliers: at most one for so many others
_ROUNDING = 1e-11  # of an outlier: what is smaller may be its rounding
_NEAR = 1e-12  # relative: equal but for rounding
_SAMPLE = 4096
_LIMITS = [float(np.finfo(kind).max) for kind in (np.float16, np.float32, np.float64)]
_LIMITS.append(2.0**128 - 2.0**120)  # of bfloat16


@dataclass(frozen=True)
class Apart:
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
    apart: tuple[Apart, ...] = ()


def measure_sizes(
    array: Array, relative: float = RELATIVE_TOLERANCE, spread: float = 1.0, most: float = math.nan
) -> Sizes:
    """Return how large the finite elements are; `array`: floats or complex, any shape, not empty.

    relative: what an outlier may be off. spread: the share of that for a constant with scores added.
    most: the largest finite magnitude, if it is known.
    """
    most = magnitude(array) if math.isnan(most) else most
    edges = _find_edges(array, most)
    groups = _measure_groups(array, edges) if edges else []
    found: list[Apart] = []
    while len(groups) > 1:
        *rest, below, top = groups
        if top.low < _GAP * below.high:  # the sample did not show what is between
            groups = [*rest, _Group(below.low, top.high, below.count + top.count)]
            continue
        one = _find_apart(array, top, [*rest, below], relative, spread)
        if one is None:
            break
        found.append(one)
        groups = [*rest, below]
    return Sizes(groups[-1].high if groups else most, tuple(found))


def measure_ordinary(array: Array) -> float:
    """Return the largest finite magnitude that does not stand apart; 0 for what holds no floats."""
    return measure_sizes(array).ordinary if array.dtype.kind in "fc" and array.size else 0.0


@dataclass(frozen=True)
class _Group:
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
        places = (np.arange(_SAMPLE, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(
            11
        )
        chosen = array[
            np.unravel_index((places % np.uint64(array.size)).astype(np.int64), array.shape)
        ]
    sizes = np.abs(chosen).astype(np.float64)
    return np.sort(sizes[np.isfinite(sizes)])


def _measure_groups(array: Array, edges: Sequence[float]) -> list[_Group]:
    """Return what lies between the edges, smallest first; the first group is there even if empty."""
    lows, highs = [math.inf] * (len(edges) + 1), [0.0] * (len(edges) + 1)
    counts = [0] * (len(edges) + 1)
    for sizes in _sizes(array):
        group = np.searchsorted(edges, sizes)
        for number in np.unique(group):
            part = sizes[group == number]
            lows[number] = min(lows[number], float(part.min()))
            highs[number] = max(highs[number], float(part.max()))
            counts[number] += part.size
    groups = [_Group(*one) for one in zip(lows, highs, counts, strict=True)]
    return [group for number, group in enumerate(groups) if group.count or not number]


def _sizes(array: Array) -> Iterator[Array]:
    """Yield the magnitudes of finite elements that are not zero, block by block."""
    for _, part in parts(array):
        sizes = np.abs(part).astype(np.float64)
        yield sizes[np.isfinite(sizes) & (sizes > 0)]


def _find_apart(
    array: Array, top: _Group, rest: Sequence[_Group], relative: float, spread: float
) -> Apart | None:
    """Return what the top group is if it stands apart from the rest."""
    below = rest[-1].high
    if top.low >= _LEAST:
        constants, distance = _find_constants(array, top, 4 * below)
        written = all(_is_written(constant, array.dtype) for constant in constants)
        if constants and (written or 2 * len(constants) <= top.count):
            equal = distance == 0 and top.count > 1
            return Apart(top.low, top.high, 0.0 if equal else relative * spread, False)
    rare = top.count * _RARE <= sum(group.count for group in rest)
    if rare and below > _ROUNDING * top.high:
        return Apart(top.low, top.high, relative, True)
    return None


def _find_constants(array: Array, group: _Group, reach: float) -> tuple[list[float], float]:
    """Return the few magnitudes near which a group's elements are, and how near; () if they are more."""
    constants: list[float] = []
    furthest = 0.0
    for sizes in _sizes(array):
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
