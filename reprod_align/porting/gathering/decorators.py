"""Decorators that return what they are given: they register, document or mark it."""

import ast
import inspect
import sys
from collections.abc import Iterator
from types import FunctionType
from typing import Any

from reprod_align.explain.code import dotted
from reprod_align.porting.gathering.executed import Executed
from reprod_align.porting.gathering.modules import Module, first_line, stays
from reprod_align.porting.gathering.reading import Function


def list_idle(module: Module, statement: ast.stmt, executed: Executed) -> Iterator[ast.expr]:
    """Yield the decorators of a definition and its methods after which it is what it was.

    Those of the standard library and of packages that always stay imported are not among them.
    """
    if not isinstance(statement, ast.ClassDef | Function):
        return
    space = vars(sys.modules[module.name]) if module.name in sys.modules else {}
    held = space.get(statement.name)
    yield from _list_of(module, statement, held, space)
    if isinstance(statement, ast.ClassDef) and isinstance(held, type):
        for node in statement.body:
            if isinstance(node, Function):
                yield from _list_of(module, node, vars(held).get(node.name), space)


def _list_of(
    module: Module, node: ast.ClassDef | Function, held: Any, space: dict[str, Any]
) -> Iterator[ast.expr]:
    held = getattr(held, "__func__", held)  # a class method, a static method
    wrappers, last = _unwrap(held)
    if isinstance(node, ast.ClassDef):
        if not isinstance(last, type) or last.__name__ != node.name or _is_extended(last, node):
            return
    elif not _is_plain(last, module, node):
        return
    for decorator in node.decorator_list:
        words = dotted(decorator.func if isinstance(decorator, ast.Call) else decorator)
        found = _resolve(words, space)
        home = getattr(found, "__module__", None) or type(found).__module__
        if found is None or stays(home) or home == "torch":
            continue
        if getattr(found, "__qualname__", "") not in wrappers:
            yield decorator


def _unwrap(held: Any) -> tuple[set[str], Any]:
    """Return the functions that made the wrappers around something, and what they wrap."""
    wrappers: set[str] = set()
    for _ in range(20):
        inner = getattr(held, "__wrapped__", None)
        if inner is None:
            break
        code = getattr(held, "__code__", None)
        name = code.co_qualname if code else type(held).__qualname__
        wrappers.add(name.partition(".<locals>")[0])
        held = inner
    return wrappers, held


def _is_extended(held: type, node: ast.ClassDef) -> bool:
    """Tell whether a class has attributes that its text does not give it."""
    bound = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    bound |= {one.name for one in node.body if isinstance(one, Function | ast.ClassDef)}
    return any(name not in bound and not name.startswith("_") for name in vars(held))


def _is_plain(held: Any, module: Module, node: Function) -> bool:
    """Tell whether a function is the one that a definition makes."""
    if not isinstance(held, FunctionType):
        return False
    code = held.__code__
    place = (inspect.getsourcefile(code) or code.co_filename, code.co_firstlineno)
    return place[1] == first_line(node) and place[0].endswith(module.path.name)


def _resolve(words: str, space: dict[str, Any]) -> Any:
    """Return what a dotted name stands for in a module."""
    first, *rest = words.split(".")
    held = space.get(first)
    for part in rest:
        held = getattr(held, part, None)
    return held
