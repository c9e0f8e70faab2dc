"""Reads where a class makes the layers that it holds, and which argument sets them.

A setting is followed through constructors: from the attribute to the argument.
"""

import ast
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from reprod_align.model.source import SourceLine
from reprod_align.model.source.parsing import (
    FUNCTIONS,
    decides,
    find_assignments,
    find_attribute,
    find_calls,
    find_innermost,
    find_owners,
    list_aliases,
    name_called,
    parse,
    place_of,
    read_assigned,
    read_last,
    read_number,
)


@dataclass(frozen=True)
class Making:
    """Where a class makes a layer."""

    file: str
    owner: ast.ClassDef
    node: Any
    """the call that makes it, or the statement where no such call can be told"""
    through: tuple[ast.Call, ...] = ()
    """calls of functions of the file, each inside the one before it, the last of which makes the layer"""

    @property
    def place(self) -> SourceLine | None:
        """The line."""
        return place_of(self.file, self.node)

    def is_call_of(self, class_name: str) -> bool:
        """Tell whether the call that makes the layer is known."""
        return isinstance(self.node, ast.Call) and name_called(self.node) == class_name


def find_making(
    classes: Sequence[SourceLine],
    path: Sequence[str],
    class_name: str,
    nth: tuple[int, int] = (0, 1),
) -> Making | None:
    """Return where a class makes the layer that it holds under `path`, such as ("layers", "0").

    classes: a line inside the class, and one inside each of its base classes. class_name: of the layer.
    nth: which of how many layers of that class beside each other it is; as many calls make one each.
    """
    owners = list(find_owners(classes))
    for file, owner in owners:
        names = list_aliases(owner, class_name)
        made = find_attribute(owner, path[0], *names) if path else None
        if made is None:
            continue
        node = made if made.value is None else _narrow(made.value, path[1:], names)
        if find_calls(node, *names):
            return Making(file, owner, node)
        node = node if isinstance(node, ast.Call) else made.value or made
        parts = [*_list_assigned(file, made)]
        calls = [call for part in parts for call in find_calls(part, *names)]
        if calls:
            return Making(file, owner, calls[nth[0] if len(calls) == nth[1] else 0])
        whole = Making(file, owner, node)
        inside = _find_inside(whole, [node, *parts], path[1:], names)
        call = _find_on_one_line(find_calls(owner, class_name))
        return inside or (whole if call is None else replace(whole, node=call))
    for file, owner in owners:
        call = _find_on_one_line(find_calls(owner, class_name))
        if call is not None:
            return Making(file, owner, call)
    return None


def find_choice(making: Making, class_name: str) -> SourceLine | None:
    """Return the condition that made this layer and not the `class_name` of the other branch."""
    tree = parse(making.file)
    found = [
        test
        for test, branches in (_list_choices(tree) if tree is not None else ())
        if not find_calls(making.node, class_name)
        and _is_made_elsewhere(branches, making.node, class_name)
    ]
    return place_of(making.file, max(found, key=lambda test: test.lineno)) if found else None


def _list_choices(tree: ast.AST) -> Iterator[tuple[ast.expr, Sequence[Sequence[ast.AST]]]]:
    """Yield every condition with its two branches; after one that returns, what follows is the other."""
    for node in ast.walk(tree):
        if isinstance(node, ast.IfExp):
            yield node.test, ([node.body], [node.orelse])
        for _, block in ast.iter_fields(node):
            for at, one in enumerate(block) if isinstance(block, list) else ():
                if isinstance(one, ast.If):
                    returns = isinstance(one.body[-1], ast.Return)
                    yield one.test, (one.body, one.orelse or (block[at + 1 :] if returns else []))


def find_other_branch(making: Making) -> SourceLine | None:
    """Return the condition of the `if` around this layer whose other branch sets the same name otherwise."""
    for node in ast.walk(making.owner):
        if isinstance(node, ast.If) and node.orelse:
            held = [any(making.node is inner for one in branch for inner in ast.walk(one))
                    for branch in (node.body, node.orelse)]  # fmt: skip
            if any(held) and decides(node, making.node.lineno):
                return place_of(making.file, node.test)
    return None


