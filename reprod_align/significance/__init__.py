"""Two frameworks trained with their own randomness: what their accuracies can and cannot say.

Differences are Paddle's minus PyTorch's. No difference seen is never called equality: the verdict is
"equivalent" only where two one-sided tests place the difference inside a stated margin.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final, Literal

from reprod_align.base.json import to_plain
from reprod_align.errors import ReprodError

import numpy as np
import numpy.typing as npt
from scipy import stats

Array = npt.NDArray[Any]
Verdict = Literal["different", "equivalent", "undecided"]

MARGINS = (0.0015, 0.0025)  # the guide's: what two faithful SST-2 runs may differ by
ALPHA = 0.05
POWER = 0.8
_SMALLEST_MARGIN = 1e-6  # one example of a million
EXIT_CODES: Final[dict[Verdict, int]] = {"equivalent": 0, "different": 1, "undecided": 2}
_MOST_SPLITS = 5_000  # of the runs into two sides; more are sampled


@dataclass(frozen=True)
class Interval:
    """From `low` to `high`, at the level 1 - alpha."""

    low: float
    high: float


@dataclass(frozen=True)
class PairedResult:
    """Two runs' predictions of the same examples."""

    examples: int
    both_right: int
    only_torch: int
    only_paddle: int
    both_wrong: int
    disagreeing: int
    """examples with different predictions, also those that both get wrong"""
    p: float
    """McNemar's exact test: are the two equally often right?"""
    difference: float
    interval: Interval
    detectable: float
    """the difference that would have been seen with a chance of POWER, given so many discordant ones"""
    alpha: float

    @property
    def discordant(self) -> int:
        """How many examples one side alone gets right."""
        return self.only_torch + self.only_paddle

    @property
    def accuracies(self) -> tuple[float, float]:
        """PyTorch's and Paddle's."""
        right = self.both_right + self.only_torch, self.both_right + self.only_paddle
        return right[0] / self.examples, right[1] / self.examples

    @property
    def can_tell(self) -> bool:
        """Whether the discordant examples are enough for any outcome to be significant."""
        return bool(2 * 0.5**self.discordant <= self.alpha)

    @property
    def words(self) -> str:
        """What the pair says, in a sentence."""
        found = f"{self.only_torch} right in PyTorch alone, {self.only_paddle} in Paddle alone"
        if self.p <= self.alpha:
            return f"different: {found} (McNemar p {self.p:.2g})"
        possible = f"anything from {_points(self.interval.low)} to {_points(self.interval.high)}"
        if not self.discordant:
            return (
                f"each example is right on both sides or on none; {possible} is compatible with it"
            )
        if not self.can_tell:
            return f"too few to tell: {found}; {possible} is compatible with it"
        return f"no difference seen: {found} (McNemar p {self.p:.2g}); {possible} is compatible with it"


@dataclass(frozen=True)
class SideResult:
    """One side's accuracies over its seeds."""

    accuracies: tuple[float, ...]
    mean: float
    std: float
    interval: Interval | None
    """of the mean, by Student's t; None for a single seed"""


@dataclass(frozen=True)
class MarginResult:
    """Whether the difference is shown to be smaller than a margin."""

    margin: float
    p: float | None
    """of the two one-sided tests; None where the seeds show no spread"""
    equivalent: bool
    official: bool
    """the guide's rule: the means differ by at most the margin"""
    official_refuses_faithful: float | None
    """the chance that two single runs that differ by chance alone are further apart than the margin"""
    seeds_needed: int | None
    """of each side, for equivalence to be shown with a chance of POWER if there is no difference"""


@dataclass(frozen=True)
class SeedsResult:
    """Accuracies of several seeds on each side."""

    torch: SideResult
    paddle: SideResult
    difference: float
    interval: Interval | None
    p: float | None
    """Welch's test; None where the seeds show no spread, or a side has a single one"""
    detectable: float | None
    """the difference that would have been seen with a chance of POWER"""
    margins: tuple[MarginResult, ...]
    alpha: float


