"""Judges the pairs of the zoo and writes docs/zoo.md.

python -m examples.zoo [WORD ...] [--again] [--minutes N] [--list | --page]

A word is a table (paddlenlp), an architecture (bert) or a pair ("bert Model"). A pair that has its row in
docs/results/zoo.json is left out unless --again is given, so that the command goes on where it stopped.
"""

import argparse
import math
import sys
from collections.abc import Mapping, Sequence

import pipeline  # noqa: F401  (quietens the frameworks)
from examples.zoo.mending import load_faults
from examples.zoo.page import write_pages
from examples.zoo.pair import Pair
from examples.zoo.results import GOOD, Row, load, save
from examples.zoo.running import judge_pairs
from examples.zoo.tables import Table, choose


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
    left = [one for one in chosen if options.again or is_open(*one, rows)]
    for name, row in judge_pairs(left, options.minutes):
        if row.verdict != "not installed":
            rows[name] = row
            save(rows)
            write_pages(rows)
        print(f"{name:<44} {row.verdict:<18} {row.paddle_line} {row.message[:90]}", flush=True)
    return 0


def is_open(table: Table, pair: Pair, rows: Mapping[str, Row]) -> bool:
    """Tell whether a pair has no row, or one that does not yet know what its faults explain."""
    row = rows.get(f"{table.key}: {pair.name}")
    return row is None or (
        row.verdict not in GOOD
        and not row.without
        and any(fault.shows_in(pair.name) for fault in load_faults().get(table.key, ()))
    )


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
    parser.add_argument("--page", action="store_true", help="write the pages from the rows alone")
    return parser.parse_args(words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
