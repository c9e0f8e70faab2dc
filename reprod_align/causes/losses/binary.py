"""Losses of a sigmoid, element by element: labels, pos_weight, focal gamma and alpha of either side.

An element z with p = sigmoid(z) and label 1 has the gradient -a (1 - p) m(p), one with label 0 has
b p m(1 - p), where m is 1, or what a focal gamma makes of it. pos_weight and alpha are the ratio a / b.
"""

from dataclasses import dataclass, replace

from reprod_align.causes.functions import sigmoid
from reprod_align.causes.losses.cross_entropy import modulate
from reprod_align.causes.losses.cross_entropy_fit import GAMMAS
from reprod_align.causes.losses.sides import LossSides, agree, are_constant, is_near
from reprod_align.causes.numbers import Bools, Floats

import numpy as np

_FEWEST = 4  # elements of a column that prove its weight


@dataclass(frozen=True, eq=False)
class Binary:
    """A binary cross-entropy; what its gradient shows. Arrays have the shape of the scores."""

    positive: Bools
    """which elements have label 1"""
    counts: Bools
    """which elements count"""
    on_positive: Floats
    on_negative: Floats
    """the factors of elements with label 1 and 0: numbers, or one for each index of the last axis"""
    gamma: float
    start: str = "scores"
    """what the loss is given: scores, probabilities, or sigmoid twice"""


def explain_binary(sides: LossSides) -> str:
    """Explain the two losses as binary cross-entropies of the scores that differ in one respect."""
    ours, theirs = fit_binary(sides), fit_binary(sides.swap())
    if ours and theirs and (words := _compare(sides, ours, theirs)):
        return words
    for loss, other, names in (
        (ours, sides.swap(), ("PyTorch", "Paddle")),
        (theirs, sides, ("Paddle", "PyTorch")),
    ):
        if loss and _is_made_by(other, replace(loss, start="sigmoid twice")):
            return f"{names[1]} applies sigmoid before a loss that applies it again"
        if loss and _is_made_by(other, replace(loss, start="probabilities")):
            return f"{names[1]} takes the scores as probabilities: the sigmoid is missing"
    return ""


def fit_binary(sides: LossSides) -> Binary | None:
    """Return the binary cross-entropy whose gradient is PyTorch's; None if there is none."""
    gradient, positive = sides.ours, sides.ours < 0
    counts = gradient != 0
    if sides.scores.size < 4 or not (positive & counts).any() or not (~positive & counts).any():
        return None
    p = sigmoid(sides.scores)
    right = np.where(positive, p, 1 - p)
    for gamma in GAMMAS:
        factors = np.abs(gradient) / np.maximum((1 - right) * modulate(right, gamma), 1e-300)
        rows = gradient.size // gradient.shape[-1]
        for by_column in (False, True) if gradient.ndim > 1 and rows >= _FEWEST else (False,):
            ours = [_average(factors, which & counts, by_column) for which in (positive, ~positive)]
            if ours[0] is None or ours[1] is None:
                continue
            found = Binary(positive, counts, ours[0], ours[1], gamma)
            if _is_made_by(sides, found):
                return found
    return None


def _average(factors: Floats, which: Bools, by_column: bool) -> Floats | None:
    """Return the one factor of these elements, or one for each column; None if they differ."""
    if not by_column:
        return np.array(factors[which].mean()) if are_constant(factors[which]) else None
    rows, chosen = (it.reshape(-1, it.shape[-1]) for it in (factors, which))
    made = np.ones(rows.shape[1])
    for column in range(rows.shape[1]):
        held = rows[chosen[:, column], column]
        if not are_constant(held):
            return None
        made[column] = held[0] if held.size else 1.0
    return made


def replay(sides: LossSides, loss: Binary) -> tuple[float, Floats]:
    """Return the value of a binary cross-entropy, and its gradient with respect to the scores."""
    z = sides.scores
    factor = np.where(loss.positive, loss.on_positive, loss.on_negative) * loss.counts
    sign = np.where(loss.positive, 1.0, -1.0)
    if loss.start == "probabilities":
        right = np.where(loss.positive, z, 1 - z)
        return float(-(factor * np.log(right)).sum()), np.asarray(-factor * sign / right)
    given = sigmoid(z) if loss.start == "sigmoid twice" else z
    p = sigmoid(given)
    right = np.where(loss.positive, p, 1 - p)
    slope = -factor * sign * (1 - right) * modulate(right, loss.gamma)
    if loss.start == "sigmoid twice":
        slope = slope * given * (1 - given)
    return float(-(factor * (1 - right) ** loss.gamma * np.log(right)).sum()), np.asarray(slope)


def _is_made_by(sides: LossSides, loss: Binary) -> bool:
    value, gradient = replay(sides, loss)
    return agree(sides.ours, gradient) and (not sides.alone or is_near(value, sides.expected))


def _compare(sides: LossSides, ours: Binary, theirs: Binary) -> str:
    """Name the one respect in which two binary cross-entropies differ."""
    other = sides.swap()
    if ours.gamma != theirs.gamma:
        words = f"focal gamma is {theirs.gamma:g} in Paddle and {ours.gamma:g} in PyTorch"
        rest = _compare_weights(ours, theirs)
        return "; ".join(filter(None, (words, rest)))
    if not np.array_equal(ours.positive & ours.counts, theirs.positive & theirs.counts):
        count = int((ours.positive != theirs.positive).sum())
        changed = replace(ours, positive=theirs.positive, counts=theirs.counts)
        return f"the labels differ in {count} places" if _is_made_by(other, changed) else ""
    if not np.array_equal(ours.counts, theirs.counts):
        counts = [int(loss.counts.sum()) for loss in (ours, theirs)]
        return f"Paddle counts {counts[1]} elements and PyTorch {counts[0]}"
    return _compare_weights(ours, theirs)


def _compare_weights(ours: Binary, theirs: Binary) -> str:
    """Say how the ratio of the two labels' factors, or the factors of columns, differ."""
    first, second = (loss.on_positive / loss.on_negative for loss in (ours, theirs))
    if words := _name_weight(ours, theirs) or _name_weight(theirs, ours, ("Paddle", "PyTorch")):
        return words
    if agree(
        np.broadcast_to(first, np.shape(second + first)),
        np.broadcast_to(second, np.shape(second + first)),
    ):
        if ours.on_negative.ndim == theirs.on_negative.ndim == 0:
            return ""
        return "the weights of the columns differ: pass weight= on both sides"
    if first.ndim or second.ndim:
        return "pos_weight differs between the two sides, column by column"
    before, after = float(first), float(second)
    if ours.gamma or theirs.gamma:
        alphas = [ratio / (1 + ratio) for ratio in (before, after)]
        return f"focal alpha is {alphas[1]:.6g} in Paddle and {alphas[0]:.6g} in PyTorch"
    return f"pos_weight is {after:.6g} in Paddle and {before:.6g} in PyTorch"


def _name_weight(one: Binary, other: Binary, names: tuple[str, str] = ("PyTorch", "Paddle")) -> str:
    """Tell of weights by column for both labels on one side, for label 1 alone on the other."""
    columns = np.ndim(one.on_positive) and np.ndim(other.on_negative)
    even = are_constant(np.atleast_1d(other.on_positive / other.on_negative))
    alone = are_constant(np.atleast_1d(one.on_negative))
    if columns and even and alone and not are_constant(np.atleast_1d(other.on_negative)):
        return f"{names[1]} has weight= where {names[0]} has pos_weight="
    return ""
