"""Judges pairs one by one, each in a copy of this process."""

import time
from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.apart import Broken, run_apart
from examples.zoo.mending import load_faults, mend
from examples.zoo.pair import Pair
from examples.zoo.results import GOOD, Row, make_broken_row, make_row
from examples.zoo.tables import Table
from reprod_align import align

PATIENCE = 600  # seconds for a pair


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
        packages = table.load_torch(), table.load_paddle()
    except ImportError as error:
        return Row("not installed", message=str(error))

    def work(port: Any) -> Row:
        start = time.monotonic()
        reference = pair.make_torch(packages[0])
        try:
            model = pair.make_paddle(port)
        except Exception as error:
            return make_broken_row(error)
        report = align(reference, model, pair.batch())
        return make_row(report, time.monotonic() - start)

    try:
        row: Row = run_apart(lambda: work(packages[1]), PATIENCE)
    except Broken as error:
        row = Row("cannot be judged", message=str(error))
    faults = [one for one in load_faults().get(table.key, ()) if one.shows_in(pair.name)]
    if faults and row.verdict not in GOOD:
        try:
            mended: Row = run_apart(lambda: work(mend(packages[1], faults)), PATIENCE)
            row.without = mended.verdict + (
                mended.message and f": {mended.place}: {mended.message}"
            )
        except Broken as error:
            row.without = f"cannot be judged: {error}"
    return row
