"""A part of a tensor that a statement changes in place, `boxes[..., 0].clamp_(0, 1)`.

The tensor and its part share their numbers in both frameworks. The gradient follows them in PyTorch alone:
Paddle's tensor keeps the one that it had. Setting the part, `boxes[..., 0] = boxes[..., 0].clamp(0, 1)`,
is the same in PyTorch, and right in Paddle.
"""

import ast
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from reprod_align.explain.code import Code, Edit, dotted

_STORED: Final = {"zero_": "0", "fill_": "", "copy_": ""}
"""a method that gives every element anew -> what is stored, "" for its argument"""


class Part(NamedTuple):
    """A tensor's part, and the methods that change it, the first first."""

    target: ast.Subscript
    methods: tuple[ast.Attribute, ...]


def find_part(node: ast.Expr) -> Part | None:
    """Return the part that a statement changes by methods whose names end with "_", None if it is none.

    Only of what a name or an attribute holds, with an index that calls nothing: both are evaluated twice.
    """
    methods: list[ast.Attribute] = []
    held: ast.expr = node.value
    while isinstance(held, ast.Call) and isinstance(held.func, ast.Attribute):
        methods.insert(0, held.func)
        held = held.func.value
    if not methods or not all(re.fullmatch(r"[a-z]\w*_", one.attr) for one in methods):
        return None
    if not isinstance(held, ast.Subscript) or not dotted(held.value):
        return None
    calls = ast.Call | ast.Await | ast.NamedExpr
    if any(isinstance(one, calls) for one in ast.walk(held.slice)):
        return None
    return Part(held, tuple(methods))


def is_part(tensor: Any, part: Any) -> bool:
    """Tell whether a tensor of PyTorch's is a view of another one, and gives a gradient to somebody."""
    base = getattr(part, "_base", None)
    return base is not None and part.requires_grad and (base is tensor or base is tensor._base)


def set_parts(code: Code, sites: set[int]) -> str:
    """Return the file with parts set that its statements of these numbers change in place."""
    statements = (one for one in code.nodes if isinstance(one, ast.Expr) and one._site in sites)  # type: ignore[attr-defined]
    return code.splice(edit for one in statements for edit in _set_part(code, one))


def _set_part(code: Code, node: ast.Expr) -> Iterator[Edit]:
    import torch

    part = find_part(node)
    assert part is not None
    target, call = code.source(part.target), node.value
    assert isinstance(call, ast.Call)
    last = part.methods[-1].attr
    if last in _STORED:
        stored = _STORED[last] or ", ".join(map(code.source, call.args[:1]))
        if len(part.methods) == 1 and stored and not call.keywords:
            yield code.replace(node, f"{target} = {stored}")
    elif all(hasattr(torch.Tensor, one.attr[:-1]) for one in part.methods):
        yield code.replace(part.target, f"{target} = {target}")
        for one in part.methods:
            span = code.replace(one, "")
            yield Edit(span.end - 1, span.end, "")
