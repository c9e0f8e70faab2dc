"""The difference between two arrays of a record, in numbers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from reprod_align.base.difference import (
    Array,
    Span,
    blocks,
    distances,
    divide,
    index_at,
    measure_peak,
    parts,
)
from reprod_align.errors import ReprodError

import numpy as np

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
    _sides: tuple[Array, Array] = field(repr=False, compare=False)

    @property
    def dtypes(self) -> tuple[np.dtype[Any], np.dtype[Any]]:
        """The dtypes of both sides."""
        return self._sides[0].dtype, self._sides[1].dtype

    @property
    def max_rel(self) -> float:
        """max_abs / scale; 0 if both are 0, inf if only scale is."""
        return divide(self.max_abs, self.scale)

    @cached_property
    def ulp(self) -> int | None:
        """Largest distance in units in the last place of the coarser of the two dtypes.

        None if they are not floats or the distance is not finite. Computed when first asked for.
        """
        expected, actual = self._sides
        if dtype_kind(expected.dtype) not in INEXACT or not math.isfinite(self.max_abs):
            return None
        if not self.mismatches:
            return 0
        infos = np.finfo(expected.dtype), np.finfo(actual.dtype)
        coarse = max(infos, key=lambda info: float(info.eps)).dtype
        coarse = coarse if coarse.itemsize <= 8 else np.dtype(np.float64)
        furthest = 0
        for _, *block in blocks(expected, actual):
            steps = [_count_steps(part, coarse) for part in block]
            furthest = max(furthest, int((np.maximum(*steps) - np.minimum(*steps)).max()))
        return furthest

    def to_json(self, with_ulp: bool = True) -> dict[str, Any]:
        """Return every number by its name; `ulp` reads both arrays again, None without."""
        numbers = {name: value for name, value in vars(self).items() if name != "_sides"}
        ulp = self.ulp if with_ulp or not self.mismatches else None
        return numbers | {"max_rel": self.max_rel, "ulp": ulp}


def dtype_kind(dtype: np.dtype[Any]) -> str:
    """Return the kind of `dtype` as a word; of one that is never compared, its name."""
    return KINDS.get(dtype.kind, str(dtype))


def compare_arrays(expected: Array, actual: Array) -> Difference:
    """Return how two arrays of equal shape and kind of dtype differ; they must not be empty.

    Nothing is broadcast, transposed or converted: raises ReprodError if the shapes or the kinds
    differ, if there are no elements, or if a record cannot hold the dtype.
    """
    from reprod_align.base.large.work import map_spans

    if expected.shape != actual.shape:
        raise ReprodError(f"cannot compare shapes {expected.shape} and {actual.shape}")
    kinds = dtype_kind(expected.dtype), dtype_kind(actual.dtype)
    if kinds[0] != kinds[1] or expected.dtype.kind not in KINDS:
        raise ReprodError(f"cannot compare dtypes {expected.dtype} and {actual.dtype}")
    if expected.size == 0:
        raise ReprodError(f"cannot compare empty arrays: shape {expected.shape}")

    def measure(span: Span) -> _Part:
        return _combine([_measure_block(*block) for block in distances(expected, actual, span)])

    whole = _combine(map_spans(measure, expected.size))
    values = [
        float(value) if isinstance(value, np.floating) else value  # a long double stays numpy's
        for value in (side.flat[whole.worst].item() for side in (expected, actual))
    ]
    return Difference(
        mean_abs=float(whole.total) / expected.size,
        max_abs=whole.largest,
        min_abs=whole.smallest,
        scale=whole.scale,
        mismatches=whole.mismatches,
        size=expected.size,
        first_index=None if whole.first is None else index_at(whole.first, expected.shape),
        worst_index=index_at(whole.worst, expected.shape),
        expected_value=values[0],
        actual_value=values[1],
        _sides=(expected, actual),
    )


class _Part(NamedTuple):
    """What `Difference` says, of a part of two arrays; places are those in the whole."""

    length: int
    total: float
    largest: float
    worst: int
    smallest: float
    scale: float
    mismatches: int
    first: int | None


def _measure_block(start: int, apart: Array, ours: Array, theirs: Array) -> _Part:
    worst, unequal = int(apart.argmax()), apart != 0  # the first NaN, if there is one
    largest, mismatches = float(apart[worst]), int(np.count_nonzero(unequal))
    known = mismatches < apart.size and not math.isnan(largest)  # two elements are equal
    return _Part(
        apart.size,
        apart.sum(),
        largest,
        start + worst,
        0.0 if known else float(apart.min()),
        measure_peak(ours) if ours.dtype.kind in "iufc" else 1.0,
        mismatches,
        start + int(unequal.argmax()) if mismatches else None,
    )


def _combine(found: Sequence[_Part]) -> _Part:
    """Return one for all parts that `cut` made."""
    from reprod_align.base.large.work import add_up

    undefined = [one for one in found if math.isnan(one.largest)]
    worst = max(undefined[:1] or found, key=lambda one: one.largest)  # the first of equals
    return _Part(
        sum(one.length for one in found),
        add_up([(one.length, one.total) for one in found]),
        worst.largest,
        worst.worst,
        float(np.min([one.smallest for one in found])),
        float(np.max([one.scale for one in found])),
        sum(one.mismatches for one in found),
        next((one.first for one in found if one.first is not None), None),
    )


def count_nonfinite(array: Array) -> tuple[int, int, tuple[int, ...] | None]:
    """Return how many NaNs and how many infinities `array` holds, and the index of the first.

    `array`: any shape, dtype of kind f or c; the index is None if all elements are finite.
    """
    nans, others, first = 0, 0, None
    for start, block in parts(array):
        bad = ~np.isfinite(block)
        if bad.any():
            first = start + int(np.argmax(bad)) if first is None else first
            nans += int(np.count_nonzero(np.isnan(block)))
            others += int(np.count_nonzero(bad & ~np.isnan(block)))
    return nans, others, None if first is None else index_at(first, array.shape)


def _count_steps(array: Array, dtype: np.dtype[Any]) -> Array:
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
