"""Runs a PyTorch file with every expression that may be PyTorch's noted: callee, arguments, result."""

import ast
import copy
import operator
import sys
import types
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from reprod_align.explain.code import Code
from reprod_align.porting.calls.names import name_object
from reprod_align.porting.calls.parts import find_part, is_part
from reprod_align.porting.calls.steps import MadeOptimizer, stand_in
from reprod_align.porting.calls.values import Built, RecordedCall, read_settings

_KEPT: Final = 3  # calls of one place
_MOST: Final = 12  # with those whose arguments are of another form
_LARGEST: Final = 1 << 21  # elements of a tensor that is kept
_FRAME_BOUND: Final = {"super", "locals", "globals", "vars", "dir", "eval", "exec", "__import__"}
_EMPTY: Final = {"torch.Tensor", "torch.FloatTensor", "torch.LongTensor"}
"""classes that give a tensor without values where they are given sizes"""
_HOOK: Final = "__noted__"


@dataclass
class Fact:
    """What was seen at one place of the file."""

    callees: set[str] = field(default_factory=set)
    """public names: "torch.cat", "Tensor.view", "Module.register_buffer"; "" for what is not PyTorch's"""
    calls: list[RecordedCall] = field(default_factory=list)
    forms: set[Any] = field(default_factory=set)
    """of the arguments of its calls: dtypes and dimensions of tensors, switches, what is None"""
    kinds: set[str] = field(default_factory=set)
    """of a receiver or of operands: "int", "float" ... for tensors, names of classes for layers"""
    derived: bool = False
    """whether a receiver is of a class derived from PyTorch's"""
    values: list[Any] = field(default_factory=list)
    """what was read of a layer; of a module by `getattr`, each name with the public one"""
    owners: set[int] = field(default_factory=set)
    """where the Linear layers whose attribute is read were made"""
    inplace: bool = False
    """whether a layer that is made here changes its input in place, and that is read afterwards"""
    shared: bool = False
    """whether the weight of a Linear that is made here belongs to another kind of module too"""


@dataclass(frozen=True)
class LinearWeight:
    """The weight of a Linear, which lies the other way in Paddle."""

    tensor: Any
    owner: int
    """where the layer was made"""


class TooLarge(Exception):
    """A value is not kept."""


