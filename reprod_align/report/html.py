"""The report as a web page: one file, which needs no network and runs no script."""

import math
import os
from collections.abc import Sequence
from typing import Final

from reprod_align.base.atomic import write_text
from reprod_align.base.difference import RELATIVE_TOLERANCE
from reprod_align.base.web_page import (
    Figure,
    MaxNLocator,
    data_address,
    encode_figure,
    render_page,
)
from reprod_align.report import STAGES, Check, Report, Stage

_LEAST: Final = 1e-20  # where a difference of exactly 0 is drawn
_LARGEST: Final = 1e3  # where inf, nan and what is larger are drawn
_MARKS: Final = (("passed", "#1a7f37", "o"), ("different", "#cf222e", "X"))


def write_page(path: str | os.PathLike[str], report: Report, title: str) -> None:
    """Write the page, whole or not at all. Raises ReprodError if it cannot be written."""
    write_text(path, make_page(report, title))


def make_page(report: Report, title: str) -> str:
    """Return the page as text."""
    rows = [_summarize(report, stage) for stage in STAGES]
    return render_page(
        __package__,
        title=f"{title}: {report.verdict}",
        width="62rem",
        name=title,
        report=report,
        rows=[row for row in rows if row["checks"] or row["findings"]],
        plot=_plot(report.checks),
        tolerance=RELATIVE_TOLERANCE,
    )


def _summarize(report: Report, stage: Stage) -> dict[str, object]:
    """Return what was compared at a stage; `worst` is None where there was nothing to compare."""
    checks = [check for check in report.checks if check.stage == stage]
    return {
        "stage": stage,
        "checks": len(checks),
        "failed": sum(not check.passed for check in checks),
        "findings": sum(finding.stage == stage for finding in report.findings),
        "worst": max((check.relative for check in checks), key=_height, default=None),
    }


def _plot(checks: Sequence[Check]) -> str:
    """Return a plot of the checks' relative differences as a data address; "" if there are none.

    Checks go by their numbers, so that nothing of the user's stands in the picture.
    """
    if not checks:
        return ""
    figure = Figure(figsize=(9, 3), layout="constrained")
    axes = figure.subplots()
    for label, color, marker in _MARKS:
        drawn = {number: _height(check.relative) for number, check in enumerate(checks, 1)
                 if check.passed == (label == "passed") and check.noise is None}  # fmt: skip
        axes.scatter(list(drawn), list(drawn.values()), color=color, marker=marker, label=label)
    limit = f"tolerance {RELATIVE_TOLERANCE:g}"
    axes.axhline(RELATIVE_TOLERANCE, color="#888", linestyle="--", linewidth=1, label=limit)
    heights = _LEAST / 3, _LARGEST * 3
    axes.set(yscale="log", ylim=heights, xlabel="check", ylabel="relative difference")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    figure.legend(loc="outside right upper", frameon=False)
    return data_address(encode_figure(figure))


def _height(relative: float) -> float:
    """Return where a difference stands on the logarithmic axis."""
    return _LARGEST if math.isnan(relative) else min(max(relative, _LEAST), _LARGEST)
