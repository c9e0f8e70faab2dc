"""The edits that are tried for a finding, the likeliest first, and the texts that they make."""

import ast
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Final, Literal

from reprod_align.explain.code import Edit, dotted, parse_code
from reprod_align.explain.donor import find_words
from reprod_align.explain.edits import Candidate, Site, list_candidates
from reprod_align.explain.executed import MODULE
from reprod_align.explain.scope import Region, Scope, list_sites
from reprod_align.explain.workers import try_in_order
from reprod_align.report import Suggestion

Texts = Mapping[str, str]
"""file -> its text"""
SAID = (
    "tie", "setting", "stopped-gradient", "gradient-not-stopped", "reference", "definition",
    "foreign-call",
)  # fmt: skip
"""the rows that say what the reference says: of 73 mutants, 9 in 10 edits that mend are theirs"""
_LACKING = ("missing-call", "missing-statement")
_HANDED = ("mask", "repeat", "unpacking", "stock-dropout", "switch")
"""what is handed on at a place may decide what differs at another one"""
_OF_MASKS = ("mask", "order", "number", "comparison")
"""how a mask is wrong in itself"""
_FEW = ("comparison", "statement-order", "field", "operator", "function", "order", "number")
"""rows of few candidates for a statement: they are tried before those of many"""
_MANY = (
    "table",
    "surplus-statement",
    "surplus",
    "argument",
    "elsewhere",
    "name",
    "missing-summand",
)
# "form" is tried where the port raises alone: elsewhere another shape hides what differs
# a variable that is never read says more than the many candidates of the last rows
_BEFORE = (*_HANDED, "unread", *_FEW, "condition")
_REST = (*_BEFORE, *_MANY)
_TURNED = ("mask-sense",)
"""a mask turned round may make up for what is wrong beside it, so it comes after that"""
_NEAR = 4  # statements
_FURTHER = 60  # runs, once an edit mends a part: its like at the statement that makes the value follows soon


@dataclass(frozen=True)
class Budget:
    """What one search for an edit may take."""

    runs: int
    """of the port"""
    seconds: float
    """of a processor"""
    patience: float
    """seconds for one run, at least"""
    slower: float = 20.0
    """times a run of the port as it is"""

    def limit_run(self, usual: float) -> float:
        """Return the seconds that one run may take. usual: those of the port as it is."""
        return max(self.patience, self.slower * usual)


@dataclass
class TrialSearch:
    """Searches for edits under one budget, and what they have taken so far."""

    budget: Budget
    runs: int = 0
    without_answer: int = 0
    """those whose copy of this process ended, or took too long"""
    seconds: float = 0.0

    @property
    def is_spent(self) -> bool:
        """Whether nothing is left."""
        return self.runs >= self.budget.runs or self.seconds >= self.budget.seconds

    @property
    def is_disabled(self) -> bool:
        """Whether edits were tried, and no copy of this process lived to answer."""
        return 0 < self.runs == self.without_answer

    def find_first(
        self,
        trials: Callable[[], Iterable["Made"]],
        mends: Callable[["Made"], float],
        prepare: Callable[[], None],
        usual: float,
    ) -> "Made | None":
        """Return the first trial that mends all; else the first that mends; None if none does in the budget.

        mends: 1, or True, if nothing is left of what differs there; 0 if the fault is not gone; between
        them if it is, and something else there is left. trials, prepare: as `try_in_order` takes them.
        usual: seconds that the port as it is takes.
        """
        most, patience = self.budget.runs - self.runs, self.budget.limit_run(usual)

        def work(made: Made) -> tuple[float, float]:
            began = time.process_time()
            return float(mends(made)), time.process_time() - began

        answers = try_in_order(lambda: islice(trials(), most), work, prepare, patience)
        partial, end = None, math.inf
        try:
            for (_, answer), made in zip(answers, trials(), strict=False):
                mended, seconds = answer or (0.0, patience)
                self.runs += 1
                self.without_answer += answer is None
                self.seconds += seconds
                if mended == 1:
                    return made
                if mended and partial is None:
                    partial, end = made, self.runs + _FURTHER
                if self.seconds > self.budget.seconds or self.runs >= end:
                    break
        finally:
            answers.close()
        return partial


