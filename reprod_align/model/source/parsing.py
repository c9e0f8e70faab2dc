"""Reads the user's source as syntax trees: where a name got its value, where a branch was taken."""

import ast
import linecache
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from reprod_align.model.source import SourceLine

FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)
_ASSIGNMENTS: Final = (ast.Assign, ast.AnnAssign, ast.AugAssign)
_REGISTER: Final = (
    "add_sublayer", "add_module", "register_module", "add_parameter", "register_parameter",
    "register_buffer", "setattr",
)  # fmt: skip


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
    around = [node for node in nodes if _find_first_line(node) <= line <= (node.end_lineno or 0)]
    return max(around, key=_find_first_line, default=None)


@lru_cache(maxsize=64)
def _find_nodes(tree: ast.AST, kinds: tuple[type, ...]) -> tuple[Any, ...]:
    """Return the nodes of these kinds; walking a large file for each line takes long."""
    return tuple(node for node in ast.walk(tree) if isinstance(node, kinds))


def find_owners(classes: Sequence[SourceLine]) -> Iterator[tuple[str, ast.ClassDef]]:
    """Yield the classes around some lines, each with its file."""
    for place in classes:
        owner = find_innermost(place.file, place.line, (ast.ClassDef,))
        if owner is not None:
            yield place.file, owner


def _find_first_line(node: Any) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([int(node.lineno), *(one.lineno for one in decorators)])


def find_assignments(tree: ast.AST, name: str) -> list[Any]:
    """Return the statements that give a name, such as "x" or "self.x", its value, in order."""
    return [*_list_assignments(tree).get(name, ())]


def read_assigned(statement: Any, name: str) -> Any:
    """Return the value that an assignment gives a name: one part of it for `a, b = 1, 2`."""
    for target in getattr(statement, "targets", ()):
        for part, value in pair_elements(target, statement.value):
            if ast.unparse(part) == name:
                return value
    return statement.value


