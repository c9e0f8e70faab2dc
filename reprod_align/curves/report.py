"""The verdict on two training logs, and which part of a step explains their gap: text, JSON, page."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from reprod_align.base.files import to_plain
from reprod_align.base.text import count
from reprod_align.curves.band import AGREES, DIVERGES, NOTHING, SPIKE, UNSTEADY, Rounding, Track
from reprod_align.curves.log import GRAD_NORM, LOSS, LR, CurveLog
from reprod_align.errors import join_lines, one_line
from reprod_align.page import CurvePlot, JUnitCase, Page, RoundingPlot, Table, describe_run

import numpy as np

Part = Literal["data", "forward", "loss", "backward", "optimizer", "schedule"]
PARTS: Final[tuple[Part, ...]] = get_args(Part)
LEFT = 1e-2  # of the gap: with so little left, it is explained
_NAMES: Final = {"forward": "forward pass", "backward": "backward pass"}


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
        found = [f"{one_line(self.name)}: {self._describe_track()}"]
        if place is not None:
            found.append(
                f"step {track.steps[place]}: {track.expected[place]:.10g} and "
                f"{track.actual[place]:.10g}, difference {track.difference[place]:.2e}, "
                f"band {track.limit[place]:.2e}"
            )
        return [*found, *self.hints, *(f"remark: {remark}" for remark in self.remarks)]

    def _describe_track(self) -> str:
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

    def table(self) -> Table:
        """Return a row for each pair of curves."""
        rows = []
        for one in self.results:
            name = one.name if one.name == one.other_name else f"{one.name} = {one.other_name}"
            largest = f"{one.largest:.1e}" if len(one.track.steps) else ""
            first = "" if one.first_step is None else str(one.first_step)
            rows.append((name, str(len(one.track.steps)), largest, first, one.verdict))
        failed = frozenset(at for at, one in enumerate(self.results) if one.verdict != AGREES)
        headers = ("curve", "steps", "largest difference", "first step outside", "verdict")
        return Table("Curves", headers, rows, failed, paste=True)

    def summary(self) -> str:
        """Return the verdict, a table of the curves, and the details."""
        rows = self.table().lines()
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


@dataclass(frozen=True)
class Swapped:
    """One part of a step, done by the other framework."""

    part: Part
    left: float
    """the gap that remains with PyTorch's part in Paddle's steps"""
    made: float
    """the gap that Paddle's part makes in PyTorch's steps"""


@dataclass(frozen=True)
class Replay:
    """One side's steps again, in float64, beside its log."""

    name: str
    apart: float | None
    """largest difference of the loss from the log; None if the log has none of these steps"""

    @property
    def words(self) -> str:
        """How near it comes to its log."""
        if self.apart is None:
            return f"{self.name}'s log has no loss of these steps to hold the replay against"
        return f"{self.name}'s replay is within {self.apart:.1e} of its log"


