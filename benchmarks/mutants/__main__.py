"""Runs the benchmark and prints every first finding, and a table.

python -m benchmarks.mutants [--sample N] [--file NAME ...] [--seed N] [--json OUT]
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.mutants.running import judge_mutants, prepare
from benchmarks.mutants.scoring import Row
from benchmarks.mutants.subjects import SUBJECTS

import paddlenlp.transformers  # noqa: F401  (before the processes are copied)
import torch
import transformers  # noqa: F401

_COLUMNS = ("caught", "module", "line", "right cause", "wrong cause")


def main(words: Sequence[str]) -> int:
    """Judge the mutants; exit 0 if the shares that the project promises are met."""
    options = parse(words)
    torch.set_num_threads(1)
    rows: list[Row] = []
    start = time.perf_counter()
    for name in options.file or SUBJECTS:
        bench = prepare(name, options.sample, options.seed)
        for row in judge_mutants(bench, options.sample):
            rows.append(row)
            if row.counts:
                print(describe(row), flush=True)
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))
    counted = [row for row in rows if row.counts]
    for key in ("file", "kind"):
        print("", *make_table(counted, key), sep="\n")
    left = len(rows) - len(counted)
    print(f"{left} mutants compute the same or raise; {time.perf_counter() - start:.0f} s")
    return 0 if counted and is_enough(counted) else 1


def parse(words: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutants", description=__doc__)
    parser.add_argument("--sample", type=int, default=12, help="mutants a file; 0: all")
    parser.add_argument("--file", nargs="*", choices=list(SUBJECTS), help="these ports alone")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="write every row to this file")
    return parser.parse_args(words)


def describe(row: Row) -> str:
    """Return a mutant and the first finding on it."""
    told = [row.outcome, "module" if row.module else "NO MODULE"]
    told += ["line" if row.line_named else "NO LINE", f"{row.cause} cause"]
    if row.outcome != "caught":
        told = [row.outcome.upper()]
    head = f"{row.file}:{row.line} {row.kind}: {row.before} -> {row.after}  [{', '.join(told)}]"
    return f"{head}\n    {row.place or 'the model'} {row.paddle_line}: {row.message}"


def make_table(rows: Sequence[Row], key: str) -> list[str]:
    """Return lines with counts and percentages for each value of `key`, and for all."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(getattr(row, key), []).append(row)
    lines = [f"{key:<18}{'mutants':>8}" + "".join(f"{name:>16}" for name in _COLUMNS)]
    for name, found in [*sorted(groups.items()), ("all", list(rows))]:
        cells = "".join(f"{count:>9} ({count / len(found):4.0%})" for count in count_hits(found))
        lines.append(f"{name:<18}{len(found):>8}{cells}")
    return lines


def count_hits(rows: Sequence[Row]) -> list[int]:
    """Return how many rows were caught, have the module, the line, a right cause, a wrong cause."""
    return [
        sum(row.outcome == "caught" for row in rows),
        sum(row.module for row in rows),
        sum(row.line_named for row in rows),
        sum(row.cause == "right" for row in rows),
        sum(row.cause == "wrong" for row in rows),
    ]


def is_enough(rows: Sequence[Row]) -> bool:
    """Tell whether module, line and right cause reach 95%, 85% and 75%, and no cause is wrong."""
    caught, module, line, right, wrong = count_hits(rows)
    count = len(rows)
    return module >= 0.95 * count and line >= 0.85 * count and right >= 0.75 * count and not wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
