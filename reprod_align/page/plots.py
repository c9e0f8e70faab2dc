"""The plots of a page, as SVG that takes its colours from the page: light, dark and in print.

Only numbers stand in them; names and legends are the page's, which knows two languages.
"""

import math
import re
from collections.abc import Sequence
from io import BytesIO
from typing import Any, Final

from reprod_align.page.content import CurvePlot, Figures, Layer, TensorPicture

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
    "bad": "#010207", "band": "#010208",
}  # fmt: skip
"""a name in the page's style sheet -> what stands for it while a plot is drawn"""
LEFT, WIDTH = 0.13, 0.84
"""of the axes of the plot by layer, as parts of the picture: the page draws a cursor over it"""
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
    steps = np.asarray(curve.steps, dtype=np.float64)
    sides = [np.asarray(side, dtype=np.float64) for side in (curve.expected, curve.actual)]
    with rc_context(_STYLE):
        figure = Figure(figsize=(6.2, 3.9), layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True)
        marker = "o" if len(steps) < 15 else ""
        kept = np.unique(np.linspace(0, len(steps) - 1, POINTS).astype(np.int64))
        for values, colour, line in zip(sides, ("torch", "paddle"), ("-", "--"), strict=True):
            above.plot(steps[kept], draw_finite(values[kept]), line, marker=marker, markersize=3,
                       color=COLOURS[colour])  # fmt: skip
        _draw_gap(below, curve, steps, sides)
        if curve.first is not None:
            for axes in (above, below):
                axes.axvline(curve.first, color=COLOURS["bad"], linestyle=":", linewidth=1)
        below.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=8))
        return _encode(figure, f"curve{number}")


def _draw_gap(axes: Axes, curve: CurvePlot, steps: Any, sides: Sequence[Any]) -> None:
    with np.errstate(all="ignore"):
        gaps = np.abs(sides[1] - sides[0])
    starts = find_starts(steps)
    gaps = find_largest(gaps, starts)
    if len(curve.band):
        band = find_largest(np.asarray(curve.band, dtype=np.float64), starts)
        axes.fill_between(steps[starts], _LEAST, band, color=COLOURS["band"], linewidth=0)
    axes.plot(steps[starts], gaps, color=COLOURS["ink"], linewidth=1.2,
              marker="o" if len(starts) < 15 else "", markersize=3)  # fmt: skip
    seen = np.concatenate([gaps, band if len(curve.band) else gaps])
    seen = seen[np.isfinite(seen) & (seen > _LEAST)]
    axes.set_yscale("log")
    axes.set_ylim(*((seen.min() / 10, seen.max() * 10) if len(seen) else (1e-20, 1.0)))


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
