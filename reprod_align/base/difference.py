"""How far two arrays are apart: one formula for everything that is compared.

|actual - expected|, element by element, in float64 (complex128), in blocks that stay in the cache.
Integers are exact beyond 2**53 too; texts are 1 apart, or 0. Every verdict is written
`ok = difference <= tolerance`, so that a NaN fails it.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

RELATIVE_TOLERANCE = 1e-9
"""in float64 a faithful pair agrees far closer, and a bug lies far above (docs/tolerances.md)"""
_BLOCK = 2**14  # elements


@dataclass(frozen=True)
class Gap:
    """How far one tensor is from the other where they are furthest apart, and how far it may be."""

    difference: float
    """max |actual - expected|; inf if one side alone is not finite somewhere"""
    tolerance: float
    scale: float
    """max |expected|, over finite elements"""
    note: str = ""
    """what to say where no element is the worst"""
    worst: tuple[int, tuple[int, ...], Any, Any] | None = None
    """number of the worst element in C order, the shape, the two values there"""
    local: bool = False
    """within the tolerance of the whole tensor, but not within that of the element's own place"""

    @property
    def ok(self) -> bool:
        """Whether the two agree."""
        return self.difference <= self.tolerance

    @property
    def exceed(self) -> float:
        """The difference over the tolerance; at most 1 if the two agree."""
        return divide(self.difference, self.tolerance)

    @property
    def relative(self) -> float:
        """The difference over the scale."""
        return divide(self.difference, self.scale)

    @property
    def words(self) -> str:
        """The worst place, in words."""
        if self.worst is None:
            return self.note
        position, shape, expected, actual = self.worst
        return f"at {index_at(position, shape)} expected {expected:.9g}, got {actual:.9g}"


def gap(
    expected: Array, actual: Array, relative: float = RELATIVE_TOLERANCE, floor: float = 0.0
) -> Gap:
    """Compare element by element: |a - e| <= relative * max |e| + floor; NaN and inf by place.

    Integers and booleans must be equal. Another shape is infinitely far.
    """
    if expected.shape != actual.shape:
        words = f"shape {expected.shape} expected, got {actual.shape}"
        return Gap(math.inf, 0.0, 0.0, words)
    if expected.size == 0:
        return Gap(0.0, 0.0, 0.0, "no elements")
    difference, scale, at = -1.0, 0.0, 0
    for start, distance, ours, theirs in distances(expected, actual):
        position = int(distance.argmax())  # of NaN, if there is one
        if not math.isfinite(distance.flat[position]):
            distance = by_place(distance, ours, theirs)
            position = int(distance.argmax())
        scale = max(scale, largest(ours))
        if distance.flat[position] > difference:
            difference, at = float(distance.flat[position]), start + position
    inexact = expected.dtype.kind in "fc" or actual.dtype.kind in "fc"
    tolerance = relative * scale + floor if inexact else 0.0
    worst = at, expected.shape, expected.flat[at], actual.flat[at]
    return Gap(difference, tolerance, scale, worst=worst)


def magnitude(array: Array | None) -> float:
    """Return the largest finite |element|; 0 for None and for what holds no floats."""
    if array is None or array.dtype.kind not in "fc":
        return 0.0
    return max(largest(part) for _, part, _ in blocks(array, array))


def distances(expected: Array, actual: Array) -> Iterator[tuple[int, Array, Array, Array]]:
    """Yield block by block, in C order: the number of its first element, |a - e|, e and a.

    expected, actual: of one shape. |a - e| is float64 (a long double stays one); inf - inf is NaN.
    """
    subtract = _subtraction(expected.dtype, actual.dtype)
    for start, ours, theirs in blocks(expected, actual):
        yield start, *subtract(ours, theirs)


def by_place(distance: Array, ours: Array, theirs: Array) -> Array:
    """Return the distance with NaN and infinities settled: 0 where both have the same, else inf."""
    same = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
    return np.where(same, 0.0, np.where(np.isnan(distance), np.inf, distance))


def blocks(expected: Array, actual: Array, start: int = 0) -> Iterator[tuple[int, Array, Array]]:
    """Yield two arrays of one shape in parts, in C order, each with the number of its first element."""
    if expected.size <= _BLOCK:
        yield start, expected, actual
        return
    if expected.flags.c_contiguous and actual.flags.c_contiguous:
        expected, actual = expected.reshape(-1), actual.reshape(-1)
    row = expected.size // len(expected)
    if row > 4 * _BLOCK:
        for number in range(len(expected)):
            yield from blocks(expected[number], actual[number], start + number * row)
        return
    count = max(1, _BLOCK // row)
    for number in range(0, len(expected), count):
        stop = number + count
        yield start + number * row, expected[number:stop], actual[number:stop]


def largest(array: Array) -> float:
    """Return the largest finite magnitude; 0 if there is none."""
    sizes = np.abs(array)
    whole = float(sizes.max(initial=0.0))
    return whole if math.isfinite(whole) else float(sizes[np.isfinite(sizes)].max(initial=0.0))


def divide(difference: float, scale: float) -> float:
    """Return difference / scale; 0 if both are 0, inf if only the scale is, NaN for a NaN."""
    if scale == 0:
        return 0.0 if difference == 0 else difference * math.inf
    return difference / scale


def index_at(position: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the index in an array of `shape` of its element number `position`, in C order."""
    return tuple(int(axis) for axis in np.unravel_index(position, shape))


# ---------------------------------------------------------------------- one block

_Subtraction = Callable[[Array, Array], tuple[Array, Array, Array]]


def _subtraction(ours: np.dtype[Any], theirs: np.dtype[Any]) -> _Subtraction:
    """Return what turns a block of each dtype into |a - e|, and both as they were compared."""
    kinds = {ours.kind, theirs.kind}
    if not kinds <= set("biufc"):
        return _unequal
    if kinds <= set("iu") and max(ours.itemsize, theirs.itemsize) == 8:
        return _subtract_integers
    wide = np.result_type(ours, theirs, np.float64)

    def subtract(expected: Array, actual: Array) -> tuple[Array, Array, Array]:
        e, a = expected.astype(wide, copy=False), actual.astype(wide, copy=False)
        with np.errstate(all="ignore"):
            return np.abs(a - e), e, a

    return subtract


def _subtract_integers(ours: Array, theirs: Array) -> tuple[Array, Array, Array]:
    """Subtract 64-bit integers by halves that a float64 holds exactly: the sum rounds only once."""
    e, a = ours.astype(np.float64), theirs.astype(np.float64)
    if (ours == theirs).all():
        return np.zeros(e.shape), e, a
    high, low = (part(theirs) - part(ours) for part in (_high_half, _low_half))
    return np.abs(high * 2.0**32 + low), e, a


def _high_half(array: Array) -> Array:
    return (array >> 32).astype(np.float64)


def _low_half(array: Array) -> Array:
    return (array.astype(np.int64) & 0xFFFFFFFF).astype(np.float64)


def _unequal(ours: Array, theirs: Array) -> tuple[Array, Array, Array]:
    return np.asarray(ours != theirs, np.float64), ours, theirs
