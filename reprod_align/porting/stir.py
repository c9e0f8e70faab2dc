"""Moves constant weights: a pad row of zeros, a norm's ones and a running variance of 1 hide faults."""

from typing import Final

from reprod_align.model.side import Side
from reprod_align.model.trace import Array

import numpy as np

_SEED: Final = 20213
_STATISTICS: Final = ("running_mean", "running_var")
_SMALL, _LARGE = 0.02, 0.2


def stir_weights(side: Side) -> None:
    """Move a side's weights off their constants, for good.

    Rows of a matrix and vectors that hold one value throughout are moved, running statistics too;
    other buffers stay: they are masks and tables.
    """
    source = np.random.default_rng(_SEED)
    tensors, values = side.describe().tensors, side.values()
    for name, info in tensors.items():
        if info.is_float and (info.is_parameter or info.role in _STATISTICS) and values[name].size:
            side.load({name: _stir(values[name], source)})


def _stir(array: Array, source: np.random.Generator) -> Array:
    """Return an array with its constant rows moved."""
    rows = array.reshape(len(array) if array.ndim > 1 else 1, -1).astype(np.float64)
    constant = (rows == rows[:, :1]).all(axis=1, keepdims=True)
    noise = source.uniform(_SMALL, _LARGE, rows.shape)
    stirred = np.where(constant, rows * (1 + noise) + noise / 2, rows)
    return stirred.reshape(array.shape).astype(array.dtype)
