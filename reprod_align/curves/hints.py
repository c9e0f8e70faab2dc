"""What the divergence of two curves points to. A hint is read from the numbers; it proves nothing."""

import math
from typing import Final

from reprod_align.base.blocks import Array
from reprod_align.curves.band import SPIKE, Track
from reprod_align.curves.log import LR, Curve

import numpy as np

_JUMP: Final = 30.0  # times the largest difference of the steps before
_BEFORE: Final = 10  # steps before that a jump is measured against
_FALLS: Final = 3.0  # times smaller, the difference after a jump: the step itself was different
_PEAK: Final = 3  # steps whose largest difference is a jump's height: one may be small by luck
_FIRST_UPDATES: Final = 3  # the first steps; after a warmup from 0, steps 1 and 2 are alike
_OCTAVES: Final = 5.0  # doublings of the difference it takes to speak of a growth rate
_UNEXPLAINED: Final = 0.2  # share of a growth's variance that a rate may leave unexplained
_POINTS: Final = 8
_MOVES: Final = 40
_EARLY: Final = 200  # steps that the pattern of a difference from the first step on is read from
_CONSTANT: Final = 1e-3  # relative spread of a ratio that counts as constant
_TOGETHER: Final = 0.5  # correlation of the two curves' moves from step to step: the same batches
_CHANCE: Final = 3.0  # standard errors of a correlation of 0


def find_hints(track: Track, quantity: str, epochs: Curve | None) -> list[str]:
    """Return what the divergence of one pair of curves points to; [] for curves that agree."""
    place = track.first
    if place is None:
        return []
    if np.isnan(track.difference[place]):
        return [_read_overflow(track, place)]
    if place == 0:
        return _read_first_step(track, quantity)
    if not _jumps(track, place):
        return [_read_growth(track, place)]
    if track.steps[0] <= 1 and max(place + 1, track.steps[place]) <= _FIRST_UPDATES:
        return [_read_first_update(int(track.steps[place]), quantity)]
    if epochs is not None and _starts_epoch(track, place, epochs):
        return [f"jumps with the first logged step of an epoch ({track.steps[place]}): points to "
                "the order of the data, or to what is done once an epoch"]  # fmt: skip
    return _read_jump(track, place)


def _read_overflow(track: Track, place: int) -> str:
    step, broken = track.steps[place], ~np.isfinite([track.expected[place], track.actual[place]])
    if broken.all():
        return (
            f"both logs are NaN or infinite from step {step} on; two NaNs do not agree: points to an "
            "overflow"
        )
    side = "first" if broken[0] else "second"
    return f"only the {side} log is NaN or infinite from step {step} on: points to an overflow"


def _read_first_step(track: Track, quantity: str) -> list[str]:
    step = int(track.steps[0])
    if quantity == LR:
        return ["differs from the first logged step on: points to the schedule (warmup, base rate)"]
    if step > 1:
        found = f"outside from the first common step on ({step}); what came before is not logged"
    else:
        found = (
            "differs at the first step, before any update: points to initial weights, data, "
            "dropout draws or the loss itself"
        )
    return [found, *_read_pattern(track)]


def _read_pattern(track: Track) -> list[str]:
    """Return whether a factor, shared moves or neither relate the first values."""
    ours, theirs = track.expected[:_EARLY], track.actual[:_EARLY]
    gaps = theirs - ours
    if len(gaps) < _POINTS or not np.all(np.isfinite(gaps)):
        return []
    factor = _find_factor(ours[:_POINTS], theirs[:_POINTS])
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


def _find_factor(ours: Array, theirs: Array) -> float | None:
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


def _read_first_update(step: int, quantity: str) -> str:
    if quantity == LR:
        return f"agrees before step {step} only: points to the schedule"
    return (
        f"agrees at the first step, diverges at step {step}: points to the first updates (gradients, "
        "clipping, weight decay, optimizer or learning rate)"
    )


