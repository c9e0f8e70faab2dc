"""How a mask or an index that the port makes differs, and what a softmax shows of its mask and its scale."""

from collections.abc import Sequence

from reprod_align.base import PORT, REFERENCE
from reprod_align.base.blocks import Array
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

import numpy as np

_WEAK = -100.0  # an additive mask above this does not hide for certain
_SEEN = 1e-20  # a probability above: Paddle's softmax leaves about 1e-29 where -1e9 is added
_BOOLEAN = "attention-boolean-mask"


# ------------------------------------------------------------- the mask itself


def explain_mask(expected: Array, actual: Array) -> str:
    """Explain how a mask or an index differs; "" if no known mistake makes the difference.

    expected, actual: boolean or additive masks, or integer ids, of any shape.
    """
    if expected.shape != actual.shape or not expected.size or np.array_equal(expected, actual):
        return ""
    ours, theirs = as_floats(expected), as_floats(actual)
    if expected.dtype.kind in "iu" and actual.dtype.kind in "iu" and not _is_binary(ours):
        return _explain_indices(ours, theirs)
    if expected.dtype.kind == actual.dtype.kind == "f" and np.array_equal(ours, -theirs):
        return f"the mask has the opposite sign in {PORT}: hidden places need a negative number"
    if not _is_binary(ours) and not actual.any():
        return f"nothing is masked in {PORT}: the mask adds 0 everywhere"
    shown, shown_there = _find_shown(ours), _find_shown(theirs)
    if shown is None or shown_there is None or not 0 < shown.mean() < 1:
        return ""
    if _is_binary(ours) and np.ptp(theirs) == 0:
        value = theirs.flat[0]
        return f"it is {value:g} everywhere in {PORT}: a mask or the token types were not passed on"
    if np.array_equal(shown, ~shown_there):
        both = _is_binary(ours) and _is_binary(theirs)
        return cite(f"the mask is inverted: 1 (True) in {REFERENCE} is 0 (False) in {PORT}" if both
                    else f"the mask is inverted: {PORT} shows what {REFERENCE} hides, and hides what "
                    f"{REFERENCE} shows", _BOOLEAN)  # fmt: skip
    hidden = np.unique(theirs[~shown_there])
    additive = not (_is_binary(ours) or _is_binary(theirs))
    if additive and np.array_equal(shown, shown_there) and hidden.size == 1:
        weak = ": too little to hide" if hidden[0] > _WEAK else ""
        return f"the mask adds {hidden[0]:g} where {REFERENCE} adds {ours.min():g}{weak}"
    return _explain_shown(shown, shown_there)


def _is_binary(array: Floats) -> bool:
    return bool(((array == 0) | (array == 1)).all())


def _find_shown(mask: Floats) -> Bools | None:
    """Return what a mask shows: where a boolean or 0/1 mask is 1, an additive one 0; None for others."""
    if _is_binary(mask):
        return np.asarray(mask == 1)
    return np.asarray(mask == 0) if (mask <= 0).all() else None


def _explain_shown(ours: Bools, theirs: Bools) -> str:
    """Explain what two masks show by a known way from one to the other."""
    if theirs.all() or not theirs.any():
        return f"{'nothing' if theirs.all() else 'everything'} is masked in {PORT}"
    square = ours.ndim >= 2 and ours.shape[-1] == ours.shape[-2]
    extra, lacking = theirs & ~ours, ours & ~theirs
    if extra.any() == lacking.any():
        return ""
    if square:
        which, entry = _describe_places(ours, theirs)
        does, other = ("shows", "hides") if extra.any() else ("hides", "shows")
        words = f"{PORT} {does} positions that {REFERENCE} {other}: {which}"
        return cite(words, entry) if entry else ""
    if extra.any():
        return f"{PORT} shows (has 1 or True in) {int(extra.sum())} places more than {REFERENCE}"
    return f"{PORT} masks (has 0 or False in) {int(lacking.sum())} places more than {REFERENCE}"


def _describe_places(ours: Bools, theirs: Bools) -> tuple[str, str]:
    """Say which positions of (..., L, L) attention one side alone sees, and the entry that tells of it."""
    places, seen = ours ^ theirs, ours & theirs
    side = str(PORT) if (theirs & ~ours).any() else str(REFERENCE)
    if places.ndim < 2 or places.shape[-1] != places.shape[-2]:
        return f"the mask is missing in {side}, or too weak", ""
    offsets = np.subtract.outer(np.arange(places.shape[-2]), np.arange(places.shape[-1]))
    found = np.unique(offsets[places.reshape(-1, *places.shape[-2:]).any(axis=0)])
    if (found < 0).all() and not (seen & (offsets < 0)).any():
        if found.tolist() == [-1]:
            return "one token ahead: the causal mask is shifted by one (diagonal=1)", "triu"
        return f"all later tokens: the causal mask is missing in {side}", "triu"
    if found.tolist() == [0]:
        return "each token itself: the causal mask is shifted by one (diagonal=-1)", "triu"
    if (places.any(axis=-2, keepdims=True) & seen).any():
        return "the two masks differ", ""
    words = f"whole keys (padding): the padding mask is missing in {side}"
    return f"{words}, or too weak (-1 or 0 for -inf)", _BOOLEAN


