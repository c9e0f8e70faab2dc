"""Draws a set of mutants, judges it, and prints the table.

python -m benchmarks.mutants draw   SET [--files development|score] [--count N] [--seed N]
python -m benchmarks.mutants draw   SET --list benchmarks/mutants/sets/score.json
python -m benchmarks.mutants judge  SET RESULTS [--again] [--no-repairs] [--kind KIND]
python -m benchmarks.mutants table  SET RESULTS [--by kind|subject] [--markdown]
python -m benchmarks.mutants show   SET RESULTS [--kind KIND]     development alone
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from statistics import median

from benchmarks.mutants.drawing import draw, restore
from benchmarks.mutants.frozen import Mutant, list_entries, read_mutants, write_json, write_mutant
from benchmarks.mutants.judging import add_repair, judge_mutant, load_result, save_result
from benchmarks.mutants.kinds import KINDS
from benchmarks.mutants.scoring import Row, make_table, score
from benchmarks.mutants.subjects import load_lists

import torch

_PACKAGES = ("paddlenlp", "paddlepaddle", "torch", "transformers")


def main(words: Sequence[str]) -> int:
    """Run one of the commands; exit 0 if it did what it should."""
    options = parse(words)
    torch.set_num_threads(1)
    work = {"draw": draw_set, "judge": judge_set, "table": print_table, "show": show}
    return work[options.command](options)


def parse(words: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.mutants", description=__doc__, formatter_class=form
    )
    parser.add_argument("command", choices=("draw", "judge", "table", "show"))
    parser.add_argument("set", type=Path, help="the folder of the frozen mutants")
    parser.add_argument("results", type=Path, nargs="?", help="the folder of what was said of them")
    parser.add_argument("--files", choices=("development", "score"), default="development")
    parser.add_argument("--list", type=Path, help="make the mutants of this list; none are drawn")
    parser.add_argument("--count", type=int, default=115, help="how many mutants are drawn")
    parser.add_argument("--seed", type=int, default=26)
    parser.add_argument("--kind", choices=list(KINDS), action="append", help="these kinds alone")
    parser.add_argument("--by", choices=("kind", "subject"), default="kind")
    parser.add_argument("--markdown", action="store_true", help="print the table as docs/ has it")
    parser.add_argument("--again", action="store_true", help="judge those too that have a result")
    parser.add_argument("--no-repairs", action="store_true", help="ask `align` alone, not `fix`")
    options = parser.parse_args(words)
    if options.command != "draw" and options.results is None:
        parser.error(f"{options.command}: name the folder of the results after that of the set")
    return options


def draw_set(options: argparse.Namespace) -> int:
    """Draw mutants and write them to disk."""
    import paddlenlp.transformers  # noqa: F401  (before the processes are copied)
    import transformers  # noqa: F401

    if options.set.exists():
        print(f"{options.set} exists: a frozen set is not drawn anew", file=sys.stderr)
        return 2
    made = []
    for mutant, original in _choose(options):
        write_mutant(options.set, mutant, original)
        made.append(mutant)
        print(f"{len(made)} {mutant.kind}", flush=True)
    packages = {name: version(name) for name in _PACKAGES}
    facts = {"files": options.files, "seed": options.seed, "packages": packages}
    write_json(options.set / "set.json", {**facts, "mutants": list_entries(made)})
    return 0


def _choose(options: argparse.Namespace) -> Iterator[tuple[Mutant, str]]:
    """Yield the mutants of a frozen list, or draw new ones."""
    if options.list is None:
        names = load_lists()[options.files]
        kinds = options.kind or list(KINDS)
        yield from draw(names, kinds, options.count, options.seed)
        return
    frozen = json.loads(options.list.read_text("utf-8"))
    options.files, options.seed = frozen["files"], frozen["seed"]
    yield from restore(frozen["mutants"])


def judge_set(options: argparse.Namespace) -> int:
    """Ask about every mutant of a set that has no result yet, and `fix` about those it was not asked for."""
    import paddlenlp.transformers  # noqa: F401  (before the processes are copied)
    import transformers  # noqa: F401

    for number, frozen in enumerate(read_mutants(options.set), 1):
        if options.kind and frozen.mutant.kind not in options.kind:
            continue
        known = None if options.again else load_result(options.results, frozen.mutant.name)
        if known is None or (
            known.outcome == "caught" and not (options.no_repairs or known.fixing)
        ):
            result = known or judge_mutant(frozen)
            if not options.no_repairs:
                add_repair(frozen, result)
            save_result(options.results, result)
            print(f"{number} {result.seconds:.0f} s", flush=True)
    return 0


def print_table(options: argparse.Namespace) -> int:
    """Print what was found, by kind or by file."""
    rows = score_set(options)
    print(*make_table(rows, options.by, options.markdown), sep="\n")
    ratios = [row.ratio for row in rows if row.ratio]
    if ratios:
        print(f"time of fix over that of align: {median(ratios):.1f}, the median")
    return 0 if rows else 1


def score_set(options: argparse.Namespace) -> list[Row]:
    """Return a row for every mutant that has a result."""
    rows = []
    for frozen in read_mutants(options.set):
        result = load_result(options.results, frozen.mutant.name)
        if result is not None:
            rows.append(score(frozen.mutant, result))
    return rows


def show(options: argparse.Namespace) -> int:
    """Print every mutant with what was said of it; refuse to for the files of the score."""
    facts = options.set / "set.json"
    if not facts.is_file() or json.loads(facts.read_text("utf-8"))["files"] != "development":
        print("single mutants are shown of a finished development set alone", file=sys.stderr)
        return 2
    for row in score_set(options):
        if not options.kind or row.kind in options.kind:
            print(row.describe())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
