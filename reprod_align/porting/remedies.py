"""The remedies of known defects: lost names, refused arguments, tensors, layers that compute something else.

`REMEDIES` at the end has the order in which they are tried.
"""

import ast
import builtins
import inspect
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from reprod_align.explain.code import Edit, covers, dotted
from reprod_align.porting.calls.adapters import HELPERS
from reprod_align.porting.calls.names import find_object
from reprod_align.porting.loop import Case, Remedy, Substitute, find_start


class InplaceArgument(Remedy):
    """Paddle's layer has no inplace argument; its result is the same."""

    entry = "activation-inplace"

    def propose(self, case: Case) -> Iterable[Edit]:
        """Leave the argument out, in every call of the layer or function."""
        found = case.find(r"(\w+)(?:\.__init__)?\(\) got an unexpected keyword argument '(\w+)'")
        if not found or found[2] not in ("inplace", "memory_format", "non_blocking"):
            return
        for node in case.draft.calls():
            kept = [one for one in node.keywords if one.arg != found[2]]
            name = node.func.attr if isinstance(node.func, ast.Attribute) else dotted(node.func)
            if name == found[1] and kept != node.keywords:
                texts = map(case.draft.source, [*node.args, *kept])
                yield case.draft.replace(
                    node, f"{case.draft.source(node.func)}({', '.join(texts)})"
                )


class PadRow(Substitute):
    """Paddle's embedding returns zeros for padding_idx; PyTorch returns the row, without a gradient."""

    entry = "embedding-padding-idx"

    def applies(self, case: Case) -> bool:
        """Tell whether zeros are found where PyTorch has other numbers, in a draft that pads."""
        is_zero = case.find(r"its output does not; .*, got 0(?![.\d])") is not None
        return is_zero and "padding_idx" in case.draft.text


class PadRowFunction(PadRow):
    """Paddle's embedding returns zeros for padding_idx; PyTorch returns the row, without a gradient."""

    names = ("paddle.nn.functional.embedding",)
    helper = '''
def embed(input, weight, padding_idx=None):
    """Return the rows of a table; the row of padding_idx gets no gradient."""
    rows = paddle.nn.functional.embedding(input, weight)
    if padding_idx is None:
        return rows
    is_pad = (input == padding_idx % weight.shape[0]).unsqueeze(-1)
    return paddle.where(is_pad, rows.detach(), rows)
'''


class PadRowLayer(PadRow):
    """Paddle's Embedding returns zeros for padding_idx; PyTorch's returns the row, without a gradient."""

    names = ("paddle.nn.Embedding",)
    helper = '''
class Embedding(paddle.nn.Embedding):
    """An embedding whose row of padding_idx is returned, and gets no gradient."""

    def forward(self, input):
        rows = paddle.nn.functional.embedding(input, self.weight)
        if self._padding_idx in (None, -1):
            return rows
        is_pad = (input == self._padding_idx).unsqueeze(-1)
        return paddle.where(is_pad, rows.detach(), rows)
'''


class IdleQuery(Substitute):
    """Paddle's attention gives NaN to a query that may attend to nothing; PyTorch's gives zeros."""

    names = ("paddle.compat.nn.functional.scaled_dot_product_attention",)
    helper = HELPERS["attend"]

    def applies(self, case: Case) -> bool:
        """Tell whether NaN is found where PyTorch has numbers."""
        return case.find(r"got nan") is not None


class SlopeOfGivenInput(Substitute):
    """Paddle's gradient of prelu ends the process where its input needs no gradient."""

    names = ("paddle.nn.PReLU",)
    helper = '''
class GivenPReLU(paddle.nn.PReLU):
    """A PReLU whose input may be one that needs no gradient."""

    def forward(self, x):
        axes = [1, -1] + [1] * (x.ndim - 2)
        slope = self._weight if self._weight.size == 1 else self._weight.reshape(axes)
        return paddle.where(x > 0, x, slope * x)
'''

    def applies(self, case: Case) -> bool:
        """Tell whether a fault ended the process."""
        return case.find(r"the process ended with SIG") is not None


class GridOfGivenImage(Substitute):
    """Paddle's gradient of grid_sample ends the process where its image needs no gradient."""

    names = ("paddle.nn.functional.grid_sample",)
    helper = '''
def grid_sample(x, grid, mode="bilinear", padding_mode="zeros", align_corners=False):
    """Sample an image at a grid; the image may be one that needs no gradient."""
    if x.stop_gradient:
        x = x.detach()
        x.stop_gradient = False
    return paddle.nn.functional.grid_sample(x, grid, mode, padding_mode, align_corners)
'''

    def applies(self, case: Case) -> bool:
        """Tell whether a fault ended the process."""
        return case.find(r"the process ended with SIG") is not None


