"""Dropout on one side only, or on both with another rate, scale or choice of elements."""

from dataclasses import dataclass

from reprod_align.causes.entries import cite
from reprod_align.causes.mismatch import Mismatch
from reprod_align.causes.numbers import Floats

import numpy as np

_MOST_RATE = 0.96
_RATES = tuple(round(0.05 * times, 2) for times in range(1, 19))
_NEAR = 0.25  # how far the shares may be from two rates, together
_FEWEST = 8  # elements that are kept, by which the scale is known


@dataclass(frozen=True)
class _Dropped:
    """What is left of a tensor: the share that was set to zero, and the factor on the rest."""

    share: float
    factor: float
    whole: bool
    """whether rows are dropped as a whole"""

    @property
    def words(self) -> str:
        """The dropout in words; its rate is known by the scale."""
        if not self.share:
            scaled = abs(self.factor - 1) > 1e-9
            return f"only scales by {self.factor:.6g}" if scaled else "drops nothing"
        rows = " as whole rows" if self.whole else ""
        if self.factor > 1 + 1e-9:
            rate = 1 - 1 / self.factor
            return f"drops {self.share:.0%}{rows}, scaled as dropout with p = {rate:.4g}"
        return f"drops {self.share:.0%}{rows}, scaled by {self.factor:.6g}"


def explain_dropout(mismatch: Mismatch) -> str:
    """Explain both sides as dropout of one input, or one side as the other dropped."""
    if not mismatch.is_telling:
        return ""
    expected, actual = mismatch.expected, mismatch.actual
    for source in mismatch.sources:
        ours, theirs = _fit_dropout(source.values, expected), _fit_dropout(source.values, actual)
        if ours and theirs and ours.share + theirs.share:
            return _compare(ours, theirs, source.name)
    if words := _explain_rates(expected, actual):
        return words
    for x, made, dropping, other in (
        (expected, actual, "Paddle", "PyTorch"),
        (actual, expected, "PyTorch", "Paddle"),
    ):
        found = _fit_dropout(x, made)
        if found and found.share:
            return _describe(found, dropping, other)
    return ""


def _explain_rates(expected: Floats, actual: Floats) -> str:
    """Explain both sides as dropouts of one tensor, which is not at hand, by the same random numbers.

    The higher rate then drops all that the lower drops, and what both keep differs by one factor.
    """
    kept, other = expected != 0, actual != 0
    both = kept & other
    nested = np.array_equal(both, kept) or np.array_equal(both, other)
    if not nested or both.sum() < _FEWEST or kept.all() or other.all():
        return ""
    at = np.abs(np.where(both, expected, 0)).argmax()
    factor = float(actual.flat[at] / expected.flat[at])
    if (
        not np.abs(np.where(both, actual - factor * expected, 0)).max()
        <= 1e-9 * np.abs(actual).max()
    ):
        return ""
    rates = _find_rates(factor, float(1 - kept.mean()), float(1 - other.mean()))
    if rates is None:
        return ""
    words = f"dropout with p = {rates[1]:g} in Paddle and p = {rates[0]:g} in PyTorch"
    return cite(words, "dropout-scale")


def _find_rates(factor: float, share: float, other: float) -> tuple[float, float] | None:
    """Return the usual rates whose scales have this ratio, near to the shares that were dropped."""
    near = [
        (abs(one - share) + abs(two - other), one, two)
        for one in _RATES
        for two in _RATES
        if one != two and abs((1 - one) / (1 - two) / factor - 1) <= 1e-7
    ]
    apart, one, two = min(near, default=(1.0, 0.0, 0.0))
    return (one, two) if apart <= _NEAR else None


def _describe(found: _Dropped, dropping: str, other: str) -> str:
    if found.factor > 1 + 1e-9:
        return cite(f"only {dropping} has a dropout here: it {found.words}", "dropout-scale")
    rows = ", in whole rows," if found.whole else ""
    return (f"{dropping} has zeros in {found.share:.0%} of the places where {other} has values{rows} "
            f"and the rest is scaled by {found.factor:.6g}: a mask, padding, or dropout")  # fmt: skip


def _fit_dropout(x: Floats, made: Floats) -> _Dropped | None:
    """Return the dropout that makes `made` of x, None if it is another function."""
    filled, kept = x != 0, made != 0
    if (kept & ~filled).any() or kept.sum() < _FEWEST:
        return None
    at = np.abs(np.where(kept, x, 0)).argmax()
    factor = float(made.flat[at] / x.flat[at])
    if not np.abs(np.where(kept, made - factor * x, 0)).max() <= 1e-9 * np.abs(made).max():
        return None
    lost = filled & ~kept
    share = float(lost.sum() / filled.sum())
    if share > _MOST_RATE:
        return None
    flat, gone = lost.reshape(-1, lost.shape[-1]), ~kept.reshape(-1, lost.shape[-1])
    whole = bool(share) and bool(gone[flat.any(axis=1)].all())
    return _Dropped(share, factor, whole)


def _compare(ours: _Dropped, theirs: _Dropped, name: str) -> str:
    if ours.share == theirs.share and ours.words == theirs.words:
        return f"both sides drop {ours.share:.0%} of {name}, but different elements"
    words = f"dropout of {name}: PyTorch {ours.words}; Paddle {theirs.words}"
    return cite(words, "dropout-scale")
