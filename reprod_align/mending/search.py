"""Looks for the edit with which a fault is gone: the likeliest candidates first, each tried in memory."""

import time
from collections.abc import Collection, Iterator
from itertools import islice

from reprod_align.base.progress import tell
from reprod_align.explain.scope import Scope
from reprod_align.explain.trials import Texts, Trial, list_texts
from reprod_align.explain.workers import try_in_order
from reprod_align.mending.bench import Bench, Fault, Outcome
from reprod_align.report import Edit

MOST_RUNS = 600  # of the pair, for one fault
MOST_SECONDS = 240.0
_MORE = 120  # runs after an edit that mends a fault and uncovers another: one may mend it alone
_PATIENCE = 20.0  # seconds for one run, at least; the next: times a run of the port as it is
_SLOWER = 20.0


def find_edit(
    bench: Bench,
    texts: Texts,
    scope: Scope,
    fault: Fault,
    before: Outcome,
    mended: Collection[Fault],
    known: Edit | None = None,
) -> tuple[Trial, Outcome] | None:
    """Return the first edit with which the fault is gone, and what is left then; None if none is found.

    before: the outcome with `texts`. mended: faults that may not come back. known: the edit that `align`
    has found, which is tried first.
    """
    began = time.monotonic()
    patience = max(_PATIENCE, _SLOWER * bench.seconds)

    def list_most() -> Iterator[tuple[Trial, Texts]]:
        every = list(islice(list_texts(bench.files, scope, texts), MOST_RUNS))
        return iter(sorted(every, key=lambda one: not _is(one[0], known)))

    found = try_in_order(
        list_most, lambda task: (task[0], bench.judge(task[1])), bench.use_one_thread, patience
    )
    other: tuple[Trial, Outcome] | None = None
    last = MOST_RUNS
    for number, answer in found:
        tell(f"{fault[1]}: edit {number + 1}")
        if answer is not None and answer[1].mends(before, fault, mended):
            return answer  # type: ignore[no-any-return]
        if other is None and answer is not None:
            if answer[1].mends(before, fault, mended, uncovers=True):
                other, last = answer, min(last, number + _MORE)
        if number >= last or time.monotonic() - began > MOST_SECONDS:
            break
    return other


def _is(trial: Trial, edit: Edit | None) -> bool:
    """Tell whether a trial makes this edit, if it says what the reference says.

    A port that is made anew allows more of what the reference says than a live one.
    """
    one = trial.candidate
    place = (trial.file, one.line, one.before, one.after)
    return (
        edit is not None
        and edit.kind == "reference"
        and place == (edit.file, edit.line, edit.before, edit.after)
    )
