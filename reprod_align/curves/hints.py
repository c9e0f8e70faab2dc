"""What the way in which two curves part points to. A hint is a reading of the numbers, no proof."""

import math
from typing import Any, Final

from reprod_align.curves.log import Curve
from reprod_align.curves.names import LR
from reprod_align.curves.track import SPIKE, Track

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_JUMP: Final = 30.0  # times the largest difference of the steps before
_BEFORE: Final = 10  # steps before that a jump is measured against
_FALLS: Final = 3.0  # times smaller, the difference after a jump: the step itself was different
_PEAK: Final = (
    3  # steps whose largest difference is the jump's height: one alone may be small by luck
)
_FIRST_UPDATES: Final = 3  # the first steps; a warmup from 0 leaves the second as the first was
_OCTAVES: Final = 5.0  # doublings of the difference it takes to speak of a growth rate
_UNEXPLAINED: Final = 0.2  # share of a growth's variance that a rate may leave unexplained
_POINTS: Final = 8
_MOVES: Final = 40
_EARLY: Final = 200  # steps that the pattern of a difference from the first step on is read from
_CONSTANT: Final = 1e-3  # relative spread of a ratio that counts as constant
_TOGETHER: Final = 0.5  # correlation of the two curves' moves from step to step: the same batches
_CHANCE: Final = 3.0  # standard errors of a correlation of 0


def hints(track: Track, quantity: str, epochs: Curve | None) -> list[str]:
    """Return what the parting of one pair of curves points to; nothing for curves that agree."""
    place = track.first
    if place is None:
        return []
    broken = _not_finite(track, place)
    if broken:
        return [broken]
    if place == 0:
        return _from_the_first(track, quantity)
    if not _jumps(track, place):
        return _growth(track, place)
    if _is_first_update(track, place):
        return [_first_update(track, place, quantity)]
    return _epoch_start(track, place, epochs) or _jump(track, place)


def epoch_numbers(epochs: Curve) -> Array:
    """Return the number of the epoch that each logged step is part of, (N,).

    Fractions, as a Trainer logs them, reach a whole number at an epoch's last step.
    """
    if np.any(epochs.values % 1):
        numbers: Array = np.ceil(epochs.values - 1e-6) - 1
        return numbers
    return epochs.values


def _not_finite(track: Track, place: int) -> str:
    sides = [
        name
        for name, values in (("first", track.expected), ("second", track.actual))
        if not np.isfinite(values[place])
    ]
    if not sides:
        return ""
    who = "both logs are" if len(sides) == 2 else f"only the {sides[0]} log is"
    word = "; two NaNs are no agreement" if len(sides) == 2 else ""
    return f"{who} not finite from step {track.steps[place]} on{word}: points to an overflow"


def _from_the_first(track: Track, quantity: str) -> list[str]:
    step = int(track.steps[0])
    if quantity == LR:
        return ["differs from the first logged step on: points to the schedule (warmup, base rate)"]
    if step > 1:
        found = [f"outside from the first common step on ({step}); what came before is not logged"]
    else:
        found = [
            "differs at the first step, before any update: points to initial weights, data, "
            "dropout draws or the loss itself"
        ]
    return found + _pattern(track)


def _pattern(track: Track) -> list[str]:
    """Tell a constant factor from differences that change sign."""
    ours, theirs = track.expected[:_EARLY], track.actual[:_EARLY]
    gaps = theirs - ours
    if len(gaps) < _POINTS or not np.all(np.isfinite(gaps)):
        return []
    factor = _factor(ours[:_POINTS], theirs[:_POINTS])
    if factor is not None:
        return [f"the second is {factor:.4g} times the first at the first steps: points to a sum for "
                "a mean, or accumulated gradients that are not divided"]  # fmt: skip
    moves = _moves_together(track, 0)
    if moves is None:
        return []
    if moves:
        return ["both curves move together from step to step: points to the same order of the data, "
                "and to dropout draws or weights that differ"]  # fmt: skip
    return ["the curves do not move together from step to step: points to another order of the "
            "data, or to other initial weights"]  # fmt: skip


def _factor(ours: Array, theirs: Array) -> float | None:
    """Return what the one is times the other, if that is the same number throughout, and not 1."""
    if np.any(ours == 0):
        return None
    ratio = theirs / ours
    middle = float(np.median(ratio))
    if np.ptp(ratio) < _CONSTANT * abs(middle) and abs(middle - 1) > 10 * _CONSTANT:
        return middle
    return None


def _moves_together(track: Track, start: int) -> bool | None:
    """Return whether both curves rise and fall at the same steps from `start` on; None if unclear.

    Most of a loss's moves are its batches': curves over the same batches share them.
    """
    kept = slice(start, start + _EARLY)
    ours, theirs = np.diff(track.expected[kept]), np.diff(track.actual[kept])
    if len(ours) < _MOVES or not (np.all(np.isfinite(ours)) and np.all(np.isfinite(theirs))):
        return None
    if not (np.ptp(ours) and np.ptp(theirs)):
        return None
    together = float(np.corrcoef(ours, theirs)[0, 1])
    if together > _TOGETHER:
        return True
    return False if together < _CHANCE / math.sqrt(len(ours)) else None


