"""Two frameworks trained with their own randomness: what their accuracies can and cannot say."""

import math
from collections.abc import Sequence
from itertools import combinations

from reprod_align.base.blocks import Array
from reprod_align.errors import ReprodError
from reprod_align.significance.report import (
    EXIT_CODES,
    POWER,
    ExchangeResult,
    Interval,
    MarginResult,
    NativeReport,
    PairedResult,
    SeedsResult,
    SideResult,
)

import numpy as np
import numpy.typing as npt
import scipy  # its `stats` loads when it is asked for: 0.5 s

__all__ = [
    "ALPHA",
    "EXIT_CODES",
    "Interval",
    "MARGINS",
    "NativeReport",
    "compare_accuracies",
    "compare_predictions",
    "compare_runs",
    "compare_seeds",
    "find_student_interval",
]


MARGINS = (0.0015, 0.0025)  # the guide's: what two faithful SST-2 runs may differ by
ALPHA = 0.05
_SMALLEST_MARGIN = 1e-6  # one example of a million
_MOST_SPLITS = 5_000  # of the runs into two sides; more are sampled


def compare_runs(
    labels: npt.ArrayLike,
    torch: npt.ArrayLike,
    paddle: npt.ArrayLike,
    margins: Sequence[float] = MARGINS,
    alpha: float = ALPHA,
    names: Sequence[str] = (),
) -> NativeReport:
    """Judge the predicted classes of several runs of each side on the same examples.

    labels: (N,) classes; torch: (S, N), paddle: (T, N), or (N,) for a single run. names: of the
    pairs, which are the first runs of both sides; without names, every run with a partner is paired.
    Raises ReprodError for other shapes, no examples, or an alpha or margin out of range.
    """
    expected = np.asarray(labels)
    ours, theirs = _stack_runs("PyTorch", torch, expected), _stack_runs("Paddle", paddle, expected)
    _require_levels(margins, alpha)
    pairs = [
        compare_predictions(expected, one, other, alpha)
        for one, other in zip(ours, theirs, strict=False)  # the longer side's rest stays unpaired
    ][: len(names) or None]
    accuracies = [list(map(float, (side == expected).mean(axis=1))) for side in (ours, theirs)]
    seeds = compare_seeds(accuracies[0], accuracies[1], margins, alpha)
    exchange = _exchange_sides(ours, theirs) if min(len(ours), len(theirs)) > 1 else None
    return NativeReport(tuple(pairs), seeds, exchange, alpha, tuple(names))


def compare_accuracies(
    torch: Sequence[float],
    paddle: Sequence[float],
    margins: Sequence[float] = MARGINS,
    alpha: float = ALPHA,
) -> NativeReport:
    """Judge accuracies, 0 to 1, one for each seed, where no predictions are known.

    Raises ReprodError if a side has none, or a number is out of its range.
    """
    return NativeReport((), compare_seeds(torch, paddle, margins, alpha), None, alpha)


def compare_predictions(
    labels: npt.ArrayLike, torch: npt.ArrayLike, paddle: npt.ArrayLike, alpha: float = ALPHA
) -> PairedResult:
    """Judge two runs' predicted classes, (N,) each, by the examples that one of them gets right.

    Raises ReprodError for other shapes, no examples, or an alpha out of range.
    """
    _require_levels((), alpha)
    expected = np.asarray(labels)
    (ours,), (theirs,) = (
        _stack_runs("PyTorch", torch, expected),
        _stack_runs("Paddle", paddle, expected),
    )
    right, other = ours == expected, theirs == expected
    first, second = int((right & ~other).sum()), int((other & ~right).sum())
    count, discordant = len(expected), first + second
    p = float(scipy.stats.binomtest(first, discordant).pvalue) if discordant else 1.0
    reach = float(scipy.stats.norm.isf(alpha / 2) + scipy.stats.norm.ppf(POWER))
    return PairedResult(
        examples=count,
        both_right=int((right & other).sum()),
        only_torch=first,
        only_paddle=second,
        both_wrong=int((~right & ~other).sum()),
        disagreeing=int((ours != theirs).sum()),
        p=p,
        difference=(second - first) / count,
        interval=_estimate_paired(first, second, count, alpha),
        detectable=reach * math.sqrt(max(discordant, 1)) / count,
        alpha=alpha,
    )


def compare_seeds(
    torch: Sequence[float],
    paddle: Sequence[float],
    margins: Sequence[float] = MARGINS,
    alpha: float = ALPHA,
) -> SeedsResult:
    """Judge accuracies, 0 to 1, one for each seed; ReprodError if a side has none or one is out of range."""
    _require_levels(margins, alpha)
    ours, theirs = _describe_side("PyTorch", torch, alpha), _describe_side("Paddle", paddle, alpha)
    difference = theirs.mean - ours.mean
    error, freedom = _measure_error(ours, theirs)
    spread = math.hypot(ours.std, theirs.std)  # of the difference of two single runs
    if not (error > 0 and freedom > 0):
        found = [MarginResult(m, None, False, abs(difference) <= m, None, None) for m in margins]
        return SeedsResult(ours, theirs, difference, None, None, None, tuple(found), alpha)
    interval = find_student_interval(difference, error, freedom, alpha)
    p = 2 * float(scipy.stats.t.sf(abs(difference) / error, freedom))
    reach = float(scipy.stats.t.isf(alpha / 2, freedom) + scipy.stats.t.ppf(POWER, freedom))
    found = [_test_margin(m, difference, error, freedom, spread, alpha) for m in margins]
    return SeedsResult(ours, theirs, difference, interval, p, error * reach, tuple(found), alpha)


