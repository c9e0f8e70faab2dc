"""Inputs with other values that a model should take as well: floats moved, whole numbers rearranged."""

from typing import Any

from reprod_align.alignment.batches.axes import Arrays, Key, is_mask
from reprod_align.model.trace import Array

import numpy as np

_SEED = 20213


def spread(arrays: Arrays, batch: frozenset[Key], axis: int) -> dict[Key, Array]:
    """Return floats mirrored about their mean, far apart; whole numbers moved on along `axis`."""
    return _change(arrays, batch, axis, -4.0, shuffled=False)


def mirror(arrays: Arrays, batch: frozenset[Key], axis: int) -> dict[Key, Array]:
    """Return floats mirrored about their mean; whole numbers moved on along `axis`."""
    return _change(arrays, batch, axis, -1.0, shuffled=False)


def nudge(arrays: Arrays, batch: frozenset[Key], axis: int) -> dict[Key, Array]:
    """Return floats moved by at most 1% of their size; whole numbers moved on along `axis`."""
    return _change(arrays, batch, axis, 1.0, shuffled=False)


def keep(arrays: Arrays, batch: frozenset[Key], axis: int) -> dict[Key, Array]:
    """Return the inputs as they are."""
    return dict(arrays)


def shuffle(arrays: Arrays, batch: frozenset[Key], axis: int) -> dict[Key, Array]:
    """Return floats nearer to their mean; whole numbers in another order along `axis`."""
    return _change(arrays, batch, axis, 0.3, shuffled=True)


def change_masks(arrays: Arrays) -> dict[Key, Array] | None:
    """Return the inputs with masks that hide something where they hide nothing, and the other way round.

    A mask is called so, holds 0 and 1, and hides the end of the last example then. None without one.
    """
    masks = {key: array for key, array in arrays.items() if _is_named_mask(key, array)}
    made = {key: np.ones_like(array) for key, array in masks.items()}
    for key, array in masks.items():
        if array.all():
            made[key][-1, ..., -((array.shape[-1] + 3) // 4) :] = 0
    return {**arrays, **made} if masks else None


def _is_named_mask(key: Key, array: Array) -> bool:
    named = "mask" in str(key).lower() and array.ndim > 1 and array.size > 0 and array.shape[-1] > 1
    return named and bool(np.isin(array, (0, 1)).all())


def change_integers(arrays: Arrays) -> tuple[str, dict[Key, Array]] | None:
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
    arrays: Arrays, batch: frozenset[Key], axis: int, factor: float, shuffled: bool
) -> dict[Key, Array]:
    source = np.random.default_rng(_SEED)
    made = {}
    for key, array in arrays.items():
        if is_mask(array):  # whole examples change places: each row stays a mask
            made[key] = np.roll(array, 1, 0) if key in batch else array
        elif array.dtype.kind in "fc" and (array != array.round()).any():
            made[key] = _move(array, factor, source)
        else:
            along = min(axis, array.ndim - 1)
            made[key] = _rearrange(array, along, source if shuffled else None)
    return made


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