class CallRecorder:
    """What the hooks of a noted module call."""

    def __init__(self, kept: int = _KEPT) -> None:
        """Start with no facts."""
        self.facts: dict[int, Fact] = {}
        self._torch = sys.modules["torch"]
        self._is_batched = import_module("reprod_align.backends.torch.private").is_batched
        self._kept = kept
        self._busy = False
        self._made: dict[int, tuple[int, Any]] = {}
        """id of a Linear -> where it was made, and itself, which keeps the id its own"""
        self._weights: dict[int, tuple[int, Any]] = {}
        """id of a Linear's weight -> where the layer was made, and the weight"""
        self.layers: dict[int, tuple[Any, Built]] = {}
        """id of a layer that a kept call made -> itself, which keeps the id its own, and its record"""
        self.notes_layers = True
        """whether the layers that are made now are noted: not those of a training loop"""
        self.widened = True
        """whether the run gives float64 where the model asks for float32"""
        self.inplace: dict[int, list[Any]] = {}
        """where layers that change their input in place are made -> those layers"""
        self.parts: set[int] = set()
        """statements that change a part of a tensor in place through which a gradient flows"""
        self.functions: dict[str, list[tuple[tuple[bool, bool], ...]]] = {}
        """class of a custom function -> of each call's arguments, which are tensors, which need a gradient"""

    # the hooks: each evaluates what the expression did, and returns its value

    def call(self, site: int, function: Any, *arguments: Any, **keywords: Any) -> Any:
        """Call a function."""
        if self._busy:
            return function(*arguments, **keywords)
        name, receiver = self._name(function)
        self._note_function(function, arguments)
        fact = self.facts.setdefault(site, Fact())
        fact.callees.add(name)
        if function in (int, float) and arguments and isinstance(arguments[0], self._torch.Tensor):
            fact.kinds.add("axes" if arguments[0].ndim else "number")
        if function is hasattr and isinstance(arguments[0], self._torch.nn.Module):
            found = hasattr(*arguments)
            fact.kinds |= {self._find_kind(arguments[0])} if found else set()
            return found
        if function is getattr and isinstance(arguments[0], types.ModuleType):
            found = getattr(*arguments)
            fact.values.append((arguments[1], name_object(found)))
            return found
        form = self._describe_form((arguments, keywords, receiver)) if name else None
        wanted = bool(name) and self._wants(fact, form)
        if not wanted and name != "torch.nn.Linear":
            made = function(*arguments, **keywords)
            return self._note_inplace(site, made) if name else made
        makes_optimizer = name.startswith("torch.optim.") and self._is_optimizer(function)
        given = stand_in(arguments, keywords) if makes_optimizer else (arguments, keywords)
        try:
            self._busy = True
            held: tuple[Any, ...] = (*map(self._copy, given), self._copy(receiver))
        except TooLarge:
            held = ()
        finally:
            self._busy = False
        before = self._torch.get_rng_state() if held else None
        result = self._note_inplace(site, function(*arguments, **keywords))
        if name == "torch.nn.Linear":
            self._made[id(result)] = site, result
        if held and wanted:
            fact.forms.add(form)
            changed = receiver if receiver is not None else next(iter(arguments), None)
            drawn = not self._torch.equal(before, self._torch.get_rng_state())
            drawn = drawn or (name in _EMPTY and all(type(one) is int for one in arguments))
            made = MadeOptimizer(function, *held[:2]) if makes_optimizer else result
            self._keep(fact, held, made, changed if name.endswith("_") else None, drawn)
        return result

    def _note_inplace(self, site: int, made: Any) -> Any:
        """Note a layer that changes its input in place; return what is given."""
        if getattr(made, "inplace", False) is True and isinstance(made, self._torch.nn.Module):
            self.inplace.setdefault(site, []).append(made)
        return made

    def _note_function(self, function: Any, arguments: tuple[Any, ...]) -> None:
        """Note what a custom function is applied to."""
        while isinstance(function, partial):
            arguments, function = (*function.args, *arguments), function.func
        owner, custom = getattr(function, "__self__", None), self._torch.autograd.Function
        if isinstance(owner, type) and issubclass(owner, custom) and function.__name__ == "apply":
            calls = self.functions.setdefault(owner.__name__, [])
            given = tuple(
                (self._is_tensor(one), self._is_tensor(one) and one.requires_grad)
                for one in arguments
            )
            if given not in calls:
                calls.append(given)

    def operate(self, site: int, word: str, left: Any, right: Any) -> Any:
        """Note the operands; the operation itself is done by what is returned."""
        self._note_operands(site, left, right)
        return _OPERATORS[word](left, right)

    def note_augmented(self, site: int, left: Any, right: Any) -> Any:
        """Note the operands of `left += right`, and return the right one."""
        self._note_operands(site, left, right)
        return right

    def read(self, site: int, held: Any, name: str) -> Any:
        """Read an attribute."""
        value = getattr(held, name)
        kind = self._find_kind(held)
        if kind:
            fact = self.facts.setdefault(site, Fact())
            fact.kinds.add(kind)
            if isinstance(held, self._torch.nn.Module):
                fact.derived = fact.derived or name_object(type(held)) != kind
                fact.values.append(... if isinstance(value, self._torch.Tensor) else value)
                owner, _ = self._made.get(id(held), (-1, None))
                if owner >= 0:
                    fact.owners.add(owner)
                    if name == "weight":
                        self._weights[id(value)] = owner, value
        return value

    def item(self, site: int, held: Any, index: Any) -> Any:
        """Read an item; note layers whose number is a tensor, and new axes beside tensors or numbers.

        Also a list of slices, which PyTorch reads as it does a tuple.
        """
        value = held[index]
        if isinstance(index, list) and self._is_tensor(held):
            if any(isinstance(one, slice | None | types.EllipsisType) for one in index):
                self.facts.setdefault(site, Fact()).kinds.add("list")
        if isinstance(held, self._torch.nn.Module) and self._is_tensor(index):
            self.facts.setdefault(site, Fact()).kinds.add("layer")
        if isinstance(index, tuple) and self._is_tensor(held) and not self._busy:
            fact = self.facts.setdefault(site, Fact())
            form = self._describe_form((held, index))
            chooses = any(self._is_tensor(one) or isinstance(one, int) for one in index)
            if chooses and self._wants(fact, form):
                with suppress(TooLarge):
                    given, default = self._copy((held, index)), self._torch.get_default_dtype()
                    fact.forms.add(form)
                    fact.calls.append(
                        RecordedCall(
                            given,
                            {},
                            self._copy(value),
                            default_dtype=default,
                            widened=self.widened,
                        )
                    )
        return value

    def note_target(self, site: int, held: Any) -> Any:
        """Note what an attribute is given to."""
        kind = self._find_kind(held)
        if kind.startswith("torch.nn."):
            fact = self.facts.setdefault(site, Fact())
            fact.kinds.add(kind)
            fact.derived = fact.derived or name_object(type(held)) != kind
            owner, _ = self._made.get(id(held), (-1, None))
            if owner >= 0:
                fact.owners.add(owner)
        return held

    def _note_operands(self, site: int, left: Any, right: Any) -> None:
        if self._busy or not (self._is_tensor(left) or self._is_tensor(right)):
            return
        fact = self.facts.setdefault(site, Fact())
        kinds = (self._find_kind(left), self._find_kind(right))
        fact.kinds.add(" ".join(kinds))
        form = self._describe_form((left, right))
        if self._wants(fact, form):
            try:
                operands = self._copy((left, right))
            except TooLarge:
                return
            fact.forms.add(form)
            default = self._torch.get_default_dtype()
            fact.calls.append(
                RecordedCall(operands, {}, None, default_dtype=default, widened=self.widened)
            )

    def augment(self, site: int, held: Any, index: Any, word: str, value: Any) -> None:
        """Do `held[index] += value`, or another one of its kind."""
        self.store(site, getattr(operator, word)(held[index], value), held, index)

    def store(self, site: int, value: Any, held: Any, index: Any) -> None:
        """Do `held[index] = value`."""
        kept = None
        if self._is_tensor(held) and not self._busy:
            fact = self.facts.setdefault(site, Fact())
            form = self._describe_form((held, index, value))
            with suppress(TooLarge):
                kept = self._copy((held, index, value)) if self._wants(fact, form) else None
        held[index] = value
        if kept is not None:
            fact.forms.add(form)
            default = self._torch.get_default_dtype()
            fact.calls.append(
                RecordedCall(
                    kept[1:],
                    {},
                    None,
                    kept[0],
                    self._copy(held),
                    default,
                    widened=self.widened,
                    spread=_is_spread(held),
                )
            )

    def note_part(self, site: int, held: Any, part: Any) -> None:
        """Note that a part of a tensor was changed in place."""
        if self._is_tensor(held) and self._is_tensor(part) and is_part(held, part):
            self.parts.add(site)

    def note_shared(self, model: Any) -> None:
        """Note which Linear layers of a model share their weight: with a table, with a list of parameters."""
        linear = self._torch.nn.Linear
        others = {
            id(one)
            for module in model.modules()
            if not isinstance(module, linear)
            for one in module.parameters(recurse=False)
        }
        for site, layer in self._made.values():
            if id(layer.weight) in others:
                self.facts[site].shared = True

    # ------------------------------------------------------------------ values

    def _keep(self, fact: Fact, held: Any, result: Any, changed: Any, drawn: bool) -> None:
        try:
            self._busy = True
            made = self._copy(result)
            after = self._copy(changed)
        except TooLarge:
            return
        finally:
            self._busy = False
        if self.notes_layers and isinstance(made, Built) and name_object(type(result)):
            self.layers[id(result)] = result, made
        dtype = self._torch.get_default_dtype()
        fact.calls.append(
            RecordedCall(held[0], held[1], made, held[2], after, dtype, drawn, widened=self.widened)
        )

    def _wants(self, fact: Fact, form: Any) -> bool:
        """Tell whether a call is kept: one of the first, or of a form that none of these has.

        Where float32 is not widened, of those with float32 alone.
        """
        if not self.widened and (form in fact.forms or "torch.float32" not in str(form)):
            return False
        return len(fact.calls) < (self._kept if form in fact.forms else max(self._kept, _MOST))

    def _describe_form(self, value: Any) -> Any:
        """Return what tells apart two calls that one conversion may not serve."""
        if self._is_tensor(value):
            return str(value.dtype), value.ndim
        if isinstance(value, list | tuple):
            return tuple(map(self._describe_form, value)) if len(value) <= _MOST else len(value)
        if isinstance(value, dict):
            return tuple((str(key), self._describe_form(one)) for key, one in value.items())
        if value is None or isinstance(value, bool | str):
            return value
        if isinstance(
            value, int | float
        ):  # a smoothing of zero is none; an axis may count from behind
            return type(value).__name__, (value > 0) - (value < 0)
        return type(value).__name__

    def _is_optimizer(self, function: Any) -> bool:
        return isinstance(function, type) and issubclass(function, self._torch.optim.Optimizer)

    def _is_tensor(self, value: Any) -> bool:
        return isinstance(value, self._torch.Tensor)

    def _find_kind(self, value: Any) -> str:
        """Return "float", "int", "bool" or "complex" for a tensor, "number" for one, a layer's class.

        Of several results under names that class too: "torch.return_types.max".
        """
        if self._is_tensor(value):
            dtype = value.dtype
            if dtype.is_complex:
                return "complex"
            return "float" if dtype.is_floating_point else "bool" if "bool" in str(dtype) else "int"
        if isinstance(value, bool | int | float):
            return f"number {type(value).__name__}"
        if type(value).__module__ == "torch.return_types":
            return f"torch.return_types.{type(value).__name__}"
        if isinstance(value, self._torch.nn.Module):
            for base in type(value).__mro__:
                name = name_object(base)
                if name:
                    return name
        return ""

    def _name(self, function: Any) -> tuple[str, Any]:
        """Return the public name of a callable of PyTorch's and its receiver; "" for anything else."""
        torch = self._torch
        if isinstance(function, type):
            return name_object(function), None
        owner = getattr(function, "__self__", None)
        if isinstance(owner, torch.Tensor):
            return f"Tensor.{function.__name__}", owner
        if isinstance(owner, torch.nn.Module):
            inner = getattr(function, "__func__", function)
            if (getattr(inner, "__module__", "") or "").startswith("torch.nn.modules"):
                kind = inner.__qualname__.partition(".")[0]
                if function.__name__ == "__init__":  # of the layer that the class is derived from
                    kinds = [one for one in map(name_object, type(owner).__mro__) if one]
                    kind = kinds[0].rpartition(".")[2] if kinds else kind
                return f"{kind}.{function.__name__}", owner
            return "", None
        if isinstance(function, torch.nn.Module):
            return "", None
        for kind in (torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler):
            if isinstance(owner, kind):
                return f"{kind.__name__}.{function.__name__}", owner
        name = name_object(function)
        if name:
            return name, None
        if isinstance(owner, type) and name_object(owner):
            return f"{name_object(owner)}.{function.__name__}", None
        if not name and type(owner).__module__.startswith("torch") and owner is not None:
            return f"{type(owner).__qualname__}.{function.__name__}", owner
        return name, None

    def _copy(self, value: Any) -> Any:
        """Return a value with its tensors copied; objects are kept as they are, of layers the sizes."""
        torch = self._torch
        if isinstance(value, torch.Tensor):
            if value.numel() > _LARGEST or self._is_batched(value):
                raise TooLarge
            takes = value.requires_grad and torch.is_grad_enabled()
            made = value.detach().clone().requires_grad_(takes)
            if isinstance(value, torch.nn.Parameter):
                made = torch.nn.Parameter(made, requires_grad=takes)
            if id(value) in self._weights:
                return LinearWeight(made, self._weights[id(value)][0])
            return made
        if isinstance(value, torch.nn.Module):
            if "training" not in vars(value):  # before its __init__
                return Built(())
            return Built(
                tuple(one.numel() for one in value.parameters()),
                tuple(one.numel() for one in value.buffers() if one.is_floating_point()),
                read_settings(value),
            )
        if isinstance(value, torch.Size):
            return list(value)
        if (
            isinstance(value, tuple) and type(value) is not tuple
        ):  # torch.return_types.max, named tuples
            return tuple(map(self._copy, value))
        if type(value) in (list, tuple, set):
            return type(value)(map(self._copy, value))
        if type(value) in (dict, OrderedDict):
            return type(value)((key, self._copy(one)) for key, one in value.items())
        if isinstance(value, types.GeneratorType | map | filter | zip):
            raise TooLarge  # reading it would use it up
        return value


