"""How far two arrays are apart: one formula for everything that is compared.

|actual - expected|, element by element, in float64 (complex128), in blocks that stay in the cache
(`base/blocks.py`). Integers are exact beyond 2**53 too; texts are 1 apart, or 0. Every verdict is written
`ok = difference <= tolerance`, so that a NaN fails it.

`gap` settles NaN and infinities by their places: what the models compute is compared so. `compare_arrays`
makes every number NaN where one side has a NaN: what records hold is compared so.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from reprod_align.base.blocks import (
    Array,
    add_up,
    find_largest,
    index_at,
    map_distances,
    measure_distances,
    measure_peak,
    read_blocks,
    read_both,
)
from reprod_align.errors import ReprodError

import numpy as np

RELATIVE_TOLERANCE = 1e-9
"""in float64 a faithful pair agrees far closer, and a bug lies far above (docs/tolerances.md)"""


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
    """within the tolerance of the whole tensor, but beyond that of its own place (`base/local.py`)"""
    mean: float = math.nan
    """mean |actual - expected|; NaN where nobody asked for it"""

    @property
    def ok(self) -> bool:
        """Whether the two agree."""
        return self.difference <= self.tolerance

    @property
    def exceed(self) -> float:
        """The difference over the tolerance: at most 1 if the two agree; inf for a NaN."""
        if math.isinf(self.tolerance):
            return 0.0
        ratio = divide(self.difference, self.tolerance)
        return math.inf if math.isnan(ratio) else ratio

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
    expected: Array,
    actual: Array,
    relative: float = RELATIVE_TOLERANCE,
    floor: float = 0.0,
    with_mean: bool = False,
) -> Gap:
    """Compare element by element: |a - e| <= relative * max |e| + floor; NaN and inf by place.

    Integers and booleans must be equal. Another shape is infinitely far.
    """
    if expected.shape != actual.shape:
        words = f"shape {expected.shape} expected, got {actual.shape}"
        return Gap(math.inf, 0.0, 0.0, words)
    if expected.size == 0:
        return Gap(0.0, 0.0, 0.0, "no elements")
    blocks = measure_distances(expected, actual)
    found = combine_worst(measure_worst(*block, with_total=with_mean) for block in blocks)
    return make_gap(expected, actual, found, relative, floor)


class Worst(NamedTuple):
    """Where two arrays are furthest apart, NaN and infinities settled by place."""

    difference: float
    at: int
    """number of the element in C order; the first of equals"""
    scale: float
    """max |expected|, over finite elements"""
    settled: bool
    """whether something is not finite"""
    length: float = 0.0
    """L2 norm of the difference, if it was asked for"""
    total: float = math.nan
    """sum of |actual - expected|, where infinities are not settled; NaN if it was not asked for"""


def measure_worst(
    start: int,
    apart: Array,
    expected: Array,
    actual: Array,
    with_length: bool = False,
    with_total: bool = False,
) -> Worst:
    """Return the worst place of a block that `measure_distances` yields."""
    with np.errstate(over="ignore"):
        total = float(apart.sum()) if with_total else math.nan
    at = int(apart.argmax())  # of NaN, if there is one
    settled = not math.isfinite(apart[at])
    if settled:
        apart = settle_by_place(apart, expected, actual)
        at = int(apart.argmax())
    difference = float(apart[at])
    length = measure_length(apart, difference) if with_length else 0.0
    return Worst(difference, start + at, find_largest(expected), settled, length, total)


def combine_worst(found: Iterable[Worst]) -> Worst:
    """Return one for all blocks, given in order."""
    blocks = list(found)
    worst = max(blocks, key=lambda one: one.difference)
    return worst._replace(
        scale=max(one.scale for one in blocks),
        settled=any(one.settled for one in blocks),
        length=math.hypot(*(one.length for one in blocks)),
        total=sum(one.total for one in blocks),
    )


def make_gap(expected: Array, actual: Array, found: Worst, relative: float, floor: float) -> Gap:
    """Return the gap between two arrays, given the place where they are furthest apart."""
    inexact = expected.dtype.kind in "fc" or actual.dtype.kind in "fc"
    tolerance = relative * found.scale + floor if inexact else 0.0
    worst = found.at, expected.shape, expected.flat[found.at], actual.flat[found.at]
    mean = found.total / expected.size
    return Gap(found.difference, tolerance, found.scale, worst=worst, mean=mean)


def measure_length(sizes: Array, largest: float) -> float:
    """Return the L2 norm of magnitudes; scaled where squares of very large or small ones would get lost."""
    if not 0 < largest < math.inf:
        return largest
    if 1e-140 < largest < 1e140:
        return math.sqrt(np.einsum("i,i->", sizes, sizes))
    scaled = np.divide(sizes, largest)
    return largest * math.sqrt(np.einsum("i,i->", scaled, scaled))


def settle_by_place(distance: Array, expected: Array, actual: Array) -> Array:
    """Return the distance with NaN and infinities settled: 0 where both have the same, else inf."""
    same = (expected == actual) | (np.isnan(expected) & np.isnan(actual))
    return np.where(same, 0.0, np.where(np.isnan(distance), np.inf, distance))


def divide(difference: float, scale: float) -> float:
    """Return difference / scale; 0 if both are 0, inf if only the scale is, NaN for a NaN."""
    if scale == 0:
        return 0.0 if difference == 0 else difference * math.inf
    return difference / scale


# ---------------------------------------------------------------------- arrays of records

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
_UNWRITTEN = ("nonfinite", "_sides", "ulp")  # of a Difference: not among the numbers of its JSON


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
    nonfinite: str = field(repr=False, compare=False)
    """which side holds NaN or infinities, how many, and where the first is; "" if none does"""
    _sides: tuple[Array, Array] = field(repr=False, compare=False)

    @property
    def dtypes(self) -> tuple[np.dtype[Any], np.dtype[Any]]:
        """The dtypes of both sides."""
        return self._sides[0].dtype, self._sides[1].dtype

    @property
    def is_inexact(self) -> bool:
        """Whether the sides hold floats or complex numbers, which rounding may move."""
        return dtype_kind(self.dtypes[0]) in INEXACT

    @property
    def max_rel(self) -> float:
        """max_abs / scale; 0 if both are 0, inf if only scale is."""
        return divide(self.max_abs, self.scale)

    def hold_to(self, relative: float, floor: float) -> Gap:
        """Return the largest difference beside its tolerance: relative * scale + floor; none at inf."""
        bound = math.inf if math.isinf(relative) else relative * self.scale + floor
        return Gap(self.max_abs, bound, self.scale)

    @cached_property
    def ulp(self) -> int | None:
        """Largest distance in units in the last place of the coarser of the two dtypes.

        None if they are not floats or the distance is not finite. Computed when first asked for.
        """
        if not self.is_inexact or not math.isfinite(self.max_abs):
            return None
        if not self.mismatches:
            return 0
        coarse = max(map(np.finfo, self.dtypes), key=lambda info: float(info.eps)).dtype
        coarse = coarse if coarse.itemsize <= 8 else np.dtype(np.float64)
        furthest = 0
        for _, *blocks in read_both(*self._sides):
            steps = [_count_steps(block, coarse) for block in blocks]
            furthest = max(furthest, int((np.maximum(*steps) - np.minimum(*steps)).max()))
        return furthest

    @property
    def constant(self) -> Any:
        """The value that all elements of `expected` have; None if they have several."""
        first = self._sides[0].flat[0]
        same = all((block == first).all() for _, block in read_blocks(self._sides[0]))
        return first if same else None

    def to_json(self, with_ulp: bool = True) -> dict[str, Any]:
        """Return every number by its name; `ulp` reads both arrays again, None without."""
        numbers = {name: value for name, value in vars(self).items() if name not in _UNWRITTEN}
        ulp = self.ulp if with_ulp or not self.mismatches else None
        return numbers | {"max_rel": self.max_rel, "ulp": ulp}


def dtype_kind(dtype: np.dtype[Any]) -> str:
    """Return the kind of `dtype` as a word; of one that is never compared, its name."""
    return KINDS.get(dtype.kind, str(dtype))


def find_obstacle(expected: Array, actual: Array) -> str:
    """Return why two arrays of records cannot be subtracted: dtype, shape or no elements; "" if they can.

    Nothing is broadcast, transposed or converted.
    """
    for dtype in (expected.dtype, actual.dtype):
        if dtype.kind not in KINDS:
            return f"arrays of dtype {dtype} cannot be compared"
    kinds = dtype_kind(expected.dtype), dtype_kind(actual.dtype)
    if kinds[0] != kinds[1]:
        return (
            f"the kind of dtype differs: expected {kinds[0]} ({expected.dtype}), "
            f"got {kinds[1]} ({actual.dtype})"
        )
    if expected.shape != actual.shape:
        hint = ": transposed?" if expected.shape == actual.shape[::-1] else ""
        return f"the shape differs: expected {expected.shape}, got {actual.shape}{hint}"
    return "" if expected.size else f"nothing to compare: shape {expected.shape} has no elements"


def compare_arrays(expected: Array, actual: Array) -> Difference:
    """Return how two arrays of one shape and kind of dtype differ.

    Raises ReprodError with what `find_obstacle` finds.
    """
    obstacle = find_obstacle(expected, actual)
    if obstacle:
        raise ReprodError(obstacle)

    blocks = map_distances(_measure_block, expected, actual)
    undefined = [block for block in blocks if math.isnan(block.largest)]
    worst = max(undefined[:1] or blocks, key=lambda block: block.largest)  # the first of equals
    first = next((block.first for block in blocks if block.first is not None), None)
    values = [
        float(value) if isinstance(value, np.floating) else value  # a long double stays numpy's
        for value in (side.flat[worst.worst].item() for side in (expected, actual))
    ]
    return Difference(
        mean_abs=float(add_up([(block.size, block.total) for block in blocks])) / expected.size,
        max_abs=worst.largest,
        min_abs=float(np.min([block.smallest for block in blocks])),
        scale=float(np.max([block.scale for block in blocks])),
        mismatches=sum(block.mismatches for block in blocks),
        size=expected.size,
        first_index=None if first is None else index_at(first, expected.shape),
        worst_index=index_at(worst.worst, expected.shape),
        expected_value=values[0],
        actual_value=values[1],
        nonfinite=_describe_nonfinite(blocks, expected.shape),
        _sides=(expected, actual),
    )


class _BlockDifference(NamedTuple):
    """What `Difference` says, of one block of two arrays; places are those in the whole arrays."""

    size: int
    total: float
    largest: float
    worst: int
    smallest: float
    scale: float
    mismatches: int
    first: int | None
    nonfinite: Sequence[tuple[int, int, int | None]]
    """for each side: how many NaN and infinities, number of the first; empty if all is finite"""


def _measure_block(start: int, apart: Array, expected: Array, actual: Array) -> _BlockDifference:
    worst, unequal = int(apart.argmax()), apart != 0  # the first NaN, if there is one
    largest, mismatches = float(apart[worst]), int(np.count_nonzero(unequal))
    known = mismatches < apart.size and not math.isnan(largest)  # two elements are equal
    return _BlockDifference(
        apart.size,
        apart.sum(),
        largest,
        start + worst,
        0.0 if known else float(apart.min()),
        measure_peak(expected) if expected.dtype.kind in "iufc" else 1.0,
        mismatches,
        start + int(unequal.argmax()) if mismatches else None,
        ()
        if math.isfinite(largest)
        else [_count_nonfinite(start, one) for one in (expected, actual)],
    )


def _count_nonfinite(start: int, block: Array) -> tuple[int, int, int | None]:
    """Return how many NaNs and infinities a block holds, and the number of the first of them."""
    bad, nans = ~np.isfinite(block), int(np.count_nonzero(np.isnan(block)))
    first = start + int(bad.argmax()) if bad.any() else None
    return nans, int(np.count_nonzero(bad)) - nans, first


def _describe_nonfinite(blocks: Sequence[_BlockDifference], shape: tuple[int, ...]) -> str:
    """Return which side holds NaN or infinities, how many, and where the first is; "" if none does."""
    faults = []
    for number, side in enumerate(("expected", "actual")):
        counts = [block.nonfinite[number] for block in blocks if block.nonfinite]
        first = next((first for *_, first in counts if first is not None), None)
        if first is not None:
            sums = sum(nans for nans, *_ in counts), sum(others for _, others, _ in counts)
            named = zip(sums, ("NaN", "inf"), strict=True)
            held = " and ".join(f"{count} {name}" for count, name in named if count)
            at = index_at(first, shape)
            faults.append(f"not finite: the {side} side has {held}, the first at {at}")
    return "; ".join(faults)


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
