"""What is to be written: a tensor's name, dtype and shape; its bits come when their turn has come."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from reprod_align.base.large.transpose import copy_tiles
from reprod_align.weights.stored import DTYPES, Array

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
    """Yield the bytes of an array, row by row of its axes, in parts with memory of their own.

    A transposed matrix is laid strip by strip. The array may change once its last part is taken.
    """
    turned = array.ndim == 2 and array.flags.f_contiguous and not array.flags.c_contiguous
    rows = array if turned else np.ascontiguousarray(array).reshape(-1, 1)
    height = max(1, _STRIP // (rows.shape[1] * array.itemsize))
    for top in range(0, len(rows), height):
        part = rows[top : top + height]
        strip = np.empty(part.shape, array.dtype)
        if turned:
            copy_tiles(strip, part)
        else:
            strip[:] = part
        yield strip.reshape(-1).view(np.uint8).data
