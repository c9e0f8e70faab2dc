"""Which statements of the code that a model's forward methods reach never ran.

A branch that no batch takes is judged by nobody: agreement says nothing of it. Watched are forward
methods, and the methods and functions that these name, in the user's files and in the packages of
models. While they are watched, each runs a copy of its own code, compiled from its file, in which
every statement notes itself first. So nothing else runs slower, and debuggers, coverage tools and
threads are at work as before. A function whose file has changed since it was imported is left alone.
"""

import ast
import inspect
import warnings
from bisect import bisect
from collections.abc import Iterable, Iterator, Mapping, Set
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field
from functools import lru_cache
from types import BuiltinMethodType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Final, NamedTuple

from reprod_align.model.source import UserCode
from reprod_align.model.source.parsing import FUNCTIONS, parse

_EMPTY: Final = (ast.Raise, ast.Assert, ast.Pass, ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal,
                 ast.ClassDef, *FUNCTIONS)  # fmt: skip
_TALKS: Final = ("warn", "warning", "warning_once", "info", "debug", "print")
"""functions that only print or log"""
_BLOCKS: Final = ("body", "orelse", "finalbody")
_PARTS: Final = ("handlers", "cases")
"""what holds further blocks"""


class StatementLines(NamedTuple):
    """A statement: of one that holds others, its head alone."""

    first: int
    last: int
    function: tuple[str, int]
    """the qualified name and the first line of the watched function in which it stands"""


Places = dict[int, StatementLines]
"""statements by number"""


def mark_statements(
    tree: ast.Module, wanted: Set[tuple[str, int]], note: str
) -> tuple[ast.Module, Places]:
    """Return a copy of a tree in which statements of the wanted functions note their numbers.

    note: a text that stands for the function that is called with a number.
    """
    marker = _Marker(wanted, note)
    return marker.copy_block(tree, "", None), marker.places


def list_idle(
    places: Mapping[int, StatementLines], idle: Set[int]
) -> Iterator[tuple[int, int, int]]:
    """Yield first and last line of idle statements, neighbours joined, and how many lines these have."""
    busy = sorted(places[number].first for number in places.keys() - idle)
    first = last = lines = 0
    for one in sorted(places[number] for number in idle):
        if lines and bisect(busy, last) < bisect(busy, one.first):
            yield first, last, lines
            lines = 0
        if not lines:
            first = one.first
        lines += max(0, one.last - max(last, one.first - 1))
        last = max(last, one.last)
    if lines:
        yield first, last, lines


class _Marker:
    """Copies what is on the way to wanted functions; all else of a tree stays the tree's own."""

    def __init__(self, wanted: Set[tuple[str, int]], note: str) -> None:
        self.places: Places = {}
        self._wanted, self._note = wanted, note

    def copy_block(self, node: Any, around: str, function: tuple[str, int] | None) -> Any:
        """Return a copy of a node with its blocks marked; function: the wanted one around it."""
        made = copy(node)
        for name in _BLOCKS:
            block = getattr(node, name, None)
            if isinstance(block, list):
                setattr(made, name, [*self._mark(block, around, function)])
        for name in _PARTS:
            parts = getattr(node, name, None)
            if isinstance(parts, list):
                setattr(made, name, [self.copy_block(part, around, function) for part in parts])
        return made

    def _mark(
        self, block: list[ast.stmt], around: str, function: tuple[str, int] | None
    ) -> Iterator[ast.stmt]:
        """Yield the statements of a block, each after what notes it. One that raises is an error's."""
        raises = any(isinstance(one, ast.Raise) for one in block)
        for statement in block:
            if function is not None and not raises and _computes(statement):
                yield self._make_note(statement, function)
            yield self._copy(statement, around, None if raises else function)

    def _copy(self, statement: Any, around: str, function: tuple[str, int] | None) -> ast.stmt:
        if isinstance(statement, FUNCTIONS):
            name = f"{around}{statement.name}"
            first = min([statement.lineno, *(one.lineno for one in statement.decorator_list)])
            known = (name, first) if (name, first) in self._wanted else function
            made: ast.stmt = self.copy_block(statement, f"{name}.<locals>.", known)
            return made
        name = f"{around}{statement.name}." if isinstance(statement, ast.ClassDef) else around
        other: ast.stmt = self.copy_block(statement, name, function)
        return other

    def _make_note(self, statement: ast.stmt, function: tuple[str, int]) -> ast.stmt:
        number = len(self.places)
        heads = [block[0].lineno - 1 for block in _find_blocks(statement)]
        last = max(statement.lineno, min(heads, default=statement.end_lineno or 0))
        self.places[number] = StatementLines(statement.lineno, last, function)
        call = ast.Call(ast.Constant(self._note), [ast.Constant(number)], [])
        note = ast.copy_location(ast.Expr(call), statement)
        for node in ast.walk(note):
            ast.copy_location(node, statement)
        return note


