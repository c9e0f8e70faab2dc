"""Finds the cross-entropy whose gradient is given: labels, smoothing, focal gamma, weights, targets."""

from collections.abc import Iterator

from reprod_align.causes.functions import softmax
from reprod_align.causes.losses.cross_entropy import (
    CrossEntropy,
    is_made_by,
    modulate,
    rows_of,
)
from reprod_align.causes.losses.sides import (
    LossSides,
    agree,
    are_constant,
    is_near,
    name_reductions,
)
from reprod_align.causes.numbers import Bools, Floats

import numpy as np
from numpy.typing import NDArray

GAMMAS = (0.0, 2.0, 1.0, 0.5, 1.5, 2.5, 3.0, 4.0, 5.0)
"""focal exponents that are tried"""
_ZERO = 1e-13  # of the largest gradient


def fit_cross_entropy(sides: LossSides, axis: int) -> CrossEntropy | None:
    """Return the cross-entropy over this axis whose gradient is PyTorch's; None if there is none."""
    rows, gradient = rows_of(sides.scores, axis), rows_of(sides.ours, axis)
    largest = np.abs(gradient).max(initial=0.0)
    counts = np.abs(gradient).max(axis=1) > _ZERO * largest
    if not counts.any() or np.abs(gradient.sum(axis=1)).max() > 1e-7 * largest:
        return None
    p = softmax(rows, -1)
    for labels in _guess_labels(sides, p, gradient, counts):
        if (found := _fit_hard(sides, axis, p, gradient, labels)) is not None:
            return found
    return _fit_soft(sides, axis, p, gradient, counts)


def find_temperature(sides: LossSides, axis: int) -> float | None:
    """Return by what PyTorch's side divides the scores: from two classes that are not the label."""
    rows, gradient = rows_of(sides.scores, axis), rows_of(sides.ours, axis)
    for z, slopes in zip(rows, gradient, strict=True):
        others = np.flatnonzero(slopes > 0)
        if others.size < 2:
            continue
        low, high = others[z[others].argmin()], others[z[others].argmax()]
        spread = float(np.log(slopes[high] / slopes[low]))
        if spread > 1e-3:
            return float(z[high] - z[low]) / spread
    return None


def _guess_labels(
    sides: LossSides, p: Floats, gradient: Floats, counts: Bools
) -> Iterator[NDArray[np.int64]]:
    """Yield labels: where the gradient is lowest; or, with smoothing, what a usual scale makes of it."""
    yield np.where(counts, gradient.argmin(axis=1), -1)
    for scale in name_reductions(sides.scores.shape, len(p), float(counts.sum())).values():
        yield np.where(counts, (p - gradient / scale).argmax(axis=1), -1)


def _fit_hard(
    sides: LossSides, axis: int, p: Floats, gradient: Floats, labels: NDArray[np.int64]
) -> CrossEntropy | None:
    """Fit a smoothing, a focal gamma and weights of classes to rows with these labels."""
    counts = labels >= 0
    fitted = _fit_lines(p, gradient, labels)
    if fitted is None:
        return None
    slopes, smoothing = fitted
    chosen = p[np.arange(len(p)), labels]
    for by_class in (False, True):
        for gamma in GAMMAS if not smoothing else (0.0,):
            even = np.where(counts, slopes / modulate(chosen, gamma), 0.0)
            classes = _weights_of_classes(even, labels, p.shape[1], by_class)
            if classes is None:
                continue
            scale = float(even[counts].sum() / classes[labels[counts]].sum())
            found = CrossEntropy(axis, labels, classes, smoothing, gamma, scale)
            if is_made_by(sides, found):
                return found
    return None


def _fit_lines(
    p: Floats, gradient: Floats, labels: NDArray[np.int64]
) -> tuple[Floats, float] | None:
    """Return each row's slope of gradient over p, the label left out, and the smoothing of them all."""
    size = p.shape[1]
    others = np.arange(size) != labels[:, None]
    count = labels >= 0
    largest = np.where(others, p, 0).max(axis=1)
    at = np.where(others, p, -1).argmax(axis=1)
    plain = gradient[np.arange(len(p)), at] / largest
    if size < 3:
        return _fit_smooth_pairs(p, gradient, labels) or (plain, 0.0)
    if agree(np.where(others, gradient, 0)[count], np.where(others, plain[:, None] * p, 0)[count]):
        return plain, 0.0
    mean = np.where(others, p, 0).sum(1, keepdims=True) / (size - 1)
    moved = np.where(others, p - mean, 0)
    power = (moved**2).sum(axis=1)
    if not (power[count] > 0).all():
        return None
    slopes = (moved * gradient).sum(axis=1) / np.where(power > 0, power, 1)
    shifts = mean[:, 0] - np.where(others, gradient, 0).sum(1) / (size - 1) / np.where(
        count, slopes, 1
    )
    smoothing = shifts[count] * size
    if not are_constant(smoothing) or not 1e-6 < smoothing[0] < 1:
        return None
    return slopes, float(smoothing[0])


def _fit_smooth_pairs(
    p: Floats, gradient: Floats, labels: NDArray[np.int64]
) -> tuple[Floats, float] | None:
    """Fit two classes: all rows have one slope."""
    count = labels >= 0
    x, y = (it[np.arange(len(p)), 1 - labels][count] for it in (p, gradient))
    if x.size < 3 or are_constant(x):
        return None
    slope, shift = np.polyfit(x, y, 1)
    smoothing = float(-shift / slope * 2) if slope else 0.0
    if not 1e-6 < smoothing < 1 or not agree(y, slope * x + shift):
        return None
    return np.full(len(p), slope), smoothing


def _weights_of_classes(
    even: Floats, labels: NDArray[np.int64], size: int, by_class: bool
) -> Floats | None:
    """Return a weight for each class, 1 for those not seen; None if rows of one class differ."""
    seen = labels[labels >= 0]
    if not by_class:
        return np.ones(size) if are_constant(even[labels >= 0]) else None
    classes = np.ones(size)
    for at in np.unique(seen):
        if not are_constant(even[labels == at]):
            return None
        classes[at] = even[labels == at][0]
    mean = classes[np.unique(seen)].mean()
    classes[np.unique(seen)] /= mean
    return classes


def _fit_soft(
    sides: LossSides, axis: int, p: Floats, gradient: Floats, counts: Bools
) -> CrossEntropy | None:
    """Fit targets that are distributions; the loss tells by what the sum is divided."""
    if not sides.alone:
        return None
    logs = np.log(p)
    power = -(p * logs).sum()
    scale = float((sides.expected - (gradient * logs).sum()) / power)
    soft = p - gradient / scale if scale > 0 else p - 1
    known = name_reductions(sides.scores.shape, len(p), float(counts.sum()))
    natural = any(is_near(scale, number) for number in known.values())
    if soft.min() < -1e-7 or not natural:
        return None
    labels = np.where(counts, soft.argmax(axis=1), -1)
    return CrossEntropy(axis, labels, np.ones(p.shape[1]), 0.0, 0.0, scale, soft)