def _jumps(track: Track, place: int) -> bool:
    before = track.difference[max(0, place - _BEFORE) : place]
    tiny = np.finfo(np.float64).eps * np.abs(track.expected[: place + 1]).max()
    return bool(track.difference[place] >= _JUMP * max(float(before.max()), float(tiny)))


def _starts_epoch(track: Track, place: int, epochs: Curve) -> bool:
    """Return True if an epoch begins between the step at `place` and the one before.

    Fractions of an epoch, as a Trainer logs them, reach a whole number at the epoch's last step.
    """
    fractions = np.any(epochs.values % 1)
    numbers = np.ceil(epochs.values - 1e-6) - 1 if fractions else epochs.values
    before, here = np.searchsorted(epochs.steps, track.steps[place - 1 : place + 1])
    return bool(max(here, before) < len(numbers) and numbers[here] > numbers[before])


def _read_jump(track: Track, place: int) -> list[str]:
    step, earlier = int(track.steps[place]), int(track.steps[place - 1])
    when = f"at step {step}" if step == earlier + 1 else f"between steps {earlier} and {step}"
    if track.behaviour == SPIKE:
        what = "and is over: points to that step's batch or random draws, or to its log alone"
    elif _moves_together(track, place + _PEAK) is False:
        what = "the curves do not move together after it: points to another order of the data"
    else:
        after = track.difference[place + _BEFORE : place + 3 * _BEFORE]
        peak = track.difference[place : place + _PEAK].max()
        change = float(np.median(after)) / peak if len(after) else 1.0
        what = (
            "and it stays: points to that step's batch or random draws, the optimizer, or weights "
            "that were restored"
        )
        if change <= 1 / _FALLS:
            what = (
                "the difference falls again after it: points to that step's batch or random draws"
            )
        elif change >= _FALLS:
            what = (
                "and it grows from there: points to the optimizer, the learning rate or the weights"
            )
    return [f"jumps {when}, all at once: something changed there", what]


def _read_growth(track: Track, place: int) -> str:
    """Read the growth rate of the difference up to where it saturates."""
    largest = np.fmax.accumulate(track.difference)
    end = max(place, int(np.argmax(largest >= 0.1 * largest[-1]))) + 1
    kept = np.flatnonzero(largest[:end] > 0)
    slow = "leaves the band without a jump"
    if len(kept) < _POINTS:
        return slow
    heights, steps = np.log2(largest[kept]), track.steps[kept].astype(np.float64)
    if heights[-1] - heights[0] < _OCTAVES:
        return slow
    since = steps - min(steps[0], track.steps[0]) + 1
    doublings, straight = _fit_line(steps, heights)
    power, curved = _fit_line(np.log2(since), heights)
    if min(straight, curved) > _UNEXPLAINED * np.var(heights) * len(heights):
        return slow
    if straight <= curved:
        return _read_doubling(track, kept, doublings)
    return (
        f"grows slowly, about like step^{power:.1f}: points to a small difference made at every step "
        "(weight decay, epsilon, learning rate)"
    )


def _read_doubling(track: Track, kept: Array, doublings: float) -> str:
    text = f"doubles every {1 / doublings:.3g} steps: points to rounding, or a tiny difference, amplified"
    if not track.measured:
        return f"{text}; a perturbed twin (--twin) tells which"
    band = np.log2(np.maximum(track.limit[kept], np.finfo(np.float64).tiny))
    rate, _ = _fit_line(track.steps[kept].astype(np.float64), band)
    if rate > 0 and 0.5 < doublings / rate < 2:
        return f"{text}, at the rate of the twin's but from a larger start"
    return f"{text}, {'faster' if doublings > rate else 'slower'} than the twin's"


def _fit_line(x: Array, y: Array) -> tuple[float, float]:
    """Return the slope of the straight line nearest to y (N,) over x (N,), and its squared error."""
    line = np.polynomial.Polynomial.fit(x, y, 1)
    coefficients = [*line.convert().coef, 0.0]  # a slope of 0 is left out
    return float(coefficients[1]), float(np.sum((line(x) - y) ** 2))
