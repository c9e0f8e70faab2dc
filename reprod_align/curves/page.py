"""Two compared training logs as a web page."""

from typing import Final

from reprod_align.curves.band import AGREES, Rounding
from reprod_align.curves.report import CurveReport, CurveResult, Explanation
from reprod_align.page import Case, CurvePlot, Page, RoundingPlot
from reprod_align.page.environment import describe_run

MOST_CURVES: Final = 12  # drawn; those that diverge come first


def make_page(report: CurveReport, explanation: Explanation | None = None) -> Page:
    """Return what the page holds."""
    logs = (report.reference, report.other)
    details = [line for result in report.results for line in _describe(result)]
    return Page(
        f"{report.reference.source} | {report.other.source}",
        {0: "agrees", 1: "parts"}.get(report.exit_code, "not compared"),
        report.passed,
        report.headline,
        meaning=[*report.hints, *([] if explanation is None else [explanation.sentence])],
        curves=[draw(result) for result in choose_curves(report)],
        tables=[report.table(), *([] if explanation is None else [explanation.table()])],
        cases=[
            Case("curves", one.name, one.verdict == AGREES, "; ".join(one.lines()))
            for one in report.results
        ],
        remarks=[*_note_drawn(report), *details, *report.remarks,
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
    track = result.track
    steps, expected, actual, band = (
        side.tolist() for side in (track.steps, track.expected, track.actual, track.limit)
    )
    return CurvePlot(
        result.name,
        steps,
        expected,
        actual,
        band,
        result.first_step,
        track.measured,
        None if result.rounding is None else _draw_rounding(result.rounding),
    )


def _draw_rounding(rounding: Rounding) -> RoundingPlot:
    label = f"first log's {rounding.precision} - float64"
    return RoundingPlot(rounding.steps.tolist(), rounding.gaps.tolist(), label, rounding.onset)


def _describe(result: CurveResult) -> list[str]:
    """Return in words what differs in a curve, and how rounding grows in it."""
    lines = result.lines() if result.verdict != AGREES or result.remarks else []
    return [
        *lines,
        *([] if result.rounding is None else [f"{result.name}: {result.rounding.words}"]),
    ]


def _note_drawn(report: CurveReport) -> list[str]:
    drawn, every = len(choose_curves(report)), len(report.results)
    return (
        [f"{drawn} of {every} curves are drawn, those that diverge first"] if drawn < every else []
    )