def _computes(statement: ast.stmt) -> bool:
    """Tell whether a statement is more than a definition, a docstring, an error or a message."""
    if isinstance(statement, _EMPTY):
        return False
    if not isinstance(statement, ast.Expr):
        return True
    value = statement.value
    called = value.func if isinstance(value, ast.Call) else None
    says = getattr(called, "attr", getattr(called, "id", "")) in _TALKS
    return not (says or isinstance(value, ast.Constant))


def _find_blocks(statement: ast.AST) -> Iterator[list[ast.stmt]]:
    for name in _BLOCKS:
        block: Any = getattr(statement, name, None)
        if isinstance(block, list) and block:
            yield block
    for name in _PARTS:
        for part in getattr(statement, name, ()):
            yield from _find_blocks(part)


_INSTALLED: Final = "-packages/"
_NOTE: Final = "reprod_align notes that a statement runs"
"""a placeholder in the compiled code: the function that notes a statement takes its place"""


@dataclass(frozen=True)
class IdleLines:
    """The lines that never ran."""

    own: tuple[tuple[str, int, int, int], ...] = ()
    """of the user's files: file, first and last line of neighbouring statements, and how many lines
    these have without what lies between"""
    installed: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """package -> how many of its statements never ran, and how many there are"""
    unknown: tuple[str, ...] = ()
    """files that have changed since they were imported: what ran is not known"""


class LineCoverage:
    """Notes which statements of a model's code run, from `begin` to `end`."""

    def __init__(self, code: UserCode, base: type) -> None:
        """Take what tells the user's files, and the class from which every module is derived."""
        self._code, self._base = code, base
        self._own: list[tuple[FunctionType, CodeType]] = []
        self._places: dict[str, Places] = {}
        """file -> number of each watched statement -> its lines"""
        self._seen: dict[str, set[int]] = {}
        self._unknown: set[str] = set()

    def begin(self, modules: Iterable[Any], functions: Iterable[Any]) -> None:
        """Watch the code of modules and functions from now on."""
        self.end()
        reached = [
            one
            for one in self._find_reached(modules, functions)
            if not _notes_itself(one.__code__)  # the other side's too, which says what ran of it
        ]
        for file in dict.fromkeys(one.__code__.co_filename for one in reached):
            codes = [one.__code__ for one in reached if one.__code__.co_filename == file]
            plain, noting, places = _compile(file, parse(file), frozenset(map(_name, codes)))
            seen = self._seen[file] = set[int]()
            watched = {_name(code): _put_in(noting[_name(code)], seen) for code in codes
                       if plain.get(_name(code)) == code}  # fmt: skip
            if any(_name(code) not in watched for code in codes):
                self._unknown.add(file)
            self._places[file] = {
                number: lines for number, lines in places.items() if lines.function in watched
            }
            for one in reached:
                if one.__code__.co_filename == file and _name(one.__code__) in watched:
                    self._own.append((one, one.__code__))
                    one.__code__ = watched[_name(one.__code__)]

    def end(self) -> IdleLines:
        """Give the functions their own code back, and return what never ran."""
        while self._own:
            function, code = self._own.pop()
            function.__code__ = code
        own: list[tuple[str, int, int, int]] = []
        installed: dict[str, tuple[int, int]] = {}
        for file, places in self._places.items():
            package, idle = _find_package(file), places.keys() - self._seen[file]
            if package:
                before, total = installed.get(package, (0, 0))
                installed[package] = before + len(idle), total + len(places)
            else:
                own += [(file, *lines) for lines in list_idle(places, idle)]
        unknown = tuple(sorted(self._unknown))
        self._places, self._seen, self._unknown = {}, {}, set()
        return IdleLines(
            tuple(own), {name: some for name, some in installed.items() if some[0]}, unknown
        )

    # ---------------------------------------------------------------- what is watched

    def _find_reached(
        self, modules: Iterable[Any], functions: Iterable[Any]
    ) -> Iterator[FunctionType]:
        """Yield the functions of the user's that forward methods and some functions reach."""
        waiting: list[tuple[Any, _Methods]] = [(function, {}) for function in functions]
        for kind in {type(module) for module in modules}:
            methods = self._find_methods(kind)
            waiting += [(function, methods) for function in methods.get("forward", ())[:1]]
        seen: set[int] = set()
        while waiting:
            function, methods = waiting.pop()
            function = _unwrap(function)
            if id(function) in seen or not self._is_watched(function):
                continue
            seen.add(id(function))
            if function.__code__.co_name != "<lambda>":  # it is one expression, which ran or not
                yield function
            names = {name for code in _nest(function.__code__) for name in code.co_names}
            for other in _find_named(function, names, methods):
                if _is_near(_unwrap(other), function):
                    waiting.append((other, methods))

    def _find_methods(self, kind: type) -> "_Methods":
        """Return what the classes of the user's give a module, by name, the most derived first.

        Nothing if its forward method is the framework's.
        """
        methods: _Methods = {}
        for one in kind.__mro__[: kind.__mro__.index(self._base)]:
            for name, value in vars(one).items():
                function = value.fget if isinstance(value, property) else value
                if isinstance(value, _CALLED) and self._is_watched(_unwrap(function)):
                    methods.setdefault(name, []).append(function)
        return methods

    def _is_watched(self, function: object) -> bool:
        return isinstance(function, FunctionType) and self._code.holds(
            function.__code__.co_filename
        )


