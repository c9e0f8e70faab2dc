"""Two cross-entropies of the same scores: labels, smoothing, weights, axis, softmax; two blanks of CTC.

A row of scores z with probabilities p = softmax(z), target t and weight w has the gradient
    w (p - t),      and with focal gamma      w (p - t) ((1 - q)^gamma - gamma q (1 - q)^(gamma - 1) log q)
with q the probability of the label. So the gradient shows the labels, and by how much each row counts.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, Self

from reprod_align.base import PORT, REFERENCE
from reprod_align.base.text import count
from reprod_align.causes.functions import log_softmax, sigmoid, softmax
from reprod_align.causes.losses import (
    GAMMAS,
    ChangedLoss,
    LossSides,
    agree,
    are_constant,
    explain_by,
    is_made_by,
    is_near,
    name_reductions,
)
from reprod_align.causes.mismatch import Bools, Floats, cite

import numpy as np
from numpy.typing import NDArray

_ZERO = 1e-13  # of the largest gradient
_SEEN = 1e-9  # a share above

Labels = NDArray[np.int64]


class Start(NamedTuple):
    """What a loss takes the scores as, on the side that {1} stands for; {0} is the other."""

    words: str
    give: Callable[[Floats, int], Floats]
    """the log-probabilities that the loss makes of the scores, along an axis"""
    go_back: Callable[[Floats, int, Floats], Floats]
    """the gradient with respect to the scores from that with respect to these"""


def _return_softmax(z: Floats, axis: int, gradient: Floats) -> Floats:
    p = softmax(z, axis)
    return np.asarray(p * (gradient - (p * gradient).sum(axis=axis, keepdims=True)))


def _return_log_softmax(z: Floats, axis: int, gradient: Floats) -> Floats:
    return np.asarray(gradient - softmax(z, axis) * gradient.sum(axis=axis, keepdims=True))


def _return_twice(z: Floats, axis: int, gradient: Floats) -> Floats:
    return _return_softmax(z, axis, _return_log_softmax(softmax(z, axis), axis, gradient))


_USUAL: Final = Start("", log_softmax, _return_log_softmax)
_STARTS: Final = (
    Start("{1} applies softmax before a loss that applies it again",
          lambda z, axis: log_softmax(softmax(z, axis), axis), _return_twice),
    Start("{1} takes the scores as log-probabilities: log_softmax is missing",
          lambda z, axis: z, lambda z, axis, gradient: gradient),
    Start("{1} takes the scores as probabilities (use_softmax=False)",
          lambda z, axis: np.log(np.maximum(z, 1e-300)),
          lambda z, axis, gradient: gradient / np.maximum(z, 1e-300)),
    Start("{1} takes the softmax where {0} takes its logarithm: log_softmax is missing",
          softmax, _return_softmax),
    Start("{1} takes the logarithm of a sigmoid, {0} that of a softmax",
          lambda z, axis: -np.logaddexp(0, -z),
          lambda z, axis, gradient: gradient * sigmoid(-z)),
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class CrossEntropy:
    """A cross-entropy of rows of scores; what its gradient shows."""

    axis: int
    labels: Labels
    """(rows,); where a row does not count, its label is -1"""
    classes: Floats
    """(C,): the weight of each class, 1 on average over those seen"""
    smoothing: float
    gamma: float
    scale: float
    """what the sum over the rows is multiplied by"""
    soft: Floats | None = None
    """(rows, C): targets that are distributions"""
    start: Start = _USUAL
    over: int | None = None
    """the axis of the softmax, if it is not that of the classes"""

    @property
    def counts(self) -> Bools:
        """Which rows count."""
        return self.labels >= 0

    def weigh_targets(self) -> Floats:
        """Return (rows, C): what the log-probabilities count; zero for rows that do not count."""
        if self.soft is not None:
            return self.scale * self.soft
        targets = np.full((len(self.labels), len(self.classes)), self.smoothing / len(self.classes))
        targets[np.arange(len(targets)), self.labels] += 1 - self.smoothing
        return np.asarray(targets * self._weigh_rows()[:, None])

    def _weigh_rows(self) -> Floats:
        return np.where(self.counts, self.scale * self.classes[self.labels], 0.0)

    def replay(self, scores: Floats) -> tuple[float, Floats]:
        """Return its value, and its gradient with respect to the scores."""
        over = self.axis if self.over is None else self.over
        targets = _restore(self.weigh_targets(), scores, self.axis)
        logs = self.start.give(scores, over)
        value, slopes = -(targets * logs).sum(), -self.start.go_back(scores, over, targets)
        if self.gamma:
            rows = rows_of(logs, self.axis)
            chosen = rows[np.arange(len(rows)), self.labels]
            value = -(self._weigh_rows() * (1 - np.exp(chosen)) ** self.gamma * chosen).sum()
            by_row = modulate(np.exp(chosen), self.gamma)[:, None] * np.ones(rows.shape[1])
            slopes = slopes * _restore(by_row, scores, self.axis)
        return float(value), np.asarray(slopes)

    def compare(self, other: Self, sides: LossSides) -> Iterator[ChangedLoss]:
        """Yield this loss with one thing, and the scale, as the other loss, Paddle's, has it."""
        if self.soft is not None or other.soft is not None:
            yield from _compare_targets(self, other)
            return
        scales = _compare_scales(sides, self, other)
        labels, classes = {"labels": other.labels}, {"classes": other.classes}
        for words, entry, changed in (
            (_compare_labels(sides, self, other), "", labels),
            (_name_greatest(sides, self, other), "", labels),
            (_compare_rows(self, other), "cross-entropy-ignored", labels),
            (_compare_numbers("label smoothing", self.smoothing, other.smoothing),
             "cross-entropy-smoothing", {"smoothing": other.smoothing}),
            (_compare_numbers("the focal gamma", self.gamma, other.gamma), "", {"gamma": other.gamma}),
            (_compare_classes(self, other), "cross-entropy-weight", classes),
            (scales, "", {}),
        ):  # fmt: skip
            if words:
                whole = "; ".join(dict.fromkeys(filter(None, (words, scales))))
                yield ChangedLoss(whole, replace(self, scale=other.scale, **changed), entry)

    def vary(self, other: LossSides) -> Iterator[ChangedLoss]:
        """Yield this loss with something changed that cannot be fitted: a softmax, or its axis."""
        for start in _STARTS:
            yield ChangedLoss(start.words, replace(self, start=start), "cross-entropy-use-softmax")
        for axis in range(other.scores.ndim):
            if axis != self.axis and other.scores.shape[axis] > 1:
                words = (
                    f"the softmax is over axis {axis} in {{1}} and over axis {self.axis} in {{0}}"
                )
                yield ChangedLoss(words, replace(self, over=axis), "cross-entropy-axis")


