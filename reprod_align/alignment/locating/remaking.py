"""Makes a module of the port anew: what its constructor computes stays as it is in a model that is made.

A constructor's arguments are read again where the module is made, in the code of the module around it.
"""

import ast
import inspect
import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from reprod_align.alignment.lines.construction import find_makings
from reprod_align.base.text import ancestors, is_within
from reprod_align.model.local import LocalSide
from reprod_align.model.side import ModelInfo
from reprod_align.model.source.making import Making

_ABSENT = object()
_LARGEST = 2**24  # elements of a module's parameters: one that computes a table is small


class NotRemadeError(Exception):
    """What a module was made with cannot be told."""


def remake(side: LocalSide, info: ModelInfo, path: str) -> Any:
    """Return another module made as the one at `path` was; the random numbers go on as they would have.

    Raises NotRemadeError if it is large, if an argument cannot be told, or if the constructor raises.
    """
    held = (one.shape for name, one in info.tensors.items() if is_within(name, path))
    if sum(map(math.prod, held)) > _LARGEST:
        raise NotRemadeError(f"{path} is too large to be made once more")
    module = dict(side.fw.modules(side.model))[path]
    names = _find_names(side, info, path)
    if names is None:
        raise NotRemadeError(f"no call that makes {path} was found")
    try:
        arguments = dict(_read_arguments(names, module))
        with side.fw.preserve_state():
            bound = inspect.signature(type(module)).bind_partial()
            bound.arguments |= arguments
            return type(module)(*bound.args, **bound.kwargs)
    except Exception as error:
        raise NotRemadeError(f"{path}: {error}") from error


def _find_names(side: LocalSide, info: ModelInfo, path: str) -> "_Names | None":
    """Return what stands around the call that makes a module; None if no call of its class is found."""
    modules = dict(side.fw.modules(side.model))
    for owner, making in find_makings(side, info, path):
        if making.is_call_of(type(modules[path]).__name__):
            return _Names(modules, owner, making, partial(_find_names, side, info, owner))
    return None


def _read_arguments(names: "_Names", module: Any) -> Iterator[tuple[str, Any]]:
    """Yield the parameters that a call gives a constructor, with their values.

    What the code around the call can't tell any more, such as the variable of a loop, the module may hold
    under the parameter's name.
    """
    for name, node in names.list_given(type(module)):
        try:
            yield name, names.evaluate(node)
        except Exception:
            held = getattr(module, name, _ABSENT)
            if held is _ABSENT:
                raise
            yield name, held


class _Names(Mapping[str, Any]):
    """What the names in a constructor stood for, as far as the live modules tell."""

    def __init__(
        self,
        modules: Mapping[str, Any],
        owner: str,
        making: Making,
        find_outer: Callable[[], "_Names | None"],
    ) -> None:
        """owner: the module in whose constructor `making` is. find_outer: returns what made that."""
        around = [modules[path] for path in (owner, *ancestors(owner)) if path in modules]
        self._modules, self._making = around, making
        kind = next(base for base in type(around[0]).__mro__ if base.__name__ == making.owner.name)
        self._space = inspect.unwrap(vars(kind)["__init__"]).__globals__
        self._kind, self._find_outer = kind, find_outer
        self._parameters = inspect.signature(kind).parameters
        self._open: set[str] = set()

    def list_given(self, kind: Callable[..., Any]) -> list[tuple[str, ast.expr]]:
        """Return the arguments that the call gives, by their names. kind: the class that it calls."""
        call, parameters = self._making.node, [*inspect.signature(kind).parameters.values()]
        if any(isinstance(one, ast.Starred) for one in call.args) or any(
            one.arg is None for one in call.keywords
        ):
            raise NotRemadeError("its arguments are unpacked")
        given = [(one.name, node) for one, node in zip(parameters, call.args, strict=False)]
        return [*given, *((str(one.arg), one.value) for one in call.keywords)]

    def evaluate(self, node: ast.expr) -> Any:
        """Return the value of an expression. What it raises passes through."""
        code = compile(ast.Expression(node), self._making.file, "eval")
        return eval(code, self._space, self)

    def __getitem__(self, name: str) -> Any:
        if name == "self":
            return self._modules[0]
        if name in self._open:
            raise KeyError(name)
        given = [
            node.value
            for node in ast.walk(self._making.owner)
            if isinstance(node, ast.Assign) and node.lineno < self._making.node.lineno
            and [getattr(target, "id", "") for target in node.targets] == [name]
        ]  # fmt: skip
        if given:
            self._open.add(name)
            try:
                return self.evaluate(given[-1])
            finally:
                self._open.remove(name)
        if name in self._parameters:
            for module in self._modules:
                if (held := getattr(module, name, _ABSENT)) is not _ABSENT:
                    return held
            outer = self._find_outer()
            handed = dict(outer.list_given(self._kind)) if outer is not None else {}
            if outer is not None and name in handed:
                return outer.evaluate(handed[name])
            default = self._parameters[name].default
            if default is not inspect.Parameter.empty:
                return default
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._parameters)

    def __len__(self) -> int:
        return len(self._parameters)
