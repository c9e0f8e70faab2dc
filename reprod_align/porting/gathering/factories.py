"""Factories: calls that choose a layer's class while they run, written as the class that they chose."""

import ast
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Any, Final

from reprod_align.explain.code import Code

_DEEPEST: Final = 60  # frames above a constructor in which its layer may be handed on
_PLAIN: Final = (bool, int, float, str, type(None))
Span = tuple[int, int, int, int]
"""a call's first line and column, and its last, as `ast` counts them"""


@dataclass(frozen=True)
class Given:
    """An argument of a constructor: what a factory was given by that name, or a literal."""

    name: str
    origin: str = ""
    """the factory's own argument"""
    text: str = ""
    maker: type | None = None
    """a class that has a factory of the same name, which makes it of the same argument: a configuration's"""


@dataclass(frozen=True)
class Made:
    """A call that gave a layer of a class which it does not name."""

    file: str
    span: Span
    kind: type
    parameters: tuple[str, ...]
    """what the factory takes by position"""
    given: tuple[Given, ...]
    is_inherited: bool = False
    """whether the factory is a method that the class has from a base of another package"""

    def write(self, code: Code, name: str) -> str | None:
        """Return the call of the class in place of the factory's; None where an argument has no text.

        name: what the class is called in that file.
        """
        call = self.find(code)
        if call is None:
            return None
        words = {one.arg: one.value for one in call.keywords if one.arg}
        words |= dict(zip(self.parameters, call.args, strict=False))
        order = [one for one in inspect.signature(self.kind).parameters]
        parts = []
        for at, one in enumerate(self.given):
            text = code.source(words[one.origin]) if one.origin in words else one.text
            if not text and one.maker and call.args and isinstance(call.func, ast.Attribute):
                text = f"{one.maker.__name__}.{call.func.attr}({code.source(call.args[0])})"
            if not text:
                return None
            in_order = order[at : at + 1] == [one.name] and (
                one.maker or one.origin in self.parameters
            )
            parts.append(text if in_order else f"{one.name}={text}")
        lost = code.source(call).count("\n") - sum(part.count("\n") for part in parts)
        return f"{name}({', '.join(parts)}{chr(10) * lost})"  # the lines below stay where they are

    def find(self, code: Code) -> ast.Call | None:
        """Return the call in its file, None where another one stands there now."""
        for call in code.calls():
            if (call.lineno, call.col_offset, call.end_lineno, call.end_col_offset) == self.span:
                return call
        return None


@dataclass
class FactoryWatch:
    """Notes the layers that are built while a profiler runs, and what hands them on."""

    made: list[Made] = field(default_factory=list)
    """the innermost call of each layer first"""
    _built: dict[int, tuple[Any, dict[str, Any], set[int]]] = field(default_factory=dict)
    """by a layer's id: the layer, what its constructor was given, and the ids of the frames around it"""
    _last: dict[int, tuple[Made, bool, str]] = field(default_factory=dict)
    """by a layer's id: its factory, whether that is a method the class inherits, and of which package"""

    def enter(self, frame: FrameType, layer: Any) -> None:
        """Note the start of a constructor; a base's own is none."""
        if id(layer) in self._built:
            return
        names, several, named, held = inspect.getargvalues(frame)
        given = {name: held[name] for name in names[1:]} | held.get(named or "", {})
        given |= {several: held[several]} if several and held[several] else {}
        around: set[int] = set()
        above = frame.f_back
        while above is not None and len(around) < _DEEPEST:
            around.add(id(above))
            above = above.f_back
        self._built[id(layer)] = layer, given, around

    def leave(self, frame: FrameType, layer: Any) -> None:
        """Note a function that returns a layer which was built while it ran."""
        known, caller = self._built.get(id(layer)), frame.f_back
        if known is None or caller is None or id(frame) not in known[2]:
            return
        code, kind = frame.f_code, type(layer)
        names, several, named, held = inspect.getargvalues(frame)
        if several and named and not names and id(layer) in self._last:  # a wrapper hands all on
            made, is_method, home = self._last[id(layer)]
        else:
            first = int(names[:1] in (["self"], ["cls"]))
            given = list(
                _trace(kind, known[1], {one: held[one] for one in names[first:]}, code.co_name)
            )
            positions = tuple(names[first : code.co_argcount])
            if None in given:
                return
            made = Made("", (0, 0, 0, 0), kind, positions, tuple(filter(None, given)))
            is_method = held.get("cls") is kind and code.co_name not in vars(kind)
            home = _name_package(frame)
            self._last[id(layer)] = made, is_method, home
        line, last, column, end = list(caller.f_code.co_positions())[caller.f_lasti // 2]
        if line and last and column is not None and end is not None:
            inherits = is_method and _name_package(caller) != home
            span, file = (line, column, last, end), caller.f_code.co_filename
            self.made.append(replace(made, file=file, span=span, is_inherited=inherits))


def _name_package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def _trace(
    kind: type, given: Mapping[str, Any], held: Mapping[str, Any], factory: str
) -> Iterator[Given | None]:
    """Yield where each argument of a constructor comes from; None of what has no origin and no text."""
    defaults = {name: one.default for name, one in inspect.signature(kind).parameters.items()}
    for name, value in given.items():
        default = defaults.get(name, inspect.Parameter.empty)
        if value is default or (isinstance(value, _PLAIN) and value == default):
            continue
        same = [one for one, other in held.items() if _is_same(value, other)]
        origin = name if name in same else next(iter(same), "")
        maker = type(value) if hasattr(type(value), factory) else None
        text = _write_plain(value)
        yield Given(name, origin, text, maker) if origin or maker or text else None


def _write_plain(value: Any) -> str:
    return repr(value) if isinstance(value, _PLAIN) else ""


def _is_same(value: Any, other: Any) -> bool:
    """Tell whether an argument is what a factory was given, or a copy of it: a configuration's."""
    return value is other or (type(value) is type(other) and not isinstance(value, _PLAIN))
