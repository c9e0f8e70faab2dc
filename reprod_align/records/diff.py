"""The difference between two arrays, in numbers.

Computed in float64 (complex128), in blocks, so that no second copy of a large array is made.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from reprod_align.errors import ReprodError

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

KINDS = {
    "b": "bool",
    "i": "integer",
    "u": "integer",
    "f": "float",
    "c": "complex",
    "S": "bytes",
    "U": "string",
}
"""The kind of a dtype, by numpy's letter; arrays of different kinds are never compared."""

INEXACT = ("float", "complex")

_BLOCK = 1 << 20  # elements: 8 MB in float64


@dataclass(frozen=True)
class Difference:
    """How far `actual` is from `expected`. A NaN on either side makes every float here NaN.

    For booleans and texts a mismatch counts as 1 and a match as 0.
    """

    mean_abs: float
    max_abs: float
    min_abs: float
    scale: float
    """max |expected|; 1 for booleans and texts"""
    max_rel: float
    """max_abs / scale; 0 if both are 0, inf if only scale is"""
    ulp: int | None
    """largest distance in units in the last place of the coarser of the two dtypes; None if
    they are no floats or the distance is not finite"""
    mismatches: int
    """how many elements are not equal"""
    size: int
    first_index: tuple[int, ...] | None
    """where the first element that is not equal is; None if all are"""
    worst_index: tuple[int, ...]
    """where max_abs is (the first such place)"""
    expected_value: Any
    """the Python value there: int, float, complex, bool, str or bytes"""
    actual_value: Any


def dtype_kind(dtype: np.dtype[Any]) -> str:
    """Return the kind of `dtype` as a word; of one that is never compared, its name."""
    return KINDS.get(dtype.kind, str(dtype))


def compare_arrays(expected: Array, actual: Array) -> Difference:
    """Return how two arrays of equal shape and kind of dtype differ; they must not be empty.

    Nothing is broadcast, transposed or converted: raises ReprodError if the shapes or the kinds
    differ, if there are no elements, or if the dtype is none that a record holds.
    """
    _require_comparable(expected, actual)
    measure = _MEASURES[expected.dtype.kind + actual.dtype.kind]
    tally = _Tally()
    with np.errstate(all="ignore"):  # inf - inf is a NaN, and that is the wanted answer
        for start, stop in _spans(expected.size):
            tally.add(start, measure(_part(expected, start, stop), _part(actual, start, stop)))
    return tally.difference(expected, actual)


def count_nonfinite(array: Array) -> tuple[int, int, tuple[int, ...] | None]:
    """Return how many NaNs and how many infinities `array` holds, and the index of the first.

    `array`: any shape, dtype of kind f or c; the index is None if all elements are finite.
    """
    nans, others, first = 0, 0, None
    for start, stop in _spans(array.size):
        block = _part(array, start, stop)
        bad = ~np.isfinite(block)
        if bad.any():
            first = start + int(np.argmax(bad)) if first is None else first
            nans += int(np.count_nonzero(np.isnan(block)))
            others += int(np.count_nonzero(bad & ~np.isnan(block)))
    return nans, others, None if first is None else index_at(first, array.shape)