def rows_of(values: Floats, axis: int) -> Floats:
    """Return (rows, C): the values along the axis, one row for each place of the others."""
    moved = np.moveaxis(values, axis, -1)
    return moved.reshape(-1, moved.shape[-1])


def _restore(rows: Floats, like: Floats, axis: int) -> Floats:
    """Return rows (rows, C) in the layout of the scores."""
    return np.moveaxis(rows.reshape(np.moveaxis(like, axis, -1).shape), -1, axis)


def modulate(chosen: Floats, gamma: float) -> Floats:
    """Return what a focal gamma multiplies the gradient of a row by; chosen: the label's probability."""
    if not gamma:
        return np.ones_like(chosen)
    rest = np.maximum(1 - chosen, 1e-300)
    return np.asarray(rest**gamma - gamma * chosen * rest ** (gamma - 1) * np.log(chosen))


def explain_cross_entropy(sides: LossSides) -> str:
    """Explain the two losses as cross-entropies of the scores that differ in one respect."""
    for axis in reversed(range(sides.scores.ndim)):
        if sides.scores.shape[axis] > 1:
            fitted = (fit_cross_entropy(side, axis) for side in (sides, sides.swap()))
            if words := explain_by(sides, *fitted) or _explain_temperature(sides, axis):
                return words
    return ""


# ------------------------------------------------------------- which cross-entropy has this gradient


