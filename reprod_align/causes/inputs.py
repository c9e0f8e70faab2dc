"""What each side makes of its inputs: which it passes on, adds, or reduces along an axis."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import Any, Final

from reprod_align.base import PORT, REFERENCE
from reprod_align.base.blocks import Array
from reprod_align.causes.mismatch import (
    Floats,
    Mismatch,
    NamedValue,
    as_floats,
    cite,
    is_telling,
    name_number,
    same,
)

import numpy as np

_LARGEST = 1_000_000  # elements that are reduced
_ROWS = 256  # elements by which a sum is fitted
_TERMS = 3
_CLOSE = 1e-9  # relative

Summands = Sequence[tuple[float, NamedValue]]
"""the factors and inputs of a sum"""


# ------------------------------------------------------------- sums


def explain_sum(mismatch: Mismatch) -> str:
    """Explain the difference by what is added: a residual missing, twice, scaled, or another one."""
    expected, actual, given = mismatch.expected, mismatch.actual, mismatch.sources
    if not is_telling(expected) or not given:
        return ""
    ours, theirs = _fit_sum(expected, given), _fit_sum(actual, given)
    width = expected.shape[-1]
    if ours is not None and theirs is not None:
        if all(len(terms) == 1 and terms[0][0] == 1 for terms in (ours, theirs)):
            return f"{REFERENCE} passes on {ours[0][1].name} here, {PORT} {theirs[0][1].name}"
        return f"{REFERENCE} computes {_write(ours, width)}, {PORT} {_write(theirs, width)}"
    apart = _fit_sum(actual - expected, given, terms=2)
    return _describe(apart, width) if apart is not None else ""


def _fit_sum(made: Floats, given: Sequence[NamedValue], terms: int = _TERMS) -> Summands | None:
    """Return the fewest inputs, and their factors, whose sum is `made`."""
    if not is_telling(made):
        return None
    step = max(1, made.size // _ROWS)
    rows = [source.values.reshape(-1)[::step] for source in given]
    target = made.reshape(-1)[::step]
    for count in range(1, min(terms, target.size // 4) + 1):
        for chosen in combinations(range(len(given)), count):
            matrix = np.stack([rows[at] for at in chosen], axis=1)
            factors = np.linalg.lstsq(matrix, target, rcond=None)[0]
            if not same(target, matrix @ factors) or np.abs(factors).min() < 1e-7:
                continue
            whole_numbers = np.round(factors)
            factors = np.where(np.abs(factors - whole_numbers) < _CLOSE, whole_numbers, factors)
            found = [(float(f), given[at]) for f, at in zip(factors, chosen, strict=True)]
            if same(made, np.asarray(sum(factor * source.values for factor, source in found))):
                return found
    return None


def _write(terms: Summands, width: int) -> str:
    def name(factor: float) -> str:
        if abs(factor) == 1:
            return "" if factor > 0 else "-"
        return (
            f"{factor:g} times "
            if abs(factor) in (2, 3)
            else f"{name_number(factor, (width,))} times "
        )

    return " + ".join(f"{name(factor)}{source.name}" for factor, source in terms)


def _describe(apart: Summands, width: int) -> str:
    """Say what Paddle's values hold more or less than PyTorch's."""
    named = dict(apart)
    factors = sorted(factor for factor, _ in apart)
    if factors == [-1.0]:
        return f"{PORT} does not add {named[-1.0].name} (a residual or another term is missing)"
    if factors == [1.0]:
        return f"{PORT} adds {named[1.0].name} once more than {REFERENCE}"
    if factors == [-1.0, 1.0]:
        return f"{PORT} adds {named[1.0].name} where {REFERENCE} adds {named[-1.0].name}"
    return f"{PORT}'s values are {REFERENCE}'s plus {_write(apart, width)}"


# ------------------------------------------------------------- reductions


def explain_pooling(mismatch: Mismatch) -> str:
    """Explain both sides as reductions of one input: which axes, mean or largest, padding or not."""
    expected, actual = mismatch.expected, mismatch.actual
    if not is_telling(expected) and expected.size > 3 or np.unique(expected).size < 3:
        return ""
    keeps = [keep for _, array in mismatch.inputs for keep in _list_keeps(array)]
    for name, array in reversed(mismatch.inputs):
        if array.dtype.kind != "f" or not expected.size < array.size <= _LARGEST:
            continue
        ours = theirs = ""
        for words, made in _list_reductions(as_floats(array), keeps):
            ours = ours or (words if _is(expected, made) else "")
            theirs = theirs or (words if _is(actual, made) else "")
            if ours and theirs:
                words = f"{REFERENCE} takes {ours} of {name}, {PORT} {theirs}"
                return cite(words, "variance") if "unbiased" in words else words
    return ""


def _is(values: Floats, made: Floats) -> bool:
    """Tell whether a reduction made these values; axes of length 1 do not count."""
    kept, found = ([size for size in array.shape if size > 1] for array in (values, made))
    return found == kept and same(values.reshape(made.shape), made)


def _list_keeps(array: Array) -> Iterator[Floats]:
    """Yield what the tensor may mean as a mask (B, L) of 1 and, for padding, 0."""
    if array.ndim == 2 and array.size:
        values = np.unique(array)
        if values.size == 2 and set(values.tolist()) <= {0, 1}:
            yield as_floats(array)
        elif array.dtype.kind in "iu" and 0 in values:
            yield as_floats(array != 0)


def _list_reductions(x: Floats, keeps: Sequence[Floats]) -> Iterator[tuple[str, Floats]]:
    for keep in keeps:
        if x.ndim == 3 and keep.shape == x.shape[:2] and keep.sum(axis=1).all():
            yield from _list_masked(x, keep[:, :, None])
    for axis in range(x.ndim):
        if x.shape[axis] > 1:
            yield f"the first along axis {axis}", np.asarray(x.take(0, axis))
            yield f"the last along axis {axis}", np.asarray(x.take(-1, axis))
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


def _list_masked(x: Floats, keep: Floats) -> Iterator[tuple[str, Floats]]:
    last = keep[:, :, 0].cumsum(axis=1).argmax(axis=1)
    yield "the mean over axis 1 without padding", (x * keep).sum(1) / keep.sum(1)
    yield "the sum without padding divided by the whole length", (x * keep).mean(1)
    yield "the sum over axis 1 without padding", (x * keep).sum(1)
    yield "the maximum over axis 1 without padding", np.where(keep, x, -np.inf).max(1)
    yield "the maximum over axis 1 of values that are zero for padding", (x * keep).max(1)
    yield "the last that is not padding", x[np.arange(len(x)), last]
    yield "the sum with padding divided by the length without", x.sum(1) / keep.sum(1)
