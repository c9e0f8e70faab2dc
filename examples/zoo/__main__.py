"""Judges the pairs of the zoo and writes docs/zoo.md.

python -m examples.zoo [WORD ...] [--again] [--minutes N] [--jobs N | --cluster ADDRESS] [--list | --page]

A word is a table (paddlenlp), an architecture (bert) or a pair ("bert Model"). A pair is judged if it has no
row in docs/results/zoo.json, or if what its row was made from has changed: a version, the pair's statement,
a file of its models. So the command goes on where it stopped, and a new version judges what it touches.
--again judges all, but for those that this very judge has judged in a run that was stopped: their rows lie
in .zoo/rows, by a digest of the judge and of what they were made from. At the end it says which rows have
become others.
"""

import argparse
import math
import sys
from collections.abc import Mapping, Sequence

import pipeline  # noqa: F401  (quietens the frameworks)
from examples.zoo.environments import find_python
from examples.zoo.inputs import list_changes, read_inputs
from examples.zoo.page import write_pages
from examples.zoo.pair import Pair
from examples.zoo.results import Row, list_sources, load, save
from examples.zoo.running import judge_pairs
from examples.zoo.tables import Table, choose
from reprod_align.base.console import run_command
from reprod_align.base.tasks import Workers
from reprod_align.commands import add_worker_arguments


def main(words: Sequence[str]) -> int:
    """Run the command; 0 unless a word names nothing."""
    options = parse(words)
    chosen = choose(options.words)
    if not chosen:
        print(f"the zoo has no table, architecture or pair {' '.join(options.words)!r}; see --list")
        return 2
    if options.list:
        print(*(f"{table.key}: {pair.name}" for table, pair in chosen), sep="\n")
        return 0
    rows = load()
    if options.page:
        write_pages(rows)
        return 0
    why = {f"{table.key}: {pair.name}": find_reasons(table, pair, rows) for table, pair in chosen}
    left = [one for one in chosen if options.again or why[f"{one[0].key}: {one[1].name}"]]
    print(f"pairs to judge: {len(left)} of {len(chosen)}")
    others = []
    workers = Workers(options.jobs, options.cluster)
    for name, row in judge_pairs(left, options.minutes, workers):
        if row.verdict != "not installed":
            if name in rows and rows[name].told != row.told:
                others.append(
                    f"{name}: {rows[name].verdict} -> {row.verdict} ({'; '.join(why[name])})"
                )
            rows[name] = row
            save(rows)
            write_pages(rows)
        print(f"{name:<44} {row.verdict:<18} {row.paddle_line} {row.message[:90]}", flush=True)
    print(f"rows that have become others: {len(others)}", *others, sep="\n  ")
    return 0


def find_reasons(table: Table, pair: Pair, rows: Mapping[str, Row]) -> list[str]:
    """Return why a pair is to be judged: it has no row, or its row was made from something else."""
    row = rows.get(f"{table.key}: {pair.name}")
    if row is None:
        return ["it has no row"]
    if not all(find_python(name).exists() for name in table.environments):
        return []  # nothing to judge it with
    return list_changes(row.inputs, read_inputs(table, pair, list_sources(row)))


def parse(words: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m examples.zoo", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("words", nargs="*", metavar="WORD")
    parser.add_argument("--again", action="store_true", help="judge pairs that have a row too")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no pair after")
    parser.add_argument("--list", action="store_true", help="print the pairs")
    add_worker_arguments(parser, "pairs")
    parser.add_argument("--page", action="store_true", help="write the pages from the rows alone")
    return parser.parse_args(words)


if __name__ == "__main__":
    sys.exit(run_command("python -m examples.zoo", lambda: main(sys.argv[1:])))
