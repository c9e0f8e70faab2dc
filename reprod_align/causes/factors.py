"""Values that are zero, scaled, shifted, rounded or clipped on one side."""

from collections.abc import Callable, Mapping
from typing import Final

from reprod_align.causes.entries import cite
from reprod_align.causes.mismatch import Mismatch
from reprod_align.causes.numbers import Floats, as_floats, is_telling, name_number, same
from reprod_align.model.settings import BATCH_NORMS

import numpy as np

_SENTINEL = 1e30
_SAME = 1e-12  # of the largest value

_EPSILONS = (1e-5, 1e-12, 1e-6, 1e-8, 1e-7, 1e-3, 1e-4, 1e-2, 0.0)


def explain_zeros(mismatch: Mismatch) -> str:
    """Explain a port that computes nothing."""
    if mismatch.expected.any() and not mismatch.actual.any():
        return "Paddle's values are all zero"
    return ""


def explain_sameness(mismatch: Mismatch) -> str:
    """Explain values that do not change along an axis on one side: one index, or place, for all."""
    expected, actual = mismatch.expected, mismatch.actual
    if not is_telling(expected) and not is_telling(actual):
        return ""
    if max(np.abs(expected).max(), np.abs(actual).max()) > _SENTINEL:
        return ""  # beside a mask's number all others are the same
    for axis in range(expected.ndim):
        if expected.shape[axis] < 2:
            continue
        ours, theirs = (
            float(np.ptp(it, axis=axis).max()) > _SAME * float(np.abs(it).max())
            for it in (expected, actual)
        )
        if ours != theirs:
            side = "Paddle" if ours else "PyTorch"
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
        return "Paddle's values have the opposite sign: a minus is missing or one too many"
    if factor and abs(factor - 1) > 1e-9 and same(factor * expected, actual):
        if mismatch.kind in ("", *BATCH_NORMS) and (words := _name_epsilon(factor, mismatch)):
            return words
        named = name_number(factor, (*mismatch.widths, *expected.shape))
        words = f"Paddle's values are PyTorch's times {named}"
        if any(abs(factor - one) < 1e-9 for one in mismatch.kept):
            words += (
                ": its dropout with mode='downscale_in_infer' multiplies by 1 - p in eval mode and "
                "not in training; set mode='upscale_in_train'"
            )
            return cite(words, "dropout-scale")
        if "1 - p" in named:
            words += ": one side scales, or drops with mode='downscale_in_infer'"
            return cite(words, "dropout-scale")
        return f"{words}: one side scales, the other does not"
    added = float(actual.flat[at] - expected.flat[at])
    if np.ptp(expected) and same(expected + added, actual):
        return f"Paddle's values are PyTorch's plus the constant {added:.6g}"
    return ""


def _name_epsilon(factor: float, mismatch: Mismatch) -> str:
    """Explain a factor near 1 by the epsilon of a norm whose running variance is 1."""
    own = mismatch.settings.get("eps")
    for ours in (own,) if isinstance(own, float) else _EPSILONS:
        theirs = (1 + ours) / factor**2 - 1
        known = next((e for e in _EPSILONS if abs(theirs - e) <= 1e-9 and e != ours), None)
        if known is not None:
            words = f"epsilon {known:g} in Paddle and {ours:g} in PyTorch"
            return f"a batch norm whose running variance is 1 would differ so with {words}"
    return ""


def explain_rounding(mismatch: Mismatch) -> str:
    """Explain the difference by a cast to a narrower type."""
    expected, actual = mismatch.expected, mismatch.actual
    if not is_telling(expected):
        return ""
    for name, cast in _CASTS.items():
        if np.array_equal(cast(expected), actual):
            return f"Paddle's values are PyTorch's rounded to {name}: remove the cast to {name}"
        if np.array_equal(cast(actual), expected):
            return (
                f"PyTorch's values are Paddle's rounded to {name}: the port lacks a cast to {name}"
            )
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
    if not mismatch.is_telling:
        return ""
    expected, actual = mismatch.expected, mismatch.actual
    for whole, cut, sides in (
        (expected, actual, ("Paddle", "PyTorch")),
        (actual, expected, ("PyTorch", "Paddle")),
    ):
        low, high = float(cut.min()), float(cut.max())
        if same(np.clip(whole, low, high), cut):
            bounds = [f"at least {low:.6g}"] if whole.min() < low else []
            bounds += [f"at most {high:.6g}"] if whole.max() > high else []
            words = f"{sides[0]} clips the values to {' and '.join(bounds)}, {sides[1]} does not"
            return cite(words, "clamp")
    return ""
