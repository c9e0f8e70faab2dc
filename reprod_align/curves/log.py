"""Loss and metric curves: what a training log holds, whatever its format."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from reprod_align.errors import ReprodError, one_line

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

LARGEST_STEP: Final = 1 << 53
"""beyond, a step read from a float is not one step any more"""


class CurveError(ReprodError):
    """A log cannot be read as curves, or two logs share nothing that could be compared."""


@dataclass(frozen=True)
class Curve:
    """One quantity over the steps at which it was logged."""

    name: str
    steps: Array
    """(N,) int64, rising"""
    values: Array
    """(N,) float64, not always finite"""

    def shifted(self, by: int) -> "Curve":
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
    def of(cls, values: Mapping[str, Sequence[float]], source: str = "values") -> "CurveLog":
        """Return a log of {name: one value a step}; steps count from 1."""
        points = Points(source)
        for name, column in values.items():
            for step, value in enumerate(column, 1):
                points.add(step, name, value)
        return points.log("values in memory")


class Points:
    """Collects (step, name, value) in the order of a log; the last of each step is the one kept."""

    def __init__(self, source: str) -> None:
        """Start empty; `source` is the log's name in messages."""
        self.source = source
        self.remarks: list[str] = []
        self._columns: dict[str, tuple[list[int], list[float]]] = {}
        self._epochs: tuple[list[int], list[float]] = ([], [])

    def add(self, step: int, name: str, value: float) -> None:
        """Add one value; raises CurveError for a step that no counter of steps can reach."""
        self._require_step(step)
        steps, values = self._columns.setdefault(name, ([], []))
        steps.append(step)
        values.append(float(value))

    def add_epoch(self, step: int, epoch: float) -> None:
        """Note which epoch `step` belongs to; one that no counter can reach is passed over."""
        self._require_step(step)
        if abs(epoch) <= LARGEST_STEP:
            self._epochs[0].append(step)
            self._epochs[1].append(epoch)

    def log(self, kind: str) -> CurveLog:
        """Return what was collected. Raises CurveError if that is nothing."""
        if not self._columns:
            raise CurveError(f"{self.source} ({kind}) holds no number at any step")
        curves, again = {}, []
        for name, (steps, values) in self._columns.items():
            curves[name], twice = _curve(name, steps, values)
            again.append(twice)
        epochs = _curve("epoch", *self._epochs)[0] if self._epochs[0] else None
        self.remarks += _repeat_remark(again)
        return CurveLog(self.source, kind, curves, epochs, tuple(self.remarks))

    def _require_step(self, step: int) -> None:
        if not abs(step) <= LARGEST_STEP:
            raise CurveError(f"{self.source}: {str(step)[:24]} is no step: it is too large")


@dataclass(frozen=True)
class _Repeats:
    """Steps that stand more than once in one column."""

    name: str
    steps: Array
    changed: int


def _curve(name: str, steps: Iterable[int], values: Iterable[float]) -> tuple[Curve, _Repeats]:
    order = np.array(list(steps), dtype=np.int64)
    column = np.array(list(values), dtype=np.float64)
    place = np.argsort(order, kind="stable")
    order, column = order[place], column[place]
    last = np.append(order[1:] != order[:-1], True)
    first = np.append(True, order[1:] != order[:-1])
    repeated = order[last][np.diff(np.append(np.flatnonzero(first), len(order))) > 1]
    kept, begun = column[last], column[first]
    changed = int(np.count_nonzero(~((kept == begun) | (np.isnan(kept) & np.isnan(begun)))))
    return Curve(name, order[last], kept), _Repeats(name, repeated, changed)


def _repeat_remark(again: list[_Repeats]) -> list[str]:
    """Return one remark for all columns: a resumed run repeats its steps in each of them."""
    worst = max(again, key=lambda repeats: len(repeats.steps))
    if not len(worst.steps):
        return []
    changed = max(repeats.changed for repeats in again)
    count, name = len(worst.steps), one_line(worst.name)
    span = f"{worst.steps[0]} to {worst.steps[-1]}" if count > 1 else f"{worst.steps[0]}"
    outcome = f"{changed} of them with another value" if changed else "with the same values"
    return [
        f"{count} step(s) ({span}) of {name} stand more than once, {outcome}: "
        "the last one counts, as after a resume"
    ]