_PLAIN: Final = "(?:Tensor|NoneType|int|float|bool|str|list|tuple|dict)'"
"""what keeps no setting behind an underscore"""


class OtherCase(Remedy):
    """This Paddle writes the name with other capitals."""

    def propose(self, case: Case) -> Iterable[Edit]:
        """Write the name as the module has it, wherever the draft reads it."""
        found = case.find(r"module '(paddle[\w.]*)' has no attribute '(\w+)'")
        if not found:
            return
        alike = [name for name in dir(find_object(found[1])) if name.lower() == found[2].lower()]
        if len(alike) == 1:
            for node in case.draft.attributes(found[2]):
                yield case.draft.replace(node, f"{case.draft.source(node.value)}.{alike[0]}")


class MissingSubmodule(Remedy):
    """The draft reads a module that nothing imports."""

    def propose(self, case: Case) -> Iterable[Edit]:
        """Import the module."""
        found = case.find(r"module '([\w.]+)' has no attribute '(\w+)'")
        name = f"{found[1]}.{found[2]}" if found else ""
        if name and inspect.ismodule(find_object(name)):
            yield case.draft.insert(find_start(case.draft), f"import {name}")


class PrivateSetting(Remedy):
    """Paddle's layers keep a setting under a name that begins with an underscore."""

    RENAMED: Final = {"eps": "epsilon"}
    """PyTorch's name -> what Paddle calls it"""

    def propose(self, case: Case) -> Iterable[Edit]:
        """Read the underscored name, in the problem's line."""
        found, line = (
            case.find(rf"'(?!{_PLAIN})\w+' object has no attribute '([a-z]\w*)'"),
            case.problem.line,
        )
        if found is None or line is None:
            return
        for node in case.draft.attributes(found[1], line):
            if isinstance(node.ctx, ast.Load):
                name = self.RENAMED.get(found[1], found[1])
                yield case.draft.replace(node, f"{case.draft.source(node.value)}._{name}")


class IndexTransposed(Remedy):
    """Integers that index a transposed tensor past its first axis need contiguous() before it in Paddle."""

    entry = "index-transposed"

    def propose(self, case: Case) -> Iterable[Edit]:
        """Call contiguous() before such an index: in the problem's line, or everywhere.

        Everywhere for a finding, and for sizes that do not fit: the index may have given them far away.
        """
        line = case.problem.line
        if case.problem.finding is not None or case.find(r"dimension"):
            line = None
        elif not case.find(r"Input\(index|index.*out of|wrong value"):
            return
        for node in _find_indexed(case, line):
            yield case.draft.replace(node, f"{case.draft.source(node)}.contiguous()")


def _find_indexed(case: Case, line: int | None) -> Iterator[ast.expr]:
    """Yield what is read at [:, index] or the like, where `index` may be a tensor or a list.

    `index` may be a sum of two lists too. Most sums are numbers, so a sum counts in the problem's line alone.
    """
    for node in case.draft.nodes:
        if not isinstance(node, ast.Subscript) or not isinstance(node.ctx, ast.Load):
            continue
        parts = node.slice.elts[1:] if isinstance(node.slice, ast.Tuple) else []
        kinds = _MAY_BE_TENSORS if line is None else _MAY_BE_TENSORS | ast.BinOp
        if any(isinstance(one, kinds) for one in parts) and (line is None or covers(node, line)):
            if not case.draft.source(node.value).endswith(".contiguous()"):
                yield node.value


_MAY_BE_TENSORS: Final = ast.Name | ast.Attribute | ast.Call | ast.Subscript | ast.List
"""kinds of an index that may be a tensor, or a list, which is made one"""


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


class ExtremesOfBooleans(Remedy):
    """Paddle's maximum and minimum along an axis know no booleans."""

    def propose(self, case: Case) -> Iterable[Edit]:
        """Take them of integers, in the innermost call of the problem's line."""
        if not case.find(r"bool\) of kernel `a?(max|min)`"):
            return
        for node in [one for one in case.draft.calls(case.problem.line) if one.args][-1:]:
            first, text = node.args[0], case.draft.source(node.args[0])
            yield case.draft.replace(first, f"({text}).astype('int32')")
            end = case.draft.replace(node, "").end
            yield Edit(end, end, ".astype('bool')")


