"""Two training logs drawn: both curves, and their difference beside the noise band."""

import os
from pathlib import Path
from typing import Final

from reprod_align.base.files import whole_file
from reprod_align.curves.log import Array
from reprod_align.curves.page import choose_curves
from reprod_align.curves.report import CurveReport, CurveResult
from reprod_align.errors import one_line
from reprod_align.page.plots import (
    POINTS,
    Axes,
    Figure,
    MaxNLocator,
    draw_finite,
    encode_figure,
    find_largest,
    find_starts,
)

import numpy as np

_LEAST: Final = 1e-20  # where a difference of exactly 0 is drawn


def write_picture(path: str | os.PathLike[str], report: CurveReport) -> None:
    """Write the picture that the name asks for, .png or .svg, whole or not at all.

    Raises ReprodError if it cannot be written.
    """
    with whole_file(path) as handle:
        handle.write(draw(report, Path(path).suffix.lower()[1:]))


def draw(report: CurveReport, kind: str) -> bytes:
    """Return the plot as a file of `kind`, "png" or "svg": a row for each curve."""
    results = choose_curves(report)
    figure = Figure(figsize=(11, 3.2 * max(1, len(results))), layout="constrained")
    rows = figure.subplots(max(1, len(results)), 2, squeeze=False)
    for axes, result in zip(rows, results, strict=False):
        _draw_values(axes[0], result)
        _draw_difference(axes[1], result)
    return encode_figure(figure, kind)


def _draw_values(axes: Axes, result: CurveResult) -> None:
    track = result.track
    kept = np.unique(np.linspace(0, len(track.steps) - 1, POINTS).astype(np.int64))
    sides = (
        (track.expected, "-", "#0969da", "first log"),
        (track.actual, "--", "#cf222e", "second log"),
    )
    for values, line, color, label in sides:
        line += _dot(track.steps)
        axes.plot(track.steps[kept], draw_finite(values[kept]), line, color=color, label=label)
    _finish(axes, result, one_line(result.name)[:40].replace("$", r"\$"))  # no mathematical markup


def _dot(steps: Array) -> str:
    """Return the marker of a curve: a line through a single step would not be seen."""
    return "o" if len(steps) == 1 else ""


def _draw_difference(axes: Axes, result: CurveResult) -> None:
    track = result.track
    starts = find_starts(track.steps)
    limit, gaps = find_largest(track.limit, starts), find_largest(track.difference, starts)
    label = "noise band" if track.measured else "fixed band"
    axes.fill_between(track.steps[starts], _LEAST, limit, color="#d0d7de", label=label)
    line, label = f"-{_dot(track.steps)}", "|difference|"
    axes.plot(track.steps[starts], gaps, line, color="#1f2328", label=label)
    rounding = _draw_rounding(axes, result)
    axes.set(yscale="log", ylim=_height(np.concatenate([gaps, rounding, limit])))
    _finish(axes, result, "|difference|")


def _draw_rounding(axes: Axes, result: CurveResult) -> Array:
    """Draw how far the first log is from its float64 run, and where that begins; return it."""
    rounding = result.rounding
    if rounding is None:
        return np.empty(0)
    starts = find_starts(rounding.steps)
    gaps, label = find_largest(rounding.gaps, starts), f"first log's {rounding.precision} - float64"
    axes.plot(rounding.steps[starts], gaps, color="#8250df", linewidth=1, label=label)
    if rounding.onset is not None:
        label = f"rounding grows: step {rounding.onset}"
        axes.axvline(rounding.onset, color="#8250df", linestyle="-.", linewidth=1, label=label)
    return gaps


def _height(values: Array) -> tuple[float, float]:
    """Return the ends of the logarithmic axis: what is drawn, with zeros at the lower one."""
    above = values[np.isfinite(values) & (values > _LEAST)]
    return (float(above.min()) / 10, float(above.max()) * 10) if len(above) else (_LEAST, 1.0)


def _finish(axes: Axes, result: CurveResult, label: str) -> None:
    step = result.first_step
    if step is not None:
        axes.axvline(step, color="#bf8700", linestyle=":", label=f"step {step}")
    axes.set(xlabel="step", ylabel=label)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend(framealpha=0.85, edgecolor="none")
