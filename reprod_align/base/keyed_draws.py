"""Random draws keyed by where in the model they are asked for, not by how many came before.

The n-th draw in a module's k-th call gets the same numbers on both sides, so that a dropout which
one side lacks disturbs no other. A draw in a module that has no counterpart counts for the module
around it: a Dropout layer here, a functional dropout there, are the same draw.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

CallKey = tuple[str, int]  # a module's name on the torch side, and which of its calls
Shape = tuple[int, ...]


def _nowhere() -> list[CallKey]:
    return [("", 0)]


@dataclass
class KeyedDraws:
    """The draws of one forward and backward pass on one side."""

    seed: int
    names: Mapping[str, str]
    """this side's module names that have a counterpart -> their names on the torch side"""
    asked: Mapping[tuple[CallKey, int], Shape] = field(default_factory=dict)
    """shapes that the torch side drew: a draw of as many elements is laid out like it"""
    place: Callable[[], list[CallKey]] = _nowhere
    """set by the run: the calls that are open, the innermost last"""
    drawn: dict[tuple[CallKey, int], Shape] = field(default_factory=dict)
    """what was asked for, filled as it comes"""
    _counts: Counter[CallKey] = field(default_factory=Counter)

    def uniform(self, shape: Shape) -> NDArray[np.float64]:
        """Return numbers in [0, 1), float64 of `shape`."""
        return self._draw(shape, lambda source, wanted: source.random(wanted))

    def normal(self, shape: Shape) -> NDArray[np.float64]:
        """Return standard normal numbers, float64 of `shape`."""
        return self._draw(shape, lambda source, wanted: source.standard_normal(wanted))

    def integers(self, low: int, high: int, shape: Shape) -> NDArray[np.int64]:
        """Return integers from `low` up to, not including, `high`; int64 of `shape`."""
        return self._draw(shape, lambda source, wanted: source.integers(low, high, wanted))

    def permutation(self, n: int) -> NDArray[np.int64]:
        """Return the numbers 0 to n - 1 in random order, int64."""
        return self._draw((n,), lambda source, wanted: source.permutation(n))

    def _draw(
        self, shape: Shape, draw: Callable[[np.random.Generator, Shape], NDArray[Any]]
    ) -> NDArray[Any]:
        key, source = self._begin(tuple(shape))
        wanted = self.asked.get(key, tuple(shape))
        return lay_out(draw, source, wanted, tuple(shape))

    def _begin(self, shape: Shape) -> tuple[tuple[CallKey, int], np.random.Generator]:
        """Note a draw; return its key, and the generator that is its alone."""
        place = self._paired_place()
        key = place, self._counts[place]
        self._counts[place] += 1
        self.drawn[key] = shape
        text = repr((self.seed, key)).encode()
        words = np.frombuffer(sha256(text).digest(), dtype=np.uint32)
        return key, np.random.Generator(np.random.Philox(np.random.SeedSequence(words.tolist())))

    def _paired_place(self) -> CallKey:
        for path, index in reversed(self.place()):
            if path in self.names:
                return self.names[path], index
        return "", 0


def lay_out(
    draw: Callable[[np.random.Generator, Shape], NDArray[Any]],
    source: np.random.Generator,
    wanted: Shape,
    shape: Shape,
) -> NDArray[Any]:
    """Return the draw of shape `wanted`, with its axes or its grouping changed to `shape`."""
    if wanted == shape or int(np.prod(wanted)) != int(np.prod(shape)):
        return draw(source, shape)
    values = draw(source, wanted)
    if len(wanted) == len(shape):
        for axes in permutations(range(len(wanted))):
            if tuple(wanted[axis] for axis in axes) == shape:
                return np.ascontiguousarray(values.transpose(axes))
    return values.reshape(shape)