def find_if_around(place: SourceLine) -> SourceLine | None:
    """Return the condition of the `if` in one of whose branches a line stands alone; None if in none."""
    tree = parse(place.file)
    found = [
        node for node in (ast.walk(tree) if tree is not None else ()) if isinstance(node, ast.If)
    ]
    for node in found:
        for branch in (node.body, node.orelse):
            if len(branch) == 1 and isinstance(branch[0], (ast.Assign, ast.AugAssign, ast.Expr)):
                if branch[0].lineno <= place.line <= (branch[0].end_lineno or 0):
                    return place_of(place.file, node.test)
    return None


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


def find_use(classes: Sequence[SourceLine], name: str) -> SourceLine | None:
    """Return where a class calls what it holds as self.name, first in its text; None if it does not."""
    for file, owner in find_owners(classes):
        calls = [one for one in find_calls(owner, name) if ast.unparse(one.func) == f"self.{name}"]
        if calls:
            return place_of(file, min(calls, key=lambda one: one.lineno))
    return None


def find_held(classes: Sequence[SourceLine], name: str) -> SourceLine | None:
    """Return where a class sets self.name; None if it does not."""
    found = ((file, find_attribute(owner, name)) for file, owner in find_owners(classes))
    return next((place_of(file, made) for file, made in found if made is not None), None)


def _is_made_elsewhere(
    branches: Sequence[Sequence[ast.AST]], made: ast.AST, class_name: str
) -> bool:
    """Tell whether the one branch that does not hold `made` makes a `class_name`."""
    holds = [
        any(made is inner for part in branch for inner in ast.walk(part)) for branch in branches
    ]
    others = [branch for branch, held in zip(branches, holds, strict=True) if not held]
    return len(others) == 1 and any(find_calls(part, class_name) for part in others[0])


_GROWING = frozenset({"append", "extend", "insert"})
"""methods of a list that give it what it holds"""


def _list_assigned(file: str, made: Any) -> Iterator[ast.expr]:
    """Yield what the variables of a statement were given, and what the list that it makes was given."""
    function = find_innermost(file, made.lineno, FUNCTIONS)
    names = {node.id for node in ast.walk(made) if isinstance(node, ast.Name)}
    names |= {ast.unparse(target) for target in getattr(made, "targets", ())}
    for name in sorted(names) if function is not None else ():
        given = (one.value for one in find_assignments(function, name) if one is not made)
        yield from (value for value in given if value is not None)
    for call in ast.walk(function) if function is not None else ():
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.args:
            if call.func.attr in _GROWING and ast.unparse(call.func.value) in names:
                yield call.args[-1]


def _find_inside(
    making: Making, parts: Sequence[ast.AST], steps: Sequence[str], names: Sequence[str]
) -> Making | None:
    """Return where a function that some code calls makes the layer; None if none does.

    The class may be handed to the function: then it is what the function calls by that name.
    names: of the class, as the code around writes it. steps: what is left of the layer's path; a
    number tells which of several calls it is.
    """
    calls = [one for part in parts for one in ast.walk(part) if isinstance(one, ast.Call)]
    for call in calls if len(making.through) < _DEEPEST else ():
        function = _find_function(making, call)
        if function is None:
            continue
        within = replace(making, through=(*making.through, call))
        found = find_calls(function, *names)
        if not found:
            if (deeper := _find_inside(within, function.body, steps, names)) is not None:
                return deeper
            found = _list_handed(function, call)
        if found:
            number = int(steps[0]) if steps and steps[0].isdigit() else 0
            found.sort(key=lambda one: one.lineno)
            return replace(within, node=found[min(number, len(found) - 1)])
    return None


def _find_function(making: Making, call: ast.Call) -> ast.FunctionDef | None:
    """Return the function of the file, or the method of the class, that a call calls."""
    held = call.func.value if isinstance(call.func, ast.Attribute) else None
    tree, name = parse(making.file), name_called(call)
    own = isinstance(held, ast.Name) and held.id in ("self", "cls", making.owner.name)
    body = making.owner.body if own else tree.body if held is None and tree is not None else []
    found = (one for one in body if isinstance(one, ast.FunctionDef) and one.name == name)
    return next(found, None)


def _list_handed(function: ast.FunctionDef, call: ast.Call) -> list[ast.Call]:
    """Return the calls in a function of what it is handed by a call."""
    known = _list_given(function, call)
    calls = [one for one in ast.walk(function) if isinstance(one, ast.Call)]
    return [one for one in calls if isinstance(one.func, ast.Name)
            and _find_argument(call, [one.func.id], known) is not None]  # fmt: skip


