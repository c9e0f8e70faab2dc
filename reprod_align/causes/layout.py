"""Is the port's tensor the reference's with its elements in another order?"""

import math
from collections.abc import Iterator, Sequence
from itertools import permutations

from reprod_align.causes.entries import cite
from reprod_align.causes.mismatch import Mismatch
from reprod_align.causes.numbers import Floats, head_sizes, is_telling, same

import numpy as np
from numpy.typing import NDArray

_LARGEST = 1_000_000  # elements to sort
_PROBES = 64
_BLOCKS = (2, 3, 4)
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
        tries = (_explain_blocks, _explain_shift, _explain_permutation)
        return next((words for explain in tries if (words := explain(expected, actual))), "")
    if same(expected.reshape(-1), actual.reshape(-1)):
        return (f"the values agree in order, but the shape is {actual.shape} instead of "
                f"{expected.shape}: reshape")  # fmt: skip
    return _explain_permutation(expected, actual)


def _explain_shift(expected: Floats, actual: Floats) -> str:
    for axis, size in enumerate(expected.shape):
        if size < 2:
            continue
        if same(np.flip(expected, axis), actual):
            return f"the order along axis {axis} is reversed in Paddle"
        for by in range(1, min(size, 9)):
            for way, rolled in (("forward", by), ("back", -by)):
                if same(np.roll(expected, rolled, axis), actual):
                    return (f"Paddle's values are rolled {way} by {by} along axis {axis}: an offset, "
                            "padding on the wrong side, or parts joined in another order")  # fmt: skip
    return ""


def _explain_blocks(expected: Floats, actual: Floats) -> str:
    """Explain by blocks (q k v, gates, heads) in another order along one axis."""
    for axis, size in enumerate(expected.shape):
        for count in _BLOCKS:
            if size % count or size < 2 * count:
                continue
            blocks = np.split(expected, count, axis)
            for order in permutations(range(count)):
                if same(np.concatenate([blocks[at] for at in order], axis), actual):
                    return (f"along axis {axis} the {count} blocks (q k v, gates, halves) are in the "
                            f"order {order} in Paddle")  # fmt: skip
    return ""


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
                return _describe_permutation(expected.shape, actual.shape, split, axes)
    return ""


def _splits(shape: Sequence[int]) -> Iterator[tuple[int, ...]]:
    if len(shape) > 5:
        return
    yield tuple(shape)
    if len(shape) > 4:
        return
    for axis in reversed(range(len(shape))):
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
        words = f"Paddle's axes are permuted by {axes}: a transpose is missing or different"
        return cite(words, "transpose")
    if split == tuple(shape):
        words = (f"Paddle reshapes where PyTorch permutes the axes: its values are PyTorch's permuted "
                 f"by {axes}, then reshaped to {tuple(other)}; transpose first")  # fmt: skip
        return cite(words, "transpose")
    words = (f"split or merged without the transpose: PyTorch's values, reshaped to {split} and permuted by "
            f"{axes}, are Paddle's: a reshape alone does not put heads or groups in order")  # fmt: skip
    return cite(words, "transpose")
