"""How many faults `fix` repairs: those planted in the suite's pairs, and those of the zoo's published ports.

    python -m benchmarks.fixing suite OUT.json [--sample N] [--seed N] [--seconds N] [--search N]
    python -m benchmarks.fixing zoo   OUT.json [--sample N] [--seed N] [--seconds N] [--search N]
    python -m benchmarks.fixing table OUT.json

Of the suite's faults those count that stand in the source of a port: see `stands_in_source`.

A sample is drawn by the seed, as evenly over the kinds (suite: families; zoo: tables) as their sizes allow.
Each fault has its own process and a limit of processor time. A case that has its row in OUT.json is left
out, so that the command goes on where it stopped.

Repaired: faithful with the patch, on batches too that no search has seen, and nothing edited but code that
the port runs. An edit of the functions with which the suite builds its pairs and plants its faults would take
the plant out and repair nothing: such lines are not offered. "no source": nothing of the port says the
fault, as where weights are exchanged by name. The time is that of `fix` over that of `align` on the same
pair; `--alone` leaves `align` out.
"""

import argparse
import ast
import json
import random
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from types import FunctionType
from typing import Any, Literal, cast

import pipeline  # noqa: F401  (quietens the frameworks)
from benchmarks.apart import Broken, run_apart
from examples.zoo.mending import load_faults
from examples.zoo.results import GOOD, load
from examples.zoo.tables import BY_KEY
from reprod_align import align
from reprod_align.explain.trials import BUDGETS
from reprod_align.mending.mend import mend_port
from reprod_align.mending.result import Mended
from reprod_align.model.local import LocalSide
from reprod_align.pair import make_pair
from tests.pairs.case import Case
from tests.pairs.families import CASES

Outcome = Literal["repaired", "unproven", "not repaired", "no source", "broken"]
_PLANTING = ("tests/pairs/plant.py", "tests/pairs/case.py", "examples/zoo/", "benchmarks/")
"""files that state and plant faults: an edit there is none of the port"""
_FAMILIES = "tests/pairs/"
"""files that hold ports and plant faults in them"""
_OUTSIDE = {"damage", "change_weights", "port", "eps", "pad"}
"""what the suite calls changes of weights, and what a right constructor is given"""
_MARGIN = 3.0  # times the seconds: `fix` ends of itself


@dataclass
class Row:
    """What became of one fault."""

    name: str
    kind: str
    outcome: Outcome
    edits: list[str]
    align: float = 0.0
    """seconds"""
    fix: float = 0.0
    """likewise"""
    why: str = ""


@dataclass(frozen=True)
class Work:
    """A fault: its pair, made anew each time."""

    name: str
    kind: str
    make: Callable[[], tuple[Any, Callable[[], Any], Any, Mapping[str, Any]]]
    """returns PyTorch's model, what makes the port, the inputs, and what else `align` takes"""


def main(words: Sequence[str]) -> int:
    """Run the command; exit 0 if every fault of the sample has a row."""
    options = parse(words)
    if options.search:
        BUDGETS["fix"] = replace(BUDGETS["fix"], seconds=options.search)
    rows = _load(options.out)
    if options.what != "table":
        every = list_suite() if options.what == "suite" else list_zoo()
        for work in draw(every, options.sample, options.seed):
            if work.name not in rows:
                rows[work.name] = row = judge(work, options.seconds, options.alone)
                options.out.write_text(json.dumps([asdict(it) for it in rows.values()], indent=1))
                print(f"{row.outcome:<13} {row.fix:6.0f} s  {row.name}", flush=True)
    print(*make_table([*rows.values()]), sep="\n")
    return 0


def parse(words: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.fixing", description=__doc__, formatter_class=form
    )
    parser.add_argument("what", choices=("suite", "zoo", "table"))
    parser.add_argument("out", type=Path)
    parser.add_argument("--sample", type=int, default=0, help="how many are drawn; 0: all")
    parser.add_argument("--seed", type=int, default=26)
    parser.add_argument("--seconds", type=float, default=400, help="of a processor, for one fault")
    parser.add_argument(
        "--search", type=float, help="likewise, for one search for an edit; fewer repair less"
    )
    parser.add_argument("--alone", action="store_true", help="leave out the time of `align`")
    return parser.parse_args(words)


def list_suite() -> list[Work]:
    """Return the planted faults of the suite that stand in a port's source."""
    return [Work(name, name.partition("/")[0], lambda case=case: _make_case(case))
            for name, case in CASES.items() if case.culprits and stands_in_source(case)]  # fmt: skip


def stands_in_source(case: Case) -> bool:
    """Tell whether a fault stands in code that the port runs, so that an edit of it can mend the port.

    That is a method that replaces the right one, another class, or a loss or an optimizer of its own. It is
    none where the suite changes a right port once it is made (its weights, a setting, a layer of it), or
    gives a right constructor, loss or optimizer another number.
    """
    given: Mapping[str, Any] = getattr(case.build, "keywords", {})
    if given.keys() & _OUTSIDE or any(map(_holds_numbers, getattr(case.build, "args", ()))):
        return False
    if "change" in given:
        return _replaces_method(given["change"])
    makers = [value for name, value in given.items() if name.startswith("paddle_")]
    return not makers or any(map(_is_written_out, makers))


def _holds_numbers(given: Any) -> bool:
    """Tell whether a class comes with numbers for its constructor, or these by themselves."""
    if isinstance(given, partial):
        return not all(map(callable, (*given.args, *given.keywords.values())))
    values = given.values() if isinstance(given, dict) else ()
    return any(isinstance(one, (bool, int, float, str)) for one in values)


