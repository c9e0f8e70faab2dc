"""Four tests of two samples of one parameter, and what they could have seen."""

import math
from collections.abc import Mapping
from typing import Final

from reprod_align.initialisation.sample import Array, Moments, ParameterSample

from scipy import stats

POWER: Final = 0.95  # the chance with which a difference of the stated size is seen
_FEW: Final = 1000  # with fewer values, a kurtosis below a normal's is too uncertain to be believed


def compute_p_values(torch: ParameterSample, paddle: ParameterSample) -> dict[str, float]:
    """Return the p value of each test on the random parts; {} if a side has too few random values."""
    if min(torch.moments.count, paddle.moments.count) < 2:
        return {}
    if not (torch.values.size and paddle.values.size):  # the kept values may all be fixed ones
        return {}
    return {
        "distribution": float(stats.ks_2samp(torch.values, paddle.values).pvalue),
        "mean": _mean_p(torch.moments, paddle.moments),
        "spread": _spread_p(torch.moments, paddle.moments),
        "support": _support_p(torch.values, paddle.values),
    }


def adjust_by_holm(raw: Mapping[tuple[str, str], float]) -> dict[tuple[str, str], float]:
    """Return the p values adjusted for their number: at most alpha is significant at level alpha."""
    adjusted, highest = {}, 0.0
    for place, key in enumerate(sorted(raw, key=lambda key: raw[key])):
        highest = max(highest, min(1.0, (len(raw) - place) * raw[key]))
        adjusted[key] = highest
    return adjusted


def compare_spreads(
    ours: Moments, theirs: Moments, level: float
) -> tuple[tuple[float, float, float] | None, float]:
    """Return their std in ours, with its interval at `level`, and the relative difference it can see.

    None in place of the ratio where a side has no spread.
    """
    error = math.sqrt(sum(1 / (2 * _freedom(side)) for side in (ours, theirs)))  # of log(ratio)
    reach = float(stats.norm.isf(level / 2))
    seen = math.expm1((reach + float(stats.norm.ppf(POWER))) * error)
    if min(ours.std, theirs.std) == 0:
        return None, seen
    ratio, factor = theirs.std / ours.std, math.exp(reach * error)
    return (ratio, ratio / factor, ratio * factor), seen


def _mean_p(ours: Moments, theirs: Moments) -> float:
    """Return the p value of Welch's test."""
    sides = (ours.mean, ours.std, ours.count, theirs.mean, theirs.std, theirs.count)
    return float(stats.ttest_ind_from_stats(*sides, equal_var=False).pvalue)


def _spread_p(ours: Moments, theirs: Moments) -> float:
    """Return the p value of an F test of the variances, its degrees of freedom set by the kurtoses."""
    if min(ours.std, theirs.std) == 0:
        return 1.0 if ours.std == theirs.std else 0.0
    ratio = stats.f(_freedom(theirs), _freedom(ours))
    observed = (theirs.std / ours.std) ** 2
    return float(min(1.0, 2 * min(ratio.sf(observed), ratio.cdf(observed))))


def _freedom(moments: Moments) -> float:
    """Return a variance's degrees of freedom: count - 1 for normal values, more for uniform ones."""
    few = moments.count < _FEW
    kurtosis = max(moments.kurtosis, 3.0) if few else moments.kurtosis
    return 2 * (moments.count - 1) / max(kurtosis - 1, 0.1)


def _support_p(ours: Array, theirs: Array) -> float:
    """Return the p value of how many values of one side lie beyond all of the other's, at either end."""
    ends = ((ours, theirs), (theirs, ours), (-ours, -theirs), (-theirs, -ours))
    return min(1.0, 4 * min(_beyond_p(first, second) for first, second in ends))


def _beyond_p(ours: Array, theirs: Array) -> float:
    """Return the chance that, of values in random order, so many of `ours` come last."""
    beyond = int((ours > theirs.max()).sum())
    return float(stats.hypergeom.pmf(beyond, len(ours) + len(theirs), len(ours), beyond))
