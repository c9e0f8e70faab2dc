"""The part of docs/benchmarks.md and its twin that holds the figures, from what was measured last."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from types import ModuleType

from benchmarks.figures.measure import ROOT
from benchmarks.figures.rows import COUNT, Curve, Figure, Row, describe_target

STORE = ROOT / "docs" / "results" / "benchmarks.json"
PAGES = (ROOT / "docs" / "benchmarks.md", ROOT / "docs" / "benchmarks_cn.md")
_BEGIN, _END = "<!-- figures -->", "<!-- end of figures -->"
_HEAD = (
    ("what", "target", "measured", "ours", "peer", "run"),
    ("项目", "目标", "测得", "本项目", "对比对象", "测量"),
)
_NEVER = ("not yet measured", "尚未测量")
_EXPONENT = ("exponent of growth: ", "增长指数：")
_RUN = ("Run", "测量")

Figures = Mapping[str, Figure]
"""by the row's English name"""


def load_figures(store: Path = STORE) -> dict[str, Figure]:
    """Return what was measured last."""
    if not store.exists():
        return {}
    return {name: Figure(**made) for name, made in json.loads(store.read_text("utf-8")).items()}


def save_figures(figures: Figures, store: Path = STORE) -> None:
    """Keep what was measured."""
    content = {name: asdict(figure) for name, figure in sorted(figures.items())}
    store.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", "utf-8")


def write_pages(groups: Mapping[str, ModuleType], figures: Figures) -> None:
    """Put the tables into both pages."""
    for language, page in enumerate(PAGES):
        text = page.read_text("utf-8")
        before, _, rest = text.partition(_BEGIN)
        after = rest.partition(_END)[2]
        made = make_tables(groups, figures, language)
        page.write_text(f"{before}{_BEGIN}\n\n{made}\n{_END}{after}", "utf-8")


def make_tables(groups: Mapping[str, ModuleType], figures: Figures, language: int) -> str:
    """Return a section for each group; figures of another day keep their date."""
    runs = sorted({(one.date, one.machine) for one in figures.values()}, reverse=True)
    sections = []
    for name, group in groups.items():
        rows = [_make_line(row, figures, runs, language) for row in (*group.ROWS, *group.CURVES)]
        head = _HEAD[language]
        lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}", *rows]
        plots = [
            f"\n![{curve.name[language]}](results/{plot_name(name, number)})"
            for number, curve in enumerate(group.CURVES)
            if curve.name[0] in figures
        ]
        command = f"\n```bash\nmake bench ROWS={name}\n```\n"
        sections.append("\n".join([f"### {group.TITLE[language]}\n", *lines, *plots, command]))
    listed = [
        f"- {_RUN[language]} {number + 1}: {' · '.join(run)}" for number, run in enumerate(runs)
    ]
    return "\n".join([*sections, *listed, ""])


def plot_name(group: str, number: int) -> str:
    """Return the name of a curve's picture."""
    return f"bench_{group}_{number}.svg"


def _make_line(
    row: Row | Curve, figures: Figures, runs: list[tuple[str, str]], language: int
) -> str:
    figure = figures.get(row.name[0])
    start = _EXPONENT[language] if isinstance(row, Curve) else ""
    cells = [start + row.name[language], describe_target(row.target)]
    if figure is None:
        return f"| {' | '.join([*cells, _NEVER[language], '', '', ''])} |"
    run = str(runs.index((figure.date, figure.machine)) + 1)
    unit = row.unit if isinstance(row, Row) else "s"
    unit = "" if unit == COUNT else unit
    alone = isinstance(row, Row) and not row.peer
    peer = "" if alone else f"{figure.peer:.3g} {unit}"
    met = row.target is None or figure.value <= row.target
    shown = f"{figure.value:.3g}" if met else f"**{figure.value:.3g}**"
    return f"| {' | '.join([*cells, shown, f'{figure.ours:.3g} {unit}'.rstrip(), peer.rstrip(), run])} |"


def draw_curve(curve: Curve, exponent: float, seconds: list[float], path: Path) -> None:
    """Draw time against size, both logarithmic, with the fitted power law."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "reprod_align"  # the same file for the same numbers
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(5, 3.2))
    sizes = list(curve.sizes)
    middle = len(sizes) // 2
    fitted = [seconds[middle] * (size / sizes[middle]) ** exponent for size in sizes]
    axes.loglog(sizes, seconds, "o", label="measured")
    axes.loglog(sizes, fitted, "-", label=f"size ** {exponent:.2f}")
    axes.set_xlabel(curve.axis[0])
    axes.set_ylabel("seconds")
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
