"""Two training logs drawn: both curves, and their difference beside the noise band."""

import os
from base64 import b64encode
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, Final

from reprod_align.atomic import whole_file
from reprod_align.curve_report import CurveReport, CurveResult
from reprod_align.errors import ReprodError, one_line

import numpy as np
import numpy.typing as npt

try:
    from jinja2 import Environment, StrictUndefined
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator
except ModuleNotFoundError as error:
    raise ReprodError(
        f"--report needs {error.name}: python -m pip install jinja2 matplotlib"
    ) from error

Array = npt.NDArray[Any]

_KINDS: Final = (".html", ".png", ".svg")
_MOST_CURVES: Final = 12  # in one picture; those that part come first
_POINTS: Final = 2000  # of one curve: more than a picture has columns
_LEAST, _MOST = 1e-20, 1e100  # where a difference of exactly 0 is drawn, and what no axis reaches


def require_kind(path: str | os.PathLike[str]) -> None:
    """Raise ReprodError unless `path` ends in .html, .png or .svg."""
    if Path(path).suffix.lower() not in _KINDS:
        raise ReprodError(f"--report {path}: the name must end in {', '.join(_KINDS)}")


def write_plot(path: str | os.PathLike[str], report: CurveReport) -> None:
    """Write a picture, or a web page with its table, whole or not at all.

    Raises ReprodError for another kind of file, or if it cannot be written.
    """
    require_kind(path)
    kind = Path(path).suffix.lower()
    data = page(report).encode() if kind == ".html" else picture(report, kind[1:])
    with whole_file(path) as handle:
        handle.write(data)


def picture(report: CurveReport, kind: str) -> bytes:
    """Return the plot as a file of `kind`, "png" or "svg": a row for each curve."""
    results = _drawn(report.results)
    figure = Figure(figsize=(11, 3.2 * max(1, len(results))), layout="constrained")
    rows = figure.subplots(max(1, len(results)), 2, squeeze=False)
    for axes, result in zip(rows, results, strict=False):
        _draw_values(axes[0], result)
        _draw_difference(axes[1], result)
    image = BytesIO()
    figure.savefig(image, format=kind, metadata={"Date": None} if kind == "svg" else None)
    return image.getvalue()


def page(report: CurveReport) -> str:
    """Return the web page as text; it needs no network and runs no script."""
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, finalize=_printable
    )
    image = b64encode(picture(report, "svg")).decode()
    return environment.from_string(_PAGE).render(
        report=report, plot=f"data:image/svg+xml;base64,{image}", drawn=len(_drawn(report.results))
    )


def _printable(value: object) -> object:
    return one_line(value) if isinstance(value, str) else value


def _drawn(results: Sequence[CurveResult]) -> list[CurveResult]:
    compared = [result for result in results if len(result.track.steps)]
    return sorted(compared, key=lambda result: result.first_step is None)[:_MOST_CURVES]


def _draw_values(axes: Axes, result: CurveResult) -> None:
    track = result.track
    kept = np.unique(np.linspace(0, len(track.steps) - 1, _POINTS).astype(np.int64))
    steps, dashed = track.steps[kept], "--"
    axes.plot(steps, _drawable(track.expected[kept]), color="#0969da", label="first log")
    axes.plot(steps, _drawable(track.actual[kept]), dashed, color="#cf222e", label="second log")
    _finish(axes, result, _text(result.name))
    axes.legend(frameon=False)


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
        color="#1f2328",
        label="|difference|",
    )
    axes.set(yscale="log", ylim=_height(gaps, limit))
    _finish(axes, result, "|difference|")
    axes.legend(frameon=False)


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


_PAGE: Final = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
      content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>curves: {{ report.headline }}</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; color: #1f2328; }
body { max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: .5rem 0 1.5rem; }
th, td { border-bottom: 1px solid #d0d7de; padding: .25rem .8rem .25rem 0; }
th, td { text-align: left; vertical-align: top; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
code { font-size: .92em; overflow-wrap: anywhere; }
li { overflow-wrap: anywhere; margin-bottom: .4rem; }
.passed { color: #1a7f37; } .failed { color: #cf222e; font-weight: 600; }
img { max-width: 100%; }
</style>
</head>
<body>
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
{% if report.hints %}
<h2>What it points to</h2>
<ul>
{% for hint in report.hints %}
<li>{{ hint }}</li>
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
</body>
</html>
"""
