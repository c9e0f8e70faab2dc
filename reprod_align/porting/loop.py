"""The loop: attempt a proof, mend what is known, until the port is faithful or nothing more is known."""

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import unified_diff
from typing import ClassVar, Final

from reprod_align.base.console import tell
from reprod_align.explain.code import Code, Edit
from reprod_align.porting.attempt import Problem
from reprod_align.porting.calls.names import Scope
from reprod_align.report import Report


@dataclass(frozen=True)
class Case:
    """A problem, and the draft that it stands in."""

    problem: Problem
    draft: Code

    def find(self, pattern: str) -> re.Match[str] | None:
        """Return where the problem's text fits the pattern."""
        return re.search(pattern, self.problem.text)

    def cites(self, entry: str) -> bool:
        """Tell whether the problem is a finding that names an entry of `reprod-align api` as its cause."""
        return self.find(rf"reprod-align api {entry}\b") is not None


class Remedy:
    """A defect and what to do; the first sentence of a subclass's docstring is the reason given."""

    entry: ClassVar[str] = ""
    """the slug of the entry of `reprod-align api` that tells of it; "" without one"""

    def propose(self, case: Case) -> Iterable[Edit]:
        """Return the edits of the draft; none if the remedy does not apply."""
        raise NotImplementedError

    @property
    def name(self) -> str:
        """Its name in reports."""
        return type(self).__name__

    @property
    def reason(self) -> str:
        """Why the edit is made, in one sentence."""
        return " ".join((type(self).__doc__ or "").split("\n\n")[0].split())


class Substitute(Remedy):
    """A remedy that defines something in the port and puts it in place of what is called there."""

    names: ClassVar[tuple[str, ...]]
    """what is replaced: dotted names of Paddle's"""
    helper: ClassVar[str]
    """the definition, a function or a class with a docstring"""

    def applies(self, case: Case) -> bool:
        """Tell whether the problem is this remedy's; by default, if it cites the entry."""
        return bool(self.entry) and case.cites(self.entry)

    def propose(self, case: Case) -> Iterable[Edit]:
        """Define the helper, and name it wherever one of the names stands."""
        if self.applies(case):
            yield from substitute(case.draft, self.names, self.helper)


_NAMED: Final = ast.FunctionDef | ast.ClassDef


def substitute(code: Code, names: Sequence[str], helper: str) -> Iterator[Edit]:
    """Yield the edits that define `helper` in the code and put its name in place of `names`."""
    made = Code(helper.strip())
    definition = made.tree.body[0]
    assert isinstance(definition, ast.FunctionDef | ast.ClassDef)
    name = definition.name
    named = {node.name: node for node in code.tree.body if isinstance(node, _NAMED)}
    while name in named and ast.get_docstring(named[name]) != ast.get_docstring(definition):
        name += "_"  # the source gives something else this name
    own = named.get(name)
    inside = {id(node) for node in ast.walk(own)} if own else set[int]()
    read = (node for node in code.nodes if isinstance(node, ast.Attribute))
    scope = Scope(code.tree)
    places = [
        node for node in read if scope.name(node, "paddle") in names and id(node) not in inside
    ]
    if places and not own:
        text = made.splice([made.rename(definition, name)])
        yield code.insert(find_start(code), f"{text}\n\n")
    for place in places:
        yield code.replace(place, name)


def find_start(code: Code) -> ast.stmt:
    """Return the first statement after the docstring and the imports at the top."""
    body = code.tree.body
    imports = [at for at, node in enumerate(body) if isinstance(node, ast.Import | ast.ImportFrom)]
    start = next((at + 1 for at in imports if at + 1 not in imports), 0)
    return body[min(start, len(body) - 1)]


_MOST: Final = 400  # attempts
FAITHFUL: Final = "faithful"
_STAGES: Final = ("import", "build", "run", "align")


@dataclass(frozen=True)
class DraftEdit:
    """One edit of the draft, and why it was made."""

    problem: str
    remedy: str
    reason: str
    entry: str
    """the slug of the entry of `reprod-align api` that tells of it; "" without one"""
    diff: str
    """unified, as `patch` takes it"""


@dataclass
class Attempt:
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
        """How far it got: 0 does not import ... 3 is compared, 4 agrees to float32, 5 is faithful."""
        if self.report is not None and self.passed:
            return len(_STAGES) + (self.report.verdict == FAITHFUL)
        return _STAGES.index(self.problems[0].stage)

    def beats(self, other: "Attempt") -> bool:
        """Tell whether it got further than another one, or meets other problems."""
        if self.rank != other.rank:
            return self.rank > other.rank
        ours, theirs = ({(p.text, p.below) for p in one.problems} for one in (self, other))
        return ours < theirs if self.rank == 3 and ours <= theirs else not ours & theirs


Judge = Callable[[Code], Attempt]
"""attempts a proof of a draft"""


@dataclass
class Course:
    """The way from the draft to the port."""

    code: Code
    outcome: Attempt
    first: Attempt
    """of the draft as it came"""
    steps: list[DraftEdit] = field(default_factory=list)


def mend(code: Code, judge: Judge, remedies: Sequence[Remedy], name: str) -> Course:
    """Apply remedies to a draft, one after another. name: the port's file, for the diffs."""
    first = judge(code)
    course, refused = Course(code, first, first), {code.text}
    for number in range(_MOST):
        if course.outcome.passed:
            break
        tell(f"edit {number + 1}: {course.outcome.problems[0]}")
        if not _take_step(course, judge, remedies, name, refused):
            break
    return course


def _take_step(
    course: Course,
    judge: Judge,
    remedies: Sequence[Remedy],
    name: str,
    refused: set[str],
) -> bool:
    """Make the first edit that helps; tell whether there was one. refused: texts that did not help."""
    for problem, remedy, code in _propose(course, remedies):
        if code.text in refused:
            continue
        refused.add(code.text)
        outcome = judge(code)
        if not outcome.beats(course.outcome):
            continue
        diff = show_diff(course.code.text, code.text, name)
        course.steps.append(DraftEdit(str(problem), remedy.name, remedy.reason, remedy.entry, diff))
        course.code, course.outcome = code, outcome
        return True
    return False


def _propose(course: Course, remedies: Sequence[Remedy]) -> Iterator[tuple[Problem, Remedy, Code]]:
    """Yield each remedy that applies to a problem, and the draft with its edits."""
    for problem in course.outcome.problems:
        for remedy in remedies:
            edits = list(remedy.propose(Case(problem, course.code)))
            if edits:
                yield problem, remedy, course.code.apply(edits)


def show_diff(before: str, after: str, name: str) -> str:
    """Return the unified diff of two texts."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    return "".join(unified_diff(old, new, f"a/{name}", f"b/{name}"))
