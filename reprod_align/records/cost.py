"""What reading a pickle may cost: each object and each look at one is paid for by the file's own bytes.

A few bytes can name a value again, and each use can copy it, look through it or nest it. So everything
has a price, about the bytes of memory that it takes, and a file of n bytes may spend a multiple of n.
Time and memory are then linear in the file, whatever it asks for.
"""

from collections.abc import Sequence, Sized
from dataclasses import dataclass
from typing import Any

import numpy as np

DEEPEST = 64  # containers inside containers; real records have two or three
_FREE, _PER_BYTE = 2**20, 40  # records need 25 per byte; the densest content, lists of pairs, 36
_REPEATED = 16  # values that one byte may stand for, counted as often as they are reached
_PLACED = 100  # to remember where a container lies


class Refused(Exception):
    """What is wrong with the file, as the end of a sentence that starts with its name."""


@dataclass(slots=True)
class _Known:
    """A container that holds others or lies in one; kept alive, so that its id stays its own."""

    container: object
    depth: int
    values: int
    """how many values it holds, at any depth, each counted as often as it is reached"""
    sealed: bool = False
    """lies inside another, so that nothing may be added to it"""


class Account:
    """What one file has left to spend."""

    def __init__(self, size: int) -> None:
        """Allow what a file of `size` bytes explains."""
        self._copied = 2 * size
        self._left = self._allowed = _FREE + _PER_BYTE * size
        self._most_values = _FREE + _REPEATED * size
        self._known: dict[int, _Known] = {}

    @property
    def paid(self) -> int:
        """What was paid so far: a count of steps and of bytes, the same on every machine."""
        return self._allowed - self._left

    def pay(self, price: int) -> None:
        """Refuse a file that makes more objects, or looks at them more often, than its size explains."""
        self._left -= price
        if self._left < 0:
            raise Refused("asks for more memory than its size explains")

    def spend(self, size: int) -> None:
        """Refuse a file that grows in memory by using the same bytes again and again."""
        self._copied -= size
        if self._copied < 0:
            raise Refused("asks for more memory than its size explains")

    def place(self, container: Sized, items: Sequence[Any]) -> None:
        """Note that `items`, the last that `container` got, lie inside it; refuse cycles and deep nesting.

        A pickler fills a container before it puts it into another. Holding a file to that leaves
        no container that contains itself, and makes the depth of each known at once.
        """
        self.pay(8 * len(items))
        inner = [self._seal(item) for item in items if _is_container(item)]
        known = self._known.get(id(container))
        if items and known is not None and known.sealed:
            raise Refused("holds a container that contains itself")
        if not inner and known is None:
            return  # it holds plain values alone: its length tells all
        known = known or self._know(container, count_items(container) - len(items))
        known.depth = max(known.depth, 1 + max((one.depth for one in inner), default=0))
        known.values += len(items) + sum(one.values for one in inner)
        if known.depth > DEEPEST:
            raise Refused(f"nests containers more than {DEEPEST} deep")
        if known.values > self._most_values:
            raise Refused("repeats its containers more often than its size explains")

    def _seal(self, item: Sized) -> _Known:
        known = self._known.get(id(item))
        if known is None and isinstance(item, tuple):
            return _Known(item, 1, len(item), True)  # it can't grow, and holds plain values alone
        known = known or self._know(item, count_items(item))
        known.sealed = True
        return known

    def _know(self, container: Sized, values: int) -> _Known:
        self.pay(_PLACED)
        known = self._known[id(container)] = _Known(container, 1, values)
        return known


def count_items(container: Sized) -> int:
    """Return how many items a container has; an array, how many elements."""
    return container.size if isinstance(container, np.ndarray) else len(container)


def _is_container(item: Any) -> bool:
    """Tell whether an item holds others, or could later: an empty list is filled with what holds it."""
    if isinstance(item, np.ndarray):
        return bool(item.dtype.hasobject)
    return isinstance(item, (list, dict)) or (isinstance(item, tuple) and len(item) > 0)