_SPACES: Final = ("paddle.Tensor", "paddle.nn.functional")


class ChangedInPlace(Remedy):
    """Paddle's backward pass refuses a tensor that was changed in place after another call had kept it."""

    def propose(self, case: Case) -> Iterable[Edit]:
        """Leave tensors as they are wherever the result of such a call is what the draft reads."""
        if not case.find(r"modified by an inplace operation"):
            return
        for node in case.draft.calls():
            name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            is_read = not isinstance(next(case.draft.parents(node), None), ast.Expr)
            if is_read and name.endswith("_") and any(
                find_object(f"{space}.{name[:-1]}") for space in _SPACES
            ):  # fmt: skip
                end = case.draft.replace(node.func, "").end
                yield Edit(end - 1, end, "")


class ChangedQuotient(Remedy):
    """Paddle's gradient of a division reads the quotient, so the quotient may not be changed in place."""

    def propose(self, case: Case) -> Iterator[Edit]:
        """Copy a quotient before the first of its items is changed, in each function of the draft."""
        if case.find("modified by an inplace operation") is None:
            return
        for function in case.draft.nodes:
            if isinstance(function, ast.FunctionDef):
                divided, changed = set[str](), dict[str, ast.Assign | ast.AugAssign]()
                for node in sorted(_list_assignments(function), key=lambda one: one.lineno):
                    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                    if isinstance(target, ast.Subscript) and dotted(target.value) in divided:
                        changed.setdefault(dotted(target.value), node)
                    elif isinstance(target, ast.Name) and _divides(node.value):
                        divided.add(target.id)
                for name, first in changed.items():
                    yield case.draft.insert(first, f"{name} = {name}.clone()\n")


def _list_assignments(function: ast.FunctionDef) -> Iterator[ast.Assign | ast.AugAssign]:
    for node in ast.walk(function):
        if isinstance(node, ast.Assign | ast.AugAssign):
            yield node


def _divides(value: ast.expr) -> bool:
    return any(isinstance(getattr(one, "op", None), ast.Div) for one in ast.walk(value))


class IndependentDivergence(Substitute):
    """Paddle knows no divergence of independent distributions, which is the sum of its parts."""

    names = ("paddle.distribution.kl_divergence",)
    helper = '''
def kl_divergence(p, q):
    """Return the divergence of q from p, that of independent distributions too."""
    if not isinstance(p, paddle.distribution.Independent):
        return paddle.distribution.kl_divergence(p, q)
    made = kl_divergence(p._base, q._base)
    for _ in range(p._reinterpreted_batch_rank):
        made = made.sum(axis=-1)
    return made
'''

    def applies(self, case: Case) -> bool:
        """Tell whether the divergence of such a distribution was asked for."""
        return case.find(r"^NotImplementedError") is not None and "Independent" in case.draft.text


class ShapeAsKey(Remedy):
    """Paddle's shape is a list, which a cache or a dict can't take as a key as it takes PyTorch's."""

    def propose(self, case: Case) -> Iterable[Edit]:
        """Make a tuple of each whole shape that is a key, or that the file's own functions get."""
        if not case.find(r"unhashable type: '[\w.]*(Size|list)'"):
            return
        for node in case.draft.nodes:
            for given in _list_given(node):
                if isinstance(given, ast.Attribute) and given.attr == "shape":
                    yield case.draft.replace(given, f"tuple({case.draft.source(given)})")


def _list_given(node: ast.AST) -> Sequence[ast.expr]:
    """Return the key of a subscript, or what a function of the file or of `self` is given."""
    if isinstance(node, ast.Subscript):
        return [node.slice]
    if isinstance(node, ast.Call):
        name = dotted(node.func).removeprefix("self.")
        if name.isidentifier() and not hasattr(builtins, name):
            return [*node.args, *(one.value for one in node.keywords)]
    return []


REMEDIES: Final[Sequence[Remedy]] = (
    OtherCase(),
    MissingSubmodule(),
    PrivateSetting(),
    InplaceArgument(),
    IndexTransposed(),
    ScalarOperand(),
    PadRowFunction(),
    PadRowLayer(),
    SlopeOfGivenInput(),
    IdleQuery(),
    GridOfGivenImage(),
    ExtremesOfBooleans(),
    ChangedInPlace(),
    ChangedQuotient(),
    IndependentDivergence(),
    ShapeAsKey(),
)
