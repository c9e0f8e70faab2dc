"""Looks for the edit with which a fault is gone: the likeliest candidates first, each tried in memory."""

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from reprod_align.base.progress import tell
from reprod_align.explain.code import Code
from reprod_align.explain.edits import ROWS, Candidate, Site, list_candidates
from reprod_align.mending.bench import Bench, Fault, Outcome, Texts
from reprod_align.mending.scope import Region, Scope, list_sites
from reprod_align.mending.workers import try_in_order

_FIRST = ("setting", "reference", "missing-call")
"""the rows that are tried at every statement before the others are tried at any but the nearest"""
_SECOND = tuple(row for row in ROWS if row not in _FIRST)
_NEAR = 3  # statements
MOST_RUNS = 600  # of the pair, for one fault
MOST_SECONDS = 240.0
_MORE = 120  # runs after an edit that mends a fault and uncovers another: one may mend it alone
_PATIENCE = 20.0  # seconds for one run, at least; the next: times a run of the port as it is
_SLOWER = 20.0


@dataclass(frozen=True)
class Trial:
    """A candidate in a file."""

    file: str
    candidate: Candidate


def find_edit(
    bench: Bench,
    texts: Texts,
    scope: Scope,
    fault: Fault,
    before: Outcome,
    mended: Collection[Fault],
) -> tuple[Trial, Outcome] | None:
    """Return the first edit with which the fault is gone, and what is left then; None if none is found.

    before: the outcome with `texts`. mended: faults that may not come back.
    """
    began = time.monotonic()
    patience = max(_PATIENCE, _SLOWER * bench.seconds)

    def list_texts() -> Iterator[tuple[Trial, Texts]]:
        return islice(_list_different(bench, scope, texts), MOST_RUNS)

    found = try_in_order(
        list_texts, lambda task: (task[0], bench.judge(task[1])), bench.use_one_thread, patience
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


def _list_different(bench: Bench, scope: Scope, texts: Texts) -> Iterator[tuple[Trial, Texts]]:
    """Yield the candidates with the texts that they make, each text once."""
    tried = set[str]()
    for trial in list_trials(bench, scope, texts):
        made = apply(bench, texts, trial)
        if made[trial.file] not in tried:
            tried.add(made[trial.file])
            yield trial, made


def apply(bench: Bench, texts: Texts, trial: Trial) -> dict[str, str]:
    """Return the texts with an edit made."""
    code = Code(bench.text_of(trial.file, texts))
    return {**texts, trial.file: code.splice([trial.candidate.edit])}


def list_trials(bench: Bench, scope: Scope, texts: Texts) -> Iterator[Trial]:
    """Yield the candidates of all regions: everything near the finding's line, then the likeliest afar."""
    known: dict[Region, list[Site]] = {}

    def sites_of(region: Region) -> list[Site]:
        if region not in known:
            code = Code(bench.text_of(region.file, texts))
            known[region] = list_sites(scope, region, code)
        return known[region]

    near = [(region, site) for region in scope.regions[:1] for site in sites_of(region)[:_NEAR]]
    for rows, around in ((_FIRST, True), (_SECOND, True), (_FIRST, False), (_SECOND, False)):
        for region, site in near if around else _list_open(scope.regions, sites_of):
            yield from (Trial(region.file, one) for one in list_candidates(site, rows))


def _list_open(
    regions: Sequence[Region], sites_of: Callable[[Region], list[Site]]
) -> Iterator[tuple[Region, Site]]:
    """Yield the sites of all regions, those last at which the reference says the very same."""
    for settled in (False, True):
        for region in regions:
            for site in sites_of(region):
                if site.is_settled is settled:
                    yield region, site
