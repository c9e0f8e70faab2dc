"""The CTC loss: which class is the blank on either side.

The gradient of a frame is its probabilities less the occupancies of its classes, so it shows which
classes take part in a sequence. The blank takes part in every sequence from the first frame on.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from reprod_align.causes.entries import cite
from reprod_align.causes.functions import softmax
from reprod_align.causes.losses.sides import LossSides, agree
from reprod_align.causes.numbers import Floats

import numpy as np

_SEEN = 1e-9  # an occupancy above


@dataclass(frozen=True)
class _Ctc:
    """What a CTC loss shows of itself: its blank, and the occupancies (T, N, C)."""

    blank: int
    occupancies: Floats


def explain_ctc(sides: LossSides) -> str:
    """Explain the two losses of scores (T, N, C) as CTC losses with different blanks."""
    if sides.scores.ndim != 3:
        return ""
    for axes in ((0, 1, 2), (1, 0, 2)):
        scores, first, second = (
            it.transpose(axes) for it in (sides.scores, sides.ours, sides.theirs)
        )
        ours, theirs = _fit_ctc(scores, first), _fit_ctc(scores, second)
        if ours and theirs and ours.blank != theirs.blank:
            words = f"the blank is class {theirs.blank} in Paddle and class {ours.blank} in PyTorch"
            return cite(f"{words}: set blank= on both sides", "ctc-loss")
    return ""


def _fit_ctc(scores: Floats, gradient: Floats) -> _Ctc | None:
    """Return the CTC loss whose gradient this is; None if it is another loss."""
    p = softmax(scores, -1)
    occupancies = np.zeros_like(p)
    starts: list[set[int]] = []
    for number in range(p.shape[1]):
        used = np.abs(gradient[:, number]).max(axis=1) > 0
        if used.sum() < 2:
            return None
        scale = (gradient[used, number] / p[used, number]).max()
        if not scale > 0:
            return None
        occupancies[used, number] = p[used, number] - gradient[used, number] / scale
        starts.append(set(np.flatnonzero(occupancies[0, number] > _SEEN).tolist()))
    blanks = set.intersection(*starts)
    for blank in sorted(blanks):
        if all(_is_replayed(p[:, at], occupancies[:, at], blank) for at in range(p.shape[1])):
            return _Ctc(blank, occupancies)
    return None


def _is_replayed(p: Floats, occupancies: Floats, blank: int) -> bool:
    """Tell whether the labels that a sequence shows, with this blank, have its occupancies (T, C)."""
    used = occupancies.sum(axis=1) > 0.5
    labels = _read_labels(occupancies[used], blank)
    return bool(labels) and agree(occupancies[used], occupy(p[used], labels, blank))


def _read_labels(occupancies: Floats, blank: int) -> list[int]:
    """Return the labels in the order in which they first take part; each is taken to come once."""
    first: list[tuple[int, int]] = []
    for label in np.flatnonzero((occupancies > _SEEN).any(axis=0)).tolist():
        if label != blank:
            first.append((int((occupancies[:, label] > _SEEN).argmax()), label))
    return [label for _, label in sorted(first)]


def occupy(p: Floats, labels: Sequence[int], blank: int) -> Floats:
    """Return (T, C): the probability, given the labels, that a frame emits a class."""
    states = [blank]
    for label in labels:
        states += [label, blank]
    emitted = p[:, states]  # (T, S)
    skips = np.array(
        [
            at > 1 and states[at] != blank and states[at] != states[at - 2]
            for at in range(len(states))
        ]
    )
    forward = _walk(emitted, skips)
    backward = _walk(emitted[::-1, ::-1], np.array([False, False, *skips[2:][::-1]]))[::-1, ::-1]
    joint = forward * backward / emitted
    joint = joint / joint.sum(axis=1, keepdims=True)
    made = np.zeros_like(p)
    for at, state in enumerate(states):
        made[:, state] += joint[:, at]
    return made


def _walk(emitted: Floats, skips: np.ndarray) -> Floats:
    """Return (T, S): the probability of all ways to a state, each frame scaled to sum to 1."""
    made = np.zeros_like(emitted)
    made[0, :2] = emitted[0, :2]
    for frame in range(1, len(emitted)):
        before = made[frame - 1]
        one, two = np.roll(before, 1), np.roll(before, 2)
        one[:1] = two[:2] = 0
        made[frame] = emitted[frame] * (before + one + np.where(skips, two, 0))
        made[frame] /= made[frame].sum()
    return made
