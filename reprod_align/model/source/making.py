"""Reads where a class makes the layers that it holds."""

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from reprod_align.model.source.lines import SourceLine
from reprod_align.model.source.trees import (
    FUNCTIONS,
    find_assignments,
    find_attribute,
    find_calls,
    find_innermost,
    find_owners,
    name_called,
    parse,
    place_of,
)


@dataclass(frozen=True)
class Making:
    """Where a class makes a layer."""

    file: str
    owner: ast.ClassDef
    node: Any
    """the call that makes it, or the statement where no such call can be told"""

    @property
    def place(self) -> SourceLine | None:
        """The line."""
        return place_of(self.file, self.node)

    def is_call_of(self, class_name: str) -> bool:
        """Tell whether the call that makes the layer is known."""
        return isinstance(self.node, ast.Call) and name_called(self.node) == class_name


def find_making(
    classes: Sequence[SourceLine], path: Sequence[str], class_name: str
) -> Making | None:
    """Return where a class makes the layer that it holds under `path`, such as ("layers", "0").

    classes: a line inside the class, and one inside each of its base classes. class_name: of the layer.
    """
    owners = list(find_owners(classes))
    for file, owner in owners:
        made = find_attribute(owner, path[0], class_name) if path else None
        if made is None:
            continue
        node = made if made.value is None else _narrow(made.value, path[1:], class_name)
        if not find_calls(node, class_name):
            node = _find_only_call(made, file, owner, class_name) or node
        return Making(file, owner, node)
    for file, owner in owners:
        call = _find_on_one_line(find_calls(owner, class_name))
        if call is not None:
            return Making(file, owner, call)
    return None


def find_choice(making: Making, class_name: str) -> SourceLine | None:
    """Return the condition by which another layer was made than a `class_name`, which one branch makes."""
    tree = parse(making.file)
    found = [
        node
        for node in (ast.walk(tree) if tree is not None else ())
        if isinstance(node, (ast.If, ast.IfExp))
        and any(making.node is inner for inner in ast.walk(node))
        and not find_calls(making.node, class_name)
        and _is_made_elsewhere(node, making.node, class_name)
    ]
    return place_of(making.file, max(found, key=lambda node: node.lineno).test) if found else None


def find_guard(classes: Sequence[SourceLine], name: str) -> SourceLine | None:
    """Return the condition under which a class makes what it holds as self.name; None if always."""
    for file, owner in find_owners(classes):
        made = find_attribute(owner, name)
        found = [
            node
            for node in ast.walk(owner)
            if isinstance(node, ast.If) and any(made is inner for inner in ast.walk(node))
        ]
        if made is not None:
            inner = max(found, key=lambda node: node.lineno, default=None)
            return place_of(file, inner.test) if inner is not None else None
    return None


def find_held(classes: Sequence[SourceLine], name: str) -> SourceLine | None:
    """Return where a class sets self.name; None if it does not."""
    found = ((file, find_attribute(owner, name)) for file, owner in find_owners(classes))
    return next((place_of(file, made) for file, made in found if made is not None), None)


def _is_made_elsewhere(choice: ast.If | ast.IfExp, made: ast.AST, class_name: str) -> bool:
    """Tell whether the branch that does not hold `made` makes a `class_name`."""
    branches = [part if isinstance(part, list) else [part] for part in (choice.body, choice.orelse)]
    holds = [
        any(made is inner for part in branch for inner in ast.walk(part)) for branch in branches
    ]
    others = [branch for branch, held in zip(branches, holds, strict=True) if not held]
    return len(others) == 1 and any(find_calls(part, class_name) for part in others[0])


def _find_only_call(made: Any, file: str, owner: ast.ClassDef, class_name: str) -> ast.Call | None:
    """Return the call that makes a layer which a statement only puts in its place."""
    function = find_innermost(file, made.lineno, FUNCTIONS)
    names = [node.id for node in ast.walk(made) if isinstance(node, ast.Name)]
    for name in names if function is not None else ():
        values = [node.value for node in find_assignments(function, name)]
        calls = [call for value in values if value for call in find_calls(value, class_name)]
        if calls:
            return calls[0]
    return _find_on_one_line(find_calls(owner, class_name)) or _find_in_function(
        made, file, class_name
    )


def _find_in_function(made: Any, file: str, class_name: str) -> ast.Call | None:
    """Return the call in the one function of this file that `made` calls and that makes the layer."""
    tree = parse(file)
    called = {name_called(node) for node in ast.walk(made) if isinstance(node, ast.Call)}
    functions = [
        node
        for node in (tree.body if tree is not None else ())
        if isinstance(node, FUNCTIONS) and node.name in called
    ]
    return _find_on_one_line([c for node in functions for c in find_calls(node, class_name)])


def _find_on_one_line(calls: Sequence[ast.Call]) -> ast.Call | None:
    return calls[0] if len({call.lineno for call in calls}) == 1 else None


def _narrow(node: ast.AST, path: Sequence[str], class_name: str) -> ast.AST:
    """Return the part of an expression that makes the layer at `path` inside what the whole makes."""
    for step in path:
        parts = _list_parts(node)
        named = [value for name, value in parts if name == step]
        if named:
            node = named[0]
        elif step.isdigit() and int(step) < len(parts) and not _is_repeated(node):
            node = parts[int(step)][1]
        else:
            break
    calls = find_calls(node, class_name)
    return calls[0] if calls else node


def _is_repeated(node: ast.AST) -> bool:
    return any(isinstance(inner, (ast.ListComp, ast.GeneratorExp)) for inner in ast.walk(node))


def _list_parts(node: ast.AST) -> list[tuple[str, ast.expr]]:
    """Return the layers that a Sequential or a list of layers is made of, with their names."""
    if not isinstance(node, ast.Call):
        return []
    args = node.args
    if len(args) == 1 and isinstance(args[0], (ast.List, ast.Tuple)):
        args = args[0].elts
    found = []
    for number, arg in enumerate(args):
        pair = arg.elts if isinstance(arg, ast.Tuple) and len(arg.elts) == 2 else None
        named = pair is not None and isinstance(pair[0], ast.Constant)
        found.append((str(pair[0].value), pair[1]) if named else (str(number), arg))  # type: ignore
    return found
