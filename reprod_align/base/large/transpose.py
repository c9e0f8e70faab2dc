"""Copies matrices into the other order of axes at the speed of memory."""

from typing import Any

from reprod_align.base.large.work import borrow

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_ROWS, _COLUMNS = 256, 512  # of a tile, which stays in the cache
_LINE = 64  # bytes
_LEAST = 2**15  # elements: numpy copies a smaller matrix in less time


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
