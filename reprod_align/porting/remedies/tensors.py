"""Tensors: indices, views, shapes."""

import ast
from collections.abc import Iterable, Iterator

from reprod_align.porting.code import Edit, covers
from reprod_align.porting.remedy import Case, Remedy


class IndexTransposed(Remedy):
    """Integers that index a transposed tensor past its first axis need contiguous() before it in Paddle."""

    entry = "index-transposed"

    def propose(self, case: Case) -> Iterable[Edit]:
        """Call contiguous() before such an index: in the problem's line, or everywhere for a finding."""
        is_error = case.problem.finding is None
        if is_error and not case.find(r"Input\(index|index.*out of|wrong value"):
            return
        line = case.problem.line if is_error else None
        for node in _find_indexed(case, line):
            yield case.draft.replace(node, f"{case.draft.source(node)}.contiguous()")


def _find_indexed(case: Case, line: int | None) -> Iterator[ast.expr]:
    """Yield what is read at [:, index] or the like, where `index` may be a tensor."""
    for node in case.draft.nodes:
        if not isinstance(node, ast.Subscript) or not isinstance(node.ctx, ast.Load):
            continue
        parts = node.slice.elts[1:] if isinstance(node.slice, ast.Tuple) else []
        if any(map(_may_be_tensor, parts)) and (line is None or covers(node, line)):
            if not case.draft.source(node.value).endswith(".contiguous()"):
                yield node.value


def _may_be_tensor(part: ast.expr) -> bool:
    return isinstance(part, ast.Name | ast.Attribute | ast.Call | ast.Subscript)
