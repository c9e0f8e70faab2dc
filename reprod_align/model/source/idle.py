"""The statements of a file that never ran, without those that compute nothing or only raise."""

import ast
from collections.abc import Collection, Iterator, Set
from typing import Any, Final

from reprod_align.model.source.trees import FUNCTIONS, parse

_EMPTY: Final = (ast.Raise, ast.Assert, ast.Pass, ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal,
                 ast.ClassDef, *FUNCTIONS)  # fmt: skip
_TALKS: Final = ("warn", "warning", "warning_once", "info", "debug", "print")
"""functions that only say something"""


def find_idle_statements(file: str, idle: Set[int], run: Set[int]) -> Iterator[tuple[int, int]]:
    """Yield first and last line of each statement of which lines are idle and none has run.

    Of a statement that holds others, its head alone counts. Neighbours are joined.
    """
    tree = parse(file)
    statements = () if tree is None else _list_statements(tree.body)
    first = last = 0
    for begin, end in sorted(statements):
        lines = range(begin, end + 1)
        if not idle.isdisjoint(lines) and run.isdisjoint(lines):
            if first and begin <= last + 1:
                last = max(last, end)
                continue
            if first:
                yield first, last
            first, last = begin, end
    if first:
        yield first, last


def _list_statements(body: Collection[ast.stmt]) -> Iterator[tuple[int, int]]:
    """Yield first and last line of each statement that computes, those in others too.

    A block that ends with `raise` prepares a message.
    """
    if any(isinstance(one, ast.Raise) for one in body):
        return
    for statement in body:
        inner = [*_find_blocks(statement)]
        if not (isinstance(statement, _EMPTY) or _says(statement)):
            end = min((block[0].lineno - 1 for block in inner), default=statement.end_lineno or 0)
            yield statement.lineno, max(statement.lineno, end)
        for block in inner:
            yield from _list_statements(block)


def _find_blocks(statement: ast.AST) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        block: Any = getattr(statement, name, None)
        if isinstance(block, list) and block:
            yield block
    for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield from _find_blocks(part)


def _says(statement: ast.stmt) -> bool:
    """Tell whether a statement is a docstring or a call that only says something."""
    if not isinstance(statement, ast.Expr):
        return False
    value = statement.value
    if isinstance(value, ast.Constant):
        return True
    called = value.func if isinstance(value, ast.Call) else None
    return getattr(called, "attr", getattr(called, "id", "")) in _TALKS
