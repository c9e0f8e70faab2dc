"""Inputs cut or made longer along the batch and the sequence, and inputs with other values.

No axis says what it is. Axis 0 is the batch where inputs share its length; axes of one length are
taken to be one sequence. Either is a guess, which the reference confirms by running. Of values, floats
are moved and whole numbers rearranged, so that a model should take them as well.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from reprod_align.base.blocks import Array

import numpy as np

InputKey = str | int
InputArrays = Mapping[InputKey, Array]
"""the inputs by name or position"""
Axes = Mapping[InputKey, tuple[int, ...]]
"""the axes of each input that are one sequence"""

_MASK_VALUES = 2  # distinct ones


def find_batch(arrays: InputArrays) -> frozenset[InputKey]:
    """Return the inputs whose axis 0 is the batch: all, or those that share the first one's length."""
    deep = {key: array for key, array in arrays.items() if array.ndim}
    lengths = [len(array) for array in deep.values()]
    most = next((n for n in lengths if n > 1), 1)
    return frozenset(key for key, array in deep.items() if len(array) == most)


def find_sequences(arrays: InputArrays, batch: frozenset[InputKey]) -> Iterator[tuple[int, Axes]]:
    """Yield each length above 1 of an axis that is not the batch, and its axes: all, then the first.

    An input in which two axes have that length, a mask of (B, 1, L, L) or features of (B, L, L), may
    mean both or the first alone.
    """
    lengths = dict.fromkeys(
        size
        for key, array in arrays.items()
        for size in array.shape[int(key in batch) :]
        if size > 1
    )
    for length in lengths:
        every = {
            key: tuple(
                axis
                for axis, size in enumerate(array.shape)
                if size == length and not (axis == 0 and key in batch)
            )
            for key, array in arrays.items()
        }
        first = {key: axes[:1] for key, axes in every.items()}
        yield length, every
        if first != every:
            yield length, first


def take_rows(arrays: InputArrays, batch: frozenset[InputKey], count: int) -> dict[InputKey, Array]:
    """Return the first `count` examples, repeated if there are fewer.

    The longest of them is as long as the longest of all: PyTorch's padding ends there.
    """
    made = {
        key: np.resize(array, (count, *array.shape[1:])) if key in batch else array
        for key, array in arrays.items()
    }
    sizes = {size for array in arrays.values() for size in array.shape[1:]}
    for key, array in arrays.items():
        most = int(array.max(initial=0)) if array.dtype.kind in "iu" else 0
        if key in batch and most in sizes and _may_be_lengths(array, most):
            made[key] = np.where(made[key] == made[key].max(), array.dtype.type(most), made[key])
    return made


def resize(
    arrays: InputArrays, axes: Axes, length: int, last: int = 0, follow: bool = False
) -> dict[InputKey, Array]:
    """Return the inputs with these axes cut to `length`, or made as long.

    Whole numbers elsewhere that may count or name positions are at most `length` - `last` after a cut:
    a kernel of Paddle may read beyond a sequence that is shorter than it is told.
    follow: what may be lengths of examples is made as long, too, where it was the whole length.
    """
    made = {key: _resize(array, axes[key], length, 0) for key, array in arrays.items()}
    if any(_hides_all(array, made[key]) for key, array in arrays.items()):  # padded on the left
        made = {key: _resize(array, axes[key], length, -1) for key, array in arrays.items()}
    own = max(arrays[key].shape[axis] for key, found in axes.items() for axis in found)
    for key, array in arrays.items():
        if own > length and not axes[key] and _may_be_positions(array, own):
            made[key] = np.minimum(made[key], length - last).astype(array.dtype)
        elif follow and not axes[key] and _may_be_lengths(array, own):
            made[key] = np.where(array == own, array.dtype.type(length), array)
    return made


def _may_be_lengths(array: Array, longest: int) -> bool:
    """Tell whether an input may say how long each example is, the longest of them `longest`."""
    whole = array.ndim == 1 and array.dtype.kind in "iu" and array.size > 0
    return whole and 1 <= array.min() <= array.max() == longest


def _may_be_positions(array: Array, length: int) -> bool:
    """Tell whether an input may hold lengths of a sequence, or places in it."""
    return array.dtype.kind in "iu" and array.size > 0 and 0 <= array.min() <= array.max() <= length


def is_mask(array: Array) -> bool:
    """Tell whether an input holds at most two values, or -inf: a mask, a flag or a kind."""
    if array.dtype.kind == "b" or not array.size:
        return True
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        return True
    return bool(((array == array.min()) | (array == array.max())).all())


def _resize(array: Array, axes: tuple[int, ...], length: int, end: int) -> Array:
    """Return the array with the axes cut, `end` -1: at their start; or made longer.

    What is made longer runs back and forth. A mask is stretched, so that padding stays at its end.
    """
    for axis in axes:
        own = array.shape[axis]
        places = np.arange(length) + (own - length if end else 0)
        if length > own:
            there_and_back = np.concatenate([np.arange(own), np.arange(own)[::-1]])
            stretched = np.arange(length) * own // length
            places = stretched if is_mask(array) else np.resize(there_and_back, length)
        array = array.take(places, axis)
    return array


def _hides_all(array: Array, cut: Array) -> bool:
    """Tell whether a row of a mask of 0 and 1 that was cut shows nothing any more."""
    if not is_mask(array) or array.dtype.kind not in "bi" or cut.size >= array.size:
        return False
    rows = array[tuple(map(slice, cut.shape[:-1]))].any(-1)
    return bool((rows & ~cut.any(-1)).any())


_SEED = 20213


