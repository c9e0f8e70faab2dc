"""How far two arrays are apart: one formula for everything that is compared.

|actual - expected|, element by element, in float64 (complex128), in blocks that stay in the cache; an
array in a mapped file is read block by block. Integers are exact beyond 2**53 too; texts are 1 apart,
or 0. Every verdict is written `ok = difference <= tolerance`, so that a NaN fails it.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from reprod_align.base.large.mapped import MappedFile

Array = NDArray[Any]
Span = tuple[int, int]

RELATIVE_TOLERANCE = 1e-9
"""in float64 a faithful pair agrees far closer, and a bug lies far above (docs/tolerances.md)"""
_BLOCK = 2**19  # bytes: in fewer, threads would wait for each other more than they work


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
    mean: float = math.nan
    """mean |actual - expected|; NaN where nobody asked for it"""

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
    found = combine_worst(find_worst(expected, actual, with_total=with_mean))
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


def find_worst(
    expected: Array,
    actual: Array,
    span: Span | None = None,
    with_length: bool = False,
    with_total: bool = False,
) -> Iterator[Worst]:
    """Yield the worst place of each block."""
    for start, apart, ours, theirs in distances(expected, actual, span):
        with np.errstate(over="ignore"):
            total = float(apart.sum()) if with_total else math.nan
        at = int(apart.argmax())  # of NaN, if there is one
        settled = not math.isfinite(apart[at])
        if settled:
            apart = by_place(apart, ours, theirs)
            at = int(apart.argmax())
        difference = float(apart[at])
        length = measure_length(apart, difference) if with_length else 0.0
        yield Worst(difference, start + at, largest(ours), settled, length, total)


def combine_worst(found: Iterable[Worst]) -> Worst:
    """Return one for all parts, given in order."""
    parts = list(found)
    worst = max(parts, key=lambda one: one.difference)
    return worst._replace(
        scale=max(one.scale for one in parts),
        settled=any(one.settled for one in parts),
        length=math.hypot(*(one.length for one in parts)),
        total=sum(one.total for one in parts),
    )


def make_gap(expected: Array, actual: Array, found: Worst, relative: float, floor: float) -> Gap:
    """Return the gap between two arrays of which the worst place is known."""
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


def magnitude(array: Array | None) -> float:
    """Return the largest finite |element|; 0 for None and for what holds no floats."""
    if array is None or array.dtype.kind not in "fc":
        return 0.0
    return max((largest(part) for _, part in parts(array)), default=0.0)


def distances(
    expected: Array, actual: Array, span: Span | None = None
) -> Iterator[tuple[int, Array, Array, Array]]:
    """Yield block by block, in C order: the number of its first element, |a - e|, e and a; 1-D.

    expected, actual: of one shape. |a - e| is float64 (a long double stays one); inf - inf is NaN.
    The three arrays are good until the next block is asked for.
    """
    subtract = _subtraction(expected.dtype, actual.dtype)
    most = _count_block(expected, actual)
    if subtract is not _subtract or expected.size <= most:
        for start, ours, theirs in blocks(expected, actual, span):
            yield start, subtract(ours, theirs), ours, theirs
        return
    from reprod_align.base.large.work import borrow

    wide = np.result_type(expected.dtype, actual.dtype, np.float64)
    with borrow(most, wide) as buffer:
        for start, ours, theirs in blocks(expected, actual, span):
            apart = buffer[: ours.size]
            with np.errstate(all="ignore"):
                if theirs.dtype != apart.dtype:  # widened before is faster than while subtracting
                    np.copyto(apart, theirs)
                np.subtract(theirs if theirs.dtype == apart.dtype else apart, ours, out=apart)
            yield start, np.abs(apart, out=apart), ours, theirs


def by_place(distance: Array, ours: Array, theirs: Array) -> Array:
    """Return the distance with NaN and infinities settled: 0 where both have the same, else inf."""
    same = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
    return np.where(same, 0.0, np.where(np.isnan(distance), np.inf, distance))


def blocks(
    expected: Array, actual: Array, span: Span | None = None
) -> Iterator[tuple[int, Array, Array]]:
    """Yield two arrays of one shape in parts, 1-D in C order, each with the number of its first element.

    Parts are good until the next are asked for. span: from which element to which; None for all.
    """
    most = _count_block(expected, actual)
    if expected.size <= most:
        yield 0, take(expected, 0, expected.size), take(actual, 0, actual.size)
        return
    both = parts(expected, span, most), parts(actual, span, most)
    for (start, ours), (_, theirs) in zip(*both, strict=True):
        yield start, ours, theirs


def _count_block(*arrays: Array) -> int:
    """Return how many elements of each array are compared at a time."""
    return max(1, _BLOCK // max(1, *(array.itemsize for array in arrays)))


def parts(
    array: Array, span: Span | None = None, most: int | None = None
) -> Iterator[tuple[int, Array]]:
    """Yield an array in parts of at most `most` elements, as `blocks` does.

    Raises ReprodError if its file is written to.
    """
    from reprod_align.base.large.work import borrow, cut

    most = most or _count_block(array)
    file, spans = _find_file(array), cut(span or (0, array.size), most)
    if file is None:
        for start, stop in spans:
            yield start, _slice(array, start, stop)
        return
    file.require_unchanged()
    with borrow(min(array.size, most), array.dtype) as buffer:
        read = _reader(file, array)
        for start, stop in spans:
            part = buffer[: stop - start]
            read(part, start)
            yield start, part
    file.require_unchanged()


def take(array: Array, start: int, stop: int) -> Array:
    """Return elements number `start` to `stop`, in C order, 1-D; a view where that can be."""
    file = _find_file(array)
    if file is None:
        return _slice(array, start, stop)
    part: Array = np.empty(stop - start, array.dtype)
    file.require_unchanged()
    _reader(file, array)(part, start)
    file.require_unchanged()
    return part


def _find_file(array: Array) -> "MappedFile | None":
    if array.base is None:
        return None
    from reprod_align.base.large.mapped import find_file

    return find_file(array)


def _reader(file: "MappedFile", array: Array) -> Callable[[Array, int], None]:
    """Return what fills its argument with elements of an array of the file, from a number on."""
    if array.flags.c_contiguous:
        first = file.find_offset(array)
        return lambda part, start: file.read_into(part, first + start * array.itemsize)

    def gather(part: Array, start: int) -> None:
        file.require_unchanged()
        part[:] = _slice(array, start, start + part.size)

    return gather


def _slice(array: Array, start: int, stop: int) -> Array:
    if array.flags.c_contiguous or array.ndim < 2:
        return array.reshape(-1)[start:stop]
    row = array.size // len(array)
    first, last = start // row, -(-stop // row)
    if row <= _count_block(array):
        return array[first:last].reshape(-1)[start - first * row : stop - first * row]
    pieces = [
        _slice(array[at], max(start - at * row, 0), min(stop - at * row, row))
        for at in range(first, last)
    ]
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)


def largest(array: Array) -> float:
    """Return the largest finite magnitude of an array of numbers; 0 if there is none."""
    whole = measure_peak(array)
    if math.isfinite(whole):
        return whole
    sizes = np.abs(array)
    return float(sizes[np.isfinite(sizes)].max(initial=0.0))


def measure_peak(array: Array) -> float:
    """Return the largest magnitude of an array of numbers, NaN if it holds one; 0 if it is empty."""
    if not array.size:
        return 0.0
    if array.dtype.kind == "c":
        array = np.abs(array.astype(np.result_type(array, np.float64)))
    return max(float(array.max()), -float(array.min()))


def divide(difference: float, scale: float) -> float:
    """Return difference / scale; 0 if both are 0, inf if only the scale is, NaN for a NaN."""
    if scale == 0:
        return 0.0 if difference == 0 else difference * math.inf
    return difference / scale


def index_at(position: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the index in an array of `shape` of its element number `position`, in C order."""
    return tuple(int(axis) for axis in np.unravel_index(position, shape))


