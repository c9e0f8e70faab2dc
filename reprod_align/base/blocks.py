"""Arrays block by block: read from mapped files, subtracted, added up on all cores, laid in another order.

An array of a mapped file is never copied whole. Touching a mapping whose file was cut short kills the
process, so blocks are read from the file that is held open; the mapping is touched only for single elements,
and for arrays in another order than the file's. Writers that rename (ours do) leave the open file as it is.
One that writes into it is noticed.

Spans are cut where numpy's own sum halves an array: a sum over the blocks is the one that numpy forms over
the whole, to the last bit, however large the blocks are and however many threads work on them.
"""

import math
import mmap
import os
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from reprod_align.errors import ReprodError

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Result = TypeVar("Result")
Span = tuple[int, int]
"""number of the first element, and of the first one after"""
SPAN = 2**20  # elements that a thread takes at a time
_BLOCK = 2**19  # bytes: in fewer, threads would wait for each other more than they work
_spare: list[NDArray[np.uint8]] = []
_ROWS, _COLUMNS = 256, 512  # of a tile, which stays in the cache
_LINE = 64  # bytes
_LEAST = 2**15  # elements: numpy copies a smaller matrix in less time


class MappedFile(mmap.mmap):
    """A file mapped for reading, which is also held open."""

    path: str
    _descriptor: int
    _read_stamp: tuple[int, int]

    def find_offset(self, array: Array) -> int:
        """Return where in the file the first element of an array of it lies."""
        base: int = np.frombuffer(self, np.uint8).__array_interface__["data"][0]
        own: int = array.__array_interface__["data"][0]
        return own - base

    def read_into(self, buffer: Array, offset: int) -> None:
        """Fill a 1-D array with the bytes from `offset` on. Raises ReprodError where the file ends first."""
        count = os.preadv(self._descriptor, [buffer.view(np.uint8).data], offset)
        while count < buffer.nbytes:
            left = buffer.view(np.uint8).data[count:]
            more = os.preadv(self._descriptor, [left], offset + count)
            if not more:
                raise self._make_error()
            count += more

    def require_unchanged(self) -> None:
        """Raise ReprodError if the file was written to since it was mapped."""
        if _read_stamp(self._descriptor) != self._read_stamp:
            raise self._make_error()

    def _make_error(self) -> ReprodError:
        return ReprodError(
            f"{self.path} was written to while it was in use: load it again when that is done"
        )