def _stack_runs(side: str, predicted: npt.ArrayLike, labels: Array) -> Array:
    """Return a side's predictions as (S, N); ReprodError unless they fit the labels."""
    runs = np.atleast_2d(np.asarray(predicted))
    if labels.ndim != 1 or not labels.size:
        raise ReprodError(f"labels must be (N,), one or more, got shape {labels.shape}")
    if runs.ndim != 2 or not len(runs) or runs.shape[1] != len(labels):
        raise ReprodError(
            f"{side}'s predictions must be (seeds, {len(labels)}), like the labels, got {runs.shape}"
        )
    return runs


def _require_levels(margins: Sequence[float], alpha: float) -> None:
    if not 0 < alpha < 1:
        raise ReprodError(f"alpha must lie between 0 and 1, got {alpha}")
    if not all(_SMALLEST_MARGIN <= margin < 1 for margin in margins):
        raise ReprodError(
            f"margins must lie between {_SMALLEST_MARGIN:g} and 1, got {list(margins)}"
        )


def _estimate_paired(first: int, second: int, count: int, alpha: float) -> Interval:
    """Return Bonett and Price's interval of a paired difference; it has a width even at 0 against 0."""
    ours, theirs = (first + 1) / (count + 2), (second + 1) / (count + 2)
    difference = theirs - ours
    error = math.sqrt((ours + theirs - difference**2) / (count + 2))
    reach = float(scipy.stats.norm.isf(alpha / 2)) * error
    return Interval(max(-1.0, difference - reach), min(1.0, difference + reach))


def _describe_side(name: str, accuracies: Sequence[float], alpha: float) -> SideResult:
    values = np.asarray(accuracies, np.float64)
    if values.ndim != 1 or not values.size or not ((values >= 0) & (values <= 1)).all():
        raise ReprodError(f"{name}'s accuracies must be one or more numbers from 0 to 1")
    mean, count = float(values.mean()), len(values)
    if count == 1:
        return SideResult((mean,), mean, 0.0, None)
    std = float(values.std(ddof=1)) if np.ptp(values) else 0.0  # a mean's rounding is not spread
    wide = find_student_interval(mean, std / math.sqrt(count), count - 1, alpha)
    interval = Interval(max(0.0, wide.low), min(1.0, wide.high))
    return SideResult(tuple(map(float, values)), mean, std, interval)


def find_student_interval(centre: float, error: float, freedom: float, alpha: float) -> Interval:
    """Return Student's interval around an estimate with this standard error."""
    reach = error * float(scipy.stats.t.isf(alpha / 2, freedom))
    return Interval(centre - reach, centre + reach)


def _measure_error(ours: SideResult, theirs: SideResult) -> tuple[float, float]:
    """Return the standard error of the difference and its degrees of freedom; 0 for a single seed."""
    counts = len(ours.accuracies), len(theirs.accuracies)
    parts = ours.std**2 / counts[0], theirs.std**2 / counts[1]
    if min(counts) < 2 or not any(parts):
        return math.sqrt(sum(parts)), 0.0
    shares = sum(part**2 / (count - 1) for part, count in zip(parts, counts, strict=True))
    return math.sqrt(sum(parts)), sum(parts) ** 2 / shares


def _test_margin(
    margin: float, difference: float, error: float, freedom: float, spread: float, alpha: float
) -> MarginResult:
    p = float(scipy.stats.t.sf((margin - abs(difference)) / error, freedom))
    reach = float(scipy.stats.norm.isf(alpha) + scipy.stats.norm.isf((1 - POWER) / 2))
    needed = max(2, math.ceil((spread * reach / margin) ** 2))
    chance = 2 * float(scipy.stats.norm.sf(margin / spread))
    return MarginResult(margin, p, p <= alpha, abs(difference) <= margin, chance, needed)


def _exchange_sides(ours: Array, theirs: Array) -> ExchangeResult:
    runs, size = np.concatenate([ours, theirs]), len(ours)
    disagree = (runs[:, None] != runs[None]).mean(axis=2)  # (S+T, S+T)
    means = np.array(
        [_measure_disagreements(disagree, mine) for mine in _list_splits(len(runs), size)]
    )
    gaps = means[:, 1] - means[:, 0]
    reached = gaps >= gaps[0] - 1e-12  # equal splits differ by rounding
    within, between = map(float, means[0])
    mirrored = 2 if 2 * size == len(runs) else 1  # exchanging the sides changes nothing
    return ExchangeResult(within, between, float(reached.mean()), mirrored / len(gaps))


def _list_splits(total: int, size: int) -> list[tuple[int, ...]]:
    """Return every choice of `size` runs, the actual one first; a seeded sample of too many."""
    if math.comb(total, size) <= _MOST_SPLITS:
        return list(combinations(range(total), size))
    draw = np.random.default_rng(0)
    drawn = [tuple(draw.permutation(total)[:size].tolist()) for _ in range(_MOST_SPLITS - 1)]
    return [tuple(range(size)), *drawn]


def _measure_disagreements(disagree: Array, chosen: tuple[int, ...]) -> tuple[float, float]:
    """Return the mean disagreement of two runs of one side, and of one of each."""
    mine = np.zeros(len(disagree), bool)
    mine[list(chosen)] = True
    same = mine[:, None] == mine[None]
    off = ~np.eye(len(disagree), dtype=bool)
    return float(disagree[same & off].mean()), float(disagree[~same].mean())
