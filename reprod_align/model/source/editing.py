"""The small changes of a function that stand for one mistake each: conditions, switches, operators."""

import ast
import linecache
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

from reprod_align.model.source.alteration import Edit, Piece
from reprod_align.model.source.lines import SourceLine
from reprod_align.model.source.trees import FUNCTIONS, find_innermost

_OPPOSITE: Final = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.GtE, ast.LtE: ast.Gt, ast.Gt: ast.LtE,
    ast.GtE: ast.Lt, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip


def list_conditions(places: Iterable[SourceLine]) -> Iterator[Edit]:
    """Yield edits of the functions around some lines: each condition negated, each switch turned."""
    for file, function in _find_functions(places):
        for node in ast.walk(function):
            if isinstance(node, (ast.If, ast.IfExp)) and not _is_guard(node):
                for test in _list_parts(node.test):
                    yield _negate(file, test)
            elif isinstance(node, ast.Call):
                yield from _turn_switches(file, node)


def _find_functions(places: Iterable[SourceLine]) -> Iterator[tuple[str, Any]]:
    """Yield the functions around some lines once each, with their files."""
    seen: set[int] = set()
    for place in places:
        function = find_innermost(place.file, place.line, FUNCTIONS)
        if function is not None and id(function) not in seen:
            seen.add(id(function))
            yield place.file, function


def _is_guard(node: ast.If | ast.IfExp) -> bool:
    """Tell whether a condition only leads to an error."""
    return isinstance(node, ast.If) and isinstance(node.body[-1], ast.Raise)


def _list_parts(test: ast.expr) -> list[ast.expr]:
    """Return a condition; if it is made of several, each of these before it."""
    return [*test.values, test] if isinstance(test, ast.BoolOp) else [test]


def _negate(file: str, test: ast.expr) -> Edit:
    other: ast.expr = ast.UnaryOp(ast.Not(), test)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        other = test.operand
    elif isinstance(test, ast.Compare) and len(test.ops) == 1:
        other = ast.Compare(test.left, [_OPPOSITE[type(test.ops[0])]()], test.comparators)
    return _replace(file, test, other)


def _turn_switches(file: str, call: ast.Call) -> Iterator[Edit]:
    named = [("", one) for one in call.args] + [(f"{k.arg}=", k.value) for k in call.keywords]
    for name, value in named:
        if isinstance(value, ast.Constant) and isinstance(value.value, bool):
            edit = _replace(file, value, ast.Constant(not value.value))
            yield replace(edit, before=f"{name}{edit.before}", after=f"{name}{edit.after}")


def _replace(file: str, node: Any, other: ast.expr) -> Edit:
    """Return the edit that puts another expression in the place of one."""
    after = ast.unparse(other)
    pieces = []
    for line in range(node.lineno, node.end_lineno + 1):
        length = len(linecache.getline(file, line).rstrip("\r\n").encode())
        start = node.col_offset if line == node.lineno else 0
        end = node.end_col_offset if line == node.end_lineno else length
        pieces.append(Piece(line, start, end, f"({after})" if line == node.lineno else ""))
    return Edit(SourceLine(file, node.lineno), tuple(pieces), ast.unparse(node), after)
