"""Values that are zero, scaled, shifted, rounded or dropped on one side, or drawn otherwise."""

from collections.abc import Callable, Mapping
from typing import Final

from reprod_align.base import PORT, REFERENCE
from reprod_align.base.text import shorten
from reprod_align.causes.mismatch import (
    Floats,
    Mismatch,
    as_floats,
    cite,
    is_telling,
    name_number,
    same,
)
from reprod_align.match.modules import DrawnShapes, shapes_drawn

import numpy as np

_FEWEST = 8  # elements that are kept, by which the scale of a dropout is known
_MOST_SHAPES = 3  # of draws, in one sentence


# ------------------------------------------------------------- one number for all


def explain_zeros(mismatch: Mismatch) -> str:
    """Explain a port that computes nothing."""
    if mismatch.expected.any() and not mismatch.actual.any():
        return f"{PORT}'s values are all zero"
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
        return _name_factor(factor, mismatch)
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


# ------------------------------------------------------------- dropout, and what is drawn


def explain_dropout(mismatch: Mismatch) -> str:
    """Explain one side as the other one dropped: zeros in places, and one factor for the rest."""
    for whole, made, (_, other) in mismatch.both_ways() if mismatch.is_telling else ():
        filled, kept = whole != 0, made != 0
        if (kept & ~filled).any() or not _FEWEST <= kept.sum() < filled.sum():
            continue
        at = int(np.abs(np.where(kept, whole, 0)).argmax())
        factor = float(made.flat[at] / whole.flat[at])
        if factor > 1 + 1e-9 and same(np.where(kept, factor * whole, 0), made):
            share, rate = 1 - kept.sum() / filled.sum(), 1 - 1 / factor
            words = f"it drops {share:.0%}, scaled as dropout with p = {rate:.4g}"
            return cite(f"only {other} has a dropout here: {words}", "dropout-scale")
    return ""


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
