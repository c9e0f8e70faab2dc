"""Which names a statement reads, and which functions a run reaches."""

import ast
import os
import sys
import threading
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from types import BuiltinFunctionType, FrameType, FunctionType
from typing import Any

from reprod_align.explain.code import dotted
from reprod_align.porting.gathering.factories import FactoryWatch, Made

Function = ast.FunctionDef | ast.AsyncFunctionDef
_INSIDE = 12  # entries of a container that are looked at: a block's settings have fewer


@dataclass
class Reads:
    """The names that a statement reads."""

    first: set[str] = field(default_factory=set)
    """when it is run: bases, decorators, defaults, values"""
    later: set[str] = field(default_factory=set)
    """when its functions are called"""
    skipped: list[Function] = field(default_factory=list)
    """functions that nothing calls, whose content was not read"""


def list_reads(
    statement: ast.stmt, runs: Callable[[Function], bool], idle: Container[int] = ()
) -> Reads:
    """Return what a statement reads; runs: whether a function is called; idle: ids of decorators to skip."""
    reads = Reads()
    parts: Iterable[ast.AST] = [statement]
    if isinstance(statement, ast.ClassDef):
        values = (word.value for word in statement.keywords)
        decorators = [one for one in statement.decorator_list if id(one) not in idle]
        parts = (*statement.bases, *values, *decorators, *statement.body)
    for part in parts:
        if isinstance(part, Function):
            _add_function(reads, part, runs(part), idle)
        else:
            reads.first |= read_names(part)
    return reads


def _add_function(reads: Reads, node: Function, runs: bool, idle: Container[int]) -> None:
    defaults = (*node.args.defaults, *filter(None, node.args.kw_defaults))
    for part in (*(one for one in node.decorator_list if id(one) not in idle), *defaults):
        reads.first |= read_names(part)
    if not runs:
        reads.skipped.append(node)
        return
    reads.later |= _leave_out(_list_own(node), *map(read_names, node.body))


_Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
_Scope = Function | ast.Lambda | _Comprehension


def read_names(node: ast.AST) -> set[str]:
    """Return the names that a node reads, annotations aside; of a chain of attributes, the whole: "a.b.c".

    What a function or a comprehension inside binds for itself is left out.
    """
    names: set[str] = set()
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, ast.Attribute) and (words := dotted(one)):
            names.add(words)
            continue
        if isinstance(one, ast.Name):
            names.add(one.id)
        inner = _list_inner(one) if isinstance(one, _Scope) else []
        names |= _leave_out(_list_own(one), *map(read_names, inner)) if inner else set()
        for part, held in ast.iter_fields(one):
            if part not in ("annotation", "returns"):
                items = held if isinstance(held, list) else [held]
                waiting += [
                    item for item in items if isinstance(item, ast.AST) and item not in inner
                ]
    return names


def _list_inner(node: ast.AST) -> list[ast.AST]:
    """Return the parts of a function or comprehension that see what it binds."""
    if isinstance(node, _Comprehension):
        return list(ast.iter_child_nodes(node))
    body = node.body  # type: ignore[attr-defined]
    return list(body) if isinstance(body, list) else [body]


def _list_own(node: ast.AST) -> set[str]:
    """Return the names that a function or a comprehension binds for itself, not those of one inside it."""
    own, shared = set(), set()
    waiting = list(ast.iter_child_nodes(node))
    while waiting:
        one = waiting.pop()
        if isinstance(one, ast.arg):
            own.add(one.arg)
        elif isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store):
            own.add(one.id)
        elif isinstance(one, ast.Global):
            shared |= set(one.names)
        if not isinstance(one, _Scope):
            waiting += ast.iter_child_nodes(one)
    return own - shared


def _leave_out(own: set[str], *names: set[str]) -> set[str]:
    return {one for found in names for one in found if one.partition(".")[0] not in own}


def is_called(name: str, statements: Iterable[ast.stmt]) -> bool:
    """Tell whether statements call the name when they are run: as a decorator, or in a value."""
    return any(
        (isinstance(node, ast.Name) and node.id == name) or dotted(node) == name
        for statement in statements
        for called in _list_called(statement)
        for node in ast.walk(called)
    )


