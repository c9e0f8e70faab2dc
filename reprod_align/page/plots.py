"""The plots of a page, as SVG that takes its colours from the page: light, dark and in print.

Only numbers stand in them; names and legends are the page's, which knows two languages.
"""

import math
import re
from collections.abc import Mapping, Sequence, Sized
from io import BytesIO
from typing import Any, Final

from reprod_align.errors import one_line
from reprod_align.page import CurvePlot, Figures, Layer, Page, RoundingPlot, TensorPicture

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes as Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure as Figure
from matplotlib.ticker import LogLocator, NullLocator
from matplotlib.ticker import MaxNLocator as MaxNLocator
from numpy.typing import NDArray

COLOURS: Final = {
    "ink": "#010203", "muted": "#010204", "torch": "#010205", "paddle": "#010206",
    "bad": "#010207", "band": "#010208", "rounding": "#010209",
}  # fmt: skip
"""a name in the page's style sheet -> what stands for it while a plot is drawn"""
_PRINTED: Final = {
    "ink": "#1f2328", "torch": "#0969da", "paddle": "#cf222e", "bad": "#bf8700", "band": "#d0d7de",
    "rounding": "#8250df",
}  # fmt: skip
"""the same in a picture of its own"""
LEFT, WIDTH = 0.13, 0.84
"""of the axes of the plot by layer, as parts of the picture: the page draws a cursor over it"""
_FEW: Final = 15  # points of a line that are marked
_MARKS: Final = 400  # more stand closer than a picture has columns
_LEAST, _MOST = 1e-20, 1e12  # where 0 is drawn, and inf and nan
_STYLE: Final[Any] = {
    "svg.fonttype": "none", "svg.hashsalt": "", "font.size": 10, "text.color": COLOURS["ink"],
    "axes.edgecolor": COLOURS["muted"], "axes.labelcolor": COLOURS["ink"], "axes.facecolor": "none",
    "xtick.color": COLOURS["muted"], "ytick.color": COLOURS["muted"], "figure.facecolor": "none",
    "xtick.labelcolor": COLOURS["ink"], "ytick.labelcolor": COLOURS["ink"],
    "axes.spines.top": False, "axes.spines.right": False, "savefig.facecolor": "none",
    "axes.grid": True, "grid.color": COLOURS["band"], "grid.linewidth": 0.6,
    "mathtext.default": "regular",
}  # fmt: skip
POINTS: Final = 2000
"""of one curve: more than a picture has columns"""


def draw_layers(layers: Sequence[Layer], limit: float, mark: float | None = None) -> str:
    """Return forward (above) and backward differences by layer, with the noise floor and the limit.

    mark: above it a layer stands out; None: above the limit.
    """
    mark = limit if mark is None else mark
    with rc_context(_STYLE):
        figure = Figure(figsize=(6.2, 3.9))
        above = figure.add_axes((LEFT, 0.56, WIDTH, 0.4))
        below = figure.add_axes((LEFT, 0.1, WIDTH, 0.4))
        _draw_side(above, [layer.forward for layer in layers], limit, mark)
        _draw_side(below, [layer.backward for layer in layers], limit, mark)
        floors = [math.nan if one.floor is None else max(one.floor, 1e-17) for one in layers]
        if any(floor == floor for floor in floors):
            above.plot(range(1, len(layers) + 1), floors, color=COLOURS["muted"], linewidth=1)
        above.tick_params(labelbottom=False)
        return _encode(figure, f"layers{len(layers)}")


def _draw_side(axes: Axes, figures: Sequence[Figures | None], limit: float, mark: float) -> None:
    """Draw one difference a layer; layers that were not compared have no mark."""
    heights = np.array([math.nan if one is None else raise_height(one.relative) for one in figures])
    number = choose_marks(heights) + 1
    heights = heights[number - 1]
    for colour, chosen, size in (("torch", heights <= mark, 2.5), ("bad", heights > mark, 4)):
        if chosen.any():
            style: Any = {"color": COLOURS[colour], "markersize": size, "linestyle": "none"}
            axes.plot(number[chosen], heights[chosen], marker="o", **style)
    axes.axhline(limit, color=COLOURS["bad"], linestyle="--", linewidth=1)
    seen = heights[np.isfinite(heights)]
    lowest = min(1e-17, float(seen.min(initial=1.0)) / 3)
    axes.set(yscale="log", xlim=(0.5, max(len(figures), 1) + 0.5),
             ylim=(max(lowest, _LEAST / 3), max(limit * 30, float(seen.max(initial=0.0)) * 5)))  # fmt: skip
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=8))
    axes.yaxis.set_major_locator(LogLocator(numticks=6))
    axes.yaxis.set_minor_locator(NullLocator())


