"""A remedy: one known defect of drafts, and the edit that mends it."""

import ast
import pkgutil
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from reprod_align.explain.code import Code, Edit, dotted
from reprod_align.porting.problem import Problem


@dataclass(frozen=True)
class Case:
    """A problem, and the draft and the source that it stands in."""

    problem: Problem
    draft: Code
    source: Code
    """what the draft was made from"""

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


def find_object(name: str) -> Any:
    """Return what a dotted name stands for, None if there is no such thing."""
    try:
        return pkgutil.resolve_name(name)
    except (ImportError, AttributeError, ValueError):
        return None


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


def substitute(code: Code, names: Sequence[str], helper: str) -> Iterator[Edit]:
    """Yield the edits that define `helper` in the code and put its name in place of `names`."""
    definition = ast.parse(helper).body[0]
    assert isinstance(definition, ast.FunctionDef | ast.ClassDef)
    own = [node for node in code.tree.body if getattr(node, "name", "") == definition.name]
    inside = {id(node) for held in own for node in ast.walk(held)}
    read = (node for node in code.nodes if isinstance(node, ast.Attribute))
    places = [node for node in read if dotted(node) in names and id(node) not in inside]
    if places and not own:
        yield code.insert(find_start(code), f"{helper.strip()}\n\n")
    for place in places:
        yield code.replace(place, definition.name)


def find_start(code: Code) -> ast.stmt:
    """Return the first statement after the docstring and the imports at the top."""
    body = code.tree.body
    imports = [at for at, node in enumerate(body) if isinstance(node, ast.Import | ast.ImportFrom)]
    start = next((at + 1 for at in imports if at + 1 not in imports), 0)
    return body[min(start, len(body) - 1)]
