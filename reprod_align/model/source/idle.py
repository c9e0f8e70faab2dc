"""The statements of functions that can run, marked so that each notes itself, and those that never did.

Statements that compute nothing or only prepare an error are left out.
"""

import ast
from bisect import bisect
from collections.abc import Iterator, Mapping, Set
from copy import copy
from typing import Any, Final, NamedTuple

from reprod_align.model.source.trees import FUNCTIONS

_EMPTY: Final = (ast.Raise, ast.Assert, ast.Pass, ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal,
                 ast.ClassDef, *FUNCTIONS)  # fmt: skip
_TALKS: Final = ("warn", "warning", "warning_once", "info", "debug", "print")
"""functions that only say something"""
_BLOCKS: Final = ("body", "orelse", "finalbody")
_PARTS: Final = ("handlers", "cases")
"""what holds further blocks"""


class Lines(NamedTuple):
    """A statement: of one that holds others, its head alone."""

    first: int
    last: int
    function: tuple[str, int]
    """the qualified name and the first line of the watched function in which it stands"""


Places = dict[int, Lines]
"""statements by number"""


def mark_statements(
    tree: ast.Module, wanted: Set[tuple[str, int]], note: str
) -> tuple[ast.Module, Places]:
    """Return a copy of a tree in which statements of the wanted functions note their numbers.

    note: a text that stands for the function that is called with a number.
    """
    marker = _Marker(wanted, note)
    return marker.copy_block(tree, "", None), marker.places


def list_idle(places: Mapping[int, Lines], idle: Set[int]) -> Iterator[tuple[int, int, int]]:
    """Yield first and last line of idle statements, neighbours joined, and how many lines these have."""
    busy = sorted(places[number].first for number in places.keys() - idle)
    first = last = lines = 0
    for one in sorted(places[number] for number in idle):
        if lines and bisect(busy, last) < bisect(busy, one.first):
            yield first, last, lines
            lines = 0
        if not lines:
            first = one.first
        lines += max(0, one.last - max(last, one.first - 1))
        last = max(last, one.last)
    if lines:
        yield first, last, lines


class _Marker:
    """Copies what is on the way to wanted functions; all else of a tree stays the tree's own."""

    def __init__(self, wanted: Set[tuple[str, int]], note: str) -> None:
        self.places: Places = {}
        self._wanted, self._note = wanted, note

    def copy_block(self, node: Any, around: str, function: tuple[str, int] | None) -> Any:
        """Return a copy of a node with its blocks marked; function: the wanted one around it."""
        made = copy(node)
        for name in _BLOCKS:
            block = getattr(node, name, None)
            if isinstance(block, list):
                setattr(made, name, [*self._mark(block, around, function)])
        for name in _PARTS:
            parts = getattr(node, name, None)
            if isinstance(parts, list):
                setattr(made, name, [self.copy_block(part, around, function) for part in parts])
        return made

    def _mark(
        self, block: list[ast.stmt], around: str, function: tuple[str, int] | None
    ) -> Iterator[ast.stmt]:
        """Yield the statements of a block, each after what notes it. One that raises is an error's."""
        raises = any(isinstance(one, ast.Raise) for one in block)
        for statement in block:
            if function is not None and not raises and _computes(statement):
                yield self._make_note(statement, function)
            yield self._copy(statement, around, None if raises else function)

    def _copy(self, statement: Any, around: str, function: tuple[str, int] | None) -> ast.stmt:
        if isinstance(statement, FUNCTIONS):
            name = f"{around}{statement.name}"
            first = min([statement.lineno, *(one.lineno for one in statement.decorator_list)])
            known = (name, first) if (name, first) in self._wanted else function
            made: ast.stmt = self.copy_block(statement, f"{name}.<locals>.", known)
            return made
        name = f"{around}{statement.name}." if isinstance(statement, ast.ClassDef) else around
        other: ast.stmt = self.copy_block(statement, name, function)
        return other

    def _make_note(self, statement: ast.stmt, function: tuple[str, int]) -> ast.stmt:
        number = len(self.places)
        heads = [block[0].lineno - 1 for block in _find_blocks(statement)]
        last = max(statement.lineno, min(heads, default=statement.end_lineno or 0))
        self.places[number] = Lines(statement.lineno, last, function)
        call = ast.Call(ast.Constant(self._note), [ast.Constant(number)], [])
        note = ast.copy_location(ast.Expr(call), statement)
        for node in ast.walk(note):
            ast.copy_location(node, statement)
        return note


def _computes(statement: ast.stmt) -> bool:
    """Tell whether a statement is more than a definition, a docstring, an error or a message."""
    if isinstance(statement, _EMPTY):
        return False
    if not isinstance(statement, ast.Expr):
        return True
    value = statement.value
    called = value.func if isinstance(value, ast.Call) else None
    says = getattr(called, "attr", getattr(called, "id", "")) in _TALKS
    return not (says or isinstance(value, ast.Constant))


def _find_blocks(statement: ast.AST) -> Iterator[list[ast.stmt]]:
    for name in _BLOCKS:
        block: Any = getattr(statement, name, None)
        if isinstance(block, list) and block:
            yield block
    for name in _PARTS:
        for part in getattr(statement, name, ()):
            yield from _find_blocks(part)
