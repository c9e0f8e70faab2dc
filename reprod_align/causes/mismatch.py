"""What every cause is given: two tensors that differ, and what the reference's code had at hand."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from reprod_align.causes.numbers import Floats, is_telling
from reprod_align.model.trace import Array

import numpy as np

_MOST = 10  # inputs that are tried


@dataclass(frozen=True)
class Source:
    """A value that the code had at hand, and its name."""

    name: str
    values: Floats


@dataclass(frozen=True)
class Mismatch:
    """A tensor of PyTorch's, the port's that should equal it, and what it may be made of."""

    expected: Floats
    actual: Floats
    inputs: Sequence[tuple[str, Array]] = ()
    """what the call, or the code between a composite's children, had at hand: (name, array), in order"""
    kind: str = ""
    """the PyTorch class that computes it, "" if unknown"""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """the reference's, by PyTorch's names"""
    kept: Sequence[float] = ()
    """1 - p of the port's dropouts that multiply by it in eval mode (mode='downscale_in_infer')"""

    @cached_property
    def is_telling(self) -> bool:
        """Whether both tensors have enough distinct values to prove a flexible hypothesis."""
        return is_telling(self.expected) and is_telling(self.actual)

    @cached_property
    def floats(self) -> list[tuple[str, Array]]:
        """The inputs that hold numbers, the latest first."""
        return [(name, array) for name, array in reversed(self.inputs) if array.dtype.kind == "f"]

    @cached_property
    def sources(self) -> list[Source]:
        """The distinct inputs that broadcast to the shape of `expected`, the latest first."""
        found: list[Source] = []
        for name, array in self.floats:
            if not _broadcasts(array, self.expected) or not is_telling(array):
                continue
            values = np.broadcast_to(np.asarray(array, np.float64), self.expected.shape)
            if not any(np.array_equal(values, source.values) for source in found):
                found.append(Source(name, values))
        return found[:_MOST]

    @property
    def widths(self) -> list[int]:
        """The lengths of the inputs' last axes: a factor may be one of them, or its root."""
        return sorted({array.shape[-1] for _, array in self.inputs if array.ndim})


def _broadcasts(array: Array, like: Floats) -> bool:
    return array.ndim <= like.ndim and all(
        size in (1, whole) for size, whole in zip(array.shape[::-1], like.shape[::-1], strict=False)
    )