_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "In": lambda a, b: a in b,
    "NotIn": lambda a, b: a not in b,
}
for _word, _sign in {
    "Add": "+", "Sub": "-", "Mult": "*", "Div": "/", "FloorDiv": "//", "Mod": "%", "Pow": "**",
    "MatMult": "@", "BitAnd": "&", "BitOr": "|", "BitXor": "^", "LShift": "<<", "RShift": ">>",
    "Eq": "==", "NotEq": "!=",
    "Lt": "<", "LtE": "<=", "Gt": ">", "GtE": ">=",
}.items():  # fmt: skip
    _OPERATORS[_word] = eval(f"lambda a, b: a {_sign} b")
_INPLACE: Final = {
    "Add": "iadd", "Sub": "isub", "Mult": "imul", "Div": "itruediv", "FloorDiv": "ifloordiv",
    "Mod": "imod", "Pow": "ipow", "BitAnd": "iand", "BitOr": "ior", "BitXor": "ixor",
}  # fmt: skip
"""an operator -> the function that changes its first operand"""
SIGNS: Final = {
    "Add": "+", "Sub": "-", "Mult": "*", "Div": "/", "FloorDiv": "//", "Mod": "%", "Pow": "**",
    "Eq": "==", "NotEq": "!=", "Lt": "<", "LtE": "<=", "Gt": ">", "GtE": ">=", "MatMult": "@",
    "BitAnd": "&", "BitOr": "|", "BitXor": "^", "LShift": "<<", "RShift": ">>",
}  # fmt: skip