def spread(arrays: InputArrays, batch: frozenset[InputKey], axis: int) -> dict[InputKey, Array]:
    """Return floats mirrored about their mean, far apart; whole numbers moved on along `axis`."""
    return _change(arrays, batch, axis, -4.0, shuffled=False)


def mirror(arrays: InputArrays, batch: frozenset[InputKey], axis: int) -> dict[InputKey, Array]:
    """Return floats mirrored about their mean; whole numbers moved on along `axis`."""
    return _change(arrays, batch, axis, -1.0, shuffled=False)


def nudge(arrays: InputArrays, batch: frozenset[InputKey], axis: int) -> dict[InputKey, Array]:
    """Return floats moved by at most 1% of their size; whole numbers moved on along `axis`."""
    return _change(arrays, batch, axis, 1.0, shuffled=False)


def keep(arrays: InputArrays, batch: frozenset[InputKey], axis: int) -> dict[InputKey, Array]:
    """Return the inputs as they are."""
    return dict(arrays)


def shuffle(arrays: InputArrays, batch: frozenset[InputKey], axis: int) -> dict[InputKey, Array]:
    """Return floats nearer to their mean; whole numbers in another order along `axis`."""
    return _change(arrays, batch, axis, 0.3, shuffled=True)


def change_masks(arrays: InputArrays) -> dict[InputKey, Array] | None:
    """Return the inputs with masks that hide something where they hide nothing, and the other way round.

    A mask is called so, holds 0 and 1, and hides the end of the last example then. None without one.
    """
    masks = {key: array for key, array in arrays.items() if _is_named_mask(key, array)}
    made = {key: np.ones_like(array) for key, array in masks.items()}
    for key, array in masks.items():
        if array.all():
            made[key][-1, ..., -((array.shape[-1] + 3) // 4) :] = 0
    return {**arrays, **made} if masks else None


def _is_named_mask(key: InputKey, array: Array) -> bool:
    named = "mask" in str(key).lower() and array.ndim > 1 and array.size > 0 and array.shape[-1] > 1
    return named and bool(np.isin(array, (0, 1)).all())


def change_integers(arrays: InputArrays) -> tuple[str, dict[InputKey, Array]] | None:
    """Return the inputs with int32 for int64, or the other way round, and that in words.

    None if there are no such integers, or they do not fit.
    """
    kinds = {array.dtype for array in arrays.values()}
    given: np.dtype[Any] = np.dtype("int64")
    wanted: np.dtype[Any] = np.dtype("int32")
    if given not in kinds:
        given, wanted = wanted, given
    chosen = [array for array in arrays.values() if array.dtype == given and array.size]
    limits = np.iinfo(wanted)
    if not chosen or any(a.min() < limits.min or a.max() > limits.max for a in chosen):
        return None
    made = {
        key: array.astype(wanted) if array.dtype == given else array
        for key, array in arrays.items()
    }
    return f"{wanted} in place of {given}", made


def _change(
    arrays: InputArrays, batch: frozenset[InputKey], axis: int, factor: float, shuffled: bool
) -> dict[InputKey, Array]:
    source = np.random.default_rng(_SEED)
    padded = {key: _count_before_padding(array) for key, array in arrays.items() if key in batch}
    counts = [count for count in padded.values() if count is not None]
    made = {}
    for key, array in arrays.items():
        if is_mask(array) or any(np.array_equal(array, one) for one in counts):
            made[key] = np.roll(array, 1, 0) if key in batch else array  # a row stays what it is
        elif (count := padded.get(key)) is not None:
            made[key] = np.roll(array, 1, 0)
            if axis > 0:
                inside = made[key][:, : count.min()]
                made[key][:, : count.min()] = _rearrange(inside, 1, source if shuffled else None)
        elif array.dtype.kind in "fc" and (array != array.round()).any():
            made[key] = _move(array, factor, source)
        else:
            along = min(axis, array.ndim - 1)
            made[key] = _rearrange(array, along, source if shuffled else None)
    return made


def _count_before_padding(array: Array) -> Array | None:
    """Return how many whole numbers of each row (B, L) come before its padding; None without any.

    Padding is one number that stands at the end of rows alone, of some longer than of others. Moved inside
    a row it may mean something else: a blank that a loss does not take, an end of the text.
    """
    if array.ndim != 2 or array.dtype.kind not in "iu" or not array.size:
        return None
    for number in np.unique(array[:, -1]):
        is_padding = array == number
        count: Array = array.shape[1] - is_padding.sum(1)
        ends = (is_padding == (np.arange(array.shape[1]) >= count[:, None])).all()
        # a single last number above 0 may be a value that stands nowhere else
        is_plain = number <= 0 or count.min() < array.shape[1] - 1
        if ends and is_plain and 0 < count.min() < count.max():
            return count
    return None


def _move(array: Array, factor: float, source: np.random.Generator) -> Array:
    """Return the floats with their distance from the mean times `factor`, each moved by up to 1%."""
    wide = array.astype(np.result_type(array.dtype, np.float64))
    middle = wide.mean()
    moved = middle + factor * (wide - middle) * (1 + 0.01 * source.uniform(-1, 1, array.shape))
    return np.asarray(moved, array.dtype)


def _rearrange(array: Array, axis: int, source: np.random.Generator | None) -> Array:
    """Return what stands along the axis moved on by one, or in an order that the source draws."""
    if array.ndim == 0:
        return array
    places = np.arange(array.shape[axis])
    order = np.roll(places, 1) if source is None else source.permutation(places)
    if (order == places).all():
        order = np.roll(places, 1)
    return array.take(order, axis)
