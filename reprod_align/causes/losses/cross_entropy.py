"""A cross-entropy of rows of scores, with its value and its gradient.

A row of scores z with probabilities p = softmax(z), target t and weight w has the gradient
    w (p - t),      and with focal gamma      w (p - t) ((1 - q)^gamma - gamma q (1 - q)^(gamma - 1) log q)
with q the probability of the label.
"""

from dataclasses import dataclass

from reprod_align.causes.functions import sigmoid, softmax
from reprod_align.causes.losses.sides import LossSides, agree, is_near
from reprod_align.causes.numbers import Bools, Floats

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class CrossEntropy:
    """A cross-entropy of rows of scores; what its gradient shows."""

    axis: int
    labels: NDArray[np.int64]
    """(rows,); where a row does not count, its label is -1"""
    classes: Floats
    """(C,): the weight of each class, 1 on average over those seen"""
    smoothing: float
    gamma: float
    scale: float
    """what the sum over the rows is multiplied by"""
    soft: Floats | None = None
    """(rows, C): targets that are distributions"""
    softmax: str = "once"
    """once, twice, left out (log): the scores are log-probabilities, left out: they are probabilities,
    left out of the logarithm, or sigmoid in its place"""
    over: int | None = None
    """the axis of the softmax, if it is not that of the classes"""

    @property
    def counts(self) -> Bools:
        """Which rows count."""
        return self.labels >= 0

    def targets(self) -> Floats:
        """Return (rows, C): what the probabilities are held against; zero for rows that do not count."""
        if self.soft is not None:
            return self.soft
        size = len(self.classes)
        hard = np.eye(size)[self.labels] * self.counts[:, None]
        return (1 - self.smoothing) * hard + self.smoothing / size * self.counts[:, None]

    def weights(self) -> Floats:
        """Return (rows,): the factor of each row."""
        if self.soft is not None:
            return np.full(len(self.soft), self.scale)
        return np.where(self.counts, self.scale * self.classes[self.labels], 0.0)


def rows_of(values: Floats, axis: int) -> Floats:
    """Return (rows, C): the values along the axis, one row for each place of the others."""
    moved = np.moveaxis(values, axis, -1)
    return moved.reshape(-1, moved.shape[-1])


def replay(sides: LossSides, loss: CrossEntropy) -> tuple[float, Floats]:
    """Return a cross-entropy's value, and its gradient with respect to the scores."""
    z = sides.scores
    targets = _restore(loss.weights()[:, None] * loss.targets(), z, loss.axis)
    over = loss.axis if loss.over is None else loss.over
    if loss.softmax == "sigmoid":
        return float((targets * np.logaddexp(0, -z)).sum()), np.asarray(-targets * sigmoid(-z))
    if loss.softmax == "left out of the logarithm":
        p = softmax(z, over)
        return float(-(targets * p).sum()), np.asarray(
            p * ((targets * p).sum(axis=over, keepdims=True) - targets)
        )
    if loss.softmax.startswith("left out"):
        made = z if "log" in loss.softmax else np.log(np.maximum(z, 1e-300))
        slope = -targets if "log" in loss.softmax else -targets / np.maximum(z, 1e-300)
        return float(-(targets * made).sum()), np.asarray(slope)
    p = softmax(z, over)
    inner = softmax(p, over) if loss.softmax == "twice" else p
    slope = inner * targets.sum(axis=over, keepdims=True) - targets
    value = -(targets * np.log(inner)).sum()
    if loss.softmax == "twice":
        slope = p * (slope - (slope * p).sum(axis=over, keepdims=True))
    if loss.gamma:
        chosen = _label_probabilities(p, loss)
        factor = _restore(
            modulate(chosen, loss.gamma)[:, None] * np.ones(p.shape[loss.axis]), z, loss.axis
        )
        slope = slope * factor
        value = -(loss.weights() * (1 - chosen) ** loss.gamma * np.log(chosen)).sum()
    return float(value), np.asarray(slope)


def _label_probabilities(p: Floats, loss: CrossEntropy) -> Floats:
    rows = rows_of(p, loss.axis)
    return rows[np.arange(len(rows)), loss.labels]


def _restore(rows: Floats, like: Floats, axis: int) -> Floats:
    """Return rows (rows, C) in the layout of the scores."""
    moved = np.moveaxis(like, axis, -1).shape
    return np.moveaxis(rows.reshape(moved), -1, axis)


def modulate(chosen: Floats, gamma: float) -> Floats:
    """Return what a focal gamma multiplies the gradient of a row by; chosen: the label's probability."""
    if not gamma:
        return np.ones_like(chosen)
    rest = np.maximum(1 - chosen, 1e-300)
    return np.asarray(rest**gamma - gamma * chosen * rest ** (gamma - 1) * np.log(chosen))


def is_made_by(sides: LossSides, loss: CrossEntropy) -> bool:
    """Tell whether this cross-entropy is PyTorch's loss: gradient and, where it is alone, value."""
    value, gradient = replay(sides, loss)
    return agree(sides.ours, gradient) and (not sides.alone or is_near(value, sides.expected))
