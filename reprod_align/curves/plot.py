"""Two training logs drawn: both curves, and their difference beside the noise band."""

import os
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from reprod_align.base.web_page import (
    Axes,
    Figure,
    MaxNLocator,
    data_address,
    drawn,
    rendered,
    write_report,
)
from reprod_align.base.web_page import require_kind as require_kind
from reprod_align.curves.explanation import Explanation
from reprod_align.curves.report import CurveReport, CurveResult
from reprod_align.errors import one_line

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_MOST_CURVES: Final = 12  # in one picture; those that part come first
_POINTS: Final = 2000  # of one curve: more than a picture has columns
_LEAST, _MOST = 1e-20, 1e100  # where a difference of exactly 0 is drawn, and what no axis reaches


def write_plot(
    path: str | os.PathLike[str], report: CurveReport, explanation: Explanation | None = None
) -> None:
    """Write a picture, or a web page with its tables, whole or not at all.

    Raises ReprodError for another kind of file, or if it cannot be written.
    """
    write_report(path, partial(picture, report), partial(page, report, explanation))


def picture(report: CurveReport, kind: str) -> bytes:
    """Return the plot as a file of `kind`, "png" or "svg": a row for each curve."""
    results = _drawn(report.results)
    figure = Figure(figsize=(11, 3.2 * max(1, len(results))), layout="constrained")
    rows = figure.subplots(max(1, len(results)), 2, squeeze=False)
    for axes, result in zip(rows, results, strict=False):
        _draw_values(axes[0], result)
        _draw_difference(axes[1], result)
    return drawn(figure, kind)


def page(report: CurveReport, explanation: Explanation | None = None) -> str:
    """Return the web page as text; it needs no network and runs no script."""
    return rendered(
        _BODY,
        title=f"curves: {report.headline}",
        width="72rem",
        report=report,
        explanation=explanation,
        plot=data_address(picture(report, "svg")),
        drawn=len(_drawn(report.results)),
    )


def _drawn(results: Sequence[CurveResult]) -> list[CurveResult]:
    compared = [result for result in results if len(result.track.steps)]
    return sorted(compared, key=lambda result: result.first_step is None)[:_MOST_CURVES]


def _draw_values(axes: Axes, result: CurveResult) -> None:
    track = result.track
    kept = np.unique(np.linspace(0, len(track.steps) - 1, _POINTS).astype(np.int64))
    steps, dot = track.steps[kept], _dot(track.steps)
    ours, theirs = _drawable(track.expected[kept]), _drawable(track.actual[kept])
    axes.plot(steps, ours, "-", marker=dot, color="#0969da", label="first log")
    axes.plot(steps, theirs, "--", marker=dot, color="#cf222e", label="second log")
    _finish(axes, result, _text(result.name))
    axes.legend(framealpha=0.85, edgecolor="none")


def _dot(steps: Array) -> str:
    """Return the marker of a curve: a line through a single step would not be seen."""
    return "o" if len(steps) == 1 else ""


def _draw_difference(axes: Axes, result: CurveResult) -> None:
    track = result.track
    starts = np.unique(np.linspace(0, len(track.steps), _POINTS + 1).astype(np.int64))[:-1]
    limit = _drawable(np.maximum(np.maximum.reduceat(track.limit, starts), _LEAST))
    gaps = _drawable(np.maximum(track.difference, _LEAST))
    label = "noise band" if track.measured else "fixed band"
    axes.fill_between(track.steps[starts], _LEAST, limit, color="#d0d7de", label=label)
    axes.plot(
        track.steps[starts],
        np.maximum.reduceat(gaps, starts),
        marker=_dot(track.steps),
        color="#1f2328",
        label="|difference|",
    )
    drawn_too = _draw_rounding(axes, result)
    axes.set(yscale="log", ylim=_height(np.concatenate([gaps, drawn_too]), limit))
    _finish(axes, result, "|difference|")
    axes.legend(framealpha=0.85, edgecolor="none")


