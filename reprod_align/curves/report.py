"""The verdict on two training logs, as a value: a result for each pair of curves, text and JSON."""

import math
from dataclasses import dataclass
from typing import Any, Final

from reprod_align.base.files import to_plain
from reprod_align.base.text import count, table
from reprod_align.curves.log import CurveLog
from reprod_align.curves.names import GRAD_NORM, LOSS, LR
from reprod_align.curves.rounding import Rounding
from reprod_align.curves.track import AGREES, DIVERGES, NOTHING, SPIKE, UNSTEADY, Track
from reprod_align.errors import join_lines, one_line

import numpy as np

_HEADERS: Final = ("curve", "steps", "largest difference", "first step outside", "verdict")


@dataclass(frozen=True)
class CurveResult:
    """How one pair of curves compares."""

    name: str
    other_name: str
    quantity: str
    """what both measure, whatever their names: "loss", "lr", "eval_accuracy" """
    logged: tuple[int, int]
    """how many steps each log has"""
    track: Track
    hints: tuple[str, ...]
    remarks: tuple[str, ...]
    shift: int
    """add this to the other's steps and the two agree; 0 if no shift helps"""
    rounding: Rounding | None = None
    """how rounding grows in the reference, where its float64 run is known"""

    @property
    def verdict(self) -> str:
        """One of the words in `track`: "agrees", "spike", "parts", ..."""
        return self.track.behaviour

    @property
    def first_step(self) -> int | None:
        """The first step outside the band; None if there is none."""
        return None if self.track.first is None else int(self.track.steps[self.track.first])

    @property
    def diverged_step(self) -> int | None:
        """The step from which the curves stay apart; None if they do not."""
        place = self.track.sustained
        return None if place is None else int(self.track.steps[place])

    @property
    def largest(self) -> float:
        """The largest difference; NaN if a value is not finite or nothing was compared."""
        gaps = self.track.difference
        return float(gaps.max()) if len(gaps) else math.nan

    def lines(self) -> list[str]:
        """Return the details in words."""
        track, place = self.track, self.track.first
        found = [f"{one_line(self.name)}: {self._behaviour()}"]
        if place is not None:
            found.append(
                f"step {track.steps[place]}: {track.expected[place]:.10g} and "
                f"{track.actual[place]:.10g}, difference {track.difference[place]:.2e}, "
                f"band {track.limit[place]:.2e}"
            )
        return [*found, *self.hints, *(f"remark: {remark}" for remark in self.remarks)]

    def _behaviour(self) -> str:
        track, place = self.track, self.track.first
        if place is None:
            return self.verdict
        if self.verdict == SPIKE:
            back = track.steps[track.back]
            return f"isolated spike at step {self.first_step}, back within the band at step {back}"
        if self.verdict == UNSTEADY:
            share = f"{100 * np.mean(track.outside[place:]):.0f}%"
            return f"outside the band at step {self.first_step}, comes and goes ({share} outside)"
        if self.verdict != DIVERGES:
            few = "too few steps follow to call it a spike or a divergence"
            return f"parts at step {self.first_step}; {few}"
        if self.diverged_step != self.first_step:
            return (
                f"outside at step {self.first_step}, stays outside from step {self.diverged_step}"
            )
        return f"parts at step {self.first_step}"

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain values; inf and nan as strings."""
        track, place = self.track, self.track.first
        columns = {
            "expected": track.expected,
            "actual": track.actual,
            "difference": track.difference,
            "band": track.limit,
        }
        at = {} if place is None else {name: column[place] for name, column in columns.items()}
        plain: dict[str, Any] = to_plain({
            "curve": self.name,
            "other_curve": self.other_name,
            "quantity": self.quantity,
            "steps_compared": len(track.steps),
            "steps_logged": self.logged,
            "largest_difference": self.largest,
            "first_step_outside": self.first_step,
            "parted_from_step": self.diverged_step,
            "at_first_step_outside": at,
            "verdict": self.verdict,
            "agrees_when_shifted_by": self.shift,
            "rounding": None if self.rounding is None else self.rounding.to_json(),
            "hints": self.hints,
            "remarks": self.remarks,
        })  # fmt: skip
        return plain


@dataclass(frozen=True)
class CurveReport:
    """The verdict on two logs: one result per pair of curves, in the reference's order."""

    reference: CurveLog
    other: CurveLog
    results: tuple[CurveResult, ...]
    rule: str
    """what the band is made of, in words"""
    hints: tuple[str, ...]
    remarks: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """True if every pair was compared and stayed within its band."""
        return all(result.verdict == AGREES for result in self.results)

    @property
    def exit_code(self) -> int:
        """0 if the logs agree, 1 if they diverge, 2 if a pair could not be compared."""
        if any(result.first_step is not None for result in self.results):
            return 1
        return 0 if self.passed else 2

    @property
    def first(self) -> CurveResult | None:
        """The curve that leaves its band first; of several, the cause rather than the effect."""
        outside = [result for result in self.results if result.first_step is not None]
        return min(outside, key=lambda result: (result.first_step, _rank(result)), default=None)

    @property
    def headline(self) -> str:
        """The verdict in one line."""
        if self.first is not None:
            name, step = one_line(self.first.name), self.first.first_step
            return f"{name} leaves the noise band at step {step}"
        if self.exit_code == 2:
            names = [one_line(r.name) for r in self.results if r.verdict == NOTHING]
            return f"cannot be compared: no step to judge in {', '.join(names)}"
        return f"the logs agree: {count(len(self.results), 'curve')} within the band"

    def summary(self) -> str:
        """Return the verdict, a table of the curves, and the details."""
        rows = table([_HEADERS, *map(_row, self.results)])
        lines = [f"verdict: {self.headline}", "", *rows, "", f"band: {self.rule}"]
        for result in self.results:
            if result.rounding is not None:
                lines.append(f"{one_line(result.name)}: {result.rounding.words}")
        lines += [f"points to: {hint}" for hint in self.hints]
        for result in self.results:
            if result.verdict != AGREES or result.remarks:
                first, *rest = result.lines()
                lines += ["", first, *(f"  {line}" for line in rest)]
        if self.remarks:
            lines += ["", *(f"remark: {remark}" for remark in self.remarks)]
        return join_lines(lines)

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain values that strict JSON can hold."""
        return {
            "passed": self.passed,
            "exit_code": self.exit_code,
            "verdict": self.headline,
            "first_curve": None if self.first is None else self.first.name,
            "first_step": None if self.first is None else self.first.first_step,
            "band": self.rule,
            "hints": list(self.hints),
            "remarks": list(self.remarks),
            "logs": [
                {"source": log.source, "kind": log.kind} for log in (self.reference, self.other)
            ],
            "curves": [result.to_json() for result in self.results],
        }


def _rank(result: CurveResult) -> int:
    """Order curves that diverge at the same step: the schedule, the forward pass, the rest."""
    order = (LR, LOSS, GRAD_NORM)
    return order.index(result.quantity) if result.quantity in order else len(order)


def _row(result: CurveResult) -> tuple[str, ...]:
    same = result.name == result.other_name
    name = result.name if same else f"{result.name} = {result.other_name}"
    first = "" if result.first_step is None else str(result.first_step)
    largest = f"{result.largest:.1e}" if len(result.track.steps) else ""
    return one_line(name), str(len(result.track.steps)), largest, first, result.verdict
