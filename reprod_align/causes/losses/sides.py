"""What a loss does to one output: the output, and both sides' gradients with respect to it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from reprod_align.base.difference import gap
from reprod_align.causes.numbers import Floats
from reprod_align.model.trace import Array

import numpy as np

_CUT = 64.0  # below the largest score of a row: where Paddle's softmax stops
_NEAR = 1e-7  # relative: Paddle smooths labels in float32


@dataclass(frozen=True)
class LossSides:
    """Two losses of the same scores, float64, all arrays of one shape, in the port's layout."""

    scores: Floats
    """the reference's output"""
    expected: float
    """PyTorch's loss"""
    actual: float
    ours: Floats
    """the gradient of PyTorch's loss with respect to the scores"""
    theirs: Floats
    alone: bool = True
    """whether no other output takes part in the loss, so that its value follows from this one"""

    def swap(self) -> "LossSides":
        """Return the two sides exchanged."""
        return LossSides(
            self.scores, self.actual, self.expected, self.theirs, self.ours, self.alone
        )

    def cool(self, temperature: float) -> "LossSides":
        """Return the sides as seen from the scores divided by a temperature."""
        return LossSides(
            self.scores / temperature,
            self.expected,
            self.actual,
            self.ours * temperature,
            self.theirs * temperature,
            self.alone,
        )


def is_near(number: float, other: float) -> bool:
    """Tell whether two numbers are the same but for rounding."""
    return abs(number - other) <= _NEAR * max(abs(number), abs(other), 1e-30)


def agree(expected: Floats, made: Floats) -> bool:
    """Tell whether a hypothesis explains a whole gradient."""
    return expected.shape == made.shape and gap(expected, made, relative=_NEAR).ok


def are_constant(values: Floats) -> bool:
    """Tell whether all values are one number but for rounding; True for no values."""
    return not values.size or bool(np.ptp(values) <= _NEAR * max(np.abs(values).max(), 1e-30))


def name_reductions(shape: tuple[int, ...], rows: int, counted: float) -> Mapping[str, float]:
    """Return what the sum over rows is multiplied by, by the words for it.

    rows: how many there are. counted: the weight of those that count.
    """
    found: dict[str, float] = {}
    for words, divisor in _divisors(shape, rows, counted):
        if divisor and not any(is_near(1 / divisor, known) for known in found.values()):
            found[words] = 1 / divisor
    return found


def _divisors(shape: tuple[int, ...], rows: int, counted: float) -> Iterator[tuple[str, float]]:
    yield "averaged over those that count (reduction='mean')", counted
    yield "averaged over all, ignored ones too", float(rows)
    yield "summed (reduction='sum')", 1.0
    yield "divided by the batch size", float(shape[0]) if shape else 1.0
    yield "divided by the number of elements", float(np.prod(shape))


def reaches_far(scores: Array) -> bool:
    """Tell whether a row of scores holds one that Paddle's softmax cuts off."""
    if scores.ndim < 2 or not scores.size or scores.dtype.kind != "f":
        return False
    return bool((scores.max(-1) - scores.min(-1) > _CUT).any())
