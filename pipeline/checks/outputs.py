"""Runs the comparisons of a check script, and writes what its options ask for."""

import sys
from argparse import ArgumentParser
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pipeline.run import Run
from reprod_align import Gate
from reprod_align.page import CurvePlot
from reprod_align.page.outputs import add_output_arguments
from reprod_align.report.gates import (
    describe_step,
    judge_gates,
    make_steps_page,
    read_found,
    read_results,
)


def add_options(parser: ArgumentParser) -> None:
    """Add what every check can write beside its log."""
    add_output_arguments(parser, json=False)


def judge(run: Run, *gates: Gate) -> int:
    """Compare each gate's files; return the worst exit code. Writes --report, --markdown and --junit."""
    name, rows = Path(sys.argv[0]).name, [(gate.name, gate.name, "") for gate in gates]
    kept = {gate.name: found_file(run, gate.name) for gate in gates}
    return judge_gates(run.options, gates, kept, partial(collect_page, run, name, rows))


def found_file(run: Run, name: str) -> Path:
    """Return where what `align` found after a failed comparison is kept."""
    return run.output(f"{name}_align").with_suffix(".json")


def collect_page(run: Run, title: str, rows: Sequence[tuple[str, str, str]]) -> Any:
    """Return the page of some comparisons: a row for each, with its name, its gate's and its seconds."""
    files = {name: run.output(f"{name}_diff").with_suffix(".json") for _, name, _ in rows}
    results = read_results(files)
    found = read_found(found_file(run, name) for name in results)
    steps = [describe_step(label, results.get(name), seconds) for label, name, seconds in rows]
    return make_steps_page(title, steps, results, found, _read_curves(run, results))


def _read_curves(run: Run, names: Iterable[str]) -> list[Any]:
    """Return the losses of Step 5, epoch after epoch."""
    from reprod_align import load_record

    if "train_align" not in names:
        return []
    sides = []
    for side in ("torch", "paddle"):
        path = run.output(f"train_align_{side}")
        record = load_record(path) if path.is_file() else {}
        sides.append([float(loss) for key, value in record.items() if key.endswith("_losses")
                      for loss in value.ravel()])  # fmt: skip
    steps = range(min(map(len, sides)))
    losses = [side[: len(steps)] for side in sides]
    return [CurvePlot("loss of Step 5", list(steps), losses[0], losses[1])] if len(steps) else []