@dataclass(frozen=True)
class Explanation:
    """Which part of a training step makes the two runs differ."""

    curve: str
    step: int
    """the first outside the band"""
    logged: float
    """the loss's largest gap in the logs over the steps compared; NaN if they have none of them"""
    restored: int
    """each side was replayed from its checkpoint of this step; 0: from the start of training"""
    begin: int
    """parts were swapped from PyTorch's state after this step on"""
    last: int
    replays: tuple[Replay, Replay]
    """of PyTorch's side, and of Paddle's"""
    replayed: float
    """the gap of the two replays, each from its own checkpoint"""
    weights_apart: float
    """of the two checkpoints: largest difference, relative"""
    whole: float
    """the gap of Paddle's steps from PyTorch's state"""
    floor: float
    """a gap of this size is rounding"""
    rows: tuple[Swapped, ...]
    together: float | None
    """the gap that remains with PyTorch's in place of every part at fault"""
    findings: tuple[str, ...]
    remarks: tuple[str, ...]

    @property
    def guilty(self) -> tuple[Part, ...]:
        """The parts that make a gap on their own, the largest first."""
        found = [row for row in self.rows if not row.made <= self.floor]
        found.sort(key=lambda row: math.inf if math.isnan(row.made) else row.made, reverse=True)
        return tuple(row.part for row in found)

    @property
    def sentence(self) -> str:
        """Which parts explain the gap."""
        if self.whole <= self.floor:
            return self._explain_without_fault()
        if not self.guilty:
            better = [row.part for row in self.rows if row.left < self.whole / 2]
            named = f": with PyTorch's {_join_names(better)} it is smaller" if better else ""
            return f"no part alone makes it, they do together{named}"
        together = math.inf if self.together is None else self.together
        one = len(self.guilty) == 1
        place = "its place" if one else "their place"
        verb = "explains it" if one else "explain it together, the largest first"
        if not together <= max(self.floor, LEFT * self.whole):
            verb = "explains a part of it" if one else "explain a part of it"
        left = f"with PyTorch's in {place} {together:.1e} of {self.whole:.1e} is left"
        return f"{_join_names(self.guilty)} {verb}: {left}"

    def _explain_without_fault(self) -> str:
        same = f"over steps {self.begin + 1} to {self.last} the two agree to {self.whole:.0e}"
        if self.replayed <= self.floor:
            return (
                f"no part explains it: replayed in float64, {same}. The gap in the logs is rounding or "
                "chance (--twin measures how much of it there may be, --at explains another step), or "
                "comes from something that is not in the file"
            )
        if self.restored:
            return (
                f"it was made before: from PyTorch's state {same}, and the checkpoints of step "
                f"{self.restored} differ already, their weights by {self.weights_apart:.1e}. Explain "
                "an earlier step, or keep an earlier checkpoint"
            )
        return (
            f"the initial weights explain it: they differ by {self.weights_apart:.1e}, and from "
            f"PyTorch's {same}"
        )

    @property
    def notes(self) -> list[str]:
        """The lines below the sentence: align's findings, remarks, and the measurements."""
        start = f"the checkpoints of step {self.restored}" if self.restored else "the start"
        return [
            *(f"align: {one_line(finding)}" for finding in self.findings),
            *(f"remark: {one_line(remark)}" for remark in self.remarks),
            f"gap: the loss's largest difference over steps {self.begin + 1} to {self.last}, "
            f"replayed in float64 from {start}",
            f"unswapped {self.whole:.1e}; each side from its own state {self.replayed:.1e}; "
            f"in the logs {self.logged:.1e}; {self.floor:.0e} would be rounding",
            *(replay.words for replay in self.replays),
        ]

    def text(self) -> str:
        """Return the table, then the sentences."""
        shown = self.table()
        head = f"{shown.title[0].lower()}{shown.title[1:]}?"
        rows = ["", *shown.lines("<- makes it")] if shown.rows else []
        return join_lines([head, *rows, "", self.sentence, *self.notes])

    def table(self) -> Table:
        """Return a row for each part that was exchanged."""
        rows = [(str(row.part), f"{row.left:.1e}", f"{row.made:.1e}") for row in self.rows]
        guilty = frozenset(at for at, row in enumerate(self.rows) if row.part in self.guilty)
        headers = ("part swapped", "gap left with PyTorch's", "gap that Paddle's makes alone")
        title = f"Which part of a step makes {self.curve} differ at step {self.step}"
        return Table(title, headers, rows, guilty)

    def to_json(self) -> dict[str, Any]:
        """Return the finding as plain values that strict JSON can hold."""
        plain: dict[str, Any] = to_plain(self)
        return plain | {"guilty": list(self.guilty), "sentence": self.sentence}


def _join_names(parts: Sequence[str]) -> str:
    *rest, last = [f"the {_NAMES.get(part, part)}" for part in parts]
    return f"{', '.join(rest)} and {last}" if rest else last


MOST_CURVES: Final = 12  # drawn; those that diverge come first


def make_page(report: CurveReport, explanation: Explanation | None = None) -> Page:
    """Return what the page holds."""
    logs = (report.reference, report.other)
    details = [line for result in report.results for line in _describe(result)]
    drawn, every = choose_curves(report), len(report.results)
    if len(drawn) < every:
        details.insert(0, f"{len(drawn)} of {every} curves are drawn, those that diverge first")
    return Page(
        f"{report.reference.source} | {report.other.source}",
        {0: "agrees", 1: "parts"}.get(report.exit_code, "not compared"),
        report.passed,
        report.headline,
        meaning=[*report.hints, *([] if explanation is None else [explanation.sentence])],
        curves=[draw(result) for result in drawn],
        tables=[report.table(), *([] if explanation is None else [explanation.table()])],
        cases=[
            JUnitCase("curves", one.name, one.verdict == AGREES, "; ".join(one.lines()))
            for one in report.results
        ],
        remarks=[*details, *report.remarks,
                 *([] if explanation is None else explanation.notes)],
        facts=[*((f"log {at}", f"{log.source} ({log.kind})") for at, log in enumerate(logs, 1)),
               ("band", report.rule), *describe_run()],
    )  # fmt: skip


def choose_curves(report: CurveReport) -> list[CurveResult]:
    """Return the curves that are drawn: those that diverge first."""
    compared = [result for result in report.results if len(result.track.steps)]
    return sorted(compared, key=lambda result: result.first_step is None)[:MOST_CURVES]


def draw(result: CurveResult) -> CurvePlot:
    """Return one pair of curves, with its band."""
    track, rounding = result.track, result.rounding
    grown = None
    if rounding is not None:
        label = f"first log's {rounding.precision} - float64"
        gaps = rounding.gaps.tolist()
        grown = RoundingPlot(rounding.steps.tolist(), gaps, label, rounding.onset)
    return CurvePlot(
        result.name,
        track.steps.tolist(),
        track.expected.tolist(),
        track.actual.tolist(),
        track.limit.tolist(),
        result.first_step,
        track.measured,
        grown,
    )


def _describe(result: CurveResult) -> list[str]:
    """Return in words what differs in a curve, and how rounding grows in it."""
    lines = result.lines() if result.verdict != AGREES or result.remarks else []
    return lines if result.rounding is None else [*lines, f"{result.name}: {result.rounding.words}"]
