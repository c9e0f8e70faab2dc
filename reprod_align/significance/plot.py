"""Accuracies of several seeds drawn: both sides, and their difference beside the margins."""

from functools import partial
from typing import Final

from reprod_align.page import Page, describe_run
from reprod_align.page.plots import Axes, Figure, MaxNLocator, encode_figure
from reprod_align.significance.report import NativeReport

_SIDES: Final = (("PyTorch", "#0969da", -0.08), ("Paddle", "#cf222e", 0.08))


def draw(report: NativeReport, kind: str) -> bytes:
    """Return the plot as a file of `kind`, "png" or "svg"."""
    figure = Figure(figsize=(11, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    _draw_sides(left, report)
    _draw_difference(right, report)
    return encode_figure(figure, kind)


def make_page(report: NativeReport) -> Page:
    """Return what the web page holds."""
    return Page(
        "native mode",
        report.verdict,
        report.verdict == "equivalent",
        "accuracies of both sides, and their difference beside the margins",
        plots=[partial(draw, report)],
        text=report.text().splitlines(),
        facts=describe_run(),
    )


def _draw_sides(axes: Axes, report: NativeReport) -> None:
    for (name, color, shift), side in zip(
        _SIDES, (report.seeds.torch, report.seeds.paddle), strict=True
    ):
        places = [number + shift for number in range(1, len(side.accuracies) + 1)]
        axes.plot(places, side.accuracies, "o", color=color, label=name)
        axes.axhline(side.mean, color=color, linewidth=1)
        if side.interval is not None:
            axes.axhspan(side.interval.low, side.interval.high, color=color, alpha=0.12)
    axes.set(xlabel="run", ylabel="accuracy", title="accuracies, mean and its interval")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend(frameon=False)


def _draw_difference(axes: Axes, report: NativeReport) -> None:
    seeds = report.seeds
    for margin in sorted((one.margin for one in seeds.margins), reverse=True):
        axes.axvspan(-margin, margin, color="#1a7f37", alpha=0.15)
        axes.text(margin, 0.9, f"{margin:g}", ha="right", va="top", fontsize=8)
    if seeds.interval is not None:
        axes.plot([seeds.interval.low, seeds.interval.high], [0.5, 0.5], color="#1f2328")
    axes.plot([seeds.difference], [0.5], "D", color="#1f2328")
    axes.axvline(0, color="#888", linewidth=1, linestyle=":")
    axes.set(ylim=(0, 1), yticks=[], xlabel="Paddle - PyTorch", title="difference and its interval")
