"""What is to be written: a tensor's name, dtype and shape; its bits come when their turn has come."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from reprod_align.weights.stored import DTYPES, Array

import numpy as np


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
"""name of an entry -> its bits, a dense array of its shape"""


def dense_bytes(array: Array) -> memoryview:
    """Return the bytes of a dense array, uncopied."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
