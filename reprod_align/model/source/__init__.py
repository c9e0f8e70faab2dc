"""The user's source: a line of it, and the framework calls that it makes, as data for any process.

Lines of the frameworks' own files and of this package are skipped: they help nobody who ports a model.
`parsing` finds the expression of a line, `making` where a layer is made, `coverage` which lines ran.
"""

import inspect
import linecache
import os
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import CodeType, FrameType, TracebackType
from typing import Any, Final, Literal

from reprod_align.base.blocks import Array
from reprod_align.randomness import CallKey

_OWN: Final = f"{Path(__file__).resolve().parents[2]}{os.sep}"
_STANDARD: Final = f"{sysconfig.get_path('stdlib')}{os.sep}"
_HELPERS: Final = ("einops", "numpy", "decorator.py")
"""packages that pass a call on to the frameworks"""


@dataclass(frozen=True)
class SourceLine:
    """A line of a user's file, and the expression in it that is meant."""

    file: str
    line: int
    """counted from 1"""
    expression: str = ""
    """as the user wrote it, in one line; "" if it is not known"""
    last_line: int = 0
    """of the expression, if it is longer than one line"""

    def __str__(self) -> str:
        """Return "file.py:123", the file as seen from the working directory if it lies in it."""
        return f"{_shorten(self.file)}:{self.line}"

    @property
    def text(self) -> str:
        """The whole line, as it stands in the file."""
        return linecache.getline(self.file, self.line).strip()

    @property
    def span(self) -> tuple[int, int]:
        """The part of `text` that is meant, as a slice of it; (0, 0) where that is not one part."""
        if not self.expression or self.text.count(self.expression) != 1:
            return 0, 0
        start = self.text.index(self.expression)
        return start, start + len(self.expression)


class UserCode:
    """Tells the user's files from those of frameworks."""

    def __init__(self, packages: tuple[str, ...], models: tuple[str, ...] = ()) -> None:
        """packages: folders of frameworks, whose files are skipped, except for those in `models`."""
        self._packages, self._models = _name_folders(packages), _name_folders(models)
        self._known: dict[str, bool] = {}

    def holds(self, file: str) -> bool:
        """Tell whether a file is the user's own."""
        known = self._known.get(file)
        if known is None:
            path = os.path.realpath(file)
            skipped = path.startswith((_OWN, *self._packages)) and not path.startswith(self._models)
            known = os.path.isfile(path) and not skipped and not _is_passed_over(path)
            self._known[file] = known
        return known

    def find_calling_frame(self, frame: FrameType | None) -> FrameType | None:
        """Return the innermost frame of the user's from `frame` up; None if ours comes before it.

        Frames of ours right at the top, which heard the call, are skipped.
        """
        frame = skip_own(frame)
        while frame is not None and not is_own(frame):
            if self.holds(frame.f_code.co_filename):
                return frame
            frame = frame.f_back
        return None

    def find_calling_line(self) -> tuple[SourceLine, FrameType] | None:
        """Return the line of the user's that led here, with its frame; None if none did."""
        frame = self.find_calling_frame(sys._getframe(1))
        return None if frame is None else (line_of(frame), frame)

    def find_class(self, kind: type, anywhere: bool = False) -> SourceLine | None:
        """Return a line inside a class of the user's: of its first method. None if it has none.

        A function that was put into a class from outside, as packages patch a framework's layers,
        is not written there. anywhere: the framework's classes too.
        """
        methods = [value for value in vars(kind).values() if _is_written_in(value, kind)]
        found = [self.find_function(value, anywhere) for value in methods]
        return min(filter(None, found), key=lambda line: line.line, default=None)

    def find_function(self, function: object, anywhere: bool = False) -> SourceLine | None:
        """Return where a function of the user's begins; anywhere: the framework's functions too."""
        code = getattr(inspect.unwrap(function), "__code__", None) if callable(function) else None
        if code is None or not (anywhere or self.holds(code.co_filename)):
            return None
        return SourceLine(code.co_filename, code.co_firstlineno)

    def find_raising_line(self, traceback: TracebackType | None) -> SourceLine | None:
        """Return the innermost line of the user's in a traceback."""
        found = None
        while traceback is not None:
            frame = traceback.tb_frame
            if self.holds(frame.f_code.co_filename):
                found = _find_line(frame.f_code, traceback.tb_lasti, traceback.tb_lineno)
            traceback = traceback.tb_next
        return found