@dataclass(frozen=True)
class ExchangeResult:
    """Do runs of two frameworks predict less alike than runs of one?"""

    within: float
    """share of examples on which two runs of one side disagree, on average"""
    between: float
    """the same for a run of each side"""
    p: float
    """permutation test of the sides: could the runs be divided otherwise?"""
    smallest_p: float
    """what so few runs could have reached"""


@dataclass(frozen=True)
class NativeReport:
    """The verdict on runs with each framework's own randomness."""

    pairs: tuple[PairedResult, ...]
    """seed by seed, as long as both sides have one; none where no predictions are known"""
    seeds: SeedsResult
    exchange: ExchangeResult | None
    """None unless both sides have two runs"""
    alpha: float
    names: tuple[str, ...] = ()
    """of the pairs; () for numbers"""

    @property
    def different(self) -> bool:
        """Whether a difference was seen: by Welch's test or the permutation test, each at alpha / 2.

        With a single run of either side, by McNemar's test, Holm-adjusted over the pairs; without
        predictions by Welch's test at alpha.
        """
        if not self.pairs:
            return self.seeds.p is not None and self.seeds.p <= self.alpha
        if self.exchange is None:
            return min(pair.p for pair in self.pairs) * len(self.pairs) <= self.alpha
        found = [p for p in (self.seeds.p, self.exchange.p) if p is not None]
        return min(found) <= self.alpha / 2

    @property
    def within(self) -> float | None:
        """The smallest margin inside which the accuracies were shown to differ; None if there is none."""
        shown = [margin.margin for margin in self.seeds.margins if margin.equivalent]
        return min(shown, default=None)

    @property
    def verdict(self) -> Verdict:
        """The verdict in a word; EXIT_CODES has its exit code."""
        if self.different:
            return "different"
        return "undecided" if self.within is None else "equivalent"

    @property
    def words(self) -> str:
        """The verdict in a sentence, which never claims more than was shown."""
        seeds = f"{len(self.seeds.torch.accuracies)} and {len(self.seeds.paddle.accuracies)} seeds"
        start = f"{self.verdict}, {seeds}: "
        if self.different:
            inside = (
                "" if self.within is None else f", by less than {_points(self.within)} on average"
            )
            return f"{start}a difference was seen{inside}"
        if self.within is not None:
            return f"{start}the mean accuracies differ by less than {_points(self.within)} (TOST)"
        return start + _undecided(self)

    def text(self) -> str:
        """Return everything as a table and sentences."""
        return "\n".join([*_pair_lines(self.pairs, self.names), *_seed_lines(self), self.words])

    def to_json(self) -> dict[str, Any]:
        """Return everything in types of JSON."""
        plain: dict[str, Any] = to_plain(self)
        return plain | {"verdict": self.verdict, "words": self.words}


def compare_runs(
    labels: npt.ArrayLike,
    torch: npt.ArrayLike,
    paddle: npt.ArrayLike,
    margins: Sequence[float] = MARGINS,
    alpha: float = ALPHA,
    names: Sequence[str] = (),
) -> NativeReport:
    """Judge the predicted classes of several runs of each side on the same examples.

    labels: (N,) classes; torch: (S, N), paddle: (T, N), or (N,) for a single run. names: of the first
    runs of both sides, which alone are paired then; without them as many are as both sides have.
    Raises ReprodError for other shapes, no examples, or an alpha or margin out of range.
    """
    expected = np.asarray(labels)
    ours, theirs = _runs("PyTorch", torch, expected), _runs("Paddle", paddle, expected)
    _require_levels(margins, alpha)
    pairs = [
        compare_predictions(expected, one, other, alpha)
        for one, other in zip(ours, theirs, strict=False)  # the longer side's rest stays unpaired
    ][: len(names) or None]
    accuracies = [list(map(float, (side == expected).mean(axis=1))) for side in (ours, theirs)]
    seeds = compare_seeds(accuracies[0], accuracies[1], margins, alpha)
    exchange = _exchange(ours, theirs) if min(len(ours), len(theirs)) > 1 else None
    return NativeReport(tuple(pairs), seeds, exchange, alpha, tuple(names))


