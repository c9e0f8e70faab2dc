"""What is to be written: a tensor's name, dtype and shape; its bits come when their turn has come."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from reprod_align.weights.stored import DTYPES, Array
from reprod_align.weights.transpose import copy_tiles

import numpy as np

_STRIP: Final = 2**22  # bytes: small enough to be written from the cache


@dataclass(frozen=True)
class Entry:
    """A tensor of the checkpoint to be written."""

    name: str
    dtype: str
    """a key of stored.DTYPES"""
    shape: tuple[int, ...]
    tied_to: str = ""
    """the entry before it that holds the same tensor; "" if it has numbers of its own"""

    @property
    def nbytes(self) -> int:
        """How many bytes its numbers take."""
        return math.prod(self.shape) * np.dtype(DTYPES[self.dtype]).itemsize


Load = Callable[[str], Array]
"""name of an entry -> its bits, of its shape; good until the next call"""


def dense_chunks(array: Array) -> Iterator[memoryview]:
    """Yield the bytes of an array, row by row of its axes; a transposed matrix strip by strip.

    A strip is good until the next one.
    """
    turned = array.ndim == 2 and array.flags.f_contiguous and not array.flags.c_contiguous
    if not turned:
        yield np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
        return
    height = max(1, _STRIP // (array.shape[1] * array.itemsize))
    strip = np.empty((min(height, len(array)), array.shape[1]), array.dtype)
    for top in range(0, len(array), height):
        part = array[top : top + height]
        copy_tiles(strip[: len(part)], part)
        yield strip[: len(part)].reshape(-1).view(np.uint8).data
