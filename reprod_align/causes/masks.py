"""How a mask or an index that the port makes differs from the reference's."""

from reprod_align.causes.entries import cite
from reprod_align.causes.numbers import Bools, Floats, as_floats, same
from reprod_align.model.trace import Array

import numpy as np
from numpy.typing import NDArray

_WEAK = -100.0  # an additive mask above this does not hide for certain
_HIDDEN = -1e3  # a score below is masked
_INVERTED = "the mask is inverted: Paddle shows what PyTorch hides, and hides what PyTorch shows"


def explain_mask(expected: Array, actual: Array) -> str:
    """Explain how a mask or an index differs; "" if no known mistake makes the difference.

    expected, actual: boolean or additive masks, or integer ids, of any shape.
    """
    if expected.shape != actual.shape or not expected.size or np.array_equal(expected, actual):
        return ""
    if expected.dtype.kind in "iu" and actual.dtype.kind in "iu" and not _is_binary(expected):
        return _explain_indices(as_floats(expected), as_floats(actual))
    if expected.dtype.kind == actual.dtype.kind == "f" and np.array_equal(
        as_floats(expected), -as_floats(actual)
    ):
        return "the mask has the opposite sign in Paddle: hidden places need a negative number"
    ours, theirs = _seen(expected), _seen(actual)
    if not _is_binary(expected) and not actual.any():
        return "nothing is masked in Paddle: the mask adds 0 everywhere"
    if ours is None or theirs is None or not 0 < ours.mean() < 1:
        return ""
    if _is_binary(expected) and np.unique(actual).size == 1:
        value = float(as_floats(actual).flat[0])
        return f"it is {value:g} everywhere in Paddle: a mask or the token types were not passed on"
    return _explain_meaning(expected, actual) or _explain_places(ours, theirs)


def explain_scores(expected: Array, actual: Array) -> str:
    """Explain scores of which other places are hidden; "" if those shown on both sides differ too.

    expected, actual: scores of one shape with a mask added, before the softmax.
    """
    hidden, missed = expected <= _HIDDEN, actual <= _HIDDEN
    shown = ~hidden & ~missed
    if not hidden.any() or np.array_equal(hidden, missed) or not shown.any():
        return ""
    if not same(as_floats(expected[shown]), as_floats(actual[shown])):
        return ""
    if (hidden & (actual >= -_HIDDEN)).any():
        return "the mask has the opposite sign in Paddle: it raises the scores that PyTorch hides"
    counts = int((hidden & ~missed).sum()), int((missed & ~hidden).sum())
    words = [f"shows {counts[0]} places that PyTorch hides"] if counts[0] else []
    words += [f"hides {counts[1]} that PyTorch shows"] if counts[1] else []
    return f"the mask hides other places: Paddle {' and '.join(words)}"


def _is_binary(array: Array) -> bool:
    return bool(((array == 0) | (array == 1)).all())


def _seen(mask: Array) -> Bools | None:
    """Return what a mask marks: True where a boolean or 0/1 mask is 1, an additive one 0."""
    if _is_binary(mask):
        return np.asarray(mask == 1)
    values = as_floats(mask)
    return np.asarray(values == 0) if (values <= 0).all() and not np.isnan(values).any() else None


def _explain_meaning(expected: Array, actual: Array) -> str:
    """Explain a mask whose places agree, or are exactly the others."""
    ours, theirs = as_floats(expected), as_floats(actual)
    if _is_binary(expected) and _is_binary(actual):
        words = "the mask is inverted: 1 (True) in PyTorch is 0 (False) in Paddle"
        inverted = np.array_equal(ours, 1 - theirs)
        return cite(words, "attention-boolean-mask") if inverted else ""
    if _is_binary(expected) != _is_binary(actual):
        return ""
    if np.array_equal(ours == 0, theirs != 0):
        return cite(_INVERTED, "attention-boolean-mask")
    if np.array_equal(ours == 0, theirs == 0):
        hidden = np.unique(theirs[theirs != 0])
        if hidden.size == 1:
            weak = ": too little to hide" if hidden[0] > _WEAK else ""
            return f"the mask adds {hidden[0]:g} where PyTorch adds {ours.min():g}{weak}"
    return ""