def number_nodes(tree: ast.Module) -> dict[int, ast.AST]:
    """Return the nodes of a tree by number, and note each one's number in it."""
    numbered = dict(enumerate(ast.walk(tree)))
    for number, node in numbered.items():
        node._site = number  # type: ignore[attr-defined]
    return numbered


def _is_spread(tensor: Any) -> bool:
    """Tell whether a tensor is a view with gaps or exchanged axes, as Paddle's is; not an expanded one."""
    return not tensor.is_contiguous() and 0 not in tensor.stride()


def list_items(node: ast.Assign) -> list[ast.Subscript]:
    """Return the items that `x[index], y[index] = value` sets, none of any other assignment."""
    target = node.targets[0]
    if len(node.targets) > 1 or not isinstance(target, ast.Tuple):
        return []
    if any(isinstance(one, ast.Starred) for one in target.elts):
        return []
    return [one for one in target.elts if isinstance(one, ast.Subscript)]


def _adds_axes(node: ast.expr) -> bool:
    """Tell whether an index has a None beside a number or what may be a tensor."""
    parts = node.elts if isinstance(node, ast.Tuple) else []
    plain = [one.value for one in parts if isinstance(one, ast.Constant)]
    chosen = [one for one in parts if not isinstance(one, ast.Constant | ast.Slice)]
    return None in plain and (bool(chosen) or any(isinstance(one, int) for one in plain))


