"""A change of the user's code, or of what a module holds, that is in force for one run.

If the port's numbers become the reference's with it, what was changed is the fault.
"""

import linecache
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from inspect import unwrap
from types import CodeType, FunctionType
from typing import Any

from reprod_align.model.source.lines import SourceLine


@dataclass(frozen=True)
class Piece:
    """A part of one line, and what is put in its place."""

    line: int
    start: int
    """in bytes of the line; the next likewise"""
    end: int
    text: str


@dataclass(frozen=True)
class Edit:
    """Another text of one function; its lines keep their numbers."""

    place: SourceLine
    pieces: tuple[Piece, ...]
    before: str
    """what is changed, as it stands"""
    after: str


@dataclass(frozen=True)
class Switch:
    """Another value of a module's attribute."""

    path: str
    name: str
    before: Any
    after: Any


Alteration = Edit | Switch


@contextmanager
def altered(modules: Mapping[str, Any], alteration: Alteration | None) -> Iterator[None]:
    """Put an alteration in force in the block. modules: the model's, by path."""
    if isinstance(alteration, Switch):
        with _switched(modules.get(alteration.path), alteration):
            yield
    elif isinstance(alteration, Edit):
        with _edited(modules.values(), alteration):
            yield
    else:
        yield


def list_plain_attributes(module: Any) -> dict[str, Any]:
    """Return the switches, numbers and texts that a module holds as attributes of its own."""
    return {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, (bool, int, float, str)) and name[0] != "_" and name != "training"
    }


@contextmanager
def _switched(module: Any, switch: Switch) -> Iterator[None]:
    if module is None or switch.name not in vars(module):
        yield
        return
    before = vars(module)[switch.name]
    vars(module)[switch.name] = switch.after
    try:
        yield
    finally:
        vars(module)[switch.name] = before


@contextmanager
def _edited(modules: Iterable[Any], edit: Edit) -> Iterator[None]:
    """Give the functions around the edited line their changed code; calls of them see it at once."""
    held = [one for one in _find_functions(modules) if _is_around(one.__code__, edit.place)]
    found = {one: _find_code(edit, one.__code__) for one in held}
    before = {one: one.__code__ for one in held}
    try:
        for function, code in found.items():
            if code is not None and len(code.co_freevars) == len(function.__code__.co_freevars):
                function.__code__ = code
        yield
    finally:
        for function, own in before.items():
            function.__code__ = own


def _find_functions(modules: Iterable[Any]) -> set[FunctionType]:
    """Return the functions of the modules' classes, and those that these see by name."""
    kinds = {base for module in modules for base in type(module).__mro__}
    methods = {one for kind in kinds for one in _unwrap_all(vars(kind).values())}
    spaces = {id(one.__globals__): one.__globals__ for one in methods}
    seen = [value for space in spaces.values() for value in [*space.values()]]
    return methods | {*_unwrap_all(seen)}


def _unwrap_all(values: Iterable[Any]) -> Iterator[FunctionType]:
    for value in values:
        plain = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
        if isinstance(plain, (FunctionType, property)):
            plain = plain.fget if isinstance(plain, property) else unwrap(plain)
            if isinstance(plain, FunctionType):
                yield plain


def _is_around(code: CodeType, place: SourceLine) -> bool:
    if code.co_filename != place.file:
        return False
    lines = [line for *_, line in code.co_lines() if line is not None]
    return code.co_firstlineno <= place.line <= max(lines, default=0)


def _find_code(edit: Edit, own: CodeType) -> CodeType | None:
    """Return the changed code of a function; None if the change cannot be compiled."""
    wanted = own.co_qualname, own.co_firstlineno
    found = (code for code in _compile(edit) if (code.co_qualname, code.co_firstlineno) == wanted)
    return next(found, None)


@lru_cache(maxsize=8)
def _compile(edit: Edit) -> Sequence[CodeType]:
    """Return every piece of code of the changed file."""
    text = apply(linecache.getlines(edit.place.file), edit.pieces)
    try:
        return [*_list_code(compile(text, edit.place.file, "exec", dont_inherit=True))]
    except (SyntaxError, ValueError):
        return []


def apply(lines: Sequence[str], pieces: Iterable[Piece]) -> str:
    """Return the text of a file with its pieces replaced."""
    changed = [line.encode() for line in lines]
    for piece in sorted(pieces, key=lambda one: (one.line, one.start), reverse=True):
        line = changed[piece.line - 1]
        changed[piece.line - 1] = line[: piece.start] + piece.text.encode() + line[piece.end :]
    return b"".join(changed).decode()


def _list_code(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _list_code(constant)