def choose_marks(heights: Any) -> NDArray[np.int64]:
    """Return which layers get a mark: all, or of each group of many the one that differs most."""
    groups = np.array_split(np.arange(len(heights)), min(len(heights), _MARKS) or 1)
    known = np.where(np.isnan(heights), -1.0, heights)
    return np.array(
        [group[known[group].argmax()] for group in groups if len(group)], dtype=np.int64
    )


def raise_height(relative: float) -> float:
    """Return where a difference stands on the logarithmic axis: 0 at its lower end."""
    return _MOST if math.isnan(relative) else min(max(relative, 1e-17), _MOST)


def draw_heat(picture: TensorPicture) -> str:
    """Return the map of a tensor's difference, by rows and columns."""
    grid = np.array(picture.grid, dtype=np.float64)
    finite = grid[np.isfinite(grid) & (grid > 0)]
    shown = np.where(np.isnan(grid), np.inf, grid)
    with rc_context(_STYLE | {"axes.grid": False}):
        figure = Figure(figsize=(6.2, 3.2), layout="constrained")
        axes = figure.subplots()
        low, high = (float(finite.min()), float(finite.max())) if len(finite) else (1e-17, 1.0)
        low = max(low, high * 1e-12)
        norm = LogNorm(low, high if high > low else low * 10, clip=True)
        rows = picture.shape[-2] if picture.spatial else math.prod(picture.shape[:-1])
        sides = (-0.5, picture.shape[-1] - 0.5 if picture.shape else 0.5, max(rows, 1) - 0.5, -0.5)
        image = axes.imshow(np.maximum(shown, low), norm=norm, aspect="auto", cmap="magma",
                            interpolation="nearest", extent=sides)  # fmt: skip
        bar = figure.colorbar(image, ax=axes)
        bar.solids.set_rasterized(True)  # type: ignore[union-attr]
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(MaxNLocator(integer=True, nbins=6))
        return _encode(figure, "heat")


def draw_histograms(picture: TensorPicture) -> str:
    """Return both sides' values as two outlines over the same bins."""
    with rc_context(_STYLE):
        figure = Figure(figsize=(6.2, 2.6), layout="constrained")
        axes = figure.subplots()
        axes.stairs(picture.expected, picture.edges, color=COLOURS["torch"], linewidth=1.6)
        axes.stairs(
            picture.actual, picture.edges, color=COLOURS["paddle"], linestyle="--", linewidth=1.6
        )
        axes.set_yscale("symlog", linthresh=1)
        axes.set_ylim(bottom=0)
        return _encode(figure, "histograms")


def draw_curve(curve: CurvePlot, number: int = 0) -> str:
    """Return both curves, and below them their difference with its band."""
    with rc_context(_STYLE):
        figure = Figure(figsize=(6.2, 3.9), layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True)
        _draw_values(above, curve, COLOURS)
        _draw_gap(below, curve, COLOURS)
        below.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=8))
        return _encode(figure, f"curve{number}")


def draw_picture(page: Page, kind: str) -> bytes:
    """Return a page's own plots, or its curves, as a file of `kind`, "png" or "svg", with legends."""
    if page.plots:
        return page.plots[0](kind)
    figure = Figure(figsize=(11, 3.2 * max(1, len(page.curves))), layout="constrained")
    rows = figure.subplots(max(1, len(page.curves)), 2, squeeze=False)
    for (left, right), curve in zip(rows, page.curves, strict=False):
        _draw_values(left, curve, _PRINTED)
        _draw_gap(right, curve, _PRINTED)
        name = one_line(curve.name)[:40].replace("$", r"\$")  # no mathematical markup
        for axes, label in ((left, name), (right, "|difference|")):
            axes.set(xlabel="step", ylabel=label)
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
            axes.legend(framealpha=0.85, edgecolor="none")
    return encode_figure(figure, kind)


def _draw_values(axes: Axes, curve: CurvePlot, colours: Mapping[str, str]) -> None:
    """Draw both curves."""
    steps = np.asarray(curve.steps, dtype=np.float64)
    kept = np.unique(np.linspace(0, len(steps) - 1, POINTS).astype(np.int64))
    sides = (
        (curve.expected, "-", "torch", "first log"),
        (curve.actual, "--", "paddle", "second log"),
    )
    for side, line, colour, label in sides:
        values = draw_finite(np.asarray(side, dtype=np.float64)[kept])
        axes.plot(steps[kept], values, line, marker=_choose_marker(steps), markersize=3,
                  color=colours[colour], label=label)  # fmt: skip
    _mark_step(axes, curve, colours)


