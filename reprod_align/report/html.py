"""The report as a web page: one file, which needs no network and runs no script."""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from reprod_align.base.atomic import whole_file
from reprod_align.base.difference import RELATIVE_TOLERANCE
from reprod_align.base.web_page import Figure, MaxNLocator, data_address, drawn, rendered
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
    return rendered(
        _BODY,
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
    return data_address(drawn(figure))


def _height(relative: float) -> float:
    """Return where a difference stands on the logarithmic axis."""
    return _LARGEST if math.isnan(relative) else min(max(relative, _LEAST), _LARGEST)


_BODY: Final = """\
<h1>{{ name }}: <span class="{{ 'passed' if report.passed else 'failed' }}">{{ report.verdict }}</span></h1>
<h2>Summary</h2>
<table>
<tr><th>stage</th><th class="number">checks</th><th class="number">different</th>
<th class="number">findings</th><th class="number">largest relative difference</th></tr>
{% for row in rows if row.checks or row.findings %}
<tr><td>{{ row.stage }}</td><td class="number">{{ row.checks }}</td>
<td class="number{{ ' failed' if row.failed }}">{{ row.failed }}</td>
<td class="number{{ ' failed' if row.findings }}">{{ row.findings }}</td>
<td class="number">{{ '' if row.worst is none else '%.1e' % row.worst }}</td></tr>
{% endfor %}
</table>
<h2>Findings</h2>
{% if report.findings %}
<p>The first is where the two models part.</p>
<ol>
{% for finding in report.findings %}
<li><strong>{{ finding.stage }}</strong>: <code>{{ finding.place }}</code>: {{ finding.message }}
(difference {{ '%.3g' % finding.difference }}, tolerance {{ '%.3g' % finding.tolerance }})</li>
{% endfor %}
</ol>
{% else %}
<p>None.</p>
{% endif %}
{% if report.remarks %}
<h2>Remarks</h2>
<ul>
{% for remark in report.remarks %}
<li>{{ remark }}</li>
{% endfor %}
</ul>
{% endif %}
<h2>Module pairs</h2>
<table>
<tr><th>PyTorch</th><th>Paddle</th></tr>
{% for ours, theirs in report.pairs.items() %}
<tr><td><code>{{ ours or "(the model)" }}</code></td><td><code>{{ theirs or "(the model)" }}</code></td></tr>
{% endfor %}
</table>
<h2>Checks</h2>
{% if plot %}
<p><img src="{{ plot }}" alt="relative difference of each check, by its number in the table below"></p>
<p>0 is drawn at the lower edge, inf and nan at the upper one. The tolerance is {{ judge }}.</p>
{% endif %}
<table>
<tr><th class="number">number</th><th>stage</th><th>what</th>
<th class="number">relative difference</th><th>result</th></tr>
{% for check in report.checks %}
<tr><td class="number">{{ loop.index }}</td><td>{{ check.stage }}</td><td>{{ check.what }}</td>
<td class="number">{{ '%.1e' % check.relative }}</td>
<td class="{{ 'passed' if check.passed else 'failed' }}">{{ 'ok' if check.passed else 'DIFFERENT' }}</td></tr>
{% endfor %}
</table>
"""