# ---------------------------------------------------------------------- one block


def _subtraction(ours: np.dtype[Any], theirs: np.dtype[Any]) -> Callable[[Array, Array], Array]:
    """Return what turns a block of each dtype into |a - e|."""
    kinds = {ours.kind, theirs.kind}
    if not kinds <= set("biufc"):
        return lambda ours, theirs: np.asarray(ours != theirs, np.float64)
    if kinds <= set("iu") and max(ours.itemsize, theirs.itemsize) == 8:
        return _subtract_integers
    if kinds <= set("iuf"):
        return _subtract
    # booleans and complex numbers: numpy subtracts them in one dtype alone
    wide = np.result_type(ours, theirs, np.float64)
    return lambda ours, theirs: _subtract(ours.astype(wide), theirs.astype(wide))


def _subtract(ours: Array, theirs: Array) -> Array:
    with np.errstate(all="ignore"):
        wide = np.result_type(ours.dtype, theirs.dtype, np.float64)
        apart: Array = np.abs(np.subtract(theirs, ours, dtype=wide))
    return apart


def _subtract_integers(ours: Array, theirs: Array) -> Array:
    """Subtract 64-bit integers by halves that a float64 holds exactly: the sum rounds only once."""
    if (ours == theirs).all():
        return np.zeros(ours.shape)
    high = (theirs >> 32).astype(np.float64) - (ours >> 32).astype(np.float64)
    low = theirs.astype(np.int64) & 0xFFFFFFFF, ours.astype(np.int64) & 0xFFFFFFFF
    apart: Array = np.abs(high * 2.0**32 + (low[0].astype(np.float64) - low[1].astype(np.float64)))
    return apart
