"""Which functions a run reaches, and which of them handle tensors or layers."""

import os
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from types import FrameType
from typing import Any

Place = tuple[str, int]
"""a file, and the first line of a function in it, its decorators included"""


@dataclass(frozen=True)
class Executed:
    """The functions of Python files that a run called."""

    places: frozenset[Place] = frozenset()
    handling: frozenset[Place] = frozenset()
    """those that were given or returned a tensor, a layer or a class of layers"""
    _lines: dict[str, list[int]] = field(default_factory=dict)

    def __contains__(self, place: Place) -> bool:
        """Tell whether a function was called."""
        return place in self.places

    def handles(self, file: str, first: int, last: int) -> bool:
        """Tell whether a function that handles tensors begins in some lines of a file."""
        if not self._lines:
            for name, line in self.handling:
                self._lines.setdefault(name, []).append(line)
            self._lines.setdefault("", [])
        return any(first <= line <= last for line in self._lines.get(file, ()))


def list_executed(work: Callable[[], object]) -> Executed:
    """Return the functions of Python files that are called while `work` runs."""
    torch = sys.modules.get("torch")
    kinds = (torch.Tensor, torch.nn.Module, torch.dtype) if torch else ()
    layer = torch.nn.Module if torch else None
    called: set[Place] = set()
    handling: set[Place] = set()

    def touches(value: Any) -> bool:
        if isinstance(value, kinds):
            return True
        if isinstance(value, partial):
            value = value.func
        if isinstance(value, type) and layer is not None:
            return issubclass(value, layer)
        if type(value) in (list, tuple):
            return any(
                isinstance(one, kinds) or (isinstance(one, type) and touches(one))
                for one in value[:4]
            )
        return False

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if event not in ("call", "return"):
            return
        code = frame.f_code
        place = (code.co_filename, code.co_firstlineno)
        if event == "call":
            called.add(place)
            if place not in handling:
                held = frame.f_locals
                if any(
                    touches(held.get(name))
                    for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
                ):
                    handling.add(place)
        elif place not in handling and touches(argument):
            handling.add(place)

    before = sys.getprofile()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
        threading.setprofile(None)  # what it is without a profiler
    real = {file: os.path.realpath(file) for file, _ in called}
    return Executed(
        frozenset((real[file], line) for file, line in called),
        frozenset((real.get(file, file), line) for file, line in handling),
    )