class _Slicing(ast.NodeTransformer):
    """Makes an expression of an index: its own slices are objects."""

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.Tuple):
            return self.generic_visit(node)
        if not isinstance(node, ast.Slice):
            return node
        parts = [one or ast.Constant(None) for one in (node.lower, node.upper, node.step)]
        return ast.Call(ast.Name("slice", ast.Load()), parts, [])


class _Noting(ast.NodeTransformer):
    """Puts the hooks into a tree whose nodes are numbered."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Name) and node.func.id in _FRAME_BOUND:
            if node.func.id == "super":
                return node
            return self.generic_visit(node)
        function: ast.expr
        if isinstance(node.func, ast.Attribute):  # read as it is: a bound method
            node.func.value = self.visit(node.func.value)
            function = node.func
        else:
            function = self.visit(node.func)
        arguments = [self.visit(one) for one in node.args]
        keywords = [self.visit(one) for one in node.keywords]
        return self._hook("call", node, [function, *arguments], keywords)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        word = type(node.op).__name__
        if word not in _OPERATORS:
            return self.generic_visit(node)
        parts = [ast.Constant(word), self.visit(node.left), self.visit(node.right)]
        return self._hook("operate", node, parts)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        word = type(node.ops[0]).__name__
        if len(node.ops) > 1 or word not in _OPERATORS:
            return self.generic_visit(node)
        parts = [ast.Constant(word), self.visit(node.left), self.visit(node.comparators[0])]
        return self._hook("operate", node, parts)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        node.value = self.visit(node.value)
        if isinstance(node.target, ast.Name | ast.Attribute):
            left = copy.deepcopy(node.target)
            left.ctx = ast.Load()
            node.value = self._hook("note_augmented", node, [left, node.value])
            return node
        word = ast.Constant(_INPLACE.get(type(node.op).__name__))
        if word.value is None or not isinstance(node.target, ast.Subscript):
            return node
        held, index = self.visit(node.target.value), self.visit(node.target.slice)
        parts = [held, _Slicing().visit(index), word, node.value]
        return ast.copy_location(ast.Expr(self._hook("augment", node, parts)), node)

    def visit_Assign(self, node: ast.Assign) -> ast.AST | list[ast.stmt]:
        target = node.targets[0]
        if len(node.targets) == 1 and isinstance(target, ast.Subscript):
            return self._store(node, target, self.visit(node.value))  # first, as Python does
        items = list_items(node)
        if not items or not isinstance(target, ast.Tuple):
            return self.generic_visit(node)
        stores: list[ast.stmt] = []
        for at, one in enumerate(target.elts):
            if isinstance(one, ast.Subscript):
                name = f"{_HOOK}{at}"
                target.elts[at] = ast.copy_location(ast.Name(name, ast.Store()), one)
                stores.append(self._store(one, one, ast.Name(name, ast.Load())))
        return [self.generic_visit(node), *stores]  # type: ignore[list-item]

    def _store(self, node: ast.AST, target: ast.Subscript, value: ast.AST) -> ast.stmt:
        """Return the hook of an item that is set; node: whose number it has."""
        held: Any = self.visit(target.value)
        index: Any = _Slicing().visit(self.visit(target.slice))
        hook = self._hook("store", node, [value, held, index])  # type: ignore[list-item]
        return ast.copy_location(ast.Expr(hook), node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if isinstance(node.ctx, ast.Store):
            node.value = self._hook("note_target", node, [self.visit(node.value)])
            return node
        if not isinstance(node.ctx, ast.Load) or node.attr.startswith("__"):
            return self.generic_visit(node)
        return self._hook("read", node, [self.visit(node.value), ast.Constant(node.attr)])

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        kinds = ast.Name | ast.Attribute | ast.Call | ast.Subscript | ast.BinOp
        plain = isinstance(node.slice, kinds)
        if not isinstance(node.ctx, ast.Load) or not (plain or _adds_axes(node.slice)):
            return self.generic_visit(node)
        index: Any = self.visit(node.slice)
        index = index if plain else _Slicing().visit(index)
        return self._hook("item", node, [self.visit(node.value), index])

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        part = find_part(node)
        if part is None:
            return self.generic_visit(node)
        held = copy.deepcopy(part.target.value)
        node.value = self._hook("note_part", node, [held, self.visit(node.value)])
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is not None:
            node.value = self.visit(node.value)
        return node

    def visit_arguments(self, node: ast.arguments) -> ast.AST:
        node.defaults = [self.visit(one) for one in node.defaults]
        node.kw_defaults = [one and self.visit(one) for one in node.kw_defaults]
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        if node.name in ("__getattribute__", "__getattr__"):  # which the hooks run too, without end
            return node
        node.returns, kept = None, node.returns
        self.generic_visit(node)
        node.returns = kept
        return node

    def visit_Global(self, node: ast.Global) -> ast.AST:
        return node

    def _hook(
        self,
        word: str,
        node: ast.AST,
        parts: list[ast.expr],
        keywords: list[ast.keyword] | None = None,
    ) -> ast.Call:
        hook = ast.Attribute(ast.Name(_HOOK, ast.Load()), word, ast.Load())
        number = ast.Constant(node._site)  # type: ignore[attr-defined]
        made = ast.Call(hook, [number, *parts], keywords or [])
        return ast.copy_location(made, node)


def load_noted(code: Code, name: str, path: Path, recorder: CallRecorder) -> types.ModuleType:
    """Execute a file's code with hooks, as the module `name`; its nodes must be numbered.

    What the code raises passes unchanged.
    """
    noted = ast.fix_missing_locations(_Noting().visit(copy.deepcopy(code.tree)))
    module = types.ModuleType(name)
    module.__file__ = str(path)
    setattr(module, _HOOK, recorder)
    sys.modules[name] = module
    exec(compile(noted, str(path), "exec"), vars(module))
    return module
