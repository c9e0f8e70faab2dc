"""Work on a large array: cut where numpy's own sum halves it, done on all cores, in buffers used again.

A sum over the parts is the one that numpy forms over the whole, to the last bit, however large the parts
are and however many threads work on them.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Result = TypeVar("Result")
Span = tuple[int, int]
"""number of the first element, and of the first one after"""

SPAN = 2**20  # elements that a thread takes at a time
_spare: list[NDArray[np.uint8]] = []


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
