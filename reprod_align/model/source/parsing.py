"""Reads the user's source: where a name got its value, and where a layer is made."""

import ast
import linecache
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import lru_cache
from typing import Any, Final

from reprod_align.model.source.lines import SourceLine

_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)
_REGISTER: Final = (
    "add_sublayer", "add_module", "register_module", "add_parameter", "register_parameter",
    "register_buffer", "setattr",
)  # fmt: skip
Test = Callable[[ast.AST], bool]


def find_assignment(file: str, line: int, name: str) -> SourceLine | None:
    """Return where `name`, read at a line, got its value: a variable of the function, or "self.x".

    A variable: the last assignment above the line in the same function. None if there is none.
    """
    function = _innermost(file, line, _FUNCTIONS)
    if function is None:
        return None
    if name.startswith("self.") and name.count(".") == 1:
        owner = _innermost(file, line, (ast.ClassDef,))
        return None if owner is None else _place(file, _find_attribute(owner, name[5:]))
    found = [node for node in _assignments(function, _is_name(name)) if node.end_lineno < line]
    return _place(file, max(found, key=lambda node: node.lineno, default=None))


def find_construction(
    classes: Sequence[SourceLine], path: Sequence[str], class_name: str, words: Sequence[str] = ()
) -> SourceLine | None:
    """Return where a class makes the layer that it holds under `path`, such as ("layers", "0").

    classes: a line inside the class, and one inside each of its base classes. class_name: of the
    layer. words: settings; in a call of several lines the line that names one of them is returned.
    """
    for place in classes:
        owner = _innermost(place.file, place.line, (ast.ClassDef,))
        made = None if owner is None or not path else _find_attribute(owner, path[0], class_name)
        if made is None:
            continue
        node = made if made.value is None else _narrow(made.value, path[1:], class_name)
        calls = [] if _makes(node, class_name) else list(_calls_of(owner, class_name))
        node = calls[0] if len({call.lineno for call in calls}) == 1 else node
        return _place(place.file, _line_with(node, words))
    for place in classes:
        owner = _innermost(place.file, place.line, (ast.ClassDef,))
        calls = [] if owner is None else list(_calls_of(owner, class_name))
        if len({call.lineno for call in calls}) == 1:
            return _place(place.file, _line_with(calls[0], words))
    return None


def find_setting(classes: Sequence[SourceLine], names: Collection[str]) -> SourceLine | None:
    """Return where a class sets one of its attributes; None if it is handed in, or not set there."""
    for place in classes:
        owner = _innermost(place.file, place.line, (ast.ClassDef,))
        for name in sorted(names) if owner is not None else ():
            made = _find_attribute(owner, name)
            if made is not None and not isinstance(made.value, ast.Name):
                return _place(place.file, made)
    return None


def find_forward(classes: Sequence[SourceLine]) -> SourceLine | None:
    """Return where a class defines its forward pass; the class itself if it inherits it."""
    for place in classes:
        owner = _innermost(place.file, place.line, (ast.ClassDef,))
        for node in owner.body if owner is not None else ():
            if isinstance(node, _FUNCTIONS) and node.name == "forward":
                return SourceLine(place.file, node.lineno)
    return classes[0] if classes else None


def find_branch(file: str, after: int, before: int, words: Sequence[str]) -> SourceLine | None:
    """Return an `if` between two lines of a function whose body holds one of the words: a name called."""
    function = _innermost(file, before, _FUNCTIONS)
    for node in ast.walk(function) if function is not None else ():
        if isinstance(node, ast.If) and after < node.lineno < before:
            calls = [
                one for part in node.body for one in ast.walk(part) if isinstance(one, ast.Call)
            ]
            if any(_called(one) in words or ast.unparse(one.func) in words for one in calls):
                return _place(file, node.test)
    return None


def is_same_function(one: SourceLine, other: SourceLine) -> bool:
    """Tell whether two lines stand in the same function."""
    places = [_innermost(place.file, place.line, _FUNCTIONS) for place in (one, other)]
    return one.file == other.file and places[0] is places[1]


def names_are_crossed(caller: SourceLine, inside: SourceLine) -> bool:
    """Tell whether a call hands over two variables by the names of each other's parameter.

    inside: a line in the function that is called.
    """
    function, call = _innermost(inside.file, inside.line, _FUNCTIONS), _parse_expression(caller)
    if function is None or not isinstance(call, ast.Call):
        return False
    given = [arg.id if isinstance(arg, ast.Name) else "" for arg in call.args]
    names = [arg.arg for arg in function.args.args]
    names = names[1:] if names[:1] == ["self"] else names
    handed = {(name, other) for name, other in zip(names, given, strict=False) if name != other}
    return any((other, name) in handed for name, other in handed)