def fit_cross_entropy(sides: LossSides, axis: int) -> CrossEntropy | None:
    """Return the cross-entropy over this axis whose gradient is PyTorch's; None if there is none."""
    rows, gradient = rows_of(sides.scores, axis), rows_of(sides.ours, axis)
    largest = np.abs(gradient).max(initial=0.0)
    counts = np.abs(gradient).max(axis=1) > _ZERO * largest
    if not counts.any() or np.abs(gradient.sum(axis=1)).max() > 1e-7 * largest:
        return None
    p = softmax(rows, -1)
    scales = name_reductions(sides.scores.shape, len(p), float(counts.sum())).values()
    for guess in (
        gradient,
        *(gradient / scale - p for scale in scales),
    ):  # smoothing hides the lowest
        labels = np.where(counts, guess.argmin(axis=1), -1)
        if (found := _fit_hard(sides, axis, p, gradient, labels)) is not None:
            return found
    return _fit_soft(sides, axis, p, gradient, counts)


def _fit_hard(
    sides: LossSides, axis: int, p: Floats, gradient: Floats, labels: Labels
) -> CrossEntropy | None:
    """Fit a smoothing, a focal gamma and weights of classes to rows with these labels."""
    others = np.arange(p.shape[1]) != labels[:, None]
    chosen = p[np.arange(len(p)), labels]
    smoothing, slopes = _fit_slopes(p, gradient, others, labels >= 0)
    for by_class in (False, True):
        for gamma in GAMMAS if not smoothing else (0.0,):
            even = slopes / modulate(chosen, gamma)
            classes = _weigh_classes(even, labels, p.shape[1], by_class)
            if classes is not None:
                seen = labels[labels >= 0]
                scale = float(even[labels >= 0].sum() / classes[seen].sum())
                found = CrossEntropy(axis, labels, classes, smoothing, gamma, scale)
                if is_made_by(sides, found):
                    return found
    return None


def _fit_slopes(p: Floats, gradient: Floats, others: Bools, counts: Bools) -> tuple[float, Floats]:
    """Return the smoothing, and the slope of each row's gradient over p, the label left out.

    With smoothing all rows have one slope, and the gradient is not zero where p is.
    """
    at = np.where(others, p, -1).argmax(axis=1)
    slopes = gradient[np.arange(len(p)), at] / p[np.arange(len(p)), at]
    x, y = p[others & counts[:, None]], gradient[others & counts[:, None]]
    plain = np.broadcast_to(slopes[:, None], p.shape)[others & counts[:, None]] * x
    if (p.shape[1] > 2 and agree(y, plain)) or x.size < 3 or are_constant(x):
        return 0.0, slopes
    slope, shift = np.polyfit(x, y, 1)
    smoothing = float(-shift / slope * p.shape[1]) if slope else 0.0
    if not 1e-6 < smoothing < 1 or not agree(y, slope * x + shift):
        return 0.0, slopes
    return smoothing, np.full(len(p), slope)


def _weigh_classes(even: Floats, labels: Labels, size: int, by_class: bool) -> Floats | None:
    """Return a weight for each class, 1 for those not seen; None if rows of one class differ."""
    seen = np.unique(labels[labels >= 0])
    if not by_class:
        return np.ones(size) if are_constant(even[labels >= 0]) else None
    held = [even[labels == label] for label in seen]
    if not all(map(are_constant, held)):
        return None
    classes = np.ones(size)
    classes[seen] = [values[0] for values in held]
    classes[seen] /= classes[seen].mean()
    return classes


def _fit_soft(
    sides: LossSides, axis: int, p: Floats, gradient: Floats, counts: Bools
) -> CrossEntropy | None:
    """Fit targets that are distributions; the loss tells by what the sum is divided."""
    if not sides.alone:
        return None
    logs = np.log(p)
    scale = float((sides.expected - (gradient * logs).sum()) / -(p * logs).sum())
    soft = p - gradient / scale if scale > 0 else p - 1
    known = name_reductions(sides.scores.shape, len(p), float(counts.sum()))
    if soft.min() < -1e-7 or not any(is_near(scale, number) for number in known.values()):
        return None
    labels = np.where(counts, soft.argmax(axis=1), -1)
    return CrossEntropy(axis, labels, np.ones(p.shape[1]), 0.0, 0.0, scale, soft)


