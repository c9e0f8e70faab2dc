"""Custom functions: a torch.autograd.Function as Paddle's PyLayer, whose rules are stricter.

Paddle's backward pass returns one gradient for each tensor that the forward pass was given, and None for
one that needs none; PyTorch's returns one for each argument and drops what is not needed.
"""

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from reprod_align.explain.code import Code, Edit
from reprod_align.porting.calls.torch_names import Scope

FUNCTION: Final = "torch.autograd.Function"
_NEEDS: Final = "needs_input_grad"

Given = Sequence[tuple[bool, bool]]
"""for each argument of a call whether it was a tensor, and whether it needed a gradient"""


def list_function_edits(
    code: Code, scope: Scope, given: Mapping[str, Sequence[Given]]
) -> Iterator[Edit]:
    """Yield the edits of custom functions; given: class -> what its calls were given."""
    for kind in code.nodes:
        if isinstance(kind, ast.ClassDef) and is_function(kind, scope):
            parts = {one.name: one for one in kind.body if isinstance(one, ast.FunctionDef)}
            if {"forward", "backward"} <= set(parts):
                calls = given.get(kind.name, ())
                yield from _edit_passes(code, parts["forward"], parts["backward"], calls)


def is_function(kind: ast.ClassDef, scope: Scope) -> bool:
    """Tell whether a class is derived from torch.autograd.Function."""
    return any(
        scope.name(one) in (FUNCTION, "torch.autograd.function.Function") for one in kind.bases
    )


def _edit_passes(
    code: Code, forward: ast.FunctionDef, backward: ast.FunctionDef, calls: Sequence[Given]
) -> Iterator[Edit]:
    context = backward.args.args[0].arg
    asked = any(isinstance(one, ast.Attribute) and one.attr == _NEEDS for one in ast.walk(backward))
    wrapped = False
    for one in ast.walk(backward):
        if isinstance(one, ast.Return) and isinstance(one.value, ast.Tuple):
            for at, part in enumerate(one.value.elts):
                is_none = isinstance(part, ast.Constant) and part.value is None
                if calls and is_none and not any(at < len(call) and call[at][0] for call in calls):
                    yield _drop(code, one.value, at)
                elif not is_none and not asked and _may_need_none(at, calls):
                    wrapped = True
                    end = code.replace(part, "").end
                    yield Edit(end, end, f" if {context}.{_NEEDS}[{at}] else None")
    if asked or wrapped:
        held, *names = (one.arg for one in forward.args.args)
        parts = f"[{', '.join(names)}]"
        needs = "isinstance(one, paddle.Tensor) and not one.stop_gradient"
        row = f"{held}.{_NEEDS} = [{needs} for one in {parts}]"
        yield code.insert(forward.body[0], row)


def _may_need_none(at: int, calls: Sequence[Given]) -> bool:
    """Tell whether an argument was a tensor that needed no gradient while others of its call did."""
    return any(
        at < len(call) and call[at] == (True, False) and any(needs for _, needs in call)
        for call in calls
    )


def _drop(code: Code, values: ast.Tuple, at: int) -> Edit:
    """Return the edit that takes an element out of a tuple, with the comma before it."""
    own = code.replace(values.elts[at], "")
    if at == 0:
        return Edit(own.start, code.replace(values.elts[1], "").start, "")
    return Edit(code.replace(values.elts[at - 1], "").end, own.end, "")
