"""Rotary embeddings: their base, their first position, their layout, in tables and in what is rotated."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Final

from reprod_align.causes.mismatch import Floats, Mismatch

import numpy as np

_LARGEST = 2_000_000  # elements
_CLOSE = 1e-4  # radians: models keep tables in float32
_ROUNDED = 1e-6  # in a table
_BASES = (1e4, 5e5, 1e6, 1e5, 5e4, 2e4, 1e3, 1e2, 1e7)
_LAYOUTS: Final = ("halves", "pairs")


@dataclass(frozen=True)
class Rotation:
    """Angles position times base^(-2 i / size), as a table holds them or as a rotation has them."""

    layout: str
    base: float
    first: float
    """the first position"""
    step: float = 1.0
    """from one position to the next; -1: turned the other way"""
    what: str = "rotated"
    """cosine or sine, of a table"""

    def describe(self, other: "Rotation") -> str:
        """Say in what this one, Paddle's, differs from the other, PyTorch's."""
        found = []
        if self.what != other.what:
            found.append(f"it holds the {self.what} in Paddle and the {other.what} in PyTorch")
        if self.layout != other.layout and self.layout and other.layout:
            found.append(f"of {self.layout} in Paddle and of {other.layout} in PyTorch")
        if abs(self.base / other.base - 1) > 1e-3:
            found.append(f"of base {self.base:.5g} in Paddle and {other.base:.5g} in PyTorch")
        if abs(self.first - other.first) > 1e-3:
            found.append(
                f"from position {self.first:.5g} in Paddle and {other.first:.5g} in PyTorch"
            )
        if abs(self.step + other.step) < 1e-3:
            found.append("turned the other way in Paddle")
        elif abs(self.step - other.step) > 1e-3:
            found.append(f"by steps of {self.step:.5g} in Paddle and {other.step:.5g} in PyTorch")
        return ", ".join(found)


def explain_rotary(mismatch: Mismatch) -> str:
    """Explain both sides as tables of a rotary embedding, or as one input rotated."""
    expected, actual = mismatch.expected, mismatch.actual
    if expected.size > _LARGEST or expected.ndim < 2 or not mismatch.is_telling:
        return ""
    ours, theirs = _fit_table(expected), _fit_table(actual)
    if ours is not None and theirs is not None:
        return _write("table", theirs.describe(ours))
    for source in mismatch.sources if expected.ndim > 2 else ():
        first = _fit_rotated(source.values, expected)
        second = _fit_rotated(source.values, actual) if first is not None else None
        if first is not None and second is not None:
            return _write(f"embedding of {source.name}", second.describe(first))
    return ""


def _write(what: str, words: str) -> str:
    return f"the rotary {what} is {words}" if words else ""


# ------------------------------------------------------------- tables


def _fit_table(table: Floats) -> Rotation | None:
    """Fit cosines or sines (L, K), further axes being of length 1 or repetitions."""
    rows = _as_table(table)
    if rows is None or np.abs(rows).max() > 1 + 1e-6:
        return None
    size = rows.shape[1]
    for layout, which in _frequencies(rows):
        for what, angle in (("cosine", np.arccos), ("sine", np.arcsin)):
            for known in _list_usual(layout, what):
                if np.abs(_draw_table(known, rows.shape) - rows).max() <= _ROUNDED:
                    return known
            found = _fit_angles(angle(np.clip(rows[:, which], -1, 1)), size, layout, what)
            if found is not None and np.abs(_draw_table(found, rows.shape) - rows).max() <= _CLOSE:
                return found
    return None


def _list_usual(layout: str, what: str) -> Iterator[Rotation]:
    """Yield what most models have: tables kept in float32 tell too little of slow angles to fit them."""
    for base, first in product(_BASES, (0.0, 1.0, 2.0)):
        yield Rotation(layout, base, first, what=what)


def _as_table(table: Floats) -> Floats | None:
    """Return (L, K): the one table that the array holds, perhaps several times over."""
    rows = table.reshape(-1, *table.shape[-2:])
    if table.ndim > 3 and 1 in table.shape[-3:-1]:  # (1, L, 1, K)
        rows = table.squeeze()[None] if table.squeeze().ndim == 2 else rows
    return rows[0] if (rows == rows[:1]).all() and min(rows.shape[1:]) > 1 else None


def _frequencies(rows: Floats) -> Iterator[tuple[str, slice]]:
    """Yield in which columns of (L, K) each frequency stands once."""
    half = rows.shape[1] // 2
    if half and np.array_equal(rows[:, :half], rows[:, half : 2 * half]):
        yield "halves", slice(0, half)
    elif half and np.array_equal(rows[:, ::2], rows[:, 1::2]):
        yield "pairs", slice(0, None, 2)
    else:
        yield "", slice(0, None)


def _draw_table(found: Rotation, shape: tuple[int, ...]) -> Floats:
    count = shape[1] // 2 if found.layout else shape[1]
    powers = found.base ** -(np.arange(count) / count)
    angles = np.outer(found.first + found.step * np.arange(shape[0]), powers)
    if found.layout:
        angles = np.repeat(angles, 2, 1) if found.layout == "pairs" else np.tile(angles, 2)
    return np.cos(angles) if found.what == "cosine" else np.sin(angles)


def _fit_angles(angles: Floats, size: int, layout: str, what: str) -> Rotation | None:
    """Fit base, first position and step to angles (L, frequencies) that are known up to their turns.

    The slow frequencies, whose angles do not turn over, tell.
    """
    count = angles.shape[1]
    if count < 2 or len(angles) < 2:
        return None
    slow = angles[:2, count // 2 :]
    steps = slow[1] - slow[0]
    usable = np.abs(steps) > 1e-12
    if usable.sum() < 2 or (np.sign(steps[usable]) != np.sign(steps[usable][0])).any():
        return None
    at = np.flatnonzero(usable) + count // 2
    slope, shift = np.polyfit(at, np.log(np.abs(steps[usable])), 1)
    base = float(np.exp(-slope * count))
    step = float(np.sign(steps[usable][0]) * np.exp(shift))
    first = float(angles[0, at[0]] / base ** -(at[0] / count))
    first = round(first) if abs(first - round(first)) < 1e-6 else first
    return Rotation(layout, base, first, step, what) if base > 1.01 else None


# ------------------------------------------------------------- what is rotated


def _fit_rotated(x: Floats, made: Floats) -> Rotation | None:
    """Fit `made` as x with its last axis rotated, by angles that follow from one other axis."""
    size = x.shape[-1]
    if size % 2 or x.shape != made.shape:
        return None
    for layout in _LAYOUTS:
        before, after = (_as_complex(it, layout) for it in (x, made))
        if not np.abs(np.abs(before) - np.abs(after)).max() <= 1e-6 * np.abs(after).max():
            continue
        turned = after * before.conj()
        for axis in range(1, x.ndim - 1):
            angles = _find_angles(turned, axis)
            if angles is None:
                continue
            found = _fit_angles(angles, size, layout, "rotated")
            if found is not None and _is_rotated(found, before, after, axis):
                return found
    return None


def _as_complex(x: Floats, layout: str) -> np.ndarray:
    if layout == "pairs":
        return np.asarray(x[..., ::2] + 1j * x[..., 1::2])
    one, other = np.split(x, 2, axis=-1)
    return np.asarray(one + 1j * other)


def _find_angles(turned: np.ndarray, axis: int) -> Floats | None:
    """Return (L, frequencies): the angles, if they are the same along all other axes."""
    moved = np.moveaxis(turned, axis, 0)
    total = moved.reshape(moved.shape[0], -1, moved.shape[-1]).sum(axis=1)
    return np.angle(total) if len(total) > 1 and np.abs(total).min() > 0 else None


def _is_rotated(found: Rotation, before: np.ndarray, after: np.ndarray, axis: int) -> bool:
    count = before.shape[-1]
    powers = found.base ** -(np.arange(count) / count)
    angles = np.outer(found.first + found.step * np.arange(before.shape[axis]), powers)
    shape = [1] * before.ndim
    shape[axis], shape[-1] = angles.shape
    made = before * np.exp(1j * angles.reshape(shape))
    return bool(np.abs(made - after).max() <= _CLOSE * np.abs(after).max())
