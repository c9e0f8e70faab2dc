"""The transposition of large matrices."""

from itertools import permutations
from math import prod

from reprod_align.base.blocks import copy_tiles, lay_dense, transpose

import numpy as np
import pytest


@pytest.mark.parametrize("shape", [(1, 1), (3, 700), (257, 256), (600, 513), (0, 4), (5, 0)])
@pytest.mark.parametrize("dtype", ["u1", "u2", "f4", "c16"])
def test_it_is_numpys(shape: tuple[int, int], dtype: str):
    matrix = np.random.default_rng(0).integers(0, 200, shape).astype(dtype)
    for given in (matrix, matrix.T, matrix[::-1]):
        made = transpose(given)
        assert made.flags.c_contiguous and made.dtype == given.dtype
        again = np.empty_like(made)
        copy_tiles(again, given.T)
        assert np.array_equal(again, made)
        assert made.shape == given.T.shape and np.array_equal(made, given.T)


@pytest.mark.parametrize("axes", list(permutations(range(3))))
@pytest.mark.parametrize(
    "shape", [(3, 260, 140), (2, 1, 40000), (300, 2, 200), (0, 300, 300), (4, 5, 6)]
)
def test_an_array_in_another_order_is_laid_dense(axes: tuple[int, ...], shape: tuple[int, ...]):
    array = np.arange(prod(shape)).reshape(shape).transpose(axes)
    repeated = np.broadcast_to(array[..., :1], array.shape)
    for given in (array, array[::-1], array[:, ::2], repeated, array[..., None]):
        made = lay_dense(given)
        assert made.flags.c_contiguous and made.dtype == given.dtype
        assert np.array_equal(made, given)


def test_a_dense_array_is_not_copied():
    array = np.ones((300, 300))
    assert lay_dense(array) is array
