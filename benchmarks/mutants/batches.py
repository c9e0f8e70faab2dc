"""Batches that no search saw: other values, other lengths, other masks."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from examples.zoo.pair import Batch

import numpy as np

Change = Callable[[str, np.ndarray, np.random.Generator], np.ndarray]


def vary(batch: Batch, seed: int = 0) -> Iterator[Batch]:
    """Yield three batches: other values; other values and lengths; other values and masks.

    Where all sizes are fixed, as those of images are, another number of rows stands for another
    length; where there is no mask, for another mask.
    """
    ids = [array for array in _arrays(batch) if _is_sequence(array)]
    masks = [name for name, _ in _items(batch) if "mask" in name]
    for number, change in enumerate(
        (_keep, _shorten if ids else _one_row, _pad if masks else _two_rows_more)
    ):
        drawn = np.random.default_rng([seed, number])
        values = _apply(batch, _redraw, drawn)
        yield _apply(values, change, drawn)


def _apply(batch: Batch, change: Change, drawn: np.random.Generator) -> Batch:
    if isinstance(batch, Mapping):
        return {name: change(name, array, drawn) for name, array in batch.items()}
    return tuple(change("", array, drawn) for array in batch)


def _items(batch: Batch) -> list[tuple[str, Any]]:
    return list(batch.items()) if isinstance(batch, Mapping) else [("", it) for it in batch]


def _arrays(batch: Batch) -> list[np.ndarray]:
    return [array for _, array in _items(batch)]


def _is_sequence(array: np.ndarray) -> bool:
    return array.dtype.kind in "iu" and array.ndim > 1


def _redraw(name: str, array: np.ndarray, drawn: np.random.Generator) -> np.ndarray:
    """Draw other values of the kind; a mask, sorted boxes and the last token of a row stay."""
    if "mask" in name or name == "bbox":
        return array
    if array.dtype.kind == "f":
        return drawn.normal(array.mean(), array.std(), array.shape).astype(array.dtype)
    redrawn = drawn.choice(array[..., :-1].reshape(-1), array.shape).astype(array.dtype)
    redrawn[..., -1] = array[..., -1]  # the end: some heads look for it
    return redrawn


def _keep(name: str, array: np.ndarray, drawn: np.random.Generator) -> np.ndarray:
    return array


def _shorten(name: str, array: np.ndarray, drawn: np.random.Generator) -> np.ndarray:
    """Leave out the second and third token."""
    if not _is_sequence(array):
        return array
    return np.delete(array, [1, 2], axis=1) if array.shape[1] > 4 else array


def _one_row(name: str, array: np.ndarray, drawn: np.random.Generator) -> np.ndarray:
    return array[:1]


def _two_rows_more(name: str, array: np.ndarray, drawn: np.random.Generator) -> np.ndarray:
    return np.concatenate([array, array[::-1]])


def _pad(name: str, array: np.ndarray, drawn: np.random.Generator) -> np.ndarray:
    """Hide four places of the first row and one of the others."""
    if "mask" not in name:
        return array
    changed = np.ones_like(array)
    changed[0, ..., -4:] = 0
    changed[1:, ..., -1:] = 0
    return changed