def index_at(position: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the index in an array of `shape` of its element number `position`, in C order."""
    return tuple(int(axis) for axis in np.unravel_index(position, shape))


@dataclass(frozen=True)
class _Measured:
    """One block: |actual - expected| as floats (n,), max |expected|, ULP distance."""

    gap: Array
    scale: float
    ulp: int | None = None


class _Tally:
    """Adds up the blocks of one comparison; every maximum keeps a NaN once it has met one."""

    def __init__(self) -> None:
        self.sums: list[float] = []
        self.max_abs, self.position = -1.0, 0
        self.min_abs, self.scale = math.inf, 0.0
        self.mismatches, self.ulp = 0, -1
        self.first: int | None = None

    def add(self, start: int, block: _Measured) -> None:
        self.sums.append(float(block.gap.sum()))
        at = int(np.argmax(block.gap))  # the first NaN, if there is one
        worst = float(block.gap[at])
        if not worst <= self.max_abs and not math.isnan(self.max_abs):
            self.max_abs, self.position = worst, start + at
        self.min_abs = float(np.minimum(self.min_abs, block.gap.min()))
        self.scale = float(np.maximum(self.scale, block.scale))
        self.mismatches += int(np.count_nonzero(block.gap))
        if self.first is None and self.mismatches:
            self.first = start + int(np.argmax(block.gap != 0))
        self.ulp = max(self.ulp, -1 if block.ulp is None else block.ulp)

    def difference(self, expected: Array, actual: Array) -> Difference:
        known = self.ulp >= 0 and math.isfinite(self.max_abs)
        position = self.position
        return Difference(
            mean_abs=sum(self.sums) / expected.size,
            max_abs=self.max_abs,
            min_abs=self.min_abs,
            scale=self.scale,
            max_rel=_relative(self.max_abs, self.scale),
            ulp=self.ulp if known else None,
            mismatches=self.mismatches,
            size=expected.size,
            first_index=None if self.first is None else index_at(self.first, expected.shape),
            worst_index=index_at(position, expected.shape),
            expected_value=_python_value(expected, position),
            actual_value=_python_value(actual, position),
        )


def _require_comparable(expected: Array, actual: Array) -> None:
    kinds = dtype_kind(expected.dtype), dtype_kind(actual.dtype)
    if expected.shape != actual.shape:
        raise ReprodError(f"cannot compare shapes {expected.shape} and {actual.shape}")
    if kinds[0] != kinds[1] or expected.dtype.kind not in KINDS:
        raise ReprodError(f"cannot compare dtypes {expected.dtype} and {actual.dtype}")
    if expected.size == 0:
        raise ReprodError(f"cannot compare empty arrays: shape {expected.shape}")


def _spans(size: int) -> Iterator[tuple[int, int]]:
    return ((start, min(start + _BLOCK, size)) for start in range(0, size, _BLOCK))


def _part(array: Array, start: int, stop: int) -> Array:
    """Return elements `start` to `stop` in C order, (stop - start,), without copying the rest."""
    if array.flags.c_contiguous:
        return array.reshape(-1)[start:stop]
    part: Array = array.flat[start:stop]
    return part


def _python_value(array: Array, position: int) -> Any:
    value = _part(array, position, position + 1)[0].item()
    return float(value) if isinstance(value, np.floating) else value  # a long double stays numpy's


def _relative(gap: float, scale: float) -> float:
    if scale == 0:
        return 0.0 if gap == 0 else gap * math.inf  # NaN stays NaN
    return gap / scale


def _measure_inexact(expected: Array, actual: Array) -> _Measured:
    work = np.result_type(expected, actual, np.float64)
    wide = expected.astype(work, copy=False)
    gap = np.abs(wide - actual.astype(work, copy=False))
    return _Measured(gap, float(np.abs(wide).max()), _ulp_distance(expected, actual))


def _measure_integers(expected: Array, actual: Array) -> _Measured:
    scale = float(np.abs(expected.astype(np.float64)).max())
    if expected.dtype.kind == actual.dtype.kind:
        wide = np.int64 if expected.dtype.kind == "i" else np.uint64
        gap = _unsigned_gap(expected.astype(wide), actual.astype(wide))
    elif expected.dtype.kind == "i":
        gap = _mixed_gap(expected.astype(np.int64), actual.astype(np.uint64))
    else:
        gap = _mixed_gap(actual.astype(np.int64), expected.astype(np.uint64))
    return _Measured(gap, scale)


def _unsigned_gap(first: Array, second: Array) -> Array:
    """Return |first - second| of two arrays of the same 64-bit dtype: it always fits 64 bits."""
    high, low = np.maximum(first, second), np.minimum(first, second)
    return (high.astype(np.uint64) - low.astype(np.uint64)).astype(np.float64)


def _mixed_gap(signed: Array, unsigned: Array) -> Array:
    """Return |signed - unsigned|; below zero the two distances add up, to more than 64 bits."""
    below = unsigned.astype(np.float64) - signed.astype(np.float64)
    return np.where(signed < 0, below, _unsigned_gap(signed.astype(np.uint64), unsigned))


def _measure_equality(expected: Array, actual: Array) -> _Measured:
    return _Measured((expected != actual).astype(np.float64), 1.0)


def _coarser(first: np.dtype[Any], second: np.dtype[Any]) -> np.dtype[Any]:
    return max(np.finfo(first), np.finfo(second), key=lambda info: float(info.eps)).dtype


def _ulp_distance(expected: Array, actual: Array) -> int | None:
    coarse = _coarser(expected.dtype, actual.dtype)
    if coarse.itemsize > 8:
        coarse = np.dtype(np.float64)
    steps = [_steps(side, coarse) for side in (expected, actual)]
    return int((np.maximum(*steps) - np.minimum(*steps)).max())


def _steps(array: Array, dtype: np.dtype[Any]) -> Array:
    """Return for each float its place in the row of all floats of `dtype`, as an unsigned integer.

    Neighbouring floats are 1 apart and both zeros fall together. Complex numbers count as two.
    """
    if array.dtype.kind == "c":
        array = array.astype(np.complex128).view(np.float64)
    unsigned = np.dtype(f"u{dtype.itemsize}")
    bits = np.ascontiguousarray(array, dtype=dtype).view(unsigned)
    sign = unsigned.type(1 << (8 * dtype.itemsize - 1))
    steps: Array = np.where(bits & sign, sign - (bits ^ sign), sign + bits)
    return steps


_MEASURES: dict[str, Callable[[Array, Array], _Measured]] = {
    "ff": _measure_inexact,
    "cc": _measure_inexact,
    **dict.fromkeys(("ii", "iu", "ui", "uu"), _measure_integers),
    **dict.fromkeys(("bb", "SS", "UU"), _measure_equality),
}