def _name_folders(folders: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{os.path.realpath(folder)}{os.sep}" for folder in folders)


def _is_written_in(function: object, kind: type) -> bool:
    code = getattr(inspect.unwrap(function), "__code__", None) if callable(function) else None
    return code is not None and code.co_qualname.startswith(f"{kind.__qualname__}.")


def _is_passed_over(path: str) -> bool:
    """Tell whether a file is the standard library's, or a helper's between model and framework."""
    _, installed, inside = path.rpartition(f"-packages{os.sep}")
    if installed:
        return inside.split(os.sep)[0] in _HELPERS
    return path.startswith(_STANDARD)


def is_own(frame: FrameType) -> bool:
    """Tell whether a frame is of this package's code."""
    return frame.f_code.co_filename.startswith(_OWN)


def skip_own(frame: FrameType | None) -> FrameType | None:
    """Return the first frame from `frame` up that is not ours."""
    while frame is not None and is_own(frame):
        frame = frame.f_back
    return frame


def line_of(frame: FrameType) -> SourceLine:
    """Return the line that a frame is at."""
    return _find_line(frame.f_code, frame.f_lasti, frame.f_lineno)


def _find_line(code: CodeType, instruction: int, line: int) -> SourceLine:
    """Return the place of an instruction of `code`, by its number in bytes."""
    places = _list_positions(code)
    number = instruction // 2
    if number >= len(places) or None in places[number]:
        return SourceLine(code.co_filename, line)
    first, last, start, stop = (int(one) for one in places[number] if one is not None)
    return SourceLine(
        code.co_filename, first, _cut(code.co_filename, first, last, start, stop), last
    )


@lru_cache(maxsize=4096)
def _list_positions(code: CodeType) -> list[tuple[int | None, int | None, int | None, int | None]]:
    return list(code.co_positions())


def _cut(file: str, first: int, last: int, start: int, stop: int) -> str:
    """Return a piece of a file; columns are counted in bytes of UTF-8."""
    lines = [line.encode() for line in _read_lines(file, first, last)]
    if not lines:
        return ""
    lines[-1] = lines[-1][:stop]
    lines[0] = lines[0][start:]
    return " ".join(line.decode(errors="replace").strip() for line in lines)


def _read_lines(file: str, first: int, last: int) -> Iterator[str]:
    return (linecache.getline(file, number) for number in range(first, last + 1))


def _shorten(file: str) -> str:
    try:
        inside = Path(file).resolve().relative_to(Path.cwd())
    except (ValueError, OSError):
        return file
    return str(inside)


Which = Literal["inputs", "outputs"]
LOSS: Final[CallKey] = ("", -1)
"""in place of a module's call: the code that computes the loss"""
RETURN: Final = "return"
"""the name of what stands for a module's own return statement"""


@dataclass(frozen=True)
class Switch:
    """Another value of a module's attribute."""

    path: str
    name: str
    before: Any
    after: Any


@dataclass(frozen=True)
class Wanted:
    """Which calls of modules are to be recorded from the inside."""

    calls: frozenset[CallKey]
    modules: frozenset[str]
    """the modules with a counterpart: what happens in one of them is no other module's own code"""
    stock: frozenset[str] = frozenset()
    """the modules whose own code is the framework's"""
    last: tuple[CallKey, Which] | None = None
    """the run ends where this call has taken its "inputs", or given its "outputs" """
    switch: Switch | None = None
    """another value that a module holds in this run"""


class RunEnd(BaseException):
    """Ends a run from within the model: nothing further is wanted of it. User code lets it pass."""


@dataclass(frozen=True, eq=False)
class Operation:
    """One call that the user's code made: of a function, of an operator, or of a child module."""

    name: str
    """the function's own name; of a child module its dotted name; RETURN"""
    source: SourceLine
    call: CallKey
    """the call of the module whose code it stands in"""
    inputs: Sequence[Array]
    """of a child module: as they arrived"""
    outputs: Sequence[Array]
    """of a child module: as they went on"""
    differentiable: bool = False
    """whether a gradient can flow through an output"""
    constants: Sequence[Any] = ()
    """the numbers, texts and switches among its arguments"""
    names: Mapping[str, Any] = field(default_factory=dict)
    """the variables and attributes of `source.expression` that hold such a constant"""
    child: CallKey | None = None
    """of a child module: its call"""
    keywords: Mapping[str, Any] = field(default_factory=dict)
    """the constants that were given by keyword"""
    tensors: Mapping[str, int] = field(default_factory=dict)
    """the variables of `source.expression` that hold an input: which one"""
    called: str = ""
    """what `source.expression` calls, such as "self.activation" """
    makers: Sequence["Operation | None"] = ()
    """for each input the operation that gave this very tensor, if it was recorded"""
    callers: Sequence[SourceLine] = ()
    """the user's lines that called the function in which the call stands, the innermost first"""
    module: str = ""
    """the module whose code `source` stands in"""
    user: SourceLine | None = None
    """where that is a layer of the framework's: the user's line that led there"""
    whole: "Operation | None" = None
    """of a step inside a function: the call of the function"""


def find_consumer(operations: Sequence[Operation], key: CallKey, which: str) -> Operation | None:
    """Return the call of a child that takes its "inputs", or the return statement of its "outputs".

    The other of the two where only that was recorded.
    """
    children = [one for one in operations if one.child == key]
    returns = [one for one in operations if one.name == RETURN and one.call == key]
    found = [*children, *returns] if which == "inputs" else [*returns, *children]
    return found[0] if found else None


@contextmanager
def switched(modules: Mapping[str, Any], switch: Switch | None) -> Iterator[None]:
    """Put another value in force in the block. modules: the model's, by path."""
    module = None if switch is None else modules.get(switch.path)
    if switch is None or module is None:
        yield
        return
    held, names = vars(module), (switch.name, f"_{switch.name}")  # a setting may be hidden
    name = next((one for one in names if one in held), None)
    if name is None:
        yield
        return
    before = held[name]
    held[name] = switch.after
    try:
        yield
    finally:
        held[name] = before


def list_plain_attributes(module: Any) -> dict[str, Any]:
    """Return the switches, numbers and texts that a module holds as attributes of its own."""
    return {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, (bool, int, float, str)) and name[0] != "_" and name != "training"
    }