def compare_accuracies(
    torch: Sequence[float],
    paddle: Sequence[float],
    margins: Sequence[float] = MARGINS,
    alpha: float = ALPHA,
) -> NativeReport:
    """Judge accuracies, 0 to 1, one for each seed, where no predictions are known.

    Raises ReprodError if a side has none, one is no share, or an alpha or margin is out of range.
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
    (ours,), (theirs,) = _runs("PyTorch", torch, expected), _runs("Paddle", paddle, expected)
    right, other = ours == expected, theirs == expected
    first, second = int((right & ~other).sum()), int((other & ~right).sum())
    count, discordant = len(expected), first + second
    p = float(stats.binomtest(first, discordant).pvalue) if discordant else 1.0
    reach = float(stats.norm.isf(alpha / 2) + stats.norm.ppf(POWER))
    return PairedResult(
        count,
        int((right & other).sum()),
        first,
        second,
        int((~right & ~other).sum()),
        int((ours != theirs).sum()),
        p,
        (second - first) / count,
        _paired_interval(first, second, count, alpha),
        reach * math.sqrt(max(discordant, 1)) / count,
        alpha,
    )


def compare_seeds(
    torch: Sequence[float],
    paddle: Sequence[float],
    margins: Sequence[float] = MARGINS,
    alpha: float = ALPHA,
) -> SeedsResult:
    """Judge accuracies, 0 to 1, one for each seed; ReprodError if a side has none or one is no share."""
    _require_levels(margins, alpha)
    ours, theirs = _side("PyTorch", torch, alpha), _side("Paddle", paddle, alpha)
    difference = theirs.mean - ours.mean
    error, freedom = _welch(ours, theirs)
    known = error > 0 and freedom > 0
    spread = math.hypot(ours.std, theirs.std)  # of the difference of two single runs
    p = 2 * float(stats.t.sf(abs(difference) / error, freedom)) if known else None
    results = [_margin(margin, difference, error, freedom, spread, alpha) for margin in margins]
    return SeedsResult(
        ours,
        theirs,
        difference,
        student_interval(difference, error, freedom, alpha) if known else None,
        p,
        error * _reach(freedom, alpha) if known else None,
        tuple(results),
        alpha,
    )


def _runs(side: str, predicted: npt.ArrayLike, labels: Array) -> Array:
    """Return a side's predictions as (S, N); ReprodError unless they fit the labels."""
    runs = np.atleast_2d(np.asarray(predicted))
    if labels.ndim != 1 or not labels.size:
        raise ReprodError(f"labels must be (N,), one or more, got shape {labels.shape}")
    if runs.ndim != 2 or not len(runs) or runs.shape[1] != len(labels):
        raise ReprodError(
            f"{side}'s predictions must be (seeds, {len(labels)}), as there are labels, got {runs.shape}"
        )
    return runs


def _require_levels(margins: Sequence[float], alpha: float) -> None:
    if not 0 < alpha < 1:
        raise ReprodError(f"alpha must lie between 0 and 1, got {alpha}")
    if not all(_SMALLEST_MARGIN <= margin < 1 for margin in margins):
        raise ReprodError(
            f"margins are shares from {_SMALLEST_MARGIN:g} up to 1, got {list(margins)}"
        )


def _paired_interval(first: int, second: int, count: int, alpha: float) -> Interval:
    """Return Bonett and Price's interval of a paired difference: it has a width without discordant ones."""
    ours, theirs = (first + 1) / (count + 2), (second + 1) / (count + 2)
    difference = theirs - ours
    error = math.sqrt((ours + theirs - difference**2) / (count + 2))
    reach = float(stats.norm.isf(alpha / 2)) * error
    return Interval(max(-1.0, difference - reach), min(1.0, difference + reach))