def _draw_rounding(axes: Axes, result: CurveResult) -> Array:
    """Draw how far the first log is from its float64 run, and where that begins; return it."""
    rounding = result.rounding
    if rounding is None:
        return np.empty(0)
    starts = np.unique(np.linspace(0, len(rounding.steps), _POINTS + 1).astype(np.int64))[:-1]
    gaps = _drawable(np.maximum.reduceat(np.maximum(rounding.gaps, _LEAST), starts))
    label = f"first log's {rounding.precision} - float64"
    axes.plot(rounding.steps[starts], gaps, color="#8250df", linewidth=1, label=label)
    if rounding.onset is not None:
        label = f"rounding grows: step {rounding.onset}"
        axes.axvline(rounding.onset, color="#8250df", linestyle="-.", linewidth=1, label=label)
    return gaps


def _drawable(values: Array) -> Array:
    """Return `values` with holes where an axis could not reach."""
    return np.where(np.abs(values) <= _MOST, values, np.nan)


def _height(gaps: Array, limit: Array) -> tuple[float, float]:
    """Return the ends of the logarithmic axis: what is drawn, with zeros at the lower one."""
    drawn = np.concatenate([gaps, limit])
    above = drawn[np.isfinite(drawn) & (drawn > _LEAST)]
    if not len(above):
        return _LEAST, 1.0
    return float(above.min()) / 10, float(above.max()) * 10


def _finish(axes: Axes, result: CurveResult, label: str) -> None:
    if result.first_step is not None:
        axes.axvline(
            result.first_step, color="#bf8700", linestyle=":", label=f"step {result.first_step}"
        )
    axes.set(xlabel="step", ylabel=label)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _text(name: str) -> str:
    """Return a curve's name as a label: short, and no mathematical markup, whatever it holds."""
    return one_line(name)[:40].replace("$", r"\$")


_BODY: Final = """\
<h1 class="{{ 'passed' if report.passed else 'failed' }}">{{ report.headline }}</h1>
<p>First log: <code>{{ report.reference.source }}</code> ({{ report.reference.kind }}).
Second log: <code>{{ report.other.source }}</code> ({{ report.other.kind }}).
Band: {{ report.rule }}.</p>
<table>
<tr><th>curve</th><th class="number">steps</th><th class="number">largest difference</th>
<th class="number">first step outside</th><th>verdict</th></tr>
{% for result in report.results %}
<tr><td><code>{{ result.name }}</code></td><td class="number">{{ result.track.steps|length }}</td>
<td class="number">{{ '%.1e' % result.largest }}</td>
<td class="number">{{ '' if result.first_step is none else result.first_step }}</td>
<td class="{{ 'passed' if result.verdict == 'agrees' else 'failed' }}">{{ result.verdict }}</td></tr>
{% endfor %}
</table>
{% for result in report.results if result.rounding %}
<p><code>{{ result.name }}</code>: {{ result.rounding.words }}.</p>
{% endfor %}
{% if report.hints %}
<h2>What it points to</h2>
<ul>
{% for hint in report.hints %}
<li>{{ hint }}</li>
{% endfor %}
</ul>
{% endif %}
{% if explanation %}
<h2>Who makes the gap of {{ explanation.curve }} at step {{ explanation.step }}</h2>
<table>
<tr><th>part swapped</th><th class="number">gap left with PyTorch's</th>
<th class="number">gap that Paddle's makes alone</th></tr>
{% for row in explanation.rows %}
<tr><td class="{{ 'failed' if row.part in explanation.guilty }}">{{ row.part }}</td>
<td class="number">{{ '%.1e' % row.left }}</td>
<td class="number{{ ' failed' if row.part in explanation.guilty }}">{{ '%.1e' % row.made }}</td></tr>
{% endfor %}
</table>
<p>{{ explanation.sentence }}.</p>
<ul>
{% for line in explanation.notes %}
<li>{{ line }}</li>
{% endfor %}
</ul>
{% endif %}
<h2>Curves</h2>
{% if drawn %}
<p><img src="{{ plot }}" alt="both curves, and their difference beside the band, by step"></p>
<p>A difference of 0 is drawn at the lower edge; one that is not finite leaves a hole.</p>
{% endif %}
{% if drawn < report.results|length %}
<p>{{ drawn }} of {{ report.results|length }} curves are drawn, those that part first.</p>
{% endif %}
{% for result in report.results if result.verdict != 'agrees' or result.remarks %}
<ul>
{% for line in result.lines() %}
<li>{{ line }}</li>
{% endfor %}
</ul>
{% endfor %}
{% if report.remarks %}
<h2>Remarks</h2>
<ul>
{% for remark in report.remarks %}
<li>{{ remark }}</li>
{% endfor %}
</ul>
{% endif %}
"""