def _explain_places(ours: Bools, theirs: Bools) -> str:
    if np.array_equal(ours, ~theirs):
        return cite(_INVERTED, "attention-boolean-mask")
    if theirs.all():
        return "nothing is masked in Paddle"
    if not theirs.any():
        return "everything is masked in Paddle"
    if ours.ndim >= 2 and ours.shape[-1] == ours.shape[-2]:
        return _explain_square(ours, theirs)
    return _explain_shift(ours, theirs)


def _explain_square(ours: Bools, theirs: Bools) -> str:
    """Explain masks (..., L, L) of queries and keys."""
    length = ours.shape[-1]
    offsets = np.subtract.outer(np.arange(length), np.arange(length))
    if np.array_equal(ours.swapaxes(-1, -2), theirs):
        return "the mask is transposed: queries and keys are exchanged"
    for diagonal, words in ((1, "one token ahead is seen (diagonal=1)"),
                            (-1, "a token does not see itself (diagonal=-1)")):  # fmt: skip
        if _with_past(ours, theirs, offsets, diagonal):
            return cite(f"the causal mask is shifted by one: {words}", "triu")
    if np.array_equal(theirs & (offsets >= 0), ours):
        return cite("the causal mask is missing: later tokens are seen", "triu")
    kept = ours.any(axis=-2, keepdims=True) & np.ones_like(ours)
    if np.array_equal(theirs & kept, ours):
        return cite("the padding is not masked in Paddle", "attention-boolean-mask")
    return ""


def _with_past(ours: Bools, theirs: Bools, offsets: NDArray[np.int64], diagonal: int) -> bool:
    """Tell whether theirs is ours but for the diagonal at which the past ends; by keys shown."""
    if (ours & (offsets < 0)).any() or not ours.any():
        return False
    keys = ours.any(axis=-2, keepdims=True)
    return np.array_equal(keys & (offsets >= 0), ours) and np.array_equal(
        keys & (offsets >= -diagonal), theirs
    )


def _explain_shift(ours: Bools, theirs: Bools) -> str:
    extra, lacking = theirs & ~ours, ours & ~theirs
    if np.array_equal(np.flip(ours, -1), theirs):
        return "the mask is reversed along its last axis"
    for by in (1, -1):
        if np.array_equal(np.roll(ours, by, -1), theirs):
            return "the mask is shifted by one along its last axis"
    if extra.any() and not lacking.any():
        return f"Paddle shows (has 1 or True in) {int(extra.sum())} places more than PyTorch"
    if lacking.any() and not extra.any():
        return f"Paddle masks (has 0 or False in) {int(lacking.sum())} places more than PyTorch"
    return ""


def _explain_indices(ours: Floats, theirs: Floats) -> str:
    """Explain ids: an offset, another order, one value for all."""
    apart = np.unique(theirs - ours)
    if apart.size == 1:
        starts = f"they start at {theirs.min():g}, PyTorch's at {ours.min():g}"
        return f"the indices are off by {apart[0]:+g} in Paddle: {starts}"
    if np.ptp(theirs) == 0:
        return f"the indices are all {theirs.flat[0]:g} in Paddle"
    for axis in range(ours.ndim):
        if np.array_equal(np.flip(ours, axis), theirs):
            return f"the indices are in reverse order along axis {axis} in Paddle"
        for by in (1, -1):
            if np.array_equal(np.roll(ours, by, axis), theirs):
                return f"the indices are shifted by one along axis {axis} in Paddle"
    if apart.size == 2 and 0 in apart and (ours == theirs).mean() >= 0.5:
        changed = ours != theirs
        before, after = ours[changed].flat[0], theirs[changed].flat[0]
        if (ours[changed] == before).all() and not (ours[~changed] == before).any():
            return f"the index {before:g} is {after:g} in Paddle"
    return ""