def _side(name: str, accuracies: Sequence[float], alpha: float) -> SideResult:
    values = np.asarray(accuracies, np.float64)
    if values.ndim != 1 or not values.size or not ((values >= 0) & (values <= 1)).all():
        raise ReprodError(f"{name}'s accuracies must be one or more numbers from 0 to 1")
    mean, count = float(values.mean()), len(values)
    if count == 1:
        return SideResult((mean,), mean, 0.0, None)
    std = float(values.std(ddof=1)) if np.ptp(values) else 0.0  # a mean's rounding is no spread
    wide = student_interval(mean, std / math.sqrt(count), count - 1, alpha)
    interval = Interval(max(0.0, wide.low), min(1.0, wide.high))
    return SideResult(tuple(map(float, values)), mean, std, interval)


def student_interval(centre: float, error: float, freedom: float, alpha: float) -> Interval:
    """Return Student's interval around an estimate with this standard error."""
    reach = error * float(stats.t.isf(alpha / 2, freedom))
    return Interval(centre - reach, centre + reach)


def _welch(ours: SideResult, theirs: SideResult) -> tuple[float, float]:
    """Return the standard error of the difference and its degrees of freedom; 0 for a single seed."""
    counts = len(ours.accuracies), len(theirs.accuracies)
    parts = ours.std**2 / counts[0], theirs.std**2 / counts[1]
    if min(counts) < 2 or not any(parts):
        return math.sqrt(sum(parts)), 0.0
    shares = sum(part**2 / (count - 1) for part, count in zip(parts, counts, strict=True))
    return math.sqrt(sum(parts)), sum(parts) ** 2 / shares


def _reach(freedom: float, alpha: float) -> float:
    """Return how many standard errors a difference must have to be seen with a chance of POWER."""
    return float(stats.t.isf(alpha / 2, freedom) + stats.t.ppf(POWER, freedom))


def _margin(
    margin: float, difference: float, error: float, freedom: float, spread: float, alpha: float
) -> MarginResult:
    official = abs(difference) <= margin
    if not (error > 0 and freedom > 0):
        return MarginResult(margin, None, False, official, None, None)
    p = float(stats.t.sf((margin - abs(difference)) / error, freedom))
    reach = float(stats.norm.isf(alpha) + stats.norm.isf((1 - POWER) / 2))
    needed = max(2, math.ceil((spread * reach / margin) ** 2))
    chance = 2 * float(stats.norm.sf(margin / spread))
    return MarginResult(margin, p, p <= alpha, official, chance, needed)


def _exchange(ours: Array, theirs: Array) -> ExchangeResult:
    runs, split = np.concatenate([ours, theirs]), len(ours)
    disagree = (runs[:, None] != runs[None]).mean(axis=2)  # (S+T, S+T)
    places = range(len(runs))
    splits = _splits(len(runs), split)
    gaps = np.array([_gap(disagree, chosen) for chosen in splits])
    observed = _gap(disagree, tuple(places[:split]))
    reached = gaps >= observed - 1e-12  # equal splits differ by rounding
    within, between = _means(disagree, tuple(places[:split]))
    mirrored = 2 if 2 * split == len(runs) else 1  # exchanging the sides changes nothing
    return ExchangeResult(within, between, float(reached.mean()), mirrored / len(splits))


def _splits(total: int, size: int) -> list[tuple[int, ...]]:
    """Return every choice of `size` runs, or a seeded sample with the actual one if they are too many."""
    if math.comb(total, size) <= _MOST_SPLITS:
        return list(combinations(range(total), size))
    draw = np.random.default_rng(0)
    drawn = [tuple(draw.permutation(total)[:size].tolist()) for _ in range(_MOST_SPLITS - 1)]
    return [tuple(range(size)), *drawn]


def _gap(disagree: Array, chosen: tuple[int, ...]) -> float:
    within, between = _means(disagree, chosen)
    return between - within