def _is_first_update(track: Track, place: int) -> bool:
    return place < _FIRST_UPDATES and track.steps[0] <= 1 and track.steps[place] <= _FIRST_UPDATES


def _first_update(track: Track, place: int, quantity: str) -> str:
    step = track.steps[place]
    if quantity == LR:
        return f"agrees before step {step} only: points to the schedule"
    return (
        f"agrees at the first step, parts at step {step}: points to the first updates (gradients, "
        "clipping, weight decay, optimizer or learning rate)"
    )


def _jumps(track: Track, place: int) -> bool:
    before = track.difference[max(0, place - _BEFORE) : place]
    tiny = np.finfo(np.float64).eps * np.abs(track.expected[: place + 1]).max()
    return bool(track.difference[place] >= _JUMP * max(float(before.max()), float(tiny)))


def _epoch_start(track: Track, place: int, epochs: Curve | None) -> list[str]:
    if epochs is None:
        return []
    numbers = epoch_numbers(epochs)
    here = int(np.searchsorted(epochs.steps, track.steps[place]))
    before = int(np.searchsorted(epochs.steps, track.steps[place - 1]))
    if max(here, before) >= len(numbers) or numbers[here] <= numbers[before]:
        return []
    return [
        f"jumps with the first logged step of an epoch ({track.steps[place]}): points to the order "
        "of the data, or to what is done once an epoch"
    ]


def _jump(track: Track, place: int) -> list[str]:
    step, earlier = int(track.steps[place]), int(track.steps[place - 1])
    when = f"at step {step}" if step == earlier + 1 else f"between steps {earlier} and {step}"
    found = [f"jumps {when}, all at once: something changed there"]
    return [*found, _after_jump(track, place)]


def _after_jump(track: Track, place: int) -> str:
    if track.behaviour == SPIKE:
        return "and is over: points to that step's batch or random draws, or to its log alone"
    together = _moves_together(track, place + _PEAK)
    if together is False:
        return "the curves do not move together after it: points to another order of the data"
    after = track.difference[place + _BEFORE : place + 3 * _BEFORE]
    peak = track.difference[place : place + _PEAK].max()
    change = float(np.median(after)) / peak if len(after) else 1.0
    if change <= 1 / _FALLS:
        return "the difference falls again after it: points to that step's batch or random draws"
    if change >= _FALLS:
        return "and it grows from there: points to the optimizer, the learning rate or the weights"
    return (
        "and it stays: points to that step's batch or random draws, the optimizer, or weights that "
        "were restored"
    )


def _growth(track: Track, place: int) -> list[str]:
    """Read the growth rate of the difference up to where it saturates."""
    largest = np.fmax.accumulate(track.difference)
    end = max(place, int(np.argmax(largest >= 0.1 * largest[-1]))) + 1
    kept = np.flatnonzero(largest[:end] > 0)
    slow = ["leaves the band without a jump"]
    if len(kept) < _POINTS:
        return slow
    heights, steps = np.log2(largest[kept]), track.steps[kept].astype(np.float64)
    if heights[-1] - heights[0] < _OCTAVES:
        return slow
    since = steps - min(steps[0], track.steps[0]) + 1
    doublings, straight = _fit(steps, heights)
    power, curved = _fit(np.log2(since), heights)
    if min(straight, curved) > _UNEXPLAINED * np.var(heights) * len(heights):
        return slow
    if straight > curved:
        return [f"grows slowly, about like step^{power:.1f}: points to a small difference made at "
                "every step (weight decay, epsilon, learning rate)"]  # fmt: skip
    return [_amplified(track, kept, doublings)]


def _amplified(track: Track, kept: Array, doublings: float) -> str:
    text = f"doubles every {1 / doublings:.3g} steps: points to rounding, or a tiny difference, amplified"
    if not track.measured:
        return f"{text}; a perturbed twin (--twin) tells which"
    band = np.log2(np.maximum(track.limit[kept], np.finfo(np.float64).tiny))
    rate, _ = _fit(track.steps[kept].astype(np.float64), band)
    if rate > 0 and 0.5 < doublings / rate < 2:
        return f"{text}, at the rate of the twin's but from a larger start"
    return (
        f"{text}, faster than the twin's" if doublings > rate else f"{text}, slower than the twin's"
    )


def _fit(x: Array, y: Array) -> tuple[float, float]:
    """Return the slope of the straight line nearest to y (N,) over x (N,), and its squared error."""
    line = np.polynomial.Polynomial.fit(x, y, 1)
    slope = float(line.convert().coef[1]) if len(line.convert().coef) > 1 else 0.0
    return slope, float(np.sum((line(x) - y) ** 2))