def _list_given(function: ast.FunctionDef, call: ast.Call) -> list[str]:
    """Return the parameters of a function that a call gives values to, in order."""
    names = _list_arguments(function)
    return names[1:] if isinstance(call.func, ast.Attribute) and names[:1] == ["self"] else names


def _find_on_one_line(calls: Sequence[ast.Call]) -> ast.Call | None:
    return calls[0] if len({call.lineno for call in calls}) == 1 else None


def _narrow(node: ast.AST, path: Sequence[str], names: Sequence[str]) -> ast.AST:
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
    calls = find_calls(node, *names)
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


def find_only_naming(
    files: Collection[str], class_name: str, names: Collection[str] = (), value: object = None
) -> SourceLine | None:
    """Return the only place in some files that names a class as a layer to make; None of several.

    names, value: where they are given, the only call of the class that gives an argument of one of these
    names that value. A place that a condition or a table chooses by the class's own name is right.
    """
    found = []
    for file in sorted(files):
        tree = parse(file)
        for node in _list_namings(tree, class_name) if tree is not None else ():
            if not names:
                found.append((file, node))
            elif isinstance(node, ast.Call):
                found += [(file, one.value) for one in node.keywords
                          if one.arg in names and _says(one.value, value)]  # fmt: skip
    return place_of(*found[0]) if len(found) == 1 else None


def _list_namings(node: ast.AST, class_name: str) -> Iterator[ast.expr]:
    """Yield the calls of a class below a node, and the places that hand the class on."""
    skipped = {"annotation", "returns", "bases"}
    for name, held in ast.iter_fields(node):
        for child in held if isinstance(held, list) else [held]:
            if name in skipped or not isinstance(child, ast.AST) or isinstance(node, ast.Dict):
                continue
            if isinstance(child, ast.If) and class_name.lower() in ast.unparse(child.test).lower():
                continue
            if isinstance(child, ast.Call):
                if name_called(child) == class_name:
                    yield child
                if name_called(child) in ("isinstance", "issubclass"):
                    continue
            is_called = isinstance(node, ast.Call) and child is node.func
            if isinstance(child, ast.Name | ast.Attribute) and not is_called:
                if read_last(child) == class_name and isinstance(child.ctx, ast.Load):
                    yield child
            yield from _list_namings(child, class_name)


def _says(node: ast.expr, value: object) -> bool:
    """Tell whether an argument is written as a value, or as the number that stands for each part of it."""
    try:
        written = ast.literal_eval(node)
    except ValueError:
        return False
    if isinstance(value, tuple) and not isinstance(written, list | tuple):
        return all(one == written for one in value)
    return bool((tuple(written) if isinstance(written, list) else written) == value)


def is_handed_in(place: SourceLine) -> bool:
    """Tell whether a line gives an attribute a parameter of its function as it is."""
    tree = parse(place.file)
    function = find_innermost(place.file, place.line, FUNCTIONS)
    if tree is None or function is None:
        return False
    known = _list_arguments(function)
    return any(
        isinstance(node, ast.Assign) and node.lineno == place.line
        and isinstance(node.value, ast.Name) and node.value.id in known
        for node in ast.walk(function)
    )  # fmt: skip


_DEEPEST = 6  # names that are followed one after the other


@dataclass(frozen=True)
class Trail:
    """How far a setting could be followed inside one class."""

    place: SourceLine | None
    """where the value stands; None: it is handed in under the setting's own name"""
    parameters: tuple[str, ...] = ()
    """of the constructor around it, through which the value came, the likeliest first"""
    value: object = None
    """the number or switch that is written there; None if none is"""


def trace_attribute(
    classes: Sequence[SourceLine], names: Sequence[str], own: Collection[str]
) -> Trail | None:
    """Return where a class got one of its attributes; None if nothing tells.

    classes: a line inside the class, and one inside each of its base classes. names: of the
    attribute, one of which is the right one; it may be a parameter of the constructor too. own:
    files of the user's.
    """
    known = list_parameters(classes)
    found = tuple(name for name in names if name in known)
    for file, owner in find_owners(classes):
        if found and file not in own:
            break
        for name in names:
            made = find_attribute(owner, name)
            if made is not None and made.value is not None:
                value = read_assigned(made, f"self.{name}")
                trail = _trace(file, owner, made, value, file not in own)
                return _find_handed_up(classes, trail.parameters, own) or trail
    if not found:
        return None
    return _find_handed_up(classes, names, own) or Trail(None, found)