def _means(disagree: Array, chosen: tuple[int, ...]) -> tuple[float, float]:
    """Return the mean disagreement of two runs of one side, and of one of each."""
    mine = np.zeros(len(disagree), bool)
    mine[list(chosen)] = True
    same = mine[:, None] == mine[None]
    off = ~np.eye(len(disagree), dtype=bool)
    return float(disagree[same & off].mean()), float(disagree[~same].mean())


def _undecided(report: NativeReport) -> str:
    seeds = report.seeds
    if seeds.interval is None:
        few = min(len(seeds.torch.accuracies), len(seeds.paddle.accuracies)) < 2
        why = "a single run says nothing about others" if few else "the seeds show no spread"
        more = "; train at least two seeds a side, and better five" if few else ""
        if not report.pairs:
            return f"no difference seen, and {why}{more}"
        interval = report.pairs[0].interval
        return (
            f"no difference seen, and {why}; for the first pair anything from {_points(interval.low)} to "
            f"{_points(interval.high)} is compatible{more}"
        )
    needed = "; ".join(
        f"about {m.seeds_needed} seeds a side could show {_points(m.margin)}" for m in seeds.margins
    )
    return (
        f"no difference seen, which proves none: anything from {_points(seeds.interval.low)} to "
        f"{_points(seeds.interval.high)} is compatible; {needed}"
    )


def _pair_lines(pairs: Sequence[PairedResult], names: Sequence[str]) -> list[str]:
    if not pairs:
        return []
    labels = list(names) or [str(number) for number in range(len(pairs))]
    width = max(4, *map(len, labels))
    head = "pair".rjust(width)
    rows = [
        f"{label:>{width}}  {ours:.4f}   {theirs:.4f}   {pair.only_torch:>12}  {pair.only_paddle:>11}  "
        f"{pair.disagreeing:>8}  {pair.p:.3g}"
        for label, pair in zip(labels, pairs, strict=True)
        for ours, theirs in [pair.accuracies]
    ]
    return [
        f"{head}  PyTorch  Paddle   only PyTorch  only Paddle  disagree  McNemar p",
        *rows,
        f"first pair: {pairs[0].words}",
    ]


def _seed_lines(report: NativeReport) -> list[str]:
    seeds = report.seeds
    lines = [_side_line("PyTorch", seeds.torch), _side_line("Paddle ", seeds.paddle)]
    if seeds.interval is not None and seeds.p is not None and seeds.detectable is not None:
        lines.append(
            f"difference {_points(seeds.difference)}, between {_points(seeds.interval.low)} and "
            f"{_points(seeds.interval.high)}; Welch p {seeds.p:.3g}; one above {_points(seeds.detectable)} "
            f"would have been seen in {POWER:.0%} of cases"
        )
    lines += [_margin_line(margin) for margin in seeds.margins]
    if report.exchange is not None:
        found = report.exchange
        lines.append(
            f"two runs disagree on {found.within:.2%} of the examples within a side, {found.between:.2%} "
            f"between sides; permutation p {found.p:.3g} (the smallest possible: {found.smallest_p:.3g})"
        )
    return lines


def _side_line(name: str, side: SideResult) -> str:
    start = f"{name} mean {side.mean:.4f}"
    if side.interval is None:
        return f"{start}, one seed"
    return (
        f"{start}, between {side.interval.low:.4f} and {side.interval.high:.4f}, std {side.std:.4f}"
    )


def _margin_line(margin: MarginResult) -> str:
    rule = f"margin {margin.margin:g}: official rule {'passed' if margin.official else 'failed'}"
    if margin.p is None:
        return f"{rule}; equivalence cannot be tested"
    shown = "shown" if margin.equivalent else "not shown"
    return (
        f"{rule}; equivalence {shown} (TOST p {margin.p:.3g}); by chance alone the rule would refuse "
        f"{margin.official_refuses_faithful:.0%} of single pairs of runs"
    )


def _points(share: float) -> str:
    return f"{100 * share:+.2f}%" if share < 0 else f"{100 * share:.2f}%"
