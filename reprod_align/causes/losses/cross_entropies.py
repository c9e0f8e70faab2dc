"""In which respect two cross-entropies differ: labels, smoothing, weights, axis, a softmax too many."""

from collections.abc import Iterator
from dataclasses import replace

from reprod_align.base.text import count
from reprod_align.causes.entries import cite
from reprod_align.causes.functions import softmax
from reprod_align.causes.losses.cross_entropy import CrossEntropy, is_made_by, rows_of
from reprod_align.causes.losses.cross_entropy_fit import find_temperature, fit_cross_entropy
from reprod_align.causes.losses.sides import (
    LossSides,
    agree,
    are_constant,
    is_near,
    name_reductions,
)

import numpy as np
from numpy.typing import NDArray

Labels = NDArray[np.int64]


def explain_cross_entropy(sides: LossSides) -> str:
    """Explain the two losses as cross-entropies of the scores that differ in one respect."""
    for axis in reversed(range(sides.scores.ndim)):
        if sides.scores.shape[axis] < 2:
            continue
        ours = fit_cross_entropy(sides, axis)
        theirs = fit_cross_entropy(sides.swap(), axis)
        if ours and theirs and (words := _compare(sides, ours, theirs)):
            return words
        if ours and (words := _change(sides, ours, ("PyTorch", "Paddle"))):
            return words
        if theirs and (words := _change(sides.swap(), theirs, ("Paddle", "PyTorch"))):
            return words
        if words := _explain_temperature(sides, axis):
            return words
    return ""


def _compare(sides: LossSides, ours: CrossEntropy, theirs: CrossEntropy) -> str:
    """Name the one respect in which two cross-entropies differ."""
    if ours.soft is not None or theirs.soft is not None:
        return _compare_targets(ours, theirs)
    swapped = sides.swap()
    apart = _compare_scales(sides, ours, theirs)
    for words, entry, changed in (
        (_compare_labels(sides, ours, theirs), "", replace(ours, labels=theirs.labels)),
        (_name_greatest(sides, ours, theirs), "", replace(ours, labels=theirs.labels)),
        (_compare_rows(ours, theirs), "cross-entropy-ignored", replace(ours, labels=theirs.labels)),
        (_compare_numbers("label smoothing", "smoothing", ours, theirs), "cross-entropy-smoothing",
         replace(ours, smoothing=theirs.smoothing)),
        (_compare_numbers("the focal gamma", "gamma", ours, theirs), "",
         replace(ours, gamma=theirs.gamma)),
        (_compare_classes(ours, theirs), "cross-entropy-weight",
         replace(ours, classes=theirs.classes)),
        (apart, "", ours),
    ):  # fmt: skip
        if words and is_made_by(swapped, replace(changed, scale=theirs.scale)):
            whole = "; ".join(dict.fromkeys(filter(None, (words, apart))))
            return cite(whole, entry) if entry else whole
    return ""


def _compare_targets(ours: CrossEntropy, theirs: CrossEntropy) -> str:
    """Compare two losses of which one at least has distributions for targets."""
    if ours.soft is not None and theirs.soft is not None:
        return "" if agree(ours.soft, theirs.soft) else "the targets, distributions, differ"
    side, other = ("PyTorch", "Paddle") if theirs.soft is None else ("Paddle", "PyTorch")
    words = f"the targets are distributions in {side} and labels in {other}"
    return cite(f"{words}: distributions go with soft_label=True", "cross-entropy-soft-label")


def _compare_numbers(name: str, field: str, ours: CrossEntropy, theirs: CrossEntropy) -> str:
    first, second = getattr(ours, field), getattr(theirs, field)
    if abs(first - second) < 1e-6:
        return ""
    return f"{name} is {second:.6g} in Paddle and {first:.6g} in PyTorch"


def _compare_labels(sides: LossSides, ours: CrossEntropy, theirs: CrossEntropy) -> str:
    """Say how the labels of rows that count on both sides differ."""
    both = ours.counts & theirs.counts
    other = int((ours.labels != theirs.labels)[both].sum())
    if not other:
        return ""
    shape = np.moveaxis(sides.scores, ours.axis, -1).shape[:-1]
    first, second = (loss.labels.reshape(shape) for loss in (ours, theirs))
    if len(shape) > 1 and _is_ahead(first, second):
        return (
            "PyTorch compares each place with the next label, Paddle with its own: shift the labels"
        )
    if len(shape) > 1 and _is_ahead(second, first):
        return "Paddle compares each place with the next label, PyTorch with its own"
    words = f"the labels differ in {other} of the {int(both.sum())} rows that both sides count"
    for by in (1, -1):
        if both.all() and np.array_equal(np.roll(first, by, -1), second):
            return f"{words}: they are shifted by one"
    return words


