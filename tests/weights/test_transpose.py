"""The transposition of large matrices."""

from reprod_align.weights.transpose import copy_tiles, transpose

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