BUDGETS: Final[dict[str, Budget]] = {
    # for all faults of a pass; the edit of a mutant that was missed at 600 runs stood at 660, and a tiny
    # model's 1,000 runs take 13 seconds, on a slow machine twice that
    "align": Budget(runs=1000, seconds=30.0, patience=10.0),
    # for one fault; the seconds are those of each copy of the process
    "fix": Budget(runs=3000, seconds=60.0, patience=20.0),
}
"""who searches -> the budget"""


@dataclass(frozen=True)
class Trial:
    """A candidate in a file."""

    file: str
    candidate: Candidate


Made = tuple[Trial, Texts]
"""a candidate, and the texts that it makes"""


@dataclass(frozen=True)
class Files:
    """The port's files as they were loaded."""

    loaded: dict[str, str] = field(default_factory=dict)

    def read(self, file: str, texts: Texts) -> str:
        """Return a file's text among `texts`, or as it was loaded. Raises OSError or ValueError."""
        if file not in self.loaded:
            self.loaded[file] = Path(file).read_bytes().decode("utf-8")
        return texts.get(file, self.loaded[file])

    def knows(self, file: str) -> bool:
        """Tell whether a file of Python can be read; its text is kept as it was loaded."""
        try:
            self.read(file, {})
        except (OSError, ValueError):
            return False
        return Path(file).suffix == ".py"

    def suggest(self, trial: Trial) -> Suggestion:
        """Return a candidate as a report shows it."""
        one, code = trial.candidate, parse_code(self.read(trial.file, {}))
        (_, column), last = code.place(one.edit.start), code.place(one.edit.end)
        return Suggestion(
            trial.file, one.line, one.before, one.edit.text, one.kind, "tried", column, *last
        )

    def apply(self, texts: Texts, trial: Trial) -> dict[str, str]:
        """Return the texts with a candidate's edit made."""
        return self.splice(texts, trial.file, trial.candidate.edit)

    def splice(self, texts: Texts, file: str, edit: Edit) -> dict[str, str]:
        """Return the texts with an edit of a file made."""
        return {**texts, file: parse_code(self.read(file, texts)).splice([edit])}


def list_texts(
    files: Files,
    scope: Scope,
    texts: Texts,
    near_only: bool = False,
    is_sure: bool = False,
    first: str = "",
    raises: bool = False,
) -> Iterator[tuple[Trial, dict[str, str]]]:
    """Yield the candidates with the texts that they make, each text once; see `list_trials`."""
    tried = set[tuple[str, int, int, str]]()
    for trial in list_trials(files, scope, texts, near_only, is_sure, first, raises):
        edit = trial.candidate.edit
        key = trial.file, edit.start, edit.end, edit.text
        if key not in tried:
            tried.add(key)
            yield trial, files.apply(texts, trial)


