"""The syntax trees of source files: what stands around a line, what gives a name its value."""

import ast
import linecache
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from reprod_align.model.source.lines import SourceLine

FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)
_REGISTER: Final = (
    "add_sublayer", "add_module", "register_module", "add_parameter", "register_parameter",
    "register_buffer", "setattr",
)  # fmt: skip
Test = Callable[[ast.AST], bool]


def parse(file: str) -> ast.Module | None:
    """Return the tree of a file; None if it cannot be read or parsed."""
    return parse_text("".join(linecache.getlines(file)))


@lru_cache(maxsize=64)
def parse_text(text: str) -> ast.Module | None:
    """Return the tree of a piece of code; None if it cannot be parsed."""
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None


def find_innermost(file: str, line: int, kinds: tuple[type, ...]) -> Any:
    """Return the innermost function or class around a line; None if there is none."""
    tree = parse(file)
    nodes = _find_nodes(tree, kinds) if tree else ()
    around = [node for node in nodes if _first_line(node) <= line <= (node.end_lineno or 0)]
    return max(around, key=_first_line, default=None)


@lru_cache(maxsize=64)
def _find_nodes(tree: ast.Module, kinds: tuple[type, ...]) -> tuple[Any, ...]:
    """Return the nodes of these kinds; walking a large file for each line takes long."""
    return tuple(node for node in ast.walk(tree) if isinstance(node, kinds))


def find_owners(classes: Sequence[SourceLine]) -> Iterator[tuple[str, ast.ClassDef]]:
    """Yield the classes around some lines, each with its file."""
    for place in classes:
        owner = find_innermost(place.file, place.line, (ast.ClassDef,))
        if owner is not None:
            yield place.file, owner


def _first_line(node: Any) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([int(node.lineno), *(one.lineno for one in decorators)])


def find_assignments(tree: ast.AST, name: str) -> list[Any]:
    """Return the statements that give a name, such as "x" or "self.x", its value, in order."""
    return [*_list_assignments(tree).get(name, ())]


@lru_cache(maxsize=64)
def _list_assignments(tree: ast.AST) -> Mapping[str, Sequence[Any]]:
    """Return the statements of a tree that give each name its value; a large class is walked once."""
    found = defaultdict[str, list[Any]](list)
    for node in ast.walk(tree):
        for name in {ast.unparse(part) for part in _find_targets(node)}:
            found[name].append(node)
    return {name: sorted(nodes, key=lambda node: int(node.lineno)) for name, nodes in found.items()}


def _find_targets(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _flatten(target)
    elif isinstance(node, (ast.AnnAssign, ast.AugAssign)):
        yield node.target


def _flatten(target: ast.expr) -> Iterator[ast.expr]:
    if isinstance(target, (ast.Tuple, ast.List)):
        for part in target.elts:
            yield from _flatten(part)
    else:
        yield target


def find_attribute(owner: ast.ClassDef, name: str, class_name: str = "") -> Any:
    """Return what gives self.name its value: an assignment, or what stands for one; or None.

    Of several the first that makes a `class_name`.
    """
    found = find_assignments(owner, f"self.{name}")
    making = [node for node in found if find_calls(node, class_name)]
    if found:
        return [*making, *found][0]
    for call in _list_registering(owner):
        named = [at for at, arg in enumerate(call.args[:-1])
                 if isinstance(arg, ast.Constant) and arg.value == name]  # fmt: skip
        if named:
            value = call.args[named[0] + 1]
            return ast.copy_location(ast.Assign(targets=[], value=value), value)
    return None


@lru_cache(maxsize=64)
def _list_registering(owner: ast.ClassDef) -> Sequence[ast.Call]:
    """Return the calls of a class by which a module is given something by its name."""
    calls = (node for node in ast.walk(owner) if isinstance(node, ast.Call))
    return [call for call in calls if name_called(call) in _REGISTER]


def find_calls(tree: ast.AST, class_name: str) -> list[ast.Call]:
    """Return the calls of a function or class by the last part of its name."""
    return [node for node in ast.walk(tree)
            if isinstance(node, ast.Call) and name_called(node) == class_name]  # fmt: skip


def name_called(call: ast.Call) -> str:
    """Return the last part of the name of what a call calls."""
    function = call.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def place_of(file: str, node: Any) -> SourceLine | None:
    """Return the lines of a node; None for None."""
    if node is None:
        return None
    last = node.end_lineno or node.lineno
    text = " ".join(linecache.getline(file, n).strip() for n in range(node.lineno, last + 1))
    return SourceLine(file, node.lineno, text if last - node.lineno < 4 else "", last)
