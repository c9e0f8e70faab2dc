"""The rows of the table of calls by their public names, each also as a method's or a function's."""

import ast
from collections.abc import Mapping
from functools import cache
from typing import Final

from reprod_align.api.calls import ApiRow, list_rows
from reprod_align.porting.calls.names import find_public

UNTOUCHED: Final = {"torch.nn.Parameter", "torch.nn.Sequential", "torch.nn.parameter.Parameter"}


@cache
def read_rows() -> Mapping[str, tuple[ApiRow, ...]]:
    """Return the rows of each name, in the order in which they are tried.

    A function's row is also its method's and the other way, after rows that are its own.
    """
    found: dict[str, tuple[ApiRow, ...]] = {}
    for row in (*list_rows(), *filter(None, map(_turn, list_rows()))):
        name = find_public(row.name)  # a function may have several
        known = found.get(name, ())
        if all((row.arguments, row.target) != (one.arguments, one.target) for one in known):
            found[name] = (*known, row)
    return found


def _turn(row: ApiRow) -> ApiRow | None:
    """Return the method's row of a function's, and the other way; None where there is no other form."""
    space, _, name = row.name.rpartition(".")
    if space == "Tensor":
        taken = {one.id for one in ast.walk(ast.parse(row.target)) if isinstance(one, ast.Name)}
        if "input" in row.arguments or "self" not in taken:
            return None
        turned = _rename(row.target, "self", "input")
        star = None if row.star is None else row.star + 1
        return ApiRow(f"torch.{name}", ("input", *row.arguments), row.defaults, turned, star)
    if space == "torch" and row.arguments[:1] == ("input",) and "input" not in row.defaults:
        star = None if row.star is None else row.star - 1
        turned = _rename(row.target, "input", "self")
        return ApiRow(f"Tensor.{name}", row.arguments[1:], row.defaults, turned, star)
    return None


def _rename(target: str, old: str, new: str) -> str:
    tree = ast.parse(target, mode="eval")
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == old:
            node.id = new
    return ast.unparse(tree)
