"""Tensors: indices, views, shapes."""

import ast
from collections.abc import Iterable, Iterator

from reprod_align.explain.code import Edit, covers, dotted
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


class ScalarOperand(Remedy):
    """Arithmetic methods take numbers in PyTorch and only tensors in Paddle; operators take both."""

    _OPERATORS = {"div": "/", "divide": "/", "true_divide": "/", "mul": "*", "multiply": "*",
                  "add": "+", "sub": "-", "subtract": "-"}  # fmt: skip

    def propose(self, case: Case) -> Iterable[Edit]:
        """Write the operator in the problem's line."""
        if not case.find(
            r"must be Tensor, but got (float|int)|'(float|int)' object has no attribute"
        ):
            return
        for node in case.draft.calls(case.problem.line):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            if (
                name.removesuffix("_") in self._OPERATORS
                and len(node.args) == 1
                and not node.keywords
            ):
                assert isinstance(node.func, ast.Attribute)
                left, right = case.draft.source(node.func.value), case.draft.source(node.args[0])
                if name.endswith("_") and (
                    not dotted(node.func.value) or right.startswith("paddle.full")
                ):
                    continue
                if name.endswith("_"):
                    number = f"paddle.full([], {right}, {left}.dtype)"
                    yield case.draft.replace(node.args[0], number)
                elif left != "paddle":
                    yield case.draft.replace(node, f"(({left}) {self._OPERATORS[name]} ({right}))")
