"""Which lines of the code that a model's forward methods reach have run, and which never did.

A branch that no batch takes is judged by nobody: agreement says nothing of it. Watched are forward
methods, and the methods and functions that these name, in the user's files and in the packages of
models. Each is watched only until all of its lines have run, and each kind of run only once.
"""

import inspect
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any, Final

from reprod_align.model.source.idle import find_idle_statements
from reprod_align.model.source.lines import UserCode

_INSTALLED: Final = "-packages/"
_NAME: Final = "reprod_align"


@dataclass(frozen=True)
class IdleLines:
    """The lines that never ran."""

    own: tuple[tuple[str, int, int], ...] = ()
    """of the user's files: file, first line and last line of each statement"""
    installed: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """package -> how many of its lines never ran, and how many there are"""
    is_unknown: bool = False
    """whether another trace function was at work, which was left alone"""


@dataclass
class _Watched:
    """A piece of code, and its lines that have not run yet."""

    code: CodeType
    lines: frozenset[int]
    left: set[int]


class LineCoverage:
    """Notes which lines of a model's code run. It costs nothing until `begin` and after `end`."""

    def __init__(self, code: UserCode, base: type) -> None:
        """Take what tells the user's files, and the class from which every module is derived."""
        self._code, self._base = code, base
        self._watched: dict[int, _Watched] = {}
        self._runs: dict[object, object] = {}
        self._active = self._is_unknown = False

    def begin(self, modules: Iterable[Any], functions: Iterable[Any]) -> None:
        """Watch the code of modules and functions from now on."""
        self._watched, self._runs, self._is_unknown = {}, {}, False
        for code in self._find_codes(modules, functions):
            lines = _list_lines(code)
            self._watched[id(code)] = _Watched(code, lines, set(lines))
        self._active = True

    def end(self) -> IdleLines:
        """Stop, and return what never ran."""
        self._active = False
        if self._is_unknown:
            return IdleLines(is_unknown=True)
        left: dict[str, set[int]] = {}
        installed: dict[str, tuple[int, int]] = {}
        for one in self._watched.values():
            package = _find_package(one.code.co_filename)
            if package:
                idle, total = installed.get(package, (0, 0))
                installed[package] = idle + len(one.left), total + len(one.lines)
            elif one.left:
                left.setdefault(one.code.co_filename, set()).update(one.left)
        own = [(file, *lines) for file, idle in left.items()
               for lines in find_idle_statements(file, idle, self._list_run(file))]  # fmt: skip
        return IdleLines(tuple(own), {name: some for name, some in installed.items() if some[0]})

    @contextmanager
    def on(self, run: tuple[object, ...], kept: object) -> Iterator[None]:
        """Note the lines that run in the block, if it is the first of its kind.

        run: what tells kinds of runs apart, with the ids of the objects in `kept`.
        """
        if not self._active or run in self._runs or not any(w.left for w in self._watched.values()):
            yield
            return
        self._runs[run] = kept
        with _monitor(self._watched) if sys.version_info >= (3, 12) else self._trace():
            yield

    @contextmanager
    def _trace(self) -> Iterator[None]:
        """Trace this thread and those that begin in the block; another's trace function stays."""
        if sys.gettrace() is not None:
            self._is_unknown = True
            yield
            return
        watched, others = self._watched, threading.gettrace()

        def hear_call(frame: FrameType, event: str, argument: Any) -> Any:
            known = watched.get(id(frame.f_code))
            if known is None or not known.left:
                return None
            left = known.left

            def hear_line(frame: FrameType, event: str, argument: Any) -> Any:
                left.discard(frame.f_lineno)
                frame.f_trace_lines = bool(left)
                return hear_line

            return hear_line

        threading.settrace(hear_call)
        sys.settrace(hear_call)
        try:
            yield
        finally:
            sys.settrace(None)
            threading.settrace(others)  # type: ignore[arg-type]

    def _list_run(self, file: str) -> set[int]:
        """Return the lines of a file that have run, in any piece of code."""
        pieces = (one for one in self._watched.values() if one.code.co_filename == file)
        return {line for one in pieces for line in one.lines - one.left}

    # ---------------------------------------------------------------- what is watched

    def _find_codes(self, modules: Iterable[Any], functions: Iterable[Any]) -> Iterator[CodeType]:
        """Yield the code that modules' forward methods and some functions reach, each once."""
        waiting: list[tuple[Any, _Methods]] = [(function, {}) for function in functions]
        for kind in {type(module) for module in modules}:
            methods = self._find_methods(kind)
            waiting += [(function, methods) for function in methods.get("forward", ())[:1]]
        seen: set[int] = set()
        while waiting:
            function, methods = waiting.pop()
            function = inspect.unwrap(getattr(function, "__func__", function))
            if id(function) in seen or not self._is_watched(function):
                continue
            seen.add(id(function))
            names: set[str] = set()
            for code in _nest(function.__code__):
                yield code
                names.update(code.co_names)
            waiting += [(other, methods) for other in _find_named(function, names, methods)]

    def _find_methods(self, kind: type) -> "_Methods":
        """Return what the classes of the user's give a module, by name, the most derived first.

        Nothing if its forward method is the framework's.
        """
        methods: _Methods = {}
        for one in kind.__mro__[: kind.__mro__.index(self._base)]:
            if not self._code.holds(getattr(sys.modules.get(one.__module__), "__file__", "") or ""):
                continue
            for name, value in vars(one).items():
                if isinstance(value, _CALLED):
                    function = value.fget if isinstance(value, property) else value
                    methods.setdefault(name, []).append(function)
        return methods

    def _is_watched(self, function: object) -> bool:
        return isinstance(function, FunctionType) and self._code.holds(function.__code__.co_filename)


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
    for name in names & methods.keys() - {"__init__"}:
        yield methods[name][0]
    if "super" in names:
        several = methods.get(function.__name__, [])
        yield from several[several.index(function) + 1 :] if function in several else several


def _nest(code: CodeType) -> Iterator[CodeType]:
    """Yield a piece of code and those that stand in it: lambdas, comprehensions, inner functions."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nest(constant)


def _list_lines(code: CodeType) -> frozenset[int]:
    """Return the lines of a piece of code that can run: not that of its definition."""
    found = {line for _, _, line in code.co_lines() if line is not None}
    is_expression = code.co_name.startswith("<")
    return frozenset(found if is_expression else found - {code.co_firstlineno})


def _find_package(file: str) -> str:
    """Return the package in which a file is installed; "" for a file of the user's own."""
    _, installed, inside = file.replace("\\", "/").rpartition(_INSTALLED)
    return inside.partition("/")[0] if installed else ""


@contextmanager
def _monitor(watched: Mapping[int, _Watched]) -> Iterator[None]:
    """Note lines by `sys.monitoring`, which any number of tools may use beside each other."""
    monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
    tool = next((number for number in range(5, -1, -1) if monitoring.get_tool(number) is None), None)
    if tool is None:  # six tools are at work: no more can be
        yield
        return

    def hear_line(code: CodeType, line: int) -> Any:
        watched[id(code)].left.discard(line)
        return monitoring.DISABLE

    monitoring.use_tool_id(tool, _NAME)
    try:
        monitoring.register_callback(tool, monitoring.events.LINE, hear_line)
        for one in watched.values():
            if one.left:
                monitoring.set_local_events(tool, one.code, monitoring.events.LINE)
        yield
    finally:
        for one in watched.values():
            monitoring.set_local_events(tool, one.code, 0)
        monitoring.register_callback(tool, monitoring.events.LINE, None)
        monitoring.free_tool_id(tool)