def _explain_temperature(sides: LossSides, axis: int) -> str:
    """Explain by scores that are divided by a number before the softmax."""
    first, second = (_find_temperature(side, axis) for side in (sides, sides.swap()))
    if first is None or second is None or is_near(first, second):
        return ""
    ours = fit_cross_entropy(sides.cool(first), axis)
    theirs = fit_cross_entropy(sides.swap().cool(second), axis)
    if ours is None or theirs is None or not np.array_equal(ours.labels, theirs.labels):
        return ""
    return (f"the scores are divided by {second:.6g} in {PORT} and by {first:.6g} in {REFERENCE} before the "
            "softmax (a temperature)")  # fmt: skip


def _find_temperature(sides: LossSides, axis: int) -> float | None:
    """Return by what PyTorch's side divides the scores: from two classes that are not the label."""
    for z, slopes in zip(rows_of(sides.scores, axis), rows_of(sides.ours, axis), strict=True):
        others = np.flatnonzero(slopes > 0)
        if others.size < 2:
            continue
        low, high = others[z[others].argmin()], others[z[others].argmax()]
        spread = float(np.log(slopes[high] / slopes[low]))
        if spread > 1e-3:
            return float(z[high] - z[low]) / spread
    return None


# ------------------------------------------------------------- in what two cross-entropies differ


def _compare_targets(ours: CrossEntropy, theirs: CrossEntropy) -> Iterator[ChangedLoss]:
    """Compare two losses of which one at least has distributions for targets."""
    if ours.soft is None or theirs.soft is None:
        side, other = (
            (str(REFERENCE), str(PORT)) if theirs.soft is None else (str(PORT), str(REFERENCE))
        )
        words = f"the targets are distributions in {side} and labels in {other}"
        words = f"{words}: distributions go with soft_label=True"
        yield ChangedLoss(words, theirs, "cross-entropy-soft-label")
    elif not agree(ours.soft, theirs.soft):
        yield ChangedLoss("the targets, distributions, differ", theirs)


def _compare_numbers(name: str, first: float, second: float) -> str:
    if abs(first - second) < 1e-6:
        return ""
    return f"{name} is {second:.6g} in {PORT} and {first:.6g} in {REFERENCE}"


def _compare_labels(sides: LossSides, ours: CrossEntropy, theirs: CrossEntropy) -> str:
    """Say how the labels of rows that count on both sides differ."""
    both = ours.counts & theirs.counts
    other = int((ours.labels != theirs.labels)[both].sum())
    if not other:
        return ""
    shape = np.moveaxis(sides.scores, ours.axis, -1).shape[:-1]
    first, second = (loss.labels.reshape(shape) for loss in (ours, theirs))
    if len(shape) > 1 and _is_ahead(first, second):
        return f"{REFERENCE} compares each place with the next label, {PORT} with its own: shift the labels"
    if len(shape) > 1 and _is_ahead(second, first):
        return f"{PORT} compares each place with the next label, {REFERENCE} with its own"
    words = f"the labels differ in {other} of the {int(both.sum())} rows that both sides count"
    rolled = both.all() and any(np.array_equal(np.roll(first, by, -1), second) for by in (1, -1))
    return f"{words}: they are shifted by one" if rolled else words


def _is_ahead(one: Labels, other: Labels) -> bool:
    """Tell whether a place of `one` has the label that the next place of `other` has."""
    ahead, plain = one[..., :-1], other[..., 1:]
    counted = (ahead >= 0) & (plain >= 0)
    alike = np.array_equal(ahead[counted], plain[counted])
    return alike and np.unique(ahead[counted]).size > 1


def _name_greatest(sides: LossSides, ours: CrossEntropy, theirs: CrossEntropy) -> str:
    """Tell of a side that takes the greatest loss of all rows."""
    for one, other, names in (
        (ours, theirs, (str(REFERENCE), str(PORT))),
        (theirs, ours, (str(PORT), str(REFERENCE))),
    ):
        if other.counts.sum() == 1 < one.counts.sum():
            p = softmax(rows_of(sides.scores, one.axis), -1)
            chosen = np.where(one.counts, p[np.arange(len(p)), one.labels], 1.0)
            if other.counts[chosen.argmin()]:
                return f"{names[1]} takes the greatest loss of the rows, {names[0]} all of them"
    return ""


