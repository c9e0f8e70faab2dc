"""The loop: attempt a proof, mend what is known, until the port is faithful or nothing more is known."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import unified_diff
from typing import Final, Protocol

from reprod_align.base.progress import tell
from reprod_align.explain.code import Code
from reprod_align.porting.problem import Problem
from reprod_align.porting.remedy import Case, Remedy
from reprod_align.report import Report

_MOST: Final = 400  # attempts
_STAGES: Final = ("import", "build", "run", "align")


@dataclass(frozen=True)
class Step:
    """One edit of the draft, and why it was made."""

    problem: str
    remedy: str
    reason: str
    entry: str
    """the slug of the entry of `reprod-align api` that tells of it; "" without one"""
    diff: str
    """unified, as `patch` takes it"""


@dataclass
class Outcome:
    """What one attempt ended in: an obstacle, or a report."""

    report: Report | None = None
    problems: list[Problem] = field(default_factory=list)
    """nothing is left of them where the port is faithful"""

    @property
    def passed(self) -> bool:
        """Whether the port is faithful."""
        return self.report is not None and self.report.passed

    @property
    def rank(self) -> int:
        """How far it got: 0 does not import ... 3 is compared, 4 is faithful."""
        return len(_STAGES) if self.passed else _STAGES.index(self.problems[0].stage)

    def beats(self, other: "Outcome") -> bool:
        """Tell whether it got further than another one, or meets other problems."""
        if self.rank != other.rank:
            return self.rank > other.rank
        ours, theirs = ({(p.text, p.below) for p in one.problems} for one in (self, other))
        return ours < theirs if self.rank == 3 and ours <= theirs else not ours & theirs


class Judge(Protocol):
    """Attempts a proof of a draft."""

    def __call__(self, code: Code) -> Outcome:
        """Return what came of it."""


@dataclass
class Course:
    """The way from the draft to the port."""

    code: Code
    outcome: Outcome
    first: Outcome
    """of the draft as it came"""
    steps: list[Step] = field(default_factory=list)


def mend(code: Code, source: Code, judge: Judge, remedies: Sequence[Remedy], name: str) -> Course:
    """Apply remedies to a draft, one after another. name: the port's file, for the diffs."""
    first = judge(code)
    course, refused = Course(code, first, first), {code.text}
    for number in range(_MOST):
        if course.outcome.passed:
            break
        tell(f"edit {number + 1}: {course.outcome.problems[0]}")
        if not _take_step(course, source, judge, remedies, name, refused):
            break
    return course


def _take_step(
    course: Course,
    source: Code,
    judge: Judge,
    remedies: Sequence[Remedy],
    name: str,
    refused: set[str],
) -> bool:
    """Make the first edit that helps; tell whether there was one. refused: texts that did not help."""
    for problem, remedy, code in _propose(course, source, remedies):
        if code.text in refused:
            continue
        refused.add(code.text)
        outcome = judge(code)
        if not outcome.beats(course.outcome):
            continue
        diff = show_diff(course.code.text, code.text, name)
        course.steps.append(Step(str(problem), remedy.name, remedy.reason, remedy.entry, diff))
        course.code, course.outcome = code, outcome
        return True
    return False


def _propose(
    course: Course, source: Code, remedies: Sequence[Remedy]
) -> Iterator[tuple[Problem, Remedy, Code]]:
    """Yield each remedy that applies to a problem, and the draft with its edits."""
    for problem in course.outcome.problems:
        for remedy in remedies:
            edits = list(remedy.propose(Case(problem, course.code, source)))
            if edits:
                yield problem, remedy, course.code.apply(edits)


def show_diff(before: str, after: str, name: str) -> str:
    """Return the unified diff of two texts."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    return "".join(unified_diff(old, new, f"a/{name}", f"b/{name}"))