def pair_elements(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield what is assigned to what: `a, b = f(), g()` assigns two."""
    parts, values = getattr(target, "elts", ()), getattr(value, "elts", ())
    starred = any(isinstance(one, ast.Starred) for one in (*parts, *values))
    if parts and len(parts) == len(values) and not starred:
        yield from zip(parts, values, strict=True)
    else:
        yield target, value


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


def find_attribute(owner: ast.ClassDef, name: str, *class_names: str) -> Any:
    """Return what gives self.name its value: an assignment, or what stands for one; or None.

    class_names: of several the first that calls one of these.
    """
    found = find_assignments(owner, f"self.{name}")
    making = [node for node in found if find_calls(node, *class_names)]
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


def find_calls(tree: ast.AST, *names: str) -> list[ast.Call]:
    """Return the calls of a function or class by the last part of its name, or one of its names."""
    return [node for node in ast.walk(tree)
            if isinstance(node, ast.Call) and name_called(node) in names]  # fmt: skip


def list_aliases(owner: ast.AST, class_name: str) -> list[str]:
    """Return the names by which some code calls a class: its own, and variables that hold it.

    As `block` in `block = Bottleneck if deep else BasicBlock`, or by the default of a parameter.
    """
    found = [class_name]
    for node in ast.walk(owner):
        pairs: list[tuple[str, ast.expr | None]] = []
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            value = node.value
            branches = [value.body, value.orelse] if isinstance(value, ast.IfExp) else [value]
            pairs = [(node.targets[0].id, one) for one in branches]
        elif isinstance(node, ast.arguments):
            given = [*node.posonlyargs, *node.args][-len(node.defaults) or None :]
            pairs = [(one.arg, default) for one, default in zip(given, node.defaults, strict=False)]
        found += [name for name, one in pairs
                  if isinstance(one, ast.Name | ast.Attribute) and read_last(one) == class_name]  # fmt: skip
    return found


def read_last(node: ast.expr) -> str:
    """Return the last part of a name, "" for any other expression."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def name_called(call: ast.Call) -> str:
    """Return the last part of the name of what a call calls."""
    return read_last(call.func)


def place_of(file: str, node: Any) -> SourceLine | None:
    """Return the lines of a node; None for None."""
    if node is None:
        return None
    last = node.end_lineno or node.lineno
    text = " ".join(linecache.getline(file, n).strip() for n in range(node.lineno, last + 1))
    return SourceLine(file, node.lineno, text if last - node.lineno < 4 else "", last)


_MEASURES: Final = re.compile(r"(?i)loss|entropy|criterion|kl_div")  # names of functions


def find_assignment(file: str, line: int, name: str) -> SourceLine | None:
    """Return where `name`, read at a line, got its value: a variable of the function, or "self.x".

    A variable: the last assignment above the line in the same function. None if there is none.
    """
    function = find_innermost(file, line, FUNCTIONS)
    if function is None:
        return None
    if name.startswith("self.") and name.count(".") == 1:
        owner = find_innermost(file, line, (ast.ClassDef,))
        return None if owner is None else place_of(file, find_attribute(owner, name[5:]))
    found = [node for node in find_assignments(function, name) if node.end_lineno < line]
    return place_of(file, found[-1] if found else None)


def find_forward(classes: Sequence[SourceLine]) -> SourceLine | None:
    """Return where a class defines its forward pass; the class itself if it inherits it."""
    for file, owner in find_owners(classes):
        for node in owner.body:
            if isinstance(node, FUNCTIONS) and node.name == "forward":
                return SourceLine(file, node.lineno)
    return classes[0] if classes else None


def find_output(classes: Sequence[SourceLine], name: str) -> SourceLine | None:
    """Return where the forward pass sets the variable that it returns under a name, else first.

    None if it returns no variable.
    """
    forward = find_forward(classes)
    if forward is None:
        return None
    function = find_innermost(forward.file, forward.line, FUNCTIONS)
    named = [
        (node.lineno, word.value.id)
        for node in (_find_nodes(function, (ast.Return,)) if function is not None else ())
        for word in (node.value.keywords if isinstance(node.value, ast.Call) else ())
        if word.arg == name and isinstance(word.value, ast.Name)
    ]
    returned = find_returned(forward)
    last = max((line for line, _ in returned), default=0)
    found = [*named, *(one for one in returned if one[0] == last)]
    return find_assignment(forward.file, *found[0]) if found else None


def find_measure(function: SourceLine, named: str = "") -> SourceLine:
    """Return the call in a loss function that measures the loss, or its last call of a `named` function.

    function: the line where it begins. Where no name of a call tells, what it returns; where nothing
    can be told, its first line.
    """
    tree = find_innermost(function.file, function.line, (*FUNCTIONS, ast.Lambda))
    nodes = list(ast.walk(tree)) if tree is not None else []
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    known = [call for call in calls if named and name_called(call).lower() == named]
    known = known or [call for call in calls if _MEASURES.search(name_called(call))]
    returned = [node for node in nodes if isinstance(node, ast.Return)]
    last = max(known or returned, key=lambda node: node.lineno, default=None)
    return place_of(function.file, last) or function


def find_condition(file: str, line: int, names: Sequence[str]) -> SourceLine | None:
    """Return the last `if self.x` by which a line runs, or by which a name was assigned before it."""
    function = find_innermost(file, line, FUNCTIONS)
    found = [
        node
        for node in (ast.walk(function) if function is not None else ())
        if isinstance(node, ast.If) and node.test.lineno < line and "self." in ast.unparse(node.test)
        and (line <= (node.end_lineno or 0)
             or any(find_assignments(part, name) for part in node.body for name in names))
    ]  # fmt: skip
    return place_of(file, max(found, key=lambda node: node.lineno).test) if found else None


def find_decision(place: SourceLine) -> str:
    """Return the condition on which a statement of a constructor depends, as code; "" if on none.

    That is the test at the line itself, the one of a choice in the statement, or that of an `if` whose
    other branch gives the same name another value.
    """
    function = find_innermost(place.file, place.line, FUNCTIONS)
    constructs = function is not None and function.name == "__init__"
    found = [
        node
        for node in (_find_nodes(function, (ast.If, ast.IfExp)) if function is not None else ())
        if node.lineno <= place.line <= (node.end_lineno or 0)
        and (node.test.lineno == place.line or constructs)
        and (isinstance(node, ast.IfExp) or decides(node, place.line))
    ]
    inner = max(found, key=lambda node: (node.lineno, node.col_offset), default=None)
    return "" if inner is None else ast.unparse(inner.test)


def find_branch(place: SourceLine) -> str:
    """Return the condition of the innermost branch in which a line stands, as code; "" if in none."""
    function = find_innermost(place.file, place.line, FUNCTIONS)
    found = []
    for node in _find_nodes(function, (ast.If, ast.IfExp)) if function is not None else ():
        parts = (
            [node.body, node.orelse] if isinstance(node, ast.IfExp) else [*node.body, *node.orelse]
        )
        if any(one.lineno <= place.line <= (one.end_lineno or 0) for one in parts):
            found.append(node)
    inner = max(found, key=lambda node: (node.lineno, node.col_offset), default=None)
    return "" if inner is None else ast.unparse(inner.test)


def decides(choice: ast.If, line: int) -> bool:
    """Tell whether an `if` begins at a line, or gives a name at that line another value in either branch."""
    if choice.test.lineno == line:
        return True
    names = [{ast.unparse(target) for one in branch for target in _find_targets(one)}
             for branch in (choice.body, choice.orelse)]  # fmt: skip
    return bool(names[0] & names[1])


def read_number(node: ast.AST) -> object:
    """Return the number that a piece of code writes out; None if it is none."""
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError):
        return None
    return value if isinstance(value, (int, float)) else None


