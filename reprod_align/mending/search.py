"""Looks for the edit with which a fault is gone: the likeliest candidates first, each tried in memory."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

from reprod_align.base.progress import tell
from reprod_align.explain.code import Code
from reprod_align.explain.edits import ROWS, Candidate, Site, list_candidates
from reprod_align.mending.bench import Bench, Fault, Outcome, Texts
from reprod_align.mending.scope import Region, Scope, list_sites

_FIRST = ("setting", "reference", "missing-call")
"""the rows that are tried at every statement before the others are tried at any but the nearest"""
_NEAR = 3  # statements
MOST_RUNS = 600  # of the pair, for one fault
MOST_SECONDS = 240.0


@dataclass(frozen=True)
class Trial:
    """A candidate in a file."""

    file: str
    candidate: Candidate


def find_edit(
    bench: Bench, texts: Texts, scope: Scope, fault: Fault, before: Outcome
) -> tuple[Trial, Outcome] | None:
    """Return the first edit with which the fault is gone, and what is left then; None if none is found."""
    began, tried = time.monotonic(), set[str]()
    for number, trial in enumerate(list_trials(bench, scope, texts)):
        if number >= MOST_RUNS or time.monotonic() - began > MOST_SECONDS:
            return None
        made = apply(bench, texts, trial)
        if made[trial.file] in tried:
            continue
        tried.add(made[trial.file])
        tell(f"{fault[1]}: edit {number + 1}, line {trial.candidate.line}")
        outcome = bench.judge(made)
        if outcome.mends(before, fault):
            return trial, outcome
    return None


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

    near = [site for region in scope.regions[:1] for site in sites_of(region)[:_NEAR]]
    for site in near:
        yield from (Trial(scope.regions[0].file, one) for one in list_candidates(site))
    for rows in (_FIRST, [row for row in ROWS if row not in _FIRST]):
        for region in scope.regions:
            for site in sites_of(region):
                if site not in near:
                    yield from (Trial(region.file, one) for one in list_candidates(site, rows))