def _explain_indices(ours: Floats, theirs: Floats) -> str:
    """Explain ids: an offset, another order, one value for all."""
    apart = np.unique(theirs - ours)
    if apart.size == 1:
        starts = f"they start at {theirs.min():g}, {REFERENCE}'s at {ours.min():g}"
        return f"the indices are off by {apart[0]:+g} in {PORT}: {starts}"
    if np.ptp(theirs) == 0:
        return f"the indices are all {theirs.flat[0]:g} in {PORT}"
    for axis in range(ours.ndim):
        if np.array_equal(np.flip(ours, axis), theirs):
            return f"the indices are in reverse order along axis {axis} in {PORT}"
    return ""


# ------------------------------------------------------------- probabilities under a mask


def explain_softmax(mismatch: Mismatch) -> str:
    """Explain how two softmaxes differ: the axis, what is masked, the scale of the scores."""
    expected, actual = mismatch.expected, mismatch.actual
    if expected.ndim < 2 or min(expected.min(), actual.min()) < 0 or not is_telling(expected):
        return ""
    ours, theirs = (
        [axis for axis, size in enumerate(it.shape)
         if size > 1 and np.abs(it.sum(axis) - 1).max() < 1e-9]
        for it in (expected, actual)
    )  # fmt: skip
    if ours and theirs and not set(ours) & set(theirs):
        words = f"softmax over axis {theirs[0]} instead of axis {ours[0]}"
        return cite(f"{words}: set axis={ours[0] - expected.ndim}", "softmax-axis")
    common = [axis for axis in reversed(ours) if axis in theirs]
    if not common:
        return ""
    words = _explain_masking(expected, actual, common[0])
    return words or _explain_temperature(expected, actual, common[0], mismatch.widths)


def _explain_masking(expected: Floats, actual: Floats, axis: int) -> str:
    ours, theirs = expected > _SEEN, actual > _SEEN
    extra, lacking = theirs & ~ours, ours & ~theirs
    if not extra.any() and not lacking.any():
        return ""
    masked = ~ours.all(axis=axis, keepdims=True) & np.ones_like(ours)
    if masked.any() and not (ours & theirs & masked).any():
        words = (
            f"{PORT} attends to exactly the positions that {REFERENCE} masks: the mask is inverted"
        )
        return cite(words, _BOOLEAN)
    both = [np.where(ours & theirs, p, 0) for p in (expected, actual)]
    totals = [part.sum(axis=axis, keepdims=True) for part in both]
    seen = (totals[0] > 0) & (totals[1] > 0)
    shares = [np.where(seen, part / np.where(seen, total, 1), 0)
              for part, total in zip(both, totals, strict=True)]  # fmt: skip
    if not seen.any() or not np.abs(shares[0] - shares[1]).max() <= 1e-9:
        return ""
    if extra.any() and lacking.any():
        return "the scores agree, but the two sides mask different positions"
    which, entry = _describe_places(ours, theirs)
    does, other = ("attends to", "masks") if extra.any() else ("masks", "attends to")
    words = f"the scores agree, but {PORT} {does} positions that {REFERENCE} {other}: {which}"
    return cite(words, entry)


def _explain_temperature(expected: Floats, actual: Floats, axis: int, dims: Sequence[int]) -> str:
    """Explain by a factor on the scores: log p differs by it, but for one number a row."""
    seen = (expected > _SEEN) & (actual > _SEEN)
    ours, theirs = (_centre(np.log(np.where(seen, p, 1)), seen, axis) for p in (expected, actual))
    power = float((ours**2).sum())
    factor = float((ours * theirs).sum()) / power if power else 1.0
    if not same(factor * ours, theirs) or abs(factor - 1) < 1e-9:
        return ""
    named = name_number(factor, (*dims, *expected.shape))
    return f"the scores before the softmax are scaled differently: {PORT}'s are {REFERENCE}'s times {named}"


def _centre(logs: Floats, seen: Bools, axis: int) -> Floats:
    count = np.maximum(seen.sum(axis=axis, keepdims=True), 1)
    mean = np.where(seen, logs, 0).sum(axis=axis, keepdims=True) / count
    return np.asarray(np.where(seen, logs - mean, 0))
