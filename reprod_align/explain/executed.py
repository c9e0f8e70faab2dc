"""Which functions and lines a run takes, and for which side: an edit of other code changes nothing."""

import os
import sys
import sysconfig
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

from reprod_align.base import PORT, REFERENCE
from reprod_align.model.local import LocalSide

MODULE: Final = "<module>"
LAMBDA: Final = "<lambda>@"
"""before the line of a function without a name"""
_PACKAGES: Final = ("torch", "paddle", "numpy", "reprod_align", "packaging", "_pytest", "pluggy")
_INSIDE: Final = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")
Function = tuple[str, str]
"""a file and a qualified name, "Net.forward" or "<lambda>@12" """


@dataclass(frozen=True)
class Ran:
    """What ran of the users' code."""

    port: Sequence[Function] = ()
    """functions that the port alone ran: in its calls first, then those that made it"""
    reference: Sequence[Function] = ()
    """functions that the reference ran"""
    lines: Mapping[str, frozenset[int]] = field(default_factory=dict)
    """file -> the lines that the port ran"""
    names: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """file -> what the port's functions read of its module, and the reference's do not"""
    calls: Mapping[Function, Collection[Function]] = field(default_factory=dict)
    """functions -> those that they called with no other code between: a layer's call is none"""

    def list_reached(self, functions: Iterable[Function]) -> Sequence[Function]:
        """Return what these functions called, and so on, the nearest first."""
        reached = dict.fromkeys(functions)
        waiting = [*reached]
        for one in waiting:
            further = [it for it in self.calls.get(one, ()) if it not in reached]
            reached |= dict.fromkeys(further)
            waiting += further
        return [*reached]


def note_lines(files: Iterable[str], run: Callable[[], object]) -> dict[str, frozenset[int]]:
    """Return the lines that `run` takes in each of the files. What it raises passes through."""
    taken: dict[str, set[int]] = {file: set() for file in files}
    _trace(lambda frame: taken.get(frame.f_code.co_filename), run)
    return {file: frozenset(lines) for file, lines in taken.items()}


def note_functions(run: Callable[[], object]) -> Ran:
    """Return what `run` takes of the users' code; code outside of both sides' calls makes the port."""
    lines: dict[CodeType, set[int]] = {}
    sides: dict[CodeType, set[str]] = {}
    calls: dict[Function, dict[Function, None]] = {}

    def enter(frame: FrameType) -> set[int] | None:
        code = frame.f_code
        if not _is_users(code.co_filename):
            return None
        sides.setdefault(code, set()).add(_find_side(frame))
        above = frame.f_back.f_code if frame.f_back is not None else None
        if above is not None and _is_users(above.co_filename):
            calls.setdefault(name_function(above), {})[name_function(code)] = None
        return lines.setdefault(code, set())

    _trace(enter, run)
    ours = {code for code, found in sides.items() if str(REFERENCE) in found}
    shared = {name_function(code) for code in ours}
    port = sorted((code for code in sides if name_function(code) not in shared),
                  key=lambda code: str(PORT) not in sides[code])  # fmt: skip
    taken: dict[str, set[int]] = {}
    names: dict[str, set[str]] = {}
    for code in port:
        taken.setdefault(code.co_filename, set()).update(lines[code])
        names.setdefault(code.co_filename, set()).update(code.co_names)
    for code in ours:
        names.get(code.co_filename, set()).difference_update(code.co_names)
    return Ran(
        list(dict.fromkeys(map(name_function, port))),
        list(dict.fromkeys(map(name_function, ours))),
        {file: frozenset(found) for file, found in taken.items()},
        {file: frozenset(found) for file, found in names.items()},
        calls,
    )


def _trace(enter: Callable[[FrameType], set[int] | None], run: Callable[[], object]) -> None:
    """Run; `enter` gives the set that takes the lines of a call, or None."""

    def begin(frame: FrameType, event: str, value: Any) -> Any:
        lines = enter(frame)
        if lines is None:
            return None

        def note(frame: FrameType, event: str, value: Any) -> Any:
            lines.add(frame.f_lineno)
            return note

        return note

    before = sys.gettrace()
    sys.settrace(begin)
    try:
        run()
    finally:
        sys.settrace(before)


def _find_side(frame: FrameType) -> str:
    """Return the framework of the side whose call this is; "" if it is of neither."""
    above: FrameType | None = frame
    while above is not None:
        side = above.f_locals.get("self") if above.f_code.co_filename in _SIDES else None
        if isinstance(side, LocalSide):
            return side.name
        above = above.f_back
    return ""


_SIDES: Final = frozenset({LocalSide.run.__code__.co_filename})


@lru_cache(maxsize=10_000)
def _is_users(file: str) -> bool:
    """Tell whether a file is of neither Python, nor a framework, nor this library."""
    standard = f"{sysconfig.get_path('stdlib')}{os.sep}"
    _, installed, inside = file.rpartition(f"-packages{os.sep}")
    if not installed and file.startswith(standard) or not file.endswith(".py"):
        return False
    if installed:
        return inside.partition(os.sep)[0] not in _PACKAGES
    return not Path(file).is_relative_to(Path(__file__).parents[1])


def name_function(code: CodeType) -> Function:
    """Return the file and the qualified name of the function that a code is of, or lies in."""
    parts = [part for part in code.co_qualname.split(".") if part != "<locals>"]
    while parts and parts[-1] in _INSIDE:
        parts.pop()
    if parts and parts[-1] == "<lambda>":
        return code.co_filename, f"{LAMBDA}{code.co_firstlineno}"
    return code.co_filename, ".".join(parts) or MODULE