def _is_ahead(one: Labels, other: Labels) -> bool:
    """Tell whether a place of `one` has the label that the next place of `other` has."""
    ahead, plain = one[..., :-1], other[..., 1:]
    counted = (ahead >= 0) & (plain >= 0)
    alike = np.array_equal(ahead[counted], plain[counted])
    return alike and np.unique(ahead[counted]).size > 1


def _name_greatest(sides: LossSides, ours: CrossEntropy, theirs: CrossEntropy) -> str:
    """Tell of a side that takes the greatest loss of all rows."""
    for one, other, names in (
        (ours, theirs, ("PyTorch", "Paddle")),
        (theirs, ours, ("Paddle", "PyTorch")),
    ):
        if other.counts.sum() == 1 < one.counts.sum():
            p = softmax(rows_of(sides.scores, one.axis), -1)
            chosen = np.where(one.counts, p[np.arange(len(p)), one.labels], 1.0)
            if other.counts[chosen.argmin()]:
                return f"{names[1]} takes the greatest loss of the rows, {names[0]} all of them"
    return ""


def _compare_rows(ours: CrossEntropy, theirs: CrossEntropy) -> str:
    """Say which rows count on one side only."""
    names = ("Paddle", "PyTorch")
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
    plain = [are_constant(weights) for weights in (first, second)]
    if any(plain):
        side = "PyTorch" if plain[1] else "Paddle"
        return f"only {side} weights the classes: pass weight= on both sides"
    return "the weights of the classes differ"


def _compare_scales(sides: LossSides, ours: CrossEntropy, theirs: CrossEntropy) -> str:
    """Say by what each side divides the sum over rows, if they do it differently."""
    names = []
    for loss in (ours, theirs):
        counted = float(loss.classes[loss.labels[loss.counts]].sum())
        known = name_reductions(sides.scores.shape, len(loss.labels), counted)
        names.append(next((n for n, number in known.items() if is_near(number, loss.scale)), ""))
    if not all(names):
        return _compare_divisors(ours, theirs)
    if names[0] == names[1]:
        return ""
    return f"the rows are {names[1]} in Paddle and {names[0]} in PyTorch"


def _compare_divisors(ours: CrossEntropy, theirs: CrossEntropy) -> str:
    """Say how the sums are divided where a name for it is lacking: by weights, or by a count."""
    alike = np.array_equal(ours.labels, theirs.labels) and agree(ours.classes, theirs.classes)
    if not alike or is_near(ours.scale, theirs.scale) or are_constant(ours.classes[ours.labels]):
        return ""
    return (f"Paddle's sum over the weighted rows is divided by {ours.scale / theirs.scale:.6g} times "
            "PyTorch's divisor: by their count on one side, by their weights on the other")  # fmt: skip


def _change(sides: LossSides, loss: CrossEntropy, names: tuple[str, str]) -> str:
    """Find the change of one side's loss that makes the other's."""
    other = sides.swap()
    for words, changed in _changes(sides, loss):
        if is_made_by(other, changed):
            entry = "cross-entropy-axis" if "axis" in words else "cross-entropy-use-softmax"
            return cite(words.format(*names), entry)
    return ""


def _explain_temperature(sides: LossSides, axis: int) -> str:
    """Explain by scores that are divided by a number before the softmax."""
    first, second = (find_temperature(side, axis) for side in (sides, sides.swap()))
    if first is None or second is None or is_near(first, second):
        return ""
    ours = fit_cross_entropy(sides.cool(first), axis)
    theirs = fit_cross_entropy(sides.swap().cool(second), axis)
    if ours is None or theirs is None or not np.array_equal(ours.labels, theirs.labels):
        return ""
    return (f"the scores are divided by {second:.6g} in Paddle and by {first:.6g} in PyTorch before the "
            "softmax (a temperature)")  # fmt: skip


def _changes(sides: LossSides, loss: CrossEntropy) -> Iterator[tuple[str, CrossEntropy]]:
    """Yield changed losses, and what the other side, {1}, then does."""
    yield (
        "{1} applies softmax before a loss that applies it again",
        replace(loss, softmax="twice"),
    )
    yield (
        "{1} takes the scores as log-probabilities: log_softmax is missing",
        replace(loss, softmax="left out (log)"),
    )
    yield (
        "{1} takes the scores as probabilities (use_softmax=False)",
        replace(loss, softmax="left out"),
    )
    yield (
        "{1} takes the softmax where {0} takes its logarithm: log_softmax is missing",
        replace(loss, softmax="left out of the logarithm"),
    )
    yield (
        "{1} takes the logarithm of a sigmoid, {0} that of a softmax",
        replace(loss, softmax="sigmoid"),
    )
    for axis in range(sides.scores.ndim):
        if axis != loss.axis and sides.scores.shape[axis] > 1:
            words = f"the softmax is over axis {axis} in {{1}} and over axis {loss.axis} in {{0}}"
            yield words, replace(loss, over=axis)