def find_late_settings(file: str, names: Sequence[str]) -> list[tuple[Any, Any]]:
    """Return the statements of a file that set a layer's attribute from outside, and the `if` around each.

    Such as `layer._epsilon = 1e-12` in a function that initialises all layers. names: of the attribute.
    """
    tree = parse(file)
    choices = _find_nodes(tree, (ast.If,)) if tree is not None else ()
    found = []
    for node in _find_nodes(tree, (ast.Assign,)) if tree is not None else ():
        target = node.targets[0]
        outside = isinstance(target, ast.Attribute) and ast.unparse(target.value) != "self"
        if outside and target.attr.lstrip("_") in names:
            around = [one for one in choices if node in one.body]
            found.append((node, around[0] if around else None))
    return found


def is_same_function(one: SourceLine, other: SourceLine) -> bool:
    """Tell whether two lines stand in the same function."""
    places = [find_innermost(place.file, place.line, FUNCTIONS) for place in (one, other)]
    return one.file == other.file and places[0] is places[1]


def is_parameter(place: SourceLine, names: Sequence[str]) -> bool:
    """Tell whether one of the names is a parameter of the function around a line, and no more."""
    function = find_innermost(place.file, place.line, FUNCTIONS)
    known = [] if function is None else [one.arg for one in function.args.args]
    return any(name in known for name in names)


def find_single_renaming(
    caller: SourceLine, inside: SourceLine, names: Sequence[str]
) -> SourceLine | None:
    """Return where an argument got its name, if a statement only renames it for this one call.

    caller: the call of the function in which `inside` stands. names: of which one is its parameter.
    """
    around = find_innermost(caller.file, caller.line, FUNCTIONS)
    for argument in list_handed(caller, inside, names) if around is not None else ():
        place = find_assignment(caller.file, caller.line, argument)
        if place is not None and is_plain_assignment(place):
            if _count_reads(around, argument, place.line, caller) == 1:
                return place
    return None


def list_handed(caller: SourceLine, inside: SourceLine, names: Sequence[str]) -> list[str]:
    """Return the variables that a call hands on in the place of some parameters of what it calls.

    caller: the call. inside: a line of the function that it calls. names: the parameters.
    """
    function, call = find_innermost(inside.file, inside.line, FUNCTIONS), _parse_expression(caller)
    if function is None or not isinstance(call, ast.Call):
        return []
    known = [arg.arg for arg in function.args.args]
    known = known[1:] if known[:1] == ["self"] else known
    given = dict(zip(known, call.args, strict=False)) | {
        one.arg: one.value for one in call.keywords
    }
    handed = (given.get(name) for name in names)
    return [one.id for one in handed if isinstance(one, ast.Name)]


def _count_reads(function: ast.AST, name: str, after: int, caller: SourceLine) -> int:
    """Return how often a variable is read after a line, until a statement past `caller` sets it anew."""
    uses = [one for one in ast.walk(function) if isinstance(one, ast.Name) and one.id == name]
    last = max(caller.line, caller.last_line)
    anew = [one.lineno for one in uses if isinstance(one.ctx, ast.Store) and one.lineno > after]
    end = min((line for line in anew if line >= caller.line), default=None)
    end = None if end is None else max(end, last)
    reads = [one.lineno for one in uses if isinstance(one.ctx, ast.Load) and one.lineno > after]
    return len([line for line in reads if end is None or line <= end])