def _draw_gap(axes: Axes, curve: CurvePlot, colours: Mapping[str, str]) -> None:
    """Draw the difference of both curves, the band, and the first curve's rounding."""
    steps, ours, theirs, band = (
        np.asarray(side, dtype=np.float64)
        for side in (curve.steps, curve.expected, curve.actual, curve.band)
    )
    starts = find_starts(steps)
    with np.errstate(all="ignore"):
        gaps = find_largest(np.abs(theirs - ours), starts)
    seen = [gaps]
    if len(band):
        seen.append(find_largest(band, starts))
        axes.fill_between(steps[starts], _LEAST, seen[-1], color=colours["band"], linewidth=0,
                          label="noise band" if curve.measured else "fixed band")  # fmt: skip
    axes.plot(steps[starts], gaps, color=colours["ink"], linewidth=1.2,
              marker=_choose_marker(starts), markersize=3, label="|difference|")  # fmt: skip
    if curve.rounding is not None:
        seen.append(_draw_rounding(axes, curve.rounding, colours["rounding"]))
    heights = np.concatenate(seen)
    heights = heights[np.isfinite(heights) & (heights > _LEAST)]
    axes.set_yscale("log")
    axes.set_ylim(*((heights.min() / 10, heights.max() * 10) if len(heights) else (_LEAST, 1.0)))
    _mark_step(axes, curve, colours)


def _draw_rounding(axes: Axes, rounding: RoundingPlot, colour: str) -> NDArray[np.float64]:
    """Draw how far the first curve is from its float64 run, and where that begins; return its heights."""
    starts = find_starts(rounding.steps)
    gaps = find_largest(np.asarray(rounding.gaps), starts)
    axes.plot(
        np.asarray(rounding.steps)[starts], gaps, color=colour, linewidth=1, label=rounding.label
    )
    if rounding.onset is not None:
        axes.axvline(rounding.onset, color=colour, linestyle="-.", linewidth=1,
                     label=f"rounding grows: step {rounding.onset}")  # fmt: skip
    return gaps


def _mark_step(axes: Axes, curve: CurvePlot, colours: Mapping[str, str]) -> None:
    if curve.first is not None:
        label = f"step {curve.first}"
        axes.axvline(curve.first, color=colours["bad"], linestyle=":", linewidth=1, label=label)


def _choose_marker(points: Sized) -> str:
    """Return the marker of a line: through few points alone it would hardly be seen."""
    return "o" if len(points) < _FEW else ""


def find_starts(steps: Any) -> Any:
    """Return where each of the drawn points begins."""
    return np.unique(np.linspace(0, len(steps), POINTS + 1).astype(np.int64))[:-1]


def find_largest(values: Any, starts: Any) -> NDArray[np.float64]:
    """Return the largest value of each drawn point; one that is NaN leaves a hole."""
    return draw_finite(np.maximum.reduceat(np.maximum(values, _LEAST), starts))


def draw_finite(values: Any) -> NDArray[np.float64]:
    """Return `values` with holes where an axis could not reach."""
    return np.where(np.abs(values) <= 1e100, values, np.nan)


def encode_figure(figure: Figure, kind: str = "svg") -> bytes:
    """Return the figure as a file of `kind`, "png" or "svg", without the date."""
    image = BytesIO()
    figure.savefig(image, format=kind, metadata={"Date": None} if kind == "svg" else None)
    return image.getvalue()


def _encode(figure: Figure, salt: str) -> str:
    with rc_context({"svg.hashsalt": salt}):
        return adopt_svg(encode_figure(figure), salt)


def adopt_svg(svg: bytes, salt: str) -> str:
    """Return an SVG file as an element of a page, in the page's colours and font.

    salt: tells its ids from those of the page's other pictures.
    """
    text = svg.decode()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.S)
    text = re.sub(r'(\sid="|url\(#|href="#)', rf"\g<1>{salt}-", text)
    text = re.sub(r"(font: (?:\w+ )*[\d.]+px)[^;\"]*", r"\1 system-ui, sans-serif", text)
    for name, colour in COLOURS.items():
        text = text.replace(colour, f"var(--{name})")
    return re.sub(
        r'<svg ([^>]*?)width="[^"]*"', r'<svg aria-hidden="true" \1', text, count=1
    ).replace('height="', 'data-height="', 1)
