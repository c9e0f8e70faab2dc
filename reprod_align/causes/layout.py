"""Is the port's tensor the reference's with its elements in another order?"""

import math
from collections.abc import Iterator, Sequence
from itertools import permutations

from reprod_align.base import PORT, REFERENCE
from reprod_align.causes.mismatch import Floats, Mismatch, cite, head_sizes, is_telling, same

import numpy as np
from numpy.typing import NDArray

_LARGEST = 1_000_000  # elements to sort
_PROBES = 64
_BLOCKS = (2, 3, 4)
_MOST_ROLLED = 8
_MOST_SPLITS = 12  # ways to split one axis


def explain_layout(mismatch: Mismatch) -> str:
    """Explain the difference by an order of axes, rows or blocks; "" for another set of values."""
    expected, actual = mismatch.expected, mismatch.actual
    if expected.size != actual.size or not is_telling(expected):
        return ""
    if expected.size <= _LARGEST and not same(
        np.sort(expected, axis=None), np.sort(actual, axis=None)
    ):
        return ""
    if expected.shape == actual.shape:
        for words, made in _list_orders(expected):
            if same(made, actual):
                return words
    elif same(expected.reshape(-1), actual.reshape(-1)):
        return (f"the values agree in order, but the shape is {actual.shape} instead of "
                f"{expected.shape}: reshape")  # fmt: skip
    return _explain_permutation(expected, actual)


def _list_orders(x: Floats) -> Iterator[tuple[str, Floats]]:
    """Yield x with blocks (q k v, gates, heads) exchanged, reversed, and rolled, along each axis."""
    for axis, size in enumerate(x.shape):
        for count in (it for it in _BLOCKS if size % it == 0 and size >= 2 * it):
            blocks = np.split(x, count, axis)
            for order in permutations(range(count)):
                words = (f"along axis {axis} the {count} blocks (q k v, gates, halves) are in the "
                         f"order {order} in {PORT}")  # fmt: skip
                yield words, np.concatenate([blocks[at] for at in order], axis)
    for axis, size in enumerate(x.shape):
        if size > 1:
            yield f"the order along axis {axis} is reversed in {PORT}", np.flip(x, axis)
        for by in range(1, min(size, _MOST_ROLLED + 1)):
            for way, rolled in (("forward", by), ("back", -by)):
                words = (f"{PORT}'s values are rolled {way} by {by} along axis {axis}: an offset, "
                         "padding on the wrong side, or parts joined in another order")  # fmt: skip
                yield words, np.roll(x, rolled, axis)


def _explain_permutation(expected: Floats, actual: Floats) -> str:
    """Explain by axes permuted before a reshape, one axis at most being split."""
    probes = np.unique(np.linspace(0, actual.size - 1, _PROBES).astype(np.int64))
    for split in _splits(expected.shape):
        for axes in permutations(range(len(split))):
            if axes == tuple(range(len(split))):
                continue
            if not same(_permute_at(expected, split, axes, probes), actual.reshape(-1)[probes]):
                continue
            if same(expected.reshape(split).transpose(axes).reshape(actual.shape), actual):
                words = _describe_permutation(expected.shape, actual.shape, split, axes)
                return cite(words, "transpose")
    return ""


def _splits(shape: Sequence[int]) -> Iterator[tuple[int, ...]]:
    if len(shape) <= 5:
        yield tuple(shape)
    for axis in reversed(range(len(shape))) if len(shape) <= 4 else ():
        for size in head_sizes(shape[axis])[:_MOST_SPLITS]:
            yield (*shape[:axis], shape[axis] // size, size, *shape[axis + 1 :])


def _permute_at(
    expected: Floats, split: tuple[int, ...], axes: tuple[int, ...], at: NDArray[np.int64]
) -> Floats:
    """Return expected.reshape(split).transpose(axes) at flat places, without making it."""
    places = np.unravel_index(at, [split[axis] for axis in axes])
    strides = [math.prod(split[axis + 1 :]) for axis in axes]
    return expected.reshape(-1)[sum(p * s for p, s in zip(places, strides, strict=True))]


def _describe_permutation(
    shape: Sequence[int], other: Sequence[int], split: tuple[int, ...], axes: tuple[int, ...]
) -> str:
    if split == tuple(shape) and [split[axis] for axis in axes] == list(other):
        return f"{PORT}'s axes are permuted by {axes}: a transpose is missing or different"
    if split == tuple(shape):
        return (f"{PORT} reshapes where {REFERENCE} permutes the axes: its values are {REFERENCE}'s permuted "
                f"by {axes}, then reshaped to {tuple(other)}; transpose first")  # fmt: skip
    return (f"split or merged without the transpose: {REFERENCE}'s values, reshaped to {split} and "
            f"permuted by {axes}, are {PORT}'s: a reshape alone does not put heads or groups in "
            "order")  # fmt: skip
