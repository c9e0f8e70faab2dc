"""The tensors and modules that a model and its functions can reach, and whose precision counts.

A loss is often a lambda over its labels, class weights or a criterion; a layer may keep a table as
a plain attribute. In float64 these must be float64 too.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import FunctionType, MethodType
from typing import Any

Contents = Callable[[Any], tuple[Mapping[str, Any], ...]]
_DEPTH = 4  # containers within containers
_PLAIN = (type(None), bool, int, float, str, bytes)


@dataclass
class Reachable:
    """What was found, each object once."""

    tensors: list[Any] = field(default_factory=list)
    modules: list[Any] = field(default_factory=list)


def find_reachable(
    model: Any,
    callables: Iterable[Callable[..., Any] | None],
    is_tensor: Callable[[object], bool],
    is_module: Callable[[object], bool],
    contents: Contents,
) -> Reachable:
    """Return what the model and the callables hold, follow and close over.

    contents: returns a module's parameters, buffers and children.
    """
    found, seen = Reachable(), set()

    def visit(value: Any, depth: int) -> None:
        if depth < 0 or isinstance(value, _PLAIN) or id(value) in seen:
            return
        seen.add(id(value))
        if is_tensor(value):
            found.tensors.append(value)
        elif is_module(value):
            found.modules.append(value)
            for part in _module_parts(value, contents):
                visit(part, _DEPTH)
        else:
            for part in _parts(value):
                visit(part, depth - 1)

    visit(model, _DEPTH)
    for function in callables:
        visit(function, _DEPTH)
    return found


def _module_parts(module: Any, contents: Contents) -> Iterator[Any]:
    for held in contents(module):
        yield from held.values()
    yield from (value for name, value in vars(module).items() if not name.endswith("_hooks"))


def _parts(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        yield from value.values()
    elif isinstance(value, (list, tuple, set)):
        yield from value
    elif isinstance(value, partial):
        yield from (value.func, *value.args, *value.keywords.values())
    elif isinstance(value, MethodType):
        yield from (value.__self__, value.__func__)
    elif isinstance(value, FunctionType):
        yield from _function_parts(value)


def _function_parts(function: FunctionType) -> Iterator[Any]:
    """Yield what a function closes over, its defaults, and the globals that it names."""
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # an empty cell: not yet assigned
            continue
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    for name in function.__code__.co_names:
        value = function.__globals__.get(name)
        foreign = isinstance(value, FunctionType) and value.__module__ != function.__module__
        if not foreign:  # a library's functions hold nothing of the user's
            yield value
