"""The report as a web page: one file, which needs no network and runs no script."""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from reprod_align.base.atomic import whole_file
from reprod_align.base.difference import RELATIVE_TOLERANCE
from reprod_align.base.web_page import Figure, MaxNLocator, data_address, encode_figure, render_page
from reprod_align.report import STAGES, Check, Report

_LEAST: Final = 1e-20  # where a difference of exactly 0 is drawn
_LARGEST: Final = 1e3  # where inf, nan and what is larger are drawn
_COLORS: Final = {True: "#1a7f37", False: "#cf222e"}


@dataclass(frozen=True)
class StageRow:
    """What was compared at one stage."""

    stage: str
    checks: int
    failed: int
    findings: int
    worst: float | None
    """largest relative difference; None where nothing was compared"""


def write_page(path: str | os.PathLike[str], report: Report, title: str) -> None:
    """Write the page, whole or not at all. Raises ReprodError if it cannot be written."""
    text = page(report, title)
    with whole_file(path) as handle:
        handle.write(text.encode())


def page(report: Report, title: str) -> str:
    """Return the page as text."""
    rows = [
        row for row in map(lambda stage: _row(report, stage), STAGES) if row.checks or row.findings
    ]
    return render_page(
        __package__,
        title=f"{title}: {report.verdict}",
        width="62rem",
        name=title,
        report=report,
        rows=rows,
        plot=_plot(report.checks),
        judge=RELATIVE_TOLERANCE,
    )


def _row(report: Report, stage: str) -> StageRow:
    checks = [check for check in report.checks if check.stage == stage]
    return StageRow(
        stage,
        len(checks),
        sum(not check.passed for check in checks),
        sum(finding.stage == stage for finding in report.findings),
        max((check.relative for check in checks), key=_height, default=None),
    )


def _plot(checks: Sequence[Check]) -> str:
    """Return a plot of the checks' relative differences as a data address; "" if there are none.

    Checks go by their numbers, so that nothing of the user's stands in the picture.
    """
    if not checks:
        return ""
    figure = Figure(figsize=(9, 3), layout="constrained")
    axes = figure.subplots()
    for passed, marker in ((True, "o"), (False, "X")):
        numbers = [number for number, c in enumerate(checks, 1)
                   if c.passed == passed and c.noise is None]  # fmt: skip
        heights = [_height(checks[number - 1].relative) for number in numbers]
        label = "passed" if passed else "different"
        axes.scatter(numbers, heights, color=_COLORS[passed], marker=marker, label=label)
    limit = f"tolerance {RELATIVE_TOLERANCE:g}"
    axes.axhline(RELATIVE_TOLERANCE, color="#888", linestyle="--", linewidth=1, label=limit)
    axes.set(
        yscale="log", ylim=(_LEAST / 3, _LARGEST * 3), xlabel="check", ylabel="relative difference"
    )
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    figure.legend(loc="outside right upper", frameon=False)
    return data_address(encode_figure(figure))


def _height(relative: float) -> float:
    """Return where a difference stands on the logarithmic axis."""
    return _LARGEST if math.isnan(relative) else min(max(relative, _LEAST), _LARGEST)