def _replaces_method(change: Any) -> bool:
    """Tell whether one of the changes of a port that are made together replaces a method."""
    held = [cell.cell_contents for cell in getattr(change, "__closure__", None) or ()]
    made = change.__qualname__.partition(".")[0]
    if made == "both":
        return any(_replaces_method(one) for several in held for one in several)
    return made in ("forward", "override")


def _is_written_out(maker: Any) -> bool:
    """Tell whether a function holds nothing but functions: else its numbers come from outside."""
    held = [cell.cell_contents for cell in getattr(maker, "__closure__", None) or ()]
    return isinstance(maker, FunctionType) and all(map(callable, held))


def _make_case(case: Any) -> tuple[Any, Callable[[], Any], Any, Mapping[str, Any]]:
    pair = case.build()
    return pair.torch_model, lambda: case.build().paddle_model, pair.inputs, pair.options


def list_zoo() -> list[Work]:
    """Return the diverging rows of the zoo whose packages this environment has and whose faults are known."""
    return [
        Work(name, key, lambda table=BY_KEY[key], pair=pair: _make_row(table, pair))
        for name, row in load().items()
        for key, _, pair in [name.partition(": ")]
        if row.verdict not in GOOD
        and not any(BY_KEY[key].environments)
        and any(fault.shows_in(pair) for fault in load_faults().get(key, ()))
    ]


def _make_row(table: Any, name: str) -> tuple[Any, Callable[[], Any], Any, Mapping[str, Any]]:
    pair, theirs = table.load_pairs()[name], table.load_paddle()
    reference = pair.make_torch(table.load_torch())
    return reference, lambda: pair.make_paddle(theirs), pair.batch(), {}


def draw(every: Sequence[Work], count: int, seed: int) -> list[Work]:
    """Draw a sample: each kind by its share."""
    if not count or count >= len(every):
        return [*every]
    kinds: dict[str, list[Work]] = {}
    for work in every:
        kinds.setdefault(work.kind, []).append(work)
    source = random.Random(seed)
    ranked = [
        ((number + 0.5) / len(held), work)
        for held in kinds.values()
        for number, work in enumerate(source.sample(held, len(held)))
    ]
    return [work for _, work in sorted(ranked, key=lambda one: one[0])[:count]]


def judge(work: Work, seconds: float, alone: bool = False) -> Row:
    """Return what becomes of a fault; a crash and a hang are rows too. alone: `align` is not timed."""
    try:
        row: Row = run_apart(lambda: _judge(work, alone), _MARGIN * seconds)
    except Broken as error:
        return Row(work.name, work.kind, "broken", [], why=str(error))
    return row


def _judge(work: Work, alone: bool) -> Row:
    reference, make_port, inputs, options = work.make()
    began = time.perf_counter()
    if not alone:
        align(reference, make_port(), inputs, **options)
    middle = time.perf_counter()
    pair = make_pair(reference, make_port(), inputs, **options)
    port = cast(LocalSide, pair.port)
    found = mend_port(pair, lambda: port.with_model(make_port()), allows=is_of_port)
    took = 0.0 if alone else middle - began, time.perf_counter() - middle
    why = "; ".join(str(finding.title) for finding in found.left)[:200]
    edits = [f"[{edit.kind}] {edit}" for edit in found.edits]
    return Row(work.name, work.kind, read_outcome(found), edits, *took, why or found.proof.refuted)


def read_outcome(found: Mended) -> Outcome:
    """Return what a result of `fix` counts as."""
    if not found.passed or not found.edits:
        return "not repaired" if found.has_source else "no source"
    return "repaired" if found.proof.level == "safe" else "unproven"


@lru_cache(maxsize=10_000)
def is_of_port(file: str, line: int, stage: str) -> bool:
    """Tell whether a line stands in code that a layer runs, and in none that states or plants a fault.

    A layer runs its methods, and the steps that a method is made of, `act=lambda x: ...` or `act=step`.
    What makes a loss or an optimizer is the port's, wherever it stands.
    """
    if any(part in file for part in _PLANTING):
        return False
    if _FAMILIES not in file or stage not in ("weights", "forward", "backward"):
        return True
    nodes = [*ast.walk(ast.parse(Path(file).read_text("utf-8")))]
    given = [one.value for one in nodes if isinstance(one, ast.keyword)]
    steps = {*map(id, given), *(one.id for one in given if isinstance(one, ast.Name))}
    return any(
        node.args.args
        and (node.args.args[0].arg == "self" or {id(node), getattr(node, "name", "")} & steps)
        for node in nodes
        if isinstance(node, (ast.FunctionDef, ast.Lambda))
        and node.lineno <= line <= (node.end_lineno or 0)
    )


def make_table(rows: Sequence[Row]) -> list[str]:
    """Return lines: each kind with its counts, all of them, and the median ratio of the times."""
    names: Sequence[Outcome] = (
        "repaired", "unproven", "not repaired", "no source", "broken",
    )  # fmt: skip
    groups = {kind: [row for row in rows if row.kind == kind] for kind in {it.kind for it in rows}}
    lines = [
        f"{'kind':<16}{'faults':>8}" + "".join(f"{name:>14}" for name in names) + f"{'share':>8}"
    ]
    for kind, held in [*sorted(groups.items()), ("all", [*rows])]:
        counts = [sum(row.outcome == name for row in held) for name in names]
        share = f"{counts[0] / max(len(held), 1):.0%}"
        lines.append(
            f"{kind:<16}{len(held):>8}" + "".join(f"{n:>14}" for n in counts) + f"{share:>8}"
        )
    ratios = [row.fix / row.align for row in rows if row.align]
    if ratios:
        lines.append(f"time of fix over that of align: {statistics.median(ratios):.1f}, the median")
    return lines


def _load(path: Path) -> dict[str, Row]:
    held = json.loads(path.read_text("utf-8")) if path.exists() else []
    return {row["name"]: Row(**row) for row in held}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