def _compare_rows(ours: CrossEntropy, theirs: CrossEntropy) -> str:
    """Say which rows count on one side only."""
    names = (str(PORT), str(REFERENCE))
    extra = theirs.counts & ~ours.counts
    if not extra.any():
        extra, names, ours, theirs = ours.counts & ~theirs.counts, names[::-1], theirs, ours
    if not extra.any():
        return ""
    words = f"{names[0]} counts {count(int(extra.sum()), 'row')} that {names[1]} ignores"
    labels = np.unique(theirs.labels[extra])
    if labels.size > 1 or (ours.labels == labels[0]).any():
        places = np.flatnonzero(extra)
        which = f", row {places[0]} of {len(extra)}" if places.size == 1 else ""
        label = f", with label {labels[0]} there" if labels.size == 1 else ""
        return f"{words}{which}{label}: ignore_index, the label it stands for, or a mask differs"
    return f"{words}, those with label {labels[0]}: ignore_index={labels[0]} in {names[1]} alone"


def _compare_classes(ours: CrossEntropy, theirs: CrossEntropy) -> str:
    seen = np.unique(ours.labels[ours.counts])
    first, second = (loss.classes[seen] for loss in (ours, theirs))
    if agree(first, second):
        return ""
    if are_constant(first) or are_constant(second):
        side = str(REFERENCE) if are_constant(second) else str(PORT)
        return f"only {side} weights the classes: pass weight= on both sides"
    return "the weights of the classes differ"


def _compare_scales(sides: LossSides, ours: CrossEntropy, theirs: CrossEntropy) -> str:
    """Say by what each side divides the sum over rows, if they do it differently."""
    names = []
    for loss in (ours, theirs):
        counted = float(loss.classes[loss.labels[loss.counts]].sum())
        known = name_reductions(sides.scores.shape, len(loss.labels), counted)
        names.append(next((n for n, number in known.items() if is_near(number, loss.scale)), ""))
    if all(names):
        apart = names[0] != names[1]
        return f"the rows are {names[1]} in {PORT} and {names[0]} in {REFERENCE}" if apart else ""
    alike = np.array_equal(ours.labels, theirs.labels) and agree(ours.classes, theirs.classes)
    if not alike or is_near(ours.scale, theirs.scale) or are_constant(ours.classes[ours.labels]):
        return ""
    return (f"{PORT}'s sum over the weighted rows is divided by {ours.scale / theirs.scale:.6g} times "
            f"{REFERENCE}'s divisor: by their count on one side, by their weights on the other")  # fmt: skip


# ------------------------------------------------------------- CTC


def explain_ctc(sides: LossSides) -> str:
    """Explain the two losses of scores (T, N, C), or (N, T, C), as CTC losses with different blanks."""
    for axes in ((0, 1, 2), (1, 0, 2)) if sides.scores.ndim == 3 else ():
        p = softmax(sides.scores.transpose(axes), -1)
        ours, theirs = (_find_blank(p, it.transpose(axes)) for it in (sides.ours, sides.theirs))
        if ours is not None and theirs is not None and ours != theirs:
            words = f"the blank is class {theirs} in {PORT} and class {ours} in {REFERENCE}"
            return cite(f"{words}: set blank= on both sides", "ctc-loss")
    return ""


def _find_blank(p: Floats, gradient: Floats) -> int | None:
    """Return the blank of the CTC loss whose gradient this is; None if it is another loss.

    A frame's gradient is its probabilities less the shares of the ways through each class, so it shows
    which classes take part: the blank and a label in the first frame and in the last, more in between.
    """
    ends, most = [], 0
    for number in range(p.shape[1]):
        used = np.abs(gradient[:, number]).max(axis=1) > 0
        scale = (gradient[used, number] / p[used, number]).max(initial=0.0)
        if not scale > 0:
            return None
        shares = p[used, number] - gradient[used, number] / scale
        counts = (shares > _SEEN).sum(axis=1)
        if shares.min() < -_SEEN or max(counts[0], counts[-1]) > 2:
            return None
        ends += [shares[0] > _SEEN, shares[-1] > _SEEN]
        most = max(most, int(counts.max()))
    blanks = np.flatnonzero(np.all(ends, axis=0))
    return int(blanks[0]) if blanks.size == 1 and most > 2 else None
