"""A fault that can be planted, and the list of all: a function with `@plantable` adds its fault to it."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import Any

from reprod_align.model.local import LocalSide
from reprod_align.report import Unjudged
from reprod_align.selftest.view import View

Plant = Callable[[LocalSide], AbstractContextManager[LocalSide]]


@dataclass(frozen=True)
class Fault:
    """One way in which a port goes wrong, at one place of the user's model."""

    module: str
    """Paddle's dotted name of the module, parameter or input; "" for the model or its training"""
    plant: Plant | None
    """gives the side with the fault in it while the block lasts; None: it has no place to be"""
    hint: str = ""
    """why it may stay hidden and what would show it, as far as can be told beforehand"""
    kind: str = ""
    """"" until `find_faults` gives it the kind under which it is registered"""
    in_steps: bool = False
    """only optimizer steps can show it"""
    noted: Unjudged | None = None
    """what a report may name as not judged, and reveals the fault by that"""


Found = Fault | str | list[Fault]
"""the faults, or why the model has no place for one"""
Finder = Callable[[View], Found]

_FINDERS: list[tuple[str, Finder]] = []


def plantable(kind: str) -> Callable[[Finder], Finder]:
    """Register a function that looks for a place of this kind of fault in the model."""

    def register(find: Finder) -> Finder:
        _FINDERS.append((kind, find))
        return find

    return register


def find_faults(view: View) -> list[Fault]:
    """Return every registered kind of fault, planted nowhere yet."""
    return [fault for kind, find in _FINDERS for fault in _name_kind(kind, find(view))]


def _name_kind(kind: str, found: Found) -> list[Fault]:
    if isinstance(found, str):
        return [Fault("", None, found, kind)]
    several = found if isinstance(found, list) else [found]
    return [replace(fault, kind=fault.kind or kind) for fault in several]


def fault_at(
    module: str, make: Callable[[], AbstractContextManager[Any]], hint: str = "", kind: str = ""
) -> Fault:
    """Return a fault in the model that is there while make()'s block lasts."""

    @contextmanager
    def plant(side: LocalSide) -> Iterator[LocalSide]:
        with make():
            yield side

    return Fault(module, plant, hint, kind)
