"""Judges pairs one by one, each in a copy of this process."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks.apart import Broken, run_apart
from examples.zoo.environments import find_python
from examples.zoo.inputs import list_files, read_inputs
from examples.zoo.mending import Fault, load_faults, mend
from examples.zoo.pair import Pair
from examples.zoo.results import GOOD, Row, make_broken_row, make_row
from examples.zoo.tables import Table
from reprod_align import align
from reprod_align.commands import parse
from reprod_align.commands.pair import judge_pair

PATIENCE = 600  # seconds for a pair
SIDES = ("torch", "paddle")
PAIR_FILE = Path(__file__).with_name("pair_zoo.py")


def judge_pairs(chosen: Sequence[tuple[Table, Pair]], minutes: float) -> Iterator[tuple[str, Row]]:
    """Yield "table: pair" and its row until all are judged or the minutes have passed."""
    deadline = time.monotonic() + 60 * minutes
    for table, pair in chosen:
        if time.monotonic() > deadline:
            return
        yield f"{table.key}: {pair.name}", judge(table, pair)


def judge(table: Table, pair: Pair) -> Row:
    """Return the row of one pair; a crash and a hang are rows too."""
    try:
        judge_once = (
            _prepare_apart(table, pair) if any(table.environments) else _prepare(table, pair)
        )
    except ImportError as error:
        return Row("not installed", message=str(error))
    row = _catch(lambda: judge_once([]))
    row.inputs = row.inputs or read_inputs(table, pair)
    faults = [one for one in load_faults().get(table.faults_key, ()) if one.shows_in(pair.name)]
    if faults and row.verdict not in GOOD:
        mended = _catch(lambda: judge_once(faults))
        row.without = mended.verdict + (mended.message and f": {mended.place}: {mended.message}")
    return row


def _catch(work: Callable[[], Row]) -> Row:
    try:
        row: Row = run_apart(work, PATIENCE)
        return row
    except Broken as error:
        return Row("cannot be judged", message=str(error))


def _prepare(table: Table, pair: Pair) -> Callable[[Sequence[Fault]], Row]:
    """Import both packages; return what judges the pair without some faults of the port."""
    ours, theirs = table.load_torch(), table.load_paddle()

    def judge_once(faults: Sequence[Fault]) -> Row:
        start = time.monotonic()
        reference = pair.make_torch(ours)
        try:
            model = pair.make_paddle(mend(theirs, faults) if faults else theirs)
        except Exception as error:
            row, files = make_broken_row(error), list_files(reference, error=error)
        else:
            report = align(reference, model, pair.batch())
            row, files = make_row(report, time.monotonic() - start), list_files(reference, model)
        row.inputs = read_inputs(table, pair, files)
        return row

    return judge_once


def _prepare_apart(table: Table, pair: Pair) -> Callable[[Sequence[Fault]], Row]:
    """Find both environments; return what judges the pair with a process for each side."""
    pythons = [find_python(name) for name in table.environments]
    missing = [name for name in table.environments if not find_python(name).exists()]
    if missing:
        raise ImportError(f"first run python -m examples.zoo.environments {missing[0]}")

    def judge_once(faults: Sequence[Fault]) -> Row:
        start = time.monotonic()
        os.environ["ZOO"] = f"{table.key}: {pair.name}"
        os.environ["ZOO_MENDED"] = "1" if faults else ""
        own = [f"--{side}-python={python}" for side, python in zip(SIDES, pythons, strict=True)]
        report = judge_pair(parse(["pair", str(PAIR_FILE), *own]))
        return make_row(report, time.monotonic() - start)

    return judge_once