def is_plain_assignment(source: SourceLine) -> bool:
    """Tell whether a statement gives a name to what another name, or a part of it, stands for."""
    return isinstance(_find_renamed(source), (ast.Name, ast.Attribute))


def _find_renamed(source: SourceLine) -> ast.AST | None:
    """Return the value of an assignment, or what it is a part of."""
    tree = parse_text(source.expression)
    node = tree.body[0] if tree is not None and len(tree.body) == 1 else None
    value = node.value if isinstance(node, ast.Assign) else None
    while isinstance(value, ast.Subscript) and isinstance(value.slice, (ast.Constant, ast.UnaryOp)):
        value = value.value
    return value


def follow_renamings(
    file: str, line: int, name: str, since: int | None = None
) -> Iterator[SourceLine]:
    """Yield the statements, the last first, through which a variable only got another's value.

    A call that is left out leaves such a statement behind: `x = y` for `x = f(y)`. since: the line at
    which the value was made: what stands after it, such as a dropout in eval mode, passes it on.
    """
    while (place := find_assignment(file, line, name)) is not None:
        value = _find_renamed(place)
        if isinstance(value, ast.Name):
            yield place
            line, name = place.line, value.id
        elif since is not None and place.line > since and name in _list_first_arguments(value):
            line = place.line
        else:
            return


def list_earlier_names(file: str, line: int, name: str) -> list[str]:
    """Return the variables that gave their value to the one that a line reads."""
    values = map(_find_renamed, follow_renamings(file, line, name))
    return [value.id for value in values if isinstance(value, ast.Name)]


def _list_first_arguments(value: ast.AST | None) -> list[str]:
    """Return the variable that a call takes first, if its value is a call."""
    first = value.args[:1] if isinstance(value, ast.Call) else []
    return [one.id for one in first if isinstance(one, ast.Name)]


def find_returned(inside: SourceLine) -> list[tuple[int, str]]:
    """Return the variables that the function around a line returns, each with the line of the statement."""
    function = find_innermost(inside.file, inside.line, FUNCTIONS)
    returns = _find_nodes(function, (ast.Return,)) if function is not None else ()
    return [(node.lineno, name) for node in returns for name in _list_given(node.value)]


def _list_given(value: ast.AST | None) -> list[str]:
    """Return the variables that an expression gives as they are, alone, in a tuple, or under a condition."""
    if isinstance(value, ast.Name):
        return [value.id]
    parts: Sequence[ast.AST] = ()
    if isinstance(value, ast.Tuple):
        parts = value.elts
    elif isinstance(value, ast.IfExp):
        parts = (value.body, value.orelse)
    return [name for part in parts for name in _list_given(part)]


def list_names(source: SourceLine) -> list[str]:
    """Return the variables that an expression reads."""
    tree = _parse_expression(source)
    nodes = ast.walk(tree) if tree is not None else ()
    return [node.id for node in nodes if isinstance(node, ast.Name)]


def list_targets(source: SourceLine) -> list[str]:
    """Return the names that the statement around an expression gives a value, in their order."""
    function = find_innermost(source.file, source.line, FUNCTIONS)
    return [
        ast.unparse(part)
        for node in (_find_nodes(function, _ASSIGNMENTS) if function is not None else ())
        if node.lineno <= source.line <= (node.end_lineno or 0)
        for part in _find_targets(node)
    ]


def _parse_expression(source: SourceLine) -> ast.AST | None:
    tree = parse_text(source.expression)
    body = tree.body if tree is not None else []
    return body[0].value if len(body) == 1 and isinstance(body[0], ast.Expr) else None


def find_constant(source: SourceLine, value: object) -> SourceLine:
    """Return the line of an expression of several lines in which a constant stands; its own if none."""
    tree, last = parse(source.file), max(source.line, source.last_line)
    for node in ast.walk(tree) if tree is not None and last > source.line else ():
        if isinstance(node, ast.Constant) and source.line <= node.lineno <= last:
            if type(node.value) is type(value) and node.value == value:
                return SourceLine(source.file, node.lineno, source.expression, last)
    return source
