"""Which class a row of scores chooses, and whether two sides choose another."""

from reprod_align.base.apart import measure_ordinary
from reprod_align.base.difference import Array, take

import numpy as np

_NAMES = ("logit", "score", "prob")
_AT_ONCE = 2**20  # scores


def is_named_scores(name: str, array: Array) -> bool:
    """Tell whether an array is called scores, and can hold one for every class along its last axis."""
    last = name.rpartition(".")[2].lower()
    return may_be_scores(array) and any(word in last for word in _NAMES)


def may_be_scores(array: Array) -> bool:
    """Tell whether an array holds floats with two or more along its last axis."""
    return array.dtype.kind == "f" and array.ndim > 1 and array.shape[-1] > 1 and array.size > 0


def count_flips(expected: Array, actual: Array, tie: float = 0.0) -> int:
    """Return how many rows choose another class: (..., classes), both of one shape.

    tie: scores that are no further apart, relative to the largest ordinary one, are a tie, which
    rounding may settle either way. NaN is never chosen.
    """
    classes, flips = expected.shape[-1], 0
    least = tie * measure_ordinary(expected) if tie else 0.0
    step = max(1, _AT_ONCE // classes) * classes
    for start in range(0, expected.size, step):
        stop = min(start + step, expected.size)
        sides = (take(side, start, stop).reshape(-1, classes) for side in (expected, actual))
        margins = _measure_flips(*sides)
        flips += int((margins > least).sum()) if tie else len(margins)
    return flips


def _measure_flips(expected: Array, actual: Array) -> Array:
    """Return how much lower `expected` scores the class that `actual` chooses, for each row that flips."""
    ours, theirs = (np.where(np.isnan(scores), -np.inf, scores) for scores in (expected, actual))
    chosen = [scores.argmax(axis=-1) for scores in (ours, theirs)]
    rows = np.flatnonzero(chosen[0] != chosen[1])
    with np.errstate(invalid="ignore"):
        margins: Array = ours[rows, chosen[0][rows]] - ours[rows, chosen[1][rows]]
    return margins
