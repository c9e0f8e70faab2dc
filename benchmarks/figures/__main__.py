"""Measures the figures of some groups, and writes all into docs/benchmarks.md and its twin.

python -m benchmarks.figures                 the quick group alone
python -m benchmarks.figures compare start   some groups; "all" for every one
python -m benchmarks.figures --write-only    the pages from what was measured before
"""

import argparse
import tempfile
from importlib import import_module
from pathlib import Path
from types import ModuleType

from benchmarks.figures.measure import measure_curve, measure_row
from benchmarks.figures.page import (
    STORE,
    draw_curve,
    load_figures,
    plot_name,
    save_figures,
    write_pages,
)
from benchmarks.figures.rows import Figure, Unmeasurable, describe_target

GROUPS = ("start", "compare", "recording", "align", "steps", "padiff", "growth", "convert",
          "workers")  # fmt: skip
"""modules of this package, in the order of the page; the first takes seconds, others minutes"""


def load_groups() -> dict[str, ModuleType]:
    """Return the modules of all groups."""
    return {name: import_module(f"benchmarks.figures.{name}") for name in GROUPS}


def measure_group(name: str, group: ModuleType, text: str) -> None:
    """Measure what holds `text` in its name; each figure is kept as soon as it is there."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        group.prepare(folder)
        for row in (row for row in group.ROWS if text in row.name[0]):
            figure = measure_row(row, folder)
            save_figures(load_figures() | {row.name[0]: figure})
            print(f"{figure.value:8.3g} ({describe_target(row.target)})  {row.name[0]}", flush=True)
        for number, curve in enumerate(group.CURVES):
            if text not in curve.name[0]:
                continue
            figure, seconds = measure_curve(curve, folder)
            save_figures(load_figures() | {curve.name[0]: figure})
            draw_curve(curve, figure.value, seconds, STORE.parent / plot_name(name, number))
            print(
                f"{figure.value:8.3g} ({describe_target(curve.target)})  {curve.name[0]}",
                flush=True,
            )


def main() -> None:
    """Measure, and write the pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("groups", nargs="*", metavar="GROUP[:TEXT]",
                        help=f"all, or some of: {', '.join(GROUPS)}")  # fmt: skip
    parser.add_argument("--write-only", action="store_true", help="measure nothing")
    options = parser.parse_args()
    groups = load_groups()
    chosen = GROUPS if "all" in options.groups else options.groups or GROUPS[:1]
    for word in () if options.write_only else chosen:
        name, _, text = word.partition(":")
        if name not in groups:
            parser.error(f"unknown group {name}; known: {', '.join(GROUPS)}, all")
        try:
            measure_group(name, groups[name], text)
        except Unmeasurable as reason:
            print(f"{name} is not measured: {reason}", flush=True)
    save_figures(keep_known(groups, load_figures()))
    write_pages(groups, load_figures())


def keep_known(groups: dict[str, ModuleType], figures: dict[str, Figure]) -> dict[str, Figure]:
    """Return the figures without those of rows that are gone."""
    names = {row.name[0] for group in groups.values() for row in (*group.ROWS, *group.CURVES)}
    return {name: figure for name, figure in figures.items() if name in names}


if __name__ == "__main__":
    main()