def _unwrap(value: Any) -> Any:
    """Return the function inside a method or a decorated function; other things are left unasked."""
    if isinstance(value, (MethodType, staticmethod, classmethod)):
        value = value.__func__
    return inspect.unwrap(value) if isinstance(value, FunctionType) else value


_CALLED: Final = (FunctionType, staticmethod, classmethod, property)
_Methods = dict[str, list[Any]]


def _find_named(function: FunctionType, names: set[str], methods: _Methods) -> Iterator[Any]:
    """Yield the methods and functions that a function may call, by the names in its code."""
    known = function.__globals__
    found = [known[name] for name in names & known.keys()]
    yield from found
    for module in found:
        if isinstance(module, ModuleType):
            yield from (vars(module)[name] for name in names & vars(module).keys())
    yield from _list_enclosed(function)
    for name in names & methods.keys() - {"__init__"}:
        yield methods[name][0]
    if "super" in names:
        several = methods.get(function.__name__, [])
        yield from several[several.index(function) + 1 :] if function in several else several


def _list_enclosed(function: FunctionType) -> Iterator[Any]:
    """Yield the functions that a function knows from the code around it."""
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # a cell may be empty
            if isinstance(cell.cell_contents, FunctionType):
                yield cell.cell_contents


def _nest(code: CodeType) -> Iterator[CodeType]:
    """Yield a piece of code and those that stand in it: lambdas, comprehensions, inner functions."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nest(constant)


def _is_near(function: object, caller: FunctionType) -> bool:
    """Tell whether a function is the user's, or of the package of the one that names it."""
    if not isinstance(function, FunctionType):
        return False
    package = _find_package(function.__code__.co_filename)
    return package in ("", _find_package(caller.__code__.co_filename))


_CodeName = tuple[str, int]
"""of a function: its qualified name, and its first line"""


def _name(code: CodeType) -> _CodeName:
    return code.co_qualname, code.co_firstlineno


@lru_cache(maxsize=256)
def _compile(
    file: str, tree: ast.Module | None, wanted: Set[_CodeName]
) -> tuple[Mapping[_CodeName, CodeType], Mapping[_CodeName, CodeType], Places]:
    """Return the code of some functions of a file, the same with its statements marked, and these."""
    if tree is None:
        return {}, {}, {}
    marked, places = mark_statements(tree, wanted, _NOTE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a text in place of a function
        return _compile_tree(tree, file), _compile_tree(marked, file), places


def _compile_tree(tree: ast.Module, file: str) -> dict[_CodeName, CodeType]:
    whole = compile(tree, file, "exec", dont_inherit=True)
    return {_name(code): code for code in _nest(whole)}


def _put_in(code: CodeType, seen: set[int]) -> CodeType:
    """Return the code with the function that notes a statement in place of each placeholder."""
    constants = [
        _put_in(one, seen)
        if isinstance(one, CodeType)
        else seen.add
        if isinstance(one, str) and one == _NOTE
        else one
        for one in code.co_consts
    ]
    return code.replace(co_consts=tuple(constants))


def _notes_itself(code: CodeType) -> bool:
    """Tell whether code comes from `_put_in`: no compiler makes a constant of a method."""
    return any(isinstance(one, BuiltinMethodType) for one in code.co_consts)


def _find_package(file: str) -> str:
    """Return the package in which a file is installed; "" for a file of the user's own."""
    _, installed, inside = file.replace("\\", "/").rpartition(_INSTALLED)
    return inside.partition("/")[0] if installed else ""