def map_file(path: str | os.PathLike[str]) -> MappedFile:
    """Map a file that is not empty. Raises OSError if that cannot be done."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    try:
        mapped = MappedFile(descriptor, 0, access=mmap.ACCESS_READ)
    except ValueError as error:  # it is empty
        os.close(descriptor)
        raise OSError(str(error)) from error
    except BaseException:
        os.close(descriptor)
        raise
    weakref.finalize(mapped, os.close, descriptor)
    mapped.path, mapped._descriptor = str(path), descriptor
    mapped._read_stamp = _read_stamp(descriptor)
    return mapped


def _read_stamp(descriptor: int) -> tuple[int, int]:
    status = os.fstat(descriptor)
    return status.st_size, status.st_mtime_ns


def find_file(array: Array) -> MappedFile | None:
    """Return the mapped file in which an array lies; None if it lies in memory."""
    owner: object = array
    while isinstance(owner, np.ndarray):
        owner = owner.base
    if isinstance(owner, memoryview):
        owner = owner.obj
    return owner if isinstance(owner, MappedFile) else None


def copy_array(array: Array) -> Array:
    """Return an array in memory, writable and aligned, with the order of its axes kept."""
    file = find_file(array)
    if file is None:
        return array.copy("K")
    file.require_unchanged()
    copy = np.empty_like(array, order="K", subok=False)
    if array.flags.forc:
        file.read_into(copy.reshape(-1, order="A"), file.find_offset(array))
    else:
        copy[...] = array
    file.require_unchanged()
    return copy


def cut(span: Span, most: int) -> Iterator[Span]:
    """Yield the parts of a span, in order, each of at most `most` elements."""
    start, stop = span
    if stop - start <= most:
        yield span
        return
    middle = start + _halve(stop - start)
    yield from cut((start, middle), most)
    yield from cut((middle, stop), most)


def add_up(parts: Sequence[tuple[int, Any]]) -> Any:
    """Return the sum over the whole from (how many elements, their sum) of the parts that `cut` makes."""
    left = list(reversed(parts))

    def add(size: int) -> Any:
        if left[-1][0] == size:
            return left.pop()[1]
        half = _halve(size)
        return add(half) + add(size - half)

    return add(sum(size for size, _ in parts))


def _halve(size: int) -> int:
    """Return how long the first half is: as in numpy, a multiple of 8."""
    half = size // 2
    return half - half % 8 if half >= 8 else half


def map_spans(work: Callable[[Span], Result], size: int) -> list[Result]:
    """Return what `work` makes of each span of `size` elements, in order; on all cores if there are many."""
    spans = list(cut((0, size), SPAN))
    threads = min(len(spans), count_cores())
    if threads < 2:
        return [work(span) for span in spans]
    from concurrent.futures import ThreadPoolExecutor  # a small array needs none

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, spans))


def count_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def borrow(size: int, dtype: np.dtype[Any]) -> Iterator[NDArray[Any]]:
    """Yield an array of `size` elements with any content, from memory that was used before."""
    needed = size * dtype.itemsize
    try:
        buffer = _spare.pop()  # of several threads that find one left, one alone gets it
    except IndexError:
        buffer = np.empty(0, np.uint8)
    if buffer.size < needed:
        buffer = np.empty(needed, np.uint8)
    try:
        yield buffer[:needed].view(dtype)
    finally:
        _spare.append(buffer)


def transpose(matrix: Array) -> Array:
    """Return the transposed matrix (n, m) as a dense array (m, n), bit for bit."""
    made = np.empty(matrix.shape[::-1], matrix.dtype)
    copy_tiles(made, matrix.T)
    return made


def lay_dense(array: Array) -> Array:
    """Return the array with its elements in C order: itself where it has them so."""
    axes = [axis for axis, step in enumerate(array.strides) if step == array.itemsize]
    if array.flags.c_contiguous or not axes or array.ndim < 2:
        return np.ascontiguousarray(array)
    if axes[-1] == array.ndim - 1 or array.shape[axes[0]] * array.shape[-1] < _LEAST:
        return np.ascontiguousarray(array)
    made = np.empty(array.shape, array.dtype)
    target, source = (np.moveaxis(one, axes[0], -2) for one in (made, array))
    for at in np.ndindex(target.shape[:-2]):
        copy_tiles(target[at], source[at])
    return made


def copy_tiles(target: Array, source: Array) -> None:
    """Copy a matrix into another of its shape and dtype, which lies in the other order.

    numpy walks over whole rows; tile by tile it is several times as fast. A tile is first copied as it
    lies: at its own place, lines of the cache that are a power of two apart push each other out.
    """
    rows, columns = target.shape
    if not target.nbytes:
        return
    length = _ROWS + _LINE // target.itemsize
    with borrow(_COLUMNS * length, target.dtype) as buffer:
        lines = buffer.reshape(_COLUMNS, length).T
        for top in range(0, rows, _ROWS):
            for left in range(0, columns, _COLUMNS):
                place = slice(top, top + _ROWS), slice(left, left + _COLUMNS)
                tile = source[place]
                held = lines[: tile.shape[0], : tile.shape[1]]
                held[...] = tile
                target[place] = held


def read_both(
    expected: Array, actual: Array, span: Span | None = None
) -> Iterator[tuple[int, Array, Array]]:
    """Yield two arrays of one shape in parts, 1-D in C order, each with the number of its first element.

    Parts are good until the next are asked for. span: from which element to which; None for all.
    """
    most = _count_block(expected, actual)
    if expected.size <= most:
        yield 0, read_span(expected, 0, expected.size), read_span(actual, 0, actual.size)
        return
    both = read_blocks(expected, span, most), read_blocks(actual, span, most)
    for (start, ours), (_, theirs) in zip(*both, strict=True):
        yield start, ours, theirs


def _count_block(*arrays: Array) -> int:
    """Return how many elements of each array are compared at a time."""
    return max(1, _BLOCK // max(1, *(array.itemsize for array in arrays)))


def read_blocks(
    array: Array, span: Span | None = None, most: int | None = None
) -> Iterator[tuple[int, Array]]:
    """Yield an array in parts of at most `most` elements, as `read_both` does.

    Raises ReprodError if its file is written to.
    """
    most = most or _count_block(array)
    file, spans = find_file(array), cut(span or (0, array.size), most)
    if file is None:
        for start, stop in spans:
            yield start, _take_slice(array, start, stop)
        return
    file.require_unchanged()
    with borrow(min(array.size, most), array.dtype) as buffer:
        read = _make_reader(file, array)
        for start, stop in spans:
            part = buffer[: stop - start]
            read(part, start)
            yield start, part
    file.require_unchanged()


def read_span(array: Array, start: int, stop: int) -> Array:
    """Return elements number `start` to `stop`, in C order, 1-D; a view where that can be."""
    file = find_file(array)
    if file is None:
        return _take_slice(array, start, stop)
    part: Array = np.empty(stop - start, array.dtype)
    file.require_unchanged()
    _make_reader(file, array)(part, start)
    file.require_unchanged()
    return part


def _make_reader(file: MappedFile, array: Array) -> Callable[[Array, int], None]:
    """Return what fills its argument with elements of an array of the file, from a number on."""
    if array.flags.c_contiguous:
        first = file.find_offset(array)
        return lambda part, start: file.read_into(part, first + start * array.itemsize)

    def gather(part: Array, start: int) -> None:
        file.require_unchanged()
        part[:] = _take_slice(array, start, start + part.size)

    return gather


def _take_slice(array: Array, start: int, stop: int) -> Array:
    if array.flags.c_contiguous or array.ndim < 2:
        return array.reshape(-1)[start:stop]
    row = array.size // len(array)
    first, last = start // row, -(-stop // row)
    if row <= _count_block(array):
        return array[first:last].reshape(-1)[start - first * row : stop - first * row]
    pieces = [
        _take_slice(array[at], max(start - at * row, 0), min(stop - at * row, row))
        for at in range(first, last)
    ]
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)


def measure_distances(
    expected: Array, actual: Array, span: Span | None = None
) -> Iterator[tuple[int, Array, Array, Array]]:
    """Yield block by block, in C order: the number of its first element, |a - e|, e and a; 1-D.

    expected, actual: of one shape. |a - e| is float64 (a long double stays one); inf - inf is NaN.
    The three arrays are good until the next block is asked for.
    """
    subtract = _choose_subtraction(expected.dtype, actual.dtype)
    most = _count_block(expected, actual)
    if subtract is not _subtract or expected.size <= most:
        for start, ours, theirs in read_both(expected, actual, span):
            yield start, subtract(ours, theirs), ours, theirs
        return
    wide = np.result_type(expected.dtype, actual.dtype, np.float64)
    with borrow(most, wide) as buffer:
        for start, ours, theirs in read_both(expected, actual, span):
            apart = buffer[: ours.size]
            with np.errstate(all="ignore"):
                if theirs.dtype != apart.dtype:  # widened before is faster than while subtracting
                    np.copyto(apart, theirs)
                np.subtract(theirs if theirs.dtype == apart.dtype else apart, ours, out=apart)
            yield start, np.abs(apart, out=apart), ours, theirs


def map_distances(
    measure: Callable[[int, Array, Array, Array], Result], expected: Array, actual: Array
) -> list[Result]:
    """Return what `measure` makes of each block that `measure_distances` yields, in order, on all cores."""

    def measure_span(span: Span) -> list[Result]:
        return [measure(*block) for block in measure_distances(expected, actual, span)]

    return [one for found in map_spans(measure_span, expected.size) for one in found]


def _choose_subtraction(
    expected: np.dtype[Any], actual: np.dtype[Any]
) -> Callable[[Array, Array], Array]:
    """Return what turns a block of each dtype into |a - e|."""
    kinds = {expected.kind, actual.kind}
    if not kinds <= set("biufc"):
        return lambda expected, actual: np.asarray(expected != actual, np.float64)
    if kinds <= set("iu") and max(expected.itemsize, actual.itemsize) == 8:
        return _subtract_integers
    if kinds <= set("iuf"):
        return _subtract
    # booleans and complex numbers: numpy subtracts them in one dtype alone
    wide = np.result_type(expected, actual, np.float64)
    return lambda expected, actual: _subtract(expected.astype(wide), actual.astype(wide))


def _subtract(expected: Array, actual: Array) -> Array:
    with np.errstate(all="ignore"):
        wide = np.result_type(expected.dtype, actual.dtype, np.float64)
        apart: Array = np.abs(np.subtract(actual, expected, dtype=wide))
    return apart


def _subtract_integers(expected: Array, actual: Array) -> Array:
    """Subtract 64-bit integers by halves that a float64 holds exactly: the sum rounds only once."""
    if (expected == actual).all():
        return np.zeros(expected.shape)
    high = (actual >> 32).astype(np.float64) - (expected >> 32).astype(np.float64)
    low = actual.astype(np.int64) & 0xFFFFFFFF, expected.astype(np.int64) & 0xFFFFFFFF
    apart: Array = np.abs(high * 2.0**32 + (low[0].astype(np.float64) - low[1].astype(np.float64)))
    return apart


def magnitude(array: Array | None) -> float:
    """Return the largest finite |element|; 0 for None and for what holds no floats."""
    if array is None or array.dtype.kind not in "fc":
        return 0.0
    return max((find_largest(block) for _, block in read_blocks(array)), default=0.0)


def find_largest(array: Array) -> float:
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


def index_at(position: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the index in an array of `shape` of its element number `position`, in C order."""
    return tuple(int(axis) for axis in np.unravel_index(position, shape))
