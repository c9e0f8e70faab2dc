"""Numbers by which the tests of causes plant their faults."""

from reprod_align.causes.mismatch import Mismatch

import numpy as np

X, Y, Z = np.random.default_rng(0).standard_normal((3, 3, 6, 12))  # (B, L, D) each


def mismatch(expected: np.ndarray, actual: np.ndarray, *inputs: np.ndarray) -> Mismatch:
    """Return two tensors that differ, with inputs that are called x, y and z."""
    return Mismatch(expected, actual, list(zip("xyz", inputs, strict=False)))