def list_trials(
    files: Files,
    scope: Scope,
    texts: Texts,
    near_only: bool = False,
    is_sure: bool = False,
    first: str = "",
    raises: bool = False,
) -> Iterator[Trial]:
    """Yield the candidates of all regions, what the reference says first, near the finding's line first.

    near_only: that line is known from the calls; elsewhere only what the reference says and the rows of
    few candidates are tried. is_sure: the call at that line is proven to be the one that differs; else a
    condition may have led there. first: the row that is tried before all others: "condition", those around
    that line, where PyTorch makes no such call, or "mask"; "table" for the arithmetic of a constructor.
    raises: the port raises at that line, which may want another form of a value.
    """
    known: dict[Region, list[Site]] = {}

    def sites_of(region: Region) -> list[Site]:
        if region not in known:
            code = parse_code(files.read(region.file, texts))
            found = list_sites(scope, region, code)
            known[region] = [site for site in found
                             if region.name == MODULE or scope.ran(region.file, site.statement)]  # fmt: skip
        return known[region]

    near = [(region, site) for region in scope.regions[:1] for site in _list_near(sites_of(region))]
    levels = sorted({region.level for region in scope.regions})
    inner = [region for region in scope.regions if region.level in levels[:1]]
    every = scope.regions
    near += [*_list_callers(scope, inner, sites_of)]
    rounds: list[tuple[Sequence[str], Sequence[Region] | Literal["masks"] | None]] = [
        *([(("mask",), None)] if first == "mask" else []),
        (SAID, None),
        (("table", "comparison"), None),
        *([((row,), inner) for row in _FEW] if first == "table" else []),
    ]
    rounds += [(("tie",), every)] if scope.ties else []
    if is_sure:
        rounds += [(_LACKING, None), (_BEFORE, None), (("unread",), inner)]
        rounds += [(_MANY, None), (_TURNED, None)]
    rounds += [(("form", "switch", "surplus", *_FEW), None)] if raises else []
    if scope.hands_mask:
        rounds += [(_OF_MASKS, "masks"), (_TURNED, "masks"), (_HANDED, every)]
    rounds += [(("field",), every)] if scope.settings and not near_only else []
    rounds += [(SAID, inner), (_HANDED, every), (SAID, every)]
    rounds += [(("table", "unread"), inner), (_LACKING + _REST, None), (_TURNED, "masks")]
    rounds += [(_LACKING, inner), *(((row,), inner) for row in _FEW)]
    rounds += [] if near_only else [(("run",), inner)]
    # a condition turned round may lead around the fault: what mends it where it is comes first
    rounds += [(("condition",), inner), (("condition",), every)]
    rounds += [] if near_only else [((row,), inner) for row in _MANY]
    rounds += [(_LACKING, every)]
    rounds += [] if near_only else [(_REST, every), (("run",), every)]
    for region in scope.regions[:1] if first == "condition" else ():
        around = (one for one in sites_of(region) if _is_around(one.statement, scope.place[1]))
        for site in around:
            yield from (Trial(region.file, one) for one in list_candidates(site, ("condition",)))
    for rows, regions in rounds:
        sites: Iterable[tuple[Region, Site]] = near
        if regions == "masks":
            sites = (one for one in _list_open(every, sites_of) if _names_mask(one[1].statement))
        elif regions is not None:
            sites = _list_open(regions, sites_of)
        for region, site in sites:
            yield from (Trial(region.file, one) for one in list_candidates(site, rows))


def _names_mask(statement: ast.AST) -> bool:
    return any("mask" in word.lower() for word in find_words(statement))


def _is_around(statement: ast.AST, line: int) -> bool:
    """Tell whether a statement is a condition in whose block a line stands."""
    if not isinstance(statement, ast.If):
        return False
    block = (*statement.body, *statement.orelse)
    return any(one.lineno <= line <= (one.end_lineno or 0) for one in block)


def _list_near(sites: Sequence[Site]) -> list[Site]:
    """Return the statement at the finding's line, those that make what it reads, and those beside it.

    sites: of the function, the nearest first.
    """
    if not sites:
        return []
    first, makers = sites[0], dict[str, Site]()
    read = {one.id for one in first.walk(ast.Name)}
    for site in sites:
        targets = getattr(site.statement, "targets", ())
        own = {
            dotted(one) for target in targets for one in getattr(target, "elts", [target])
        } & read
        if site.statement.lineno < first.statement.lineno:
            makers |= {name: site for name in own - makers.keys()}
    return [*dict.fromkeys([first, *makers.values(), *sites[:_NEAR]])]


def _list_callers(
    scope: Scope, regions: Sequence[Region], sites_of: Callable[[Region], list[Site]]
) -> Iterator[tuple[Region, Site]]:
    """Yield the statements that call the function in which the finding's line stands.

    What it is called with may be what differs there: operands in another order, another switch.
    """
    first = regions[0] if regions else None
    if first is None or first.file != scope.place[0]:
        return
    name = first.name.rpartition(".")[2]
    for region in regions[1:]:
        for site in sites_of(region):
            calls = (dotted(one.func).rpartition(".")[2] for one in site.walk(ast.Call))
            if name in calls:
                yield region, site


def _list_open(
    regions: Sequence[Region], sites_of: Callable[[Region], list[Site]]
) -> Iterator[tuple[Region, Site]]:
    """Yield the sites of all regions, those last at which the reference says the very same."""
    for settled in (False, True):
        for region in regions:
            for site in sites_of(region):
                if site.is_settled is settled:
                    yield region, site