def _find_handed_up(
    classes: Sequence[SourceLine], names: Sequence[str], own: Collection[str]
) -> Trail | None:
    """Return where a constructor gives its base class a value of its own; None where it hands one on.

    What such a value hangs on may be handed in.
    """
    constructors = list(_find_constructors(classes))
    for (file, function), (_, base) in zip(constructors, constructors[1:], strict=False):
        known = _list_arguments(function)
        calls = [one for one in ast.walk(function) if file in own and _is_super_call(one)]
        for call, name in product(calls, names):
            value = _find_argument(call, [name], _list_arguments(base)[1:])  # type: ignore[arg-type]
            held = value.id if isinstance(value, ast.Name) else ""
            if isinstance(value, ast.Constant) or (held != name and {held, name} <= {*known}):
                return Trail(place_of(file, value))  # a parameter in the place of another
            given = find_assignments(function, held) if held not in known else []
            if len(given) == 1:
                used = (one.id for one in ast.walk(given[0].value) if isinstance(one, ast.Name))
                return Trail(place_of(file, given[0]), tuple(one for one in used if one in known))
    return None


def _is_super_call(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    above = node.func.value
    return (
        node.func.attr == "__init__"
        and isinstance(above, ast.Call)
        and name_called(above) == "super"
    )


def trace_argument(
    making: Making, names: Sequence[str], classes: Sequence[SourceLine], own: Collection[str]
) -> Trail | None:
    """Return where a call that makes a layer gets its argument; names: of the constructor's parameter.

    classes: of the layer. own: files of the user's. An argument that is left out has the place of
    its default, or of the call where the framework has the default. None if nothing tells.
    """
    if not isinstance(making.node, ast.Call):
        return None
    value = _find_argument(making.node, names, list_parameters(classes))
    if value is None:
        file, default = _find_bound(classes, names, own) or _find_default(classes, names)
        if default is None or file not in own:
            return Trail(making.place)
        return Trail(place_of(file, default), value=read_number(default))
    calls, known = making.through, read_number(value)
    trail = _trace(making.file, making.owner, value, value, making.file not in own, calls)
    return replace(trail, value=known)


def _find_bound(
    classes: Sequence[SourceLine], names: Sequence[str], own: Collection[str]
) -> tuple[str, ast.expr] | None:
    """Return the only argument of a class that functools.partial binds, with its file; None if none is."""
    kinds = {owner.name for _, owner in find_owners(classes[:1])}
    trees = [(file, parse(file)) for file in sorted(own)]
    found = [
        (file, keyword.value)
        for file, tree in trees
        for call in (find_calls(tree, "partial") if tree is not None else ())
        if call.args and ast.unparse(call.args[0]).rpartition(".")[2] in kinds
        for keyword in call.keywords
        if keyword.arg in names
    ]
    return found[0] if len(found) == 1 else None


def _find_default(
    classes: Sequence[SourceLine], names: Sequence[str]
) -> tuple[str, ast.expr | None]:
    """Return the default of a constructor's parameter, with its file; None if it has none."""
    for file, function in _find_constructors(classes):
        args = function.args
        ordered = [*args.posonlyargs, *args.args]
        pairs = [*zip(ordered[len(ordered) - len(args.defaults) :], args.defaults, strict=True),
                 *zip(args.kwonlyargs, args.kw_defaults, strict=True)]  # fmt: skip
        for argument, default in pairs:
            if argument.arg in names and default is not None:
                return file, default
        break
    return "", None


def list_parameters(classes: Sequence[SourceLine]) -> list[str]:
    """Return the names of a constructor's parameters, without self, in order."""
    for _, function in _find_constructors(classes):
        return _list_arguments(function)[1:]
    return []


def read_attributes(place: SourceLine) -> list[str]:
    """Return the attributes of self, and the parameters, from which a line takes its values."""
    function = find_innermost(place.file, place.line, FUNCTIONS)
    if function is None:
        return []
    last = max(place.line, place.last_line)
    nodes = [node for node in ast.walk(function) if _is_within(node, place.line, last)]
    held = [node.attr for node in nodes if isinstance(node, ast.Attribute) and _is_self(node)]
    given = [node.id for node in nodes if isinstance(node, ast.Name)]
    known = _list_arguments(function)[1:] if function.name == "__init__" else []
    return [*dict.fromkeys([*held, *(name for name in given if name in known)])]


def _trace(
    file: str,
    owner: ast.ClassDef,
    node: Any,
    value: ast.expr,
    through: bool,
    calls: tuple[ast.Call, ...] = (),
) -> Trail:
    """calls: of functions of the file, inside the last of which the value stands."""
    function = find_innermost(file, value.lineno, FUNCTIONS)
    ends = list(_follow(_ValueScope(file, owner, function, through, calls), node, value, _DEEPEST))
    parameters = tuple(dict.fromkeys(name for _, name in ends if name))
    place = ends[0][0] if len(ends) == 1 or parameters else node
    return Trail(place_of(file, place), parameters)


@dataclass(frozen=True)
class _ValueScope:
    """Where the names that a value is made of are looked up."""

    file: str
    owner: ast.ClassDef
    function: Any
    through: bool
    """whether every name of an expression is followed: in a framework's code, which is right"""
    calls: tuple[ast.Call, ...] = ()
    """by which the function is reached from the constructor"""

    def find(self, name: str) -> list[Any]:
        """Return the statements that give a name a value."""
        place = self.owner if name.startswith("self.") else self.function
        return [one for one in find_assignments(place, name) if one.value is not None]

    def is_parameter(self, name: str) -> bool:
        return self.function.name == "__init__" and name in _list_arguments(self.function)

    def find_handed(self, name: str) -> tuple["_ValueScope", ast.expr] | None:
        """Return what the call of the function hands in by a name, and where that is looked up."""
        if not self.calls:
            return None
        *outer, call = self.calls
        value = _find_argument(call, [name], _list_given(self.function, call))
        around = find_innermost(self.file, call.lineno, FUNCTIONS)
        return None if value is None else (replace(self, function=around, calls=(*outer,)), value)


def _follow(scope: _ValueScope, node: Any, value: ast.AST, left: int) -> Iterator[tuple[Any, str]]:
    """Yield where a value stands, and the constructor's parameter that it is, "" if it is none.

    node: what stands for the value if it can be followed no further.
    """
    names = [] if scope.function is None or not left else _list_names(value, scope.through)
    led = False
    for name in names:
        if scope.is_parameter(name):
            yield node, name
            led = True
        if (handed := scope.find_handed(name)) is not None:
            yield from _follow(handed[0], handed[1], handed[1], left - 1)
            led = True
            continue
        made = [one for one in scope.find(name) if one is not node]
        for one in made if len(made) == 1 or scope.through else ():
            yield from _follow(scope, one, read_assigned(one, name), left - 1)
            led = True
    if not led:  # as the variable of a loop
        yield node, ""


_HOLDING = frozenset({"LayerList", "ModuleList", "Sequential", "list", "tuple"})
"""calls whose result holds what they are given"""


def _list_names(value: ast.AST, through: bool) -> list[str]:
    """Return the names that an expression is, holds, chooses from, or looks up."""
    if isinstance(value, ast.Name) or (isinstance(value, ast.Attribute) and _is_self(value)):
        return [ast.unparse(value)]
    parts: list[ast.AST] = [*ast.iter_child_nodes(value)] if through else []
    if isinstance(value, ast.IfExp):
        parts = [value.body, value.orelse]
    elif isinstance(value, ast.BoolOp):
        parts = [*value.values]
    elif isinstance(value, ast.Subscript):
        parts = [value.slice]
    elif isinstance(value, ast.Call) and name_called(value) == "getattr":
        parts = [*value.args[1:]]
    elif isinstance(value, ast.Call) and name_called(value) in _HOLDING:
        parts = [*value.args]
    return [name for part in parts for name in _list_names(part, through)]


def _find_constructors(classes: Sequence[SourceLine]) -> Iterator[tuple[str, ast.FunctionDef]]:
    for file, owner in find_owners(classes):
        for node in owner.body:
            if isinstance(node, ast.FunctionDef) and node.name == "__init__":
                yield file, node


def _find_argument(
    call: ast.Call, names: Sequence[str], parameters: Sequence[str]
) -> ast.expr | None:
    given = dict(zip(parameters, call.args, strict=False))
    if any(isinstance(one, ast.Starred) for one in call.args):
        given = {}
    given |= {one.arg: one.value for one in call.keywords if one.arg}
    return next((given[name] for name in names if name in given), None)


def _list_arguments(function: Any) -> list[str]:
    args = function.args
    return [one.arg for one in (*args.posonlyargs, *args.args, *args.kwonlyargs)]


def _is_self(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id == "self"


def _is_within(node: ast.AST, first: int, last: int) -> bool:
    return isinstance(node, ast.expr) and first <= node.lineno <= last
