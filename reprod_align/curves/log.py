"""Loss and metric curves: what a training log holds, whatever its format."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from reprod_align.base.blocks import Array
from reprod_align.base.text import count
from reprod_align.errors import ReprodError, one_line

import numpy as np

LARGEST_STEP: Final = 1 << 53
"""beyond it, a float no longer tells two steps apart"""

_MOST_CURVES: Final = 20_000  # a norm for each weight of a large model; hundreds of bytes each

_MOST_DIGITS: Final = 300  # a float holds no more; such a step is too large anyway


def read_count(digits: str) -> int:
    """Return a natural number; of one with hundreds of digits another that is too large for a step."""
    return int(digits[:_MOST_DIGITS])


class CurveError(ReprodError):
    """A log cannot be read as curves, or two logs have nothing in common."""


@dataclass(frozen=True)
class Curve:
    """One quantity over the steps at which it was logged."""

    name: str
    steps: Array
    """(N,) int64, rising"""
    values: Array
    """(N,) float64; NaN and inf as logged"""

    def shift(self, by: int) -> "Curve":
        """Return the curve with `by` added to each step."""
        return replace(self, steps=self.steps + by)


@dataclass(frozen=True)
class CurveLog:
    """The curves of one training run, in the order in which they first appear."""

    source: str
    kind: str
    """the format it was read from, in words"""
    curves: Mapping[str, Curve]
    epochs: Curve | None = None
    """the epoch at each step where the log gives one; whole numbers, or fractions of an epoch"""
    remarks: tuple[str, ...] = ()

    @classmethod
    def from_values(
        cls, values: Mapping[str, Sequence[float]], source: str = "values"
    ) -> "CurveLog":
        """Return a log of {name: one value a step}; steps count from 1."""
        points = Points(source)
        for name, column in values.items():
            for step, value in enumerate(column, 1):
                points.add(step, name, value)
        return points.build_log("values in memory")


def take_common_steps(ours: Curve, theirs: Curve) -> tuple[Array, Array, Array]:
    """Return the steps that both curves have, (N,), and the values of both there, (N,) each."""
    steps, mine, others = np.intersect1d(
        ours.steps, theirs.steps, assume_unique=True, return_indices=True
    )
    return steps, ours.values[mine], theirs.values[others]


class Points:
    """Collects (step, name, value) in a log's order; of a repeated step the last value is kept."""

    def __init__(self, source: str) -> None:
        """Start empty; `source` is the log's name in messages."""
        self.source = source
        self.remarks: list[str] = []
        self._columns: dict[str, tuple[list[int], list[float]]] = {}
        self._epochs: tuple[list[int], list[float]] = ([], [])

    def add(self, step: int, name: str, value: float) -> None:
        """Add one value; raises CurveError for a step too large to be counted, or for too many names."""
        self._require_step(step)
        if name not in self._columns and len(self._columns) == _MOST_CURVES:
            raise CurveError(f"{self.source} has more than {_MOST_CURVES:,} curves")
        steps, values = self._columns.setdefault(name, ([], []))
        steps.append(step)
        values.append(float(value))

    def add_epoch(self, step: int, epoch: float) -> None:
        """Note which epoch `step` belongs to; an epoch too large to be counted is passed over."""
        self._require_step(step)
        if abs(epoch) <= LARGEST_STEP:
            self._epochs[0].append(step)
            self._epochs[1].append(epoch)

    def build_log(self, kind: str) -> CurveLog:
        """Return the log of all values added. Raises CurveError if there are none."""
        if not self._columns:
            raise CurveError(f"{self.source} ({kind}) holds no numbers")
        curves, repeats = {}, []
        for name, (steps, values) in self._columns.items():
            curves[name], repeated, changed = _build_curve(name, steps, values)
            repeats.append((name, repeated, changed))
        epochs = _build_curve("epoch", *self._epochs)[0] if self._epochs[0] else None
        remarks = (*self.remarks, *_describe_repeats(repeats))
        return CurveLog(self.source, kind, curves, epochs, remarks)

    def _require_step(self, step: int) -> None:
        if not abs(step) <= LARGEST_STEP:
            raise CurveError(f"{self.source}: step {str(step)[:24]} is too large")


def _build_curve(name: str, steps: list[int], values: list[float]) -> tuple[Curve, Array, int]:
    """Return the curve, its repeated steps (R,), and how many of them changed their value."""
    order = np.argsort(steps, kind="stable")
    column = np.array(values, dtype=np.float64)[order]
    rising, first, counts = np.unique(
        np.array(steps, dtype=np.int64)[order], return_index=True, return_counts=True
    )
    begun, kept = column[first], column[first + counts - 1]
    same = (kept == begun) | (np.isnan(kept) & np.isnan(begun))
    return Curve(name, rising, kept), rising[counts > 1], int(np.count_nonzero(~same))


def _describe_repeats(repeats: list[tuple[str, Array, int]]) -> list[str]:
    """Return one remark for all columns: a resumed run repeats its steps in each of them."""
    name, steps, _ = max(repeats, key=lambda one: len(one[1]))
    if not len(steps):
        return []
    changed = max(changed for _, _, changed in repeats)
    span = f"{steps[0]} to {steps[-1]}" if len(steps) > 1 else f"{steps[0]}"
    outcome = f"{changed} of them with another value" if changed else "with the same values"
    return [
        f"logged more than once: {count(len(steps), 'step')} of {one_line(name)} ({span}), {outcome}; "
        "the last one counts, as after a resume"
    ]
