"""Values that are zero, scaled, shifted, rounded, clipped or dropped on one side, everywhere or in places."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from reprod_align.base import PORT, REFERENCE
from reprod_align.base.text import shorten
from reprod_align.causes.mismatch import (
    Bools,
    Floats,
    Mismatch,
    as_floats,
    cite,
    is_telling,
    name_number,
    same,
)
from reprod_align.causes.norms import EPSILONS
from reprod_align.match.modules import DrawnShapes, shapes_drawn
from reprod_align.model.settings import BATCH_NORMS

import numpy as np
from numpy.typing import NDArray

_SENTINEL = 1e30
_SAME = 1e-12  # of the largest value
_CLOSE = 1e-9  # of the largest value, or relative
_MOST_RATE = 0.96
_RATES = tuple(round(0.05 * times, 2) for times in range(1, 19))
_NEAR = 0.25  # how far the shares that two dropouts drop may be from their rates, together
_FEWEST = 8  # elements that are kept, by which the scale of a dropout is known
_MOST_SHAPES = 3  # of draws, in one sentence


# ------------------------------------------------------------- one number for all


def explain_zeros(mismatch: Mismatch) -> str:
    """Explain a port that computes nothing."""
    if mismatch.expected.any() and not mismatch.actual.any():
        return f"{PORT}'s values are all zero"
    return ""


def explain_sameness(mismatch: Mismatch) -> str:
    """Explain values that do not change along an axis on one side: one index, or place, for all."""
    sides = mismatch.expected, mismatch.actual
    largest = [float(np.abs(side).max()) for side in sides]
    if not any(map(is_telling, sides)) or max(largest) > _SENTINEL:
        return ""  # beside a mask's number all others are the same
    for axis, size in enumerate(mismatch.expected.shape):
        ours, theirs = (np.ptp(side, axis=axis).max() > _SAME * most
                        for side, most in zip(sides, largest, strict=True))  # fmt: skip
        if size > 1 and ours != theirs:
            side = str(PORT) if ours else str(REFERENCE)
            return f"{side}'s values are the same all along axis {axis}: one index or place for all"
    return ""


def explain_factor(mismatch: Mismatch) -> str:
    """Explain the difference by a factor, or by a number that was added."""
    expected, actual = mismatch.expected, mismatch.actual
    if np.unique(expected[expected != 0]).size < 2:
        return ""
    at = int(np.argmax(np.abs(expected)))
    factor = float(actual.flat[at] / expected.flat[at])
    if factor == -1 and same(-expected, actual):
        return f"{PORT}'s values have the opposite sign: a minus is missing or one too many"
    if factor and abs(factor - 1) > 1e-9 and same(factor * expected, actual):
        return _name_epsilon(factor, mismatch) or _name_factor(factor, mismatch)
    added = float(actual.flat[at] - expected.flat[at])
    if np.ptp(expected) and same(expected + added, actual):
        return f"{PORT}'s values are {REFERENCE}'s plus the constant {added:.6g}"
    return ""


def _name_factor(factor: float, mismatch: Mismatch) -> str:
    named = name_number(factor, (*mismatch.widths, *mismatch.expected.shape))
    words = f"{PORT}'s values are {REFERENCE}'s times {named}"
    if any(abs(factor - one) < 1e-9 for one in mismatch.kept):
        words += (": its dropout with mode='downscale_in_infer' multiplies by 1 - p in eval mode and "
                  "not in training; set mode='upscale_in_train'")  # fmt: skip
        return cite(words, "dropout-scale")
    if "1 - p" in named:
        words += ": one side scales, or drops with mode='downscale_in_infer'"
        return cite(words, "dropout-scale")
    return f"{words}: one side scales, the other does not"


def _name_epsilon(factor: float, mismatch: Mismatch) -> str:
    """Explain a factor near 1 by the epsilon of a norm whose running variance is 1."""
    own = mismatch.settings.get("eps")
    for ours in (own,) if isinstance(own, float) else EPSILONS:
        theirs = (1 + ours) / factor**2 - 1
        known = next((e for e in EPSILONS if abs(theirs - e) <= 1e-9 and e != ours), None)
        if known is not None and mismatch.kind in ("", *BATCH_NORMS):
            words = f"epsilon {known:g} in {PORT} and {ours:g} in {REFERENCE}"
            return f"a batch norm whose running variance is 1 would differ so with {words}"
    return ""


def explain_rounding(mismatch: Mismatch) -> str:
    """Explain the difference by a cast to a narrower type."""
    if not is_telling(mismatch.expected):
        return ""
    for name, cast in _CASTS.items():
        for wide, narrow, (side, other) in mismatch.both_ways():
            if np.array_equal(cast(wide), narrow):
                mend = "remove the cast" if side == str(REFERENCE) else "the port lacks a cast"
                return f"{other}'s values are {side}'s rounded to {name}: {mend} to {name}"
    return ""


def _cast_to_bfloat16(x: Floats) -> Floats:
    bits = x.astype(np.float32).view(np.uint32)
    rounded = bits + 0x7FFF + ((bits >> 16) & 1)
    return as_floats((rounded & np.uint32(0xFFFF0000)).astype(np.uint32).view(np.float32))


_CASTS: Final[Mapping[str, Callable[[Floats], Floats]]] = {
    "float32": lambda x: as_floats(x.astype(np.float32)),
    "float16": lambda x: as_floats(x.astype(np.float16)),
    "bfloat16": _cast_to_bfloat16,
}


def explain_clipping(mismatch: Mismatch) -> str:
    """Explain the difference by a clip on one side."""
    for whole, cut, (side, other) in mismatch.both_ways() if mismatch.is_telling else ():
        low, high = float(cut.min()), float(cut.max())
        if same(np.clip(whole, low, high), cut):
            bounds = [f"at least {low:.6g}"] if whole.min() < low else []
            bounds += [f"at most {high:.6g}"] if whole.max() > high else []
            words = f"{other} clips the values to {' and '.join(bounds)}, {side} does not"
            return cite(words, "clamp")
    return ""


# ------------------------------------------------------------- dropout, and what is drawn


@dataclass(frozen=True)
class _Dropped:
    """What is left of a tensor: the share that was set to zero, and the factor on the rest."""

    share: float
    factor: float
    whole: bool
    """whether rows are dropped as a whole"""

    def __str__(self) -> str:
        """The dropout in words; its rate is known by the scale."""
        if not self.share:
            scaled = abs(self.factor - 1) > 1e-9
            return f"only scales by {self.factor:.6g}" if scaled else "drops nothing"
        scale = f"by {self.factor:.6g}"
        if self.factor > 1 + 1e-9:
            scale = f"as dropout with p = {1 - 1 / self.factor:.4g}"
        return f"drops {self.share:.0%}{' as whole rows' if self.whole else ''}, scaled {scale}"


def explain_dropout(mismatch: Mismatch) -> str:
    """Explain both sides as dropout of one input, or one side as the other dropped."""
    if not mismatch.is_telling:
        return ""
    expected, actual = mismatch.expected, mismatch.actual
    for source in mismatch.sources:
        ours, theirs = _fit_dropout(source.values, expected), _fit_dropout(source.values, actual)
        if ours and theirs and ours.share + theirs.share:
            if ours.share == theirs.share and str(ours) == str(theirs):
                return f"both sides drop {ours.share:.0%} of {source.name}, but different elements"
            words = f"dropout of {source.name}: {REFERENCE} {ours}; {PORT} {theirs}"
            return cite(words, "dropout-scale")
    if words := _explain_rates(expected, actual):
        return words
    for whole, made, (side, other) in mismatch.both_ways():
        found = _fit_dropout(whole, made)
        if found and found.share and found.factor > 1 + 1e-9:
            return cite(f"only {other} has a dropout here: it {found}", "dropout-scale")
        if found and found.share:
            rows = ", in whole rows," if found.whole else ""
            return (f"{other} has zeros in {found.share:.0%} of the places where {side} has values{rows} "
                    f"and the rest is scaled by {found.factor:.6g}: a mask, padding, or dropout")  # fmt: skip
    return ""


def _fit_dropout(x: Floats, made: Floats) -> _Dropped | None:
    """Return the dropout that makes `made` of x, None if it is another function."""
    filled, kept = x != 0, made != 0
    factor = _fit_factor(x, made, kept)
    if factor is None or (kept & ~filled).any():
        return None
    lost = filled & ~kept
    share = float(lost.sum() / filled.sum())
    if share > _MOST_RATE:
        return None
    flat, gone = lost.reshape(-1, lost.shape[-1]), ~kept.reshape(-1, lost.shape[-1])
    return _Dropped(share, factor, bool(share) and bool(gone[flat.any(axis=1)].all()))


def _fit_factor(x: Floats, made: Floats, kept: Bools) -> float | None:
    """Return the factor between two tensors at the elements that are kept; None if there is none."""
    if kept.sum() < _FEWEST:
        return None
    at = np.abs(np.where(kept, x, 0)).argmax()
    factor = float(made.flat[at] / x.flat[at])
    apart = np.abs(np.where(kept, made - factor * x, 0)).max()
    return factor if apart <= _CLOSE * np.abs(made).max() else None


def _explain_rates(expected: Floats, actual: Floats) -> str:
    """Explain both sides as dropouts of one tensor, which is not at hand, by the same random numbers.

    The higher rate then drops all that the lower drops, and what both keep differs by the ratio of
    their scales. Of the usual rates with this ratio those are taken that are nearest to the shares dropped.
    """
    kept, other = expected != 0, actual != 0
    both = kept & other
    nested = np.array_equal(both, kept) or np.array_equal(both, other)
    factor = _fit_factor(expected, actual, both) if nested else None
    if factor is None or kept.all() or other.all():
        return ""
    shares = float(1 - kept.mean()), float(1 - other.mean())
    near = [
        (abs(one - shares[0]) + abs(two - shares[1]), one, two)
        for one in _RATES
        for two in _RATES
        if one != two and abs((1 - one) / (1 - two) / factor - 1) <= 1e-7
    ]
    apart, ours, theirs = min(near, default=(1.0, 0.0, 0.0))
    words = f"dropout with p = {theirs:g} in {PORT} and p = {ours:g} in {REFERENCE}"
    return cite(words, "dropout-scale") if apart <= _NEAR else ""


def explain_draws(
    path: str, ours: DrawnShapes, theirs: DrawnShapes, places: Mapping[str, str]
) -> str:
    """Say which side draws what the other does not in a module; "" if both draw the same.

    path: Paddle's name of the module. ours, theirs: what PyTorch and Paddle drew. places: where
    draws are told apart, Paddle's name -> PyTorch's.
    """
    place = places.get(path)
    if place is None:
        return ""
    first, second = (shapes_drawn(side, place, places.values()) for side in (ours, theirs))
    if sorted(map(sorted, first)) == sorted(map(sorted, second)):
        return ""
    torch, paddle = (shorten([str(it) for it in side], _MOST_SHAPES) for side in (first, second))
    if torch and paddle:
        return f"{REFERENCE} draws random numbers of shape {torch} here, {PORT} {paddle}"
    side, shapes = (str(REFERENCE), torch) if torch else (str(PORT), paddle)
    return f"only {side} draws random numbers here (dropout, noise), of shape {shapes}"


# ------------------------------------------------------------- one number for each index of an axis


def explain_bias_or_gain(mismatch: Mismatch) -> str:
    """Explain the difference by a bias or a gain, one number for each index of one axis."""
    expected, actual = mismatch.expected, mismatch.actual
    if expected.ndim < 2 or not is_telling(expected):
        return ""
    scale = np.abs(expected).max()
    for axis in reversed(range(expected.ndim)):
        ours, theirs = (
            np.moveaxis(it, axis, 0).reshape(it.shape[axis], -1) for it in (expected, actual)
        )
        if min(ours.shape) < 3 or (ours.shape[1] > 8 and not all(map(is_telling, ours))):
            continue
        if axis and np.ptp(theirs - ours, axis=1).max() <= _CLOSE * scale:
            return (f"the difference is one number for each index of axis {axis}: a bias (or an "
                    "embedding) is added on one side only")  # fmt: skip
        largest = np.abs(ours).argmax(axis=1)[:, None]
        gain = np.take_along_axis(theirs, largest, 1) / np.take_along_axis(ours, largest, 1)
        if np.isfinite(gain).all() and gain.any() and same(ours * gain, theirs):
            what = ("a gain (weight), or a statistic that divides them," if axis else
                    "a division of each item (by its norm or a count)")  # fmt: skip
            return (f"the ratio is one number for each index of axis {axis}: {what} is on one side "
                    "only, or differs")  # fmt: skip
    return ""


# ------------------------------------------------------------- a difference in some places alone


def explain_places(mismatch: Mismatch, causes: Sequence[Callable[[Mismatch], str]]) -> str:
    """Explain a difference that stands at a few indices of one axis by a cause of what is there."""
    expected, actual = mismatch.expected, mismatch.actual
    scale = np.abs(expected).max()
    for axis in range(expected.ndim if expected.ndim > 1 else 0):
        rows = np.moveaxis(np.abs(expected - actual), axis, 0).reshape(expected.shape[axis], -1)
        apart = rows.max(axis=1) > _CLOSE * scale
        if not 0 < apart.sum() <= len(apart) // 2:
            continue
        there = _cut(mismatch, axis, np.flatnonzero(apart))
        for explain in causes:
            if there.is_telling and (words := explain(there)):
                return f"only {_name_places(apart, axis)} differs: {words}"
    return ""


def _cut(mismatch: Mismatch, axis: int, at: NDArray[np.int64]) -> Mismatch:
    """Return the mismatch at these indices of an axis, with what the inputs hold there."""
    size, ndim = mismatch.expected.shape[axis], mismatch.expected.ndim
    inputs = []
    for name, array in mismatch.inputs:
        own = axis - (ndim - array.ndim)
        whole = own >= 0 and array.shape[own] == size
        inputs.append((name, np.take(array, at, own) if whole else array))
    expected, actual = (np.take(it, at, axis) for it in (mismatch.expected, mismatch.actual))
    return replace(mismatch, expected=expected, actual=actual, inputs=inputs)


def _name_places(apart: NDArray[np.bool_], axis: int) -> str:
    at = np.flatnonzero(apart)
    if at.size == 1:
        which = {0: "the first", len(apart) - 1: "the last"}.get(int(at[0]), f"index {at[0]}")
        return f"{which} along axis {axis}"
    return f"what stands at {at.size} of {len(apart)} indices of axis {axis}"


def explain_padding_row(mismatch: Mismatch) -> str:
    """Explain rows that are zero on one side, those of one index: padding_idx does so in Paddle."""
    for _, ids in mismatch.inputs:
        if ids.dtype.kind not in "iu" or ids.shape != mismatch.expected.shape[:-1]:
            continue
        apart = (mismatch.expected != mismatch.actual).any(axis=-1)
        values = np.unique(ids[apart])
        if values.size != 1 or not np.array_equal(apart, ids == values[0]):
            continue
        for whole, made, (side, other) in mismatch.both_ways():
            if not made[apart].any() and whole[apart].any():
                words = (f"{other} returns zeros for the index {values[0]} (padding_idx), {side} "
                         "the row of its table")  # fmt: skip
                return cite(words, "embedding-padding-idx")
    return ""