def _parse_expression(source: SourceLine) -> ast.AST | None:
    tree = _parse_text(source.expression)
    body = tree.body if tree is not None else []
    return body[0].value if len(body) == 1 and isinstance(body[0], ast.Expr) else None


def find_constant(source: SourceLine, value: object) -> SourceLine:
    """Return the line of an expression of several lines in which a constant stands; its own if none."""
    tree, last = _parse(source.file), max(source.line, source.last_line)
    for node in ast.walk(tree) if tree is not None and last > source.line else ():
        if isinstance(node, ast.Constant) and source.line <= node.lineno <= last:
            if type(node.value) is type(value) and node.value == value:
                return SourceLine(source.file, node.lineno, source.expression, last)
    return source


# ---------------------------------------------------------------------- trees


def _parse(file: str) -> ast.Module | None:
    lines = linecache.getlines(file)
    return _parse_text("".join(lines))


@lru_cache(maxsize=64)
def _parse_text(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None


def _innermost(file: str, line: int, kinds: tuple[type, ...]) -> Any:
    """Return the innermost function or class around a line; None if there is none."""
    tree = _parse(file)
    nodes: list[Any] = [node for node in ast.walk(tree) if isinstance(node, kinds)] if tree else []
    around = [node for node in nodes if _first_line(node) <= line <= (node.end_lineno or 0)]
    return max(around, key=_first_line, default=None)


def _first_line(node: Any) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([int(node.lineno), *(one.lineno for one in decorators)])


def _assignments(tree: ast.AST, wanted: Test) -> Iterator[Any]:
    """Yield the statements that give a target a value."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            targets = [part for target in node.targets for part in _flatten(target)]
        elif isinstance(node, (ast.AnnAssign, ast.AugAssign)):
            targets = [node.target]
        elif isinstance(node, (ast.For, ast.comprehension)):
            continue
        else:
            continue
        if any(map(wanted, targets)):
            yield node


def _flatten(target: ast.expr) -> Iterator[ast.expr]:
    if isinstance(target, (ast.Tuple, ast.List)):
        for part in target.elts:
            yield from _flatten(part)
    else:
        yield target


def _is_name(name: str) -> Test:
    return lambda node: ast.unparse(node) == name


def _find_attribute(owner: ast.ClassDef, name: str, class_name: str = "") -> Any:
    """Return what gives self.name its value: an assignment, or what stands for one; or None.

    Of several the first that makes a `class_name`.
    """
    found = sorted(_assignments(owner, _is_name(f"self.{name}")), key=lambda node: int(node.lineno))
    making = [node for node in found if _makes(node, class_name)]
    if found:
        return [*making, *found][0]
    for call in ast.walk(owner):
        if isinstance(call, ast.Call) and _called(call) in _REGISTER:
            named = [at for at, arg in enumerate(call.args[:-1])
                     if isinstance(arg, ast.Constant) and arg.value == name]  # fmt: skip
            if named:
                value = call.args[named[0] + 1]
                return ast.copy_location(ast.Assign(targets=[], value=value), value)
    return None


def _called(call: ast.Call) -> str:
    """Return the last part of the name of what a call calls."""
    function = call.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _calls_of(tree: ast.AST, class_name: str) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree)
            if isinstance(node, ast.Call) and _called(node) == class_name)  # fmt: skip


def _narrow(node: ast.AST, path: Sequence[str], class_name: str) -> ast.AST:
    """Return the part of an expression that makes the layer at `path` inside what the whole makes."""
    for step in path:
        parts = _parts(node)
        named = [value for name, value in parts if name == step]
        if named:
            node = named[0]
        elif step.isdigit() and int(step) < len(parts) and not _is_repeated(node):
            node = parts[int(step)][1]
        else:
            break
    calls = list(_calls_of(node, class_name))
    return calls[0] if calls else node


def _makes(node: ast.AST, class_name: str) -> bool:
    return any(True for _ in _calls_of(node, class_name))


def _is_repeated(node: ast.AST) -> bool:
    return any(isinstance(inner, (ast.ListComp, ast.GeneratorExp)) for inner in ast.walk(node))


def _parts(node: ast.AST) -> list[tuple[str, ast.expr]]:
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


def _line_with(node: ast.AST, words: Sequence[str]) -> ast.AST:
    """Return the keyword in a call of several lines that names one of the settings; else the call."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.keyword) and inner.arg in words:
            return inner.value
    return node


def _place(file: str, node: Any) -> SourceLine | None:
    if node is None:
        return None
    last = node.end_lineno or node.lineno
    text = " ".join(linecache.getline(file, n).strip() for n in range(node.lineno, last + 1))
    return SourceLine(file, node.lineno, text if last - node.lineno < 4 else "", last)
