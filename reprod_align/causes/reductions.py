"""How each side takes one value from many: pooling, with or without padding, and softmax."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import Any, Final

from reprod_align.causes.entries import cite
from reprod_align.causes.mismatch import Mismatch
from reprod_align.causes.numbers import Bools, Floats, as_floats, is_telling, name_number, same
from reprod_align.model.trace import Array

import numpy as np

_LARGEST = 1_000_000  # elements
_SEEN = 1e-20  # a probability above: Paddle's softmax leaves about 1e-29 where -1e9 is added


def explain_pooling(mismatch: Mismatch) -> str:
    """Explain both sides as reductions of one input: which axes, mean or largest, padding or not."""
    expected, actual = mismatch.expected, mismatch.actual
    if not is_telling(expected) and expected.size > 3 or np.unique(expected).size < 3:
        return ""
    keeps = [keep for _, array in mismatch.inputs for keep in _keep_masks(array)]
    for name, array in mismatch.floats:
        if not expected.size < array.size <= _LARGEST:
            continue
        ours = theirs = ""
        for words, made in _reductions(as_floats(array), keeps):
            ours = ours or (words if _is(expected, made) else "")
            theirs = theirs or (words if _is(actual, made) else "")
            if ours and theirs:
                words = f"PyTorch takes {ours} of {name}, Paddle {theirs}"
                return cite(words, "variance") if "unbiased" in words else words
    return ""


def _is(values: Floats, made: Floats) -> bool:
    """Tell whether a reduction made these values; axes of length 1 do not count."""
    kept, found = ([size for size in array.shape if size > 1] for array in (values, made))
    return found == kept and same(values.reshape(made.shape), made)


def _keep_masks(array: Array) -> Iterator[Floats]:
    """Yield what the tensor may mean as a mask (B, L) of 1 and, for padding, 0."""
    if array.ndim != 2 or not array.size:
        return
    values = np.unique(array)
    if values.size == 2 and set(values.tolist()) <= {0, 1}:
        yield as_floats(array)
    elif array.dtype.kind in "iu" and 0 in values:
        yield as_floats(array != 0)


def _reductions(x: Floats, keeps: Sequence[Floats]) -> Iterator[tuple[str, Floats]]:
    for keep in keeps:
        if x.ndim == 3 and keep.shape == x.shape[:2] and keep.sum(axis=1).all():
            yield from _masked(x, keep[:, :, None])
    for axis in range(x.ndim):
        if x.shape[axis] > 1:
            yield f"the first along axis {axis}", np.take(x, [0], axis).squeeze(axis)
            yield f"the last along axis {axis}", np.take(x, [-1], axis).squeeze(axis)
    for count in range(1, x.ndim):
        for axes in combinations(range(x.ndim), count):
            over = f"axis {axes[0]}" if count == 1 else f"axes {axes}"
            for name, reduce in _REDUCTIONS.items():
                if "deviation" not in name or min(x.shape[axis] for axis in axes) > 1:
                    yield f"the {name} over {over}", np.asarray(reduce(x, axis=axes))


_REDUCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "mean": np.mean,
    "sum": np.sum,
    "maximum": np.max,
    "minimum": np.min,
    "standard deviation": np.std,
    "unbiased standard deviation": partial(np.std, ddof=1),
}


def _masked(x: Floats, keep: Floats) -> Iterator[tuple[str, Floats]]:
    last = keep[:, :, 0].cumsum(axis=1).argmax(axis=1)
    hidden = np.broadcast_to(keep == 0, x.shape)
    yield "the mean over axis 1 without padding", (x * keep).sum(1) / keep.sum(1)
    yield "the sum without padding divided by the whole length", (x * keep).mean(1)
    yield "the sum over axis 1 without padding", (x * keep).sum(1)
    yield "the maximum over axis 1 without padding", np.where(hidden, -np.inf, x).max(1)
    yield "the maximum over axis 1 of values that are zero for padding", (x * keep).max(1)
    yield "the last that is not padding", x[np.arange(len(x)), last]
    yield "the sum with padding divided by the length without", x.sum(1) / keep.sum(1)


def explain_softmax(mismatch: Mismatch) -> str:
    """Explain how two softmaxes differ: the axis, what is masked, the scale of the scores."""
    expected, actual = mismatch.expected, mismatch.actual
    if expected.ndim < 2 or min(expected.min(), actual.min()) < 0 or not is_telling(expected):
        return ""
    ours, theirs = _summed_axes(expected), _summed_axes(actual)
    if ours and theirs and not set(ours) & set(theirs):
        words = f"softmax over axis {theirs[0]} instead of axis {ours[0]}"
        return cite(f"{words}: set axis={ours[0] - expected.ndim}", "softmax-axis")
    common = [axis for axis in reversed(ours) if axis in theirs]
    if not common:
        return ""
    words = _explain_masking(expected, actual, common[0])
    return words or _explain_temperature(expected, actual, common[0], mismatch.widths)


def _summed_axes(x: Floats) -> list[int]:
    """Return the axes along which the values sum to 1."""
    return [
        axis for axis in range(x.ndim) if x.shape[axis] > 1 and np.abs(x.sum(axis) - 1).max() < 1e-9
    ]


def _explain_masking(expected: Floats, actual: Floats, axis: int) -> str:
    ours, theirs = expected > _SEEN, actual > _SEEN
    extra, lacking = theirs & ~ours, ours & ~theirs
    if not extra.any() and not lacking.any():
        return ""
    masked = ~ours.all(axis=axis, keepdims=True) & np.ones_like(ours)
    if masked.any() and not (ours & theirs & masked).any():
        words = "Paddle attends to exactly the positions that PyTorch masks: the mask is inverted"
        return cite(words, "attention-boolean-mask")
    both = np.where(ours & theirs, expected, 0), np.where(ours & theirs, actual, 0)
    totals = [part.sum(axis=axis, keepdims=True) for part in both]
    seen = (totals[0] > 0) & (totals[1] > 0)
    shares = [np.where(seen, part / np.where(seen, total, 1), 0)
              for part, total in zip(both, totals, strict=True)]  # fmt: skip
    if not seen.any() or not np.abs(shares[0] - shares[1]).max() <= 1e-9:
        return ""
    if not lacking.any():
        which = _describe_places(extra, ours)
        words = f"the scores agree, but Paddle attends to positions that PyTorch masks: {which}"
        return _cite(words, which)
    if not extra.any():
        which = _describe_places(lacking, theirs)
        words = f"the scores agree, but Paddle masks positions that PyTorch attends to: {which}"
        return _cite(words, which)
    return "the scores agree, but the two sides mask different positions"


def _cite(words: str, which: str) -> str:
    """Add the entry that tells of such a mask."""
    if "causal" in which:
        return cite(words, "triu")
    return cite(words, "attention-boolean-mask") if "padding" in which else words


def _describe_places(places: Bools, seen: Bools) -> str:
    """Say which positions of (..., L, L) attention they are."""
    if places.ndim < 2 or places.shape[-1] != places.shape[-2]:
        return "the mask is missing or too weak"
    offsets = np.subtract.outer(np.arange(places.shape[-2]), np.arange(places.shape[-1]))
    at = places.reshape(-1, *places.shape[-2:]).any(axis=0)
    found = np.unique(offsets[at])
    if (found < 0).all() and not (seen & (offsets < 0)).any():
        if found.tolist() == [-1]:
            return "one token ahead: the causal mask is shifted by one (diagonal=1)"
        return "all later tokens: the causal mask is missing"
    if found.tolist() == [0]:
        return "each token itself: the causal mask is shifted by one (diagonal=-1)"
    if (places.any(axis=-2, keepdims=True) & seen).any():
        return "the two masks differ"
    return "whole keys (padding): the padding mask is missing, or too weak (-1 or 0 for -inf)"


def _explain_temperature(expected: Floats, actual: Floats, axis: int, dims: Sequence[int]) -> str:
    """Explain by a factor on the scores: log p differs by it, but for one number a row."""
    seen = (expected > _SEEN) & (actual > _SEEN)
    logs = [_centre(np.log(np.where(seen, p, 1)), seen, axis) for p in (expected, actual)]
    power = float((logs[0] ** 2).sum())
    if not power:
        return ""
    factor = float((logs[0] * logs[1]).sum()) / power
    if not same(factor * logs[0], logs[1]) or abs(factor - 1) < 1e-9:
        return ""
    named = name_number(factor, (*dims, *expected.shape))
    return f"the scores before the softmax are scaled differently: Paddle's are PyTorch's times {named}"


def _centre(logs: Floats, seen: Bools, axis: int) -> Floats:
    count = np.maximum(seen.sum(axis=axis, keepdims=True), 1)
    mean = np.where(seen, logs, 0).sum(axis=axis, keepdims=True) / count
    return np.asarray(np.where(seen, logs - mean, 0))
