"""A difference at some places alone: its cause is sought in what is there."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from reprod_align.causes.entries import cite
from reprod_align.causes.mismatch import Mismatch
from reprod_align.causes.numbers import Floats

import numpy as np
from numpy.typing import NDArray

_CLOSE = 1e-9  # of the largest value


def explain_places(mismatch: Mismatch, causes: Sequence[Callable[[Mismatch], str]]) -> str:
    """Explain a difference that stands at a few indices of one axis by a cause of what is there."""
    expected, actual = mismatch.expected, mismatch.actual
    scale = np.abs(expected).max()
    for axis in range(expected.ndim if expected.ndim > 1 else 0):
        rows = np.moveaxis(np.abs(expected - actual), axis, 0).reshape(expected.shape[axis], -1)
        apart = rows.max(axis=1) > _CLOSE * scale
        if not 0 < apart.sum() <= len(apart) // 2:
            continue
        there = _cut(mismatch, axis, np.flatnonzero(apart))
        for explain in causes:
            if there.is_telling and (words := explain(there)):
                return f"only {_name_places(apart, axis)} differs: {words}"
    return ""


def explain_padding_row(mismatch: Mismatch) -> str:
    """Explain rows that are zero on one side, those of one index: padding_idx does so in Paddle."""
    expected, actual = mismatch.expected, mismatch.actual
    for _, ids in mismatch.inputs:
        if ids.dtype.kind not in "iu" or ids.shape != expected.shape[:-1]:
            continue
        apart = (expected != actual).any(axis=-1)
        values = np.unique(ids[apart])
        if values.size != 1 or not np.array_equal(apart, ids == values[0]):
            continue
        for made, other, names in (
            (actual, expected, ("Paddle", "PyTorch")),
            (expected, actual, ("PyTorch", "Paddle")),
        ):
            if not made[apart].any() and other[apart].any():
                words = (f"{names[0]} returns zeros for the index {values[0]} (padding_idx), {names[1]} "
                         "the row of its table")  # fmt: skip
                return cite(words, "embedding-padding-idx")
    return ""


def _cut(mismatch: Mismatch, axis: int, at: NDArray[np.int64]) -> Mismatch:
    """Return the mismatch at these indices of an axis, with what the inputs hold there."""
    size, ndim = mismatch.expected.shape[axis], mismatch.expected.ndim
    inputs = []
    for name, array in mismatch.inputs:
        own = axis - (ndim - array.ndim)
        whole = own >= 0 and array.shape[own] == size
        inputs.append((name, np.take(array, at, own) if whole else array))
    expected, actual = (_take(it, at, axis) for it in (mismatch.expected, mismatch.actual))
    return replace(mismatch, expected=expected, actual=actual, inputs=inputs)


def _take(values: Floats, at: NDArray[np.int64], axis: int) -> Floats:
    return np.asarray(np.take(values, at, axis))


def _name_places(apart: NDArray[np.bool_], axis: int) -> str:
    at = np.flatnonzero(apart)
    if at.size == 1:
        which = {0: "the first", len(apart) - 1: "the last"}.get(int(at[0]), f"index {at[0]}")
        return f"{which} along axis {axis}"
    return f"what stands at {at.size} of {len(apart)} indices of axis {axis}"
