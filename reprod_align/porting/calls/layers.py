"""What a file does with layers beside calling them, and custom functions.

Settings that it reads; weights of Linear layers, which lie as Paddle's, or as PyTorch's where the file reads
them as matrices. A torch.autograd.Function becomes a PyLayer, whose rules are stricter: Paddle's backward
pass returns one gradient for each tensor that the forward pass was given, and None for one that needs none;
PyTorch's returns one for each argument and drops what is not needed.
"""

import ast
import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any, Final

from reprod_align.explain.code import Code, Edit, dotted
from reprod_align.porting.calls.names import Scope, find_public
from reprod_align.porting.calls.record import Fact, LinearWeight

FUNCTION: Final = "torch.autograd.Function"
_FUNCTIONS: Final = {
    FUNCTION,
    "torch.autograd.function.Function",
    "torch.autograd.function.InplaceFunction",
}
_NEEDS: Final = "needs_input_grad"

TensorArguments = Sequence[tuple[bool, bool]]
"""for each argument of a call whether it was a tensor, and whether it needed a gradient"""


def list_function_edits(
    code: Code, scope: Scope, given: Mapping[str, Sequence[TensorArguments]]
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
    return any(scope.name(one) in _FUNCTIONS for one in kind.bases)


def _edit_passes(
    code: Code,
    forward: ast.FunctionDef,
    backward: ast.FunctionDef,
    calls: Sequence[TensorArguments],
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


def _may_need_none(at: int, calls: Sequence[TensorArguments]) -> bool:
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


_TAKING_WEIGHTS: Final = ("torch.nn.functional.linear",)
"""functions that take the weight of a Linear, whichever way it lies"""


class Layouts:
    """The layouts of a file."""

    def __init__(self, code: Code, facts: dict[int, Fact], scope: Scope) -> None:
        """Find the weights that are read as matrices, and lay the recorded ones as the port has them."""
        self.code, self.facts, self.scope = code, facts, scope
        self.made = {site for site, fact in facts.items() if "torch.nn.Linear" in fact.callees}
        """the calls that make a Linear"""
        self.exposed = self._find_exposed()
        self._settle()

    def _find_exposed(self) -> set[int]:
        """Return the calls that make a Linear whose weight is read or shared as PyTorch's matrix.

        A class derived from Linear that reads its own weight is 0 among them.
        """
        found = {site for site, fact in self.facts.items() if fact.shared}
        for node in self.code.nodes:
            if not isinstance(node, ast.Attribute) or node.attr != "weight":
                continue
            fact = self.facts.get(node._site)  # type: ignore[attr-defined]
            around = next(self.code.parents(node), None)
            if fact is None or "torch.nn.Linear" not in fact.kinds:
                continue
            if fact.derived and not self._sets_alone(node, around):
                found.add(0)
            elif isinstance(node.ctx, ast.Store):
                found |= fact.owners
            elif not self._sets_alone(node, around) and not self._is_taken(around):
                found |= fact.owners
        named = {
            node._site  # type: ignore[attr-defined]
            for node in self.code.nodes
            if isinstance(node, ast.Call) and self.scope.name(node.func)
        }
        return found | (self.made - named if found - named - {0} else set())

    def _is_taken(self, around: ast.AST | None) -> bool:
        """Tell whether a weight is the argument of a function that takes it as it lies."""
        if isinstance(around, ast.keyword):
            around = next(self.code.parents(around), None)
        name = self.scope.name(around.func) if isinstance(around, ast.Call) else ""
        return bool(name) and find_public(name) in _TAKING_WEIGHTS

    def _settle(self) -> None:
        """Lay the recorded weights of Linear layers as the port has them."""

        def lay(value: Any) -> Any:
            if isinstance(value, LinearWeight):
                return value.tensor if value.owner in self.exposed else value.tensor.t()
            if type(value) in (list, tuple):
                return type(value)(map(lay, value))
            if type(value) is dict:
                return {key: lay(one) for key, one in value.items()}
            return value

        for fact in self.facts.values():
            for call in fact.calls:
                call.arguments, call.keywords = lay(call.arguments), lay(call.keywords)
                call.result, call.receiver = lay(call.result), lay(call.receiver)
                call.after = lay(call.after)

    def _sets_alone(self, node: ast.Attribute, around: ast.AST | None) -> bool:
        """Tell whether a weight is read to be initialised, or for what has no layout."""
        if isinstance(around, ast.keyword):
            around = next(self.code.parents(around), None)
        if isinstance(around, ast.Call):
            return self.scope.name(around.func).startswith("torch.nn.init") or _is_init(around)
        if isinstance(around, ast.Attribute) and around.attr == "data":
            around = next(self.code.parents(around), None)
        if isinstance(around, ast.Attribute):
            plain = ("dtype", "device", "requires_grad", "grad", "numel", "is_cuda")
            return around.attr in plain or around.attr.endswith("_")
        return isinstance(around, ast.Compare | ast.Expr)


def _is_init(call: ast.Call) -> bool:
    name = dotted(call.func).rpartition(".")[2]
    draws = re.search(r"normal(?!iz)|uniform", name)  # such as trunc_normal, and not normalize
    return name.endswith("_") or name.startswith("init") or draws is not None


_RENAMED: Final = {
    "running_mean": "_mean", "running_var": "_variance", "eps": "_epsilon", "_modules": "_sub_layers",
    "return_indices": "return_mask", "kernel_size": "ksize",
}  # fmt: skip
"""PyTorch's attribute -> Paddle's, where it is another word than the same one behind an underscore"""
_IN_FULL: Final = {
    (f"paddle.nn.{kind}", "_padding"): "_updated_padding"
    for kind in ("Conv2D", "Conv3D", "Conv2DTranspose", "Conv3DTranspose")
}
"""a setting that Paddle's layer keeps as it is given -> where it keeps a number for each axis"""
_RUNNING: Final = (
    "SyncBatchNorm", *(f"{kind}Norm{n}D" for kind in ("Batch", "Instance") for n in (1, 2, 3)),
)  # fmt: skip
_AFFINE: Final = "(self._weight_attr is not False)"
_COMPUTED: Final = {
    ("paddle.nn.Linear", "in_features"): "self.weight.shape[0]",
    ("paddle.nn.Linear", "out_features"): "self.weight.shape[1]",
    ("paddle.nn.LayerNorm", "normalized_shape"): "tuple(self._normalized_shape)",
    ("paddle.nn.LayerNorm", "elementwise_affine"): _AFFINE,
    **{(f"paddle.nn.InstanceNorm{n}D", "weight"): "self.scale" for n in (1, 2, 3)},
    **{(f"paddle.nn.{kind}", "momentum"): "(1 - self._momentum)" for kind in _RUNNING},
    **{(f"paddle.nn.{kind}", "affine"): _AFFINE for kind in (*_RUNNING, "GroupNorm")},
}
"""what is kept in another form"""
_ASSIGNED: Final = r"\bself\.(\w+)\b(?:: [^=\n]+)? =[^=]"
_BUFFER: Final = r"""register_buffer\(\s*["'](\w+)["']"""
_REGISTERED: Final = r"""register_(?:buffer|parameter)\(\s*["'](\w+)["']"""


@cache
def list_settings(kind: type) -> frozenset[str]:
    """Return the attributes that a class of layers gives its layers, its methods included."""
    return _find_named(kind, _ASSIGNED) | _find_named(kind, _REGISTERED) | frozenset(dir(kind))


@cache
def _list_buffers(kind: type) -> frozenset[str]:
    """Return the buffers that a class of layers registers, or is annotated to have."""
    return _find_named(kind, _BUFFER)


def _find_named(kind: type, pattern: str) -> frozenset[str]:
    """Return the names that a pattern finds in the source of a class and of its base classes."""
    found: set[str] = set()
    for base in kind.__mro__[:-1]:
        with suppress(OSError, TypeError):  # a class without source says nothing
            found |= set(re.findall(pattern, inspect.getsource(base)))
    return frozenset(found)


def write_setting(
    name: str,
    theirs: type,
    target: str,
    ours: type,
    values: Sequence[Any],
    compared: bool = False,
) -> str:
    """Return the text that reads a setting of Paddle's layer `self`, "" to leave the name as it is.

    target: the dotted name of the class `ours`. values: what was read of PyTorch's layers: a setting that
    Paddle's do not have becomes its value, if that was always the same; a buffer becomes None. Where
    PyTorch's layers hold a tuple, Paddle's hold a list, which equals none: `compared`, it is made one.
    """
    if name not in list_settings(theirs):
        return ""
    if (target, name) in _COMPUTED:
        return _COMPUTED[target, name]
    known = list_settings(ours)
    are_tuples = bool(values) and all(isinstance(value, tuple) for value in values)
    for one in (name, f"_{name}", _RENAMED.get(name, "")):
        if one in known:
            if are_tuples:
                one = _IN_FULL.get((target, one), one)
            text = "" if one == name else f"self.{one}"
            return f"tuple({text})" if text and are_tuples and compared else text
    if name in _list_buffers(theirs):
        return "None"
    texts = {repr(value) if _is_plain(value) else "" for value in values}
    return texts.pop() if len(texts) == 1 else ""


def _is_plain(value: Any) -> bool:
    """Tell whether a value can be written as it is shown."""
    if isinstance(value, tuple):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, bool | int | float | str)
