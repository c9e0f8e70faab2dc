"""Looks for the edit with which a fault is gone: the likeliest candidates first, each tried in memory."""

import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice

from reprod_align.base.console import tell
from reprod_align.explain.code import Edit as Span
from reprod_align.explain.code import parse_code
from reprod_align.explain.edits import Candidate
from reprod_align.explain.scope import Scope
from reprod_align.explain.trials import BUDGETS, SAID, Texts, Trial, list_texts
from reprod_align.explain.workers import try_in_order
from reprod_align.mending.bench import Bench, Fault, Outcome
from reprod_align.mending.probe import make_probe
from reprod_align.model.side import Inputs
from reprod_align.report import Edit

_MORE = 120  # runs after an edit that mends a fault and uncovers another: one may mend it alone
_MORE_IN_TRAIN = 400
"""runs after an edit with which eval mode agrees and train mode does not: a summand behind a dropout"""


def find_edit(
    bench: Bench,
    texts: Texts,
    scope: Scope,
    fault: Fault,
    before: Outcome,
    mended: Collection[Fault],
    known: Edit | None = None,
    seen: Sequence[Inputs] = (),
) -> tuple[Trial, Outcome] | None:
    """Return the first edit with which the fault is gone, and what is left then; None if none is found.

    before: the outcome with `texts`. mended: faults that may not come back. known: the edit that `align`
    has found, which is tried early. seen: further batches on which the fault must be gone too.
    """
    probe = make_probe(bench, texts, fault)
    budget = BUDGETS["fix"]
    given = None if known is None else _make_trial(bench, texts, known)

    def list_most() -> Iterator[tuple[Trial, Texts]]:
        return islice(_list_with(given, bench, texts, scope), budget.runs)

    def work(task: tuple[Trial, Texts]) -> tuple[Trial, Outcome, float]:
        looks = probe is None or probe.may_mend(task[1])
        outcome = bench.judge(task[1]) if looks else Outcome()
        return task[0], outcome, time.process_time()

    found = try_in_order(list_most, work, bench.use_one_thread, budget.limit_run(bench.seconds))
    first: tuple[Trial, Outcome] | None = None
    other: tuple[Trial, Outcome] | None = None
    last = budget.runs
    for number, answer in found:
        tell(f"{fault[1]}: edit {number + 1}")
        if answer is not None:
            trial, outcome, spent = answer
            if outcome.mends(before, fault, mended) and _holds(bench, texts, trial, fault, seen):
                # train mode was not judged before: what differs there may be this edit's doing
                if outcome.passed or not outcome.agrees_in_eval or before.agrees_in_eval:
                    return trial, outcome
                if first is None:
                    first, last = (trial, outcome), min(last, number + _MORE_IN_TRAIN)
            if other is None and outcome.mends(before, fault, mended, uncovers=True):
                other, last = (trial, outcome), min(last, number + _MORE)
            if spent > budget.seconds:
                break
        if number >= last:
            break
    return first or other


def _list_with(
    known: Trial | None, bench: Bench, texts: Texts, scope: Scope
) -> Iterator[tuple[Trial, Texts]]:
    """Yield the candidates; `known` first if the reference says it, else before all that it does not say.

    A port that is made anew allows more than the live one in which `known` was found.
    """
    rest = list_texts(bench.files, scope, texts)
    for trial, made in rest:
        if known is not None and (known.candidate.kind in SAID or trial.candidate.kind not in SAID):
            yield known, bench.files.apply(texts, known)
            known = None
        yield trial, made
    if known is not None:
        yield known, bench.files.apply(texts, known)


def _holds(bench: Bench, texts: Texts, trial: Trial, fault: Fault, seen: Iterable[Inputs]) -> bool:
    """Tell whether a fault is gone on further batches too: an edit that fits the given one is none."""
    made = bench.files.apply(texts, trial)
    outcomes = (bench.judge(made, inputs) for inputs in seen)
    return all(outcome.ran and fault not in outcome.faults for outcome in outcomes)


def _make_trial(bench: Bench, texts: Texts, edit: Edit) -> Trial:
    """Return the trial of an edit that `align` has found."""
    code = parse_code(bench.files.read(edit.file, texts))
    start = code.offset(edit.line, edit.column)
    span = Span(start, code.offset(edit.last_line, edit.last_column), edit.after)
    return Trial(edit.file, Candidate(edit.kind, span, edit.line, edit.before, edit.after))
