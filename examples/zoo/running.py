"""Judges pairs, here or in workers, each in a copy of the process; what is judged is kept in .zoo/rows."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from benchmarks.apart import Broken, run_apart
from examples.zoo.environments import FOLDER, find_python
from examples.zoo.inputs import list_changes, list_files, read_inputs
from examples.zoo.mending import Fault, load_faults, mend
from examples.zoo.pair import Pair
from examples.zoo.results import GOOD, Row, list_sources, make_broken_row, make_row
from examples.zoo.tables import Table, find_pair
from reprod_align import align
from reprod_align.base.files import from_plain
from reprod_align.base.tasks import HERE, ResultFolder, Workers, digest, digest_judge
from reprod_align.commands import parse
from reprod_align.commands.pair import judge_pair

ROWS = FOLDER / "rows"
PATIENCE = 600  # seconds for a pair
SIDES = ("torch", "paddle")
PAIR_FILE = Path(__file__).with_name("pair_zoo.py")


def judge_pairs(
    chosen: Sequence[tuple[Table, Pair]], minutes: float, workers: Workers = HERE
) -> Iterator[tuple[str, Row]]:
    """Yield "table: pair" and its row until all are judged or the minutes have passed."""
    work = partial(judge_kept, ROWS, time.time() + 60 * minutes)
    with workers.at_work() as run:
        for name, row in run(work, [f"{table.key}: {pair.name}" for table, pair in chosen]):
            if row is not None:
                yield name, row


def judge_kept(folder: Path, deadline: float, name: str) -> Row | None:
    """Return the row of "table: pair" that is kept of the same inputs and the same judge, or judge it.

    None after the deadline, in seconds of the clock.
    """
    table, pair = find_pair(name)
    results, inputs = ResultFolder(folder), read_inputs(table, pair)
    key = digest(digest_judge(), name, repr(sorted(inputs.items())))
    with suppress(
        TypeError, ValueError, KeyError, AttributeError
    ):  # there is none, or it is damaged
        row: Row = from_plain(Row, results.find(key))
        if not list_changes(row.inputs, read_inputs(table, pair, list_sources(row))):
            return row
    if time.time() > deadline:
        return None
    row = judge(table, pair)
    if row.verdict not in ("not installed", "cannot be judged"):
        results.keep(key, row)
    return row


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