def _list_called(statement: ast.stmt) -> Iterator[ast.AST]:
    if isinstance(statement, Function | ast.ClassDef):
        yield from statement.decorator_list
        for held in statement.body if isinstance(statement, ast.ClassDef) else []:
            yield from _list_called(held)
    else:
        yield from (node.func for node in ast.walk(statement) if isinstance(node, ast.Call))


def reads_own_names(node: ast.AST) -> bool:
    """Tell whether an expression gives the names of the module that it stands in."""
    if isinstance(node, ast.Call):
        return dotted(node.func) in ("globals", "vars") and not node.args
    words = ast.unparse(node) if isinstance(node, ast.Subscript) else ""
    return words == "sys.modules[__name__]"


Place = tuple[str, int]
"""a file, and the first line of a function in it, its decorators included"""


@dataclass(frozen=True)
class Executed:
    """The functions of Python files that a run called."""

    places: frozenset[Place] = frozenset()
    handling: frozenset[Place] = frozenset()
    """those that were given or returned a tensor, a layer, a class of layers, or a function of PyTorch's"""
    made: tuple[Made, ...] = ()
    """the calls that gave a layer of a class which they do not name"""
    _lines: dict[str, list[int]] = field(default_factory=dict)

    def __contains__(self, place: Place) -> bool:
        """Tell whether a function was called."""
        return place in self.places

    def handles(self, file: str, first: int, last: int) -> bool:
        """Tell whether a function that handles tensors begins in some lines of a file."""
        if not self._lines:
            for name, line in self.handling:
                self._lines.setdefault(name, []).append(line)
            self._lines.setdefault("", [])
        return any(first <= line <= last for line in self._lines.get(file, ()))


def _is_torch_function(value: FunctionType | BuiltinFunctionType) -> bool:
    """Tell whether a function is PyTorch's; those of its core belong to a class in place of a module."""
    home = value.__module__ or getattr(getattr(value, "__self__", None), "__module__", None) or ""
    return home.partition(".")[0] == "torch"


def list_executed(work: Callable[[], object]) -> Executed:
    """Return the functions of Python files that are called while `work` runs."""
    torch = sys.modules.get("torch")
    kinds = (torch.Tensor, torch.nn.Module, torch.dtype) if torch else ()
    layer = torch.nn.Module if torch else None
    called: set[Place] = set()
    handling: set[Place] = set()
    watch = FactoryWatch()

    def touches(value: Any) -> bool:
        if isinstance(value, kinds):
            return True
        if isinstance(value, partial):
            value = value.func
        if isinstance(value, FunctionType | BuiltinFunctionType):
            return _is_torch_function(value)
        if isinstance(value, type) and layer is not None:
            return issubclass(value, layer)
        if type(value) in (list, tuple):
            return any(
                isinstance(one, kinds) or (isinstance(one, type) and touches(one))
                for one in value[:4]
            )
        return False

    def gives(value: Any, depth: int = 3) -> bool:
        """Tell whether a result is or holds such a value: what reads a network's settings returns classes."""
        if depth and type(value) in (list, tuple, dict):
            inside = value.values() if isinstance(value, dict) else value
            return any(gives(one, depth - 1) for one in islice(inside, _INSIDE))
        return touches(value)

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if event not in ("call", "return"):
            return
        code = frame.f_code
        place = (code.co_filename, code.co_firstlineno)
        if event == "call":
            called.add(place)
            if code.co_name == "__init__" and layer is not None:
                made = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
                if isinstance(made, layer):
                    watch.enter(frame, made)
            if place not in handling:
                held = frame.f_locals
                if any(
                    touches(held.get(name))
                    for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
                ):
                    handling.add(place)
            return
        if place not in handling and gives(argument):
            handling.add(place)
        if layer is not None and isinstance(argument, layer):
            watch.leave(frame, argument)

    before = sys.getprofile()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
        threading.setprofile(None)  # what it is without a profiler
    real = {file: os.path.realpath(file) for file, _ in called}
    made = (replace(one, file=os.path.realpath(one.file)) for one in watch.made)
    return Executed(
        frozenset((real[file], line) for file, line in called),
        frozenset((real.get(file, file), line) for file, line in handling),
        tuple(made),
    )
