"""Which class a row of scores chooses, and whether two sides choose another."""

from reprod_align.base.apart import measure_ordinary
from reprod_align.base.difference import Array

import numpy as np

_NAMES = ("logit", "score", "prob")


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
    ours, theirs = (
        np.where(np.isnan(scores), -np.inf, scores).reshape(-1, scores.shape[-1])
        for scores in (expected, actual)
    )
    chosen = [scores.argmax(axis=-1) for scores in (ours, theirs)]
    rows = np.flatnonzero(chosen[0] != chosen[1])
    with np.errstate(invalid="ignore"):
        margins = ours[rows, chosen[0][rows]] - ours[rows, chosen[1][rows]]
    if not tie:
        return len(rows)
    return int((margins > tie * measure_ordinary(expected)).sum())
