"""Makes a module of the port anew: what its constructor computes stays as it is in a model that is made.

A constructor's arguments are read again where the module is made, in the code of the module around it.
"""

import ast
import inspect
import math
from collections.abc import Iterator, Mapping
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
    modules = dict(side.fw.modules(side.model))
    module = modules[path]
    makings = ((owner, making) for owner, making in find_makings(side, info, path)
               if making.is_call_of(type(module).__name__))  # fmt: skip
    owner, making = next(makings, (None, None))
    if owner is None or making is None:
        raise NotRemadeError(f"no call that makes {path} was found")
    names = _Names(modules, owner, making)
    try:
        arguments = dict(_read_arguments(names, making.node, module))
        with side.fw.preserve_state():
            bound = inspect.signature(type(module)).bind_partial()
            bound.arguments |= arguments
            return type(module)(*bound.args, **bound.kwargs)
    except Exception as error:
        raise NotRemadeError(f"{path}: {error}") from error


def _read_arguments(names: "_Names", call: ast.Call, module: Any) -> Iterator[tuple[str, Any]]:
    """Yield the parameters that a call gives a constructor, with their values.

    What the code around the call can't tell any more, such as the variable of a loop, the module may hold
    under the parameter's name.
    """
    parameters = [*inspect.signature(type(module)).parameters.values()]
    if any(isinstance(one, ast.Starred) for one in call.args) or any(
        one.arg is None for one in call.keywords
    ):
        raise NotRemadeError("its arguments are unpacked")
    given = [(one.name, node) for one, node in zip(parameters, call.args, strict=False)]
    for name, node in [*given, *((str(one.arg), one.value) for one in call.keywords)]:
        try:
            yield name, names.evaluate(node)
        except Exception:
            held = getattr(module, name, _ABSENT)
            if held is _ABSENT:
                raise
            yield name, held


class _Names(Mapping[str, Any]):
    """What the names in a constructor stood for, as far as the live modules tell."""

    def __init__(self, modules: Mapping[str, Any], owner: str, making: Making) -> None:
        """owner: the module in whose constructor `making` is."""
        around = [modules[path] for path in (owner, *ancestors(owner)) if path in modules]
        self._modules, self._making = around, making
        kind = next(base for base in type(around[0]).__mro__ if base.__name__ == making.owner.name)
        self._space = inspect.unwrap(vars(kind)["__init__"]).__globals__
        self._parameters = inspect.signature(kind).parameters
        self._open: set[str] = set()

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
            default = self._parameters[name].default
            if default is not inspect.Parameter.empty:
                return default
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._parameters)

    def __len__(self) -> int:
        return len(self._parameters)
