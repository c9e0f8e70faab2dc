"""What is known of two sides' runs, as values with their text. Differences are Paddle's minus PyTorch's.

The absence of a difference is never called equality: the verdict is "equivalent" only where two
one-sided tests place the difference inside a stated margin.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from reprod_align.base.files import to_plain
from reprod_align.base.text import table
from reprod_align.errors import join_lines

POWER = 0.8  # the chance with which a difference of the stated size is seen
SignificanceVerdict = Literal["different", "equivalent", "undecided"]
EXIT_CODES: Final[dict[SignificanceVerdict, int]] = {
    "equivalent": 0,
    "different": 1,
    "undecided": 2,
}


@dataclass(frozen=True)
class Interval:
    """From `low` to `high`, at the level 1 - alpha."""

    low: float
    high: float

    @property
    def words(self) -> str:
        """Both ends in percent."""
        return f"{_show_percent(self.low)} to {_show_percent(self.high)}"


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
    """the difference that such a pair would show with a chance of POWER"""
    alpha: float

    @property
    def discordant(self) -> int:
        """How many examples only one side gets right."""
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
        possible = f"anything from {self.interval.words} is compatible with it"
        if not self.discordant:
            return f"both sides get the same examples right; {possible}"
        if not self.can_tell:
            return f"too few to tell: {found}; {possible}"
        return f"no difference seen: {found} (McNemar p {self.p:.2g}); {possible}"


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
    """the chance that two single runs, different by chance alone, are further apart than the margin"""
    seeds_needed: int | None
    """of each side, to show equivalence with a chance of POWER if there is no difference"""


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
    """the difference that such seeds would show with a chance of POWER"""
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
    """the smallest that so few runs can reach"""


@dataclass(frozen=True)
class NativeReport:
    """The verdict on runs with each framework's own randomness."""

    pairs: tuple[PairedResult, ...]
    """seed by seed, as long as both sides have one; () without predictions"""
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
        """The smallest margin that was shown to hold the difference; None if there is none."""
        shown = [margin.margin for margin in self.seeds.margins if margin.equivalent]
        return min(shown, default=None)

    @property
    def verdict(self) -> SignificanceVerdict:
        """The verdict in a word; EXIT_CODES has its exit code."""
        if self.different:
            return "different"
        return "undecided" if self.within is None else "equivalent"

    @property
    def words(self) -> str:
        """The verdict in a sentence, which never claims more than was shown."""
        seeds = f"{len(self.seeds.torch.accuracies)} and {len(self.seeds.paddle.accuracies)} seeds"
        return f"{self.verdict}, {seeds}: {self._explain_reason()}"

    def _explain_reason(self) -> str:
        inside = None if self.within is None else f"less than {_show_percent(self.within)}"
        if self.different:
            by = f", by {inside} on average" if inside else ""
            return f"a difference was seen{by}"
        if inside:
            return f"the mean accuracies differ by {inside} (TOST)"
        return f"no difference seen, {_explain_undecided(self.seeds, self.pairs)}"

    def text(self) -> str:
        """Return everything as a table and sentences."""
        lines = [*_list_pairs(self.pairs, self.names), *_list_seeds(self.seeds)]
        if self.exchange is not None:
            lines.append(_describe_exchange(self.exchange))
        return join_lines([*lines, self.words])

    def to_json(self) -> dict[str, Any]:
        """Return everything in types of JSON."""
        plain: dict[str, Any] = to_plain(self)
        return plain | {"verdict": self.verdict, "words": self.words}


def _explain_undecided(seeds: SeedsResult, pairs: Sequence[PairedResult]) -> str:
    if seeds.interval is not None:
        needed = "; ".join(
            f"about {margin.seeds_needed} seeds a side could show {_show_percent(margin.margin)}"
            for margin in seeds.margins
        )
        return f"yet one may exist: anything from {seeds.interval.words} is compatible; {needed}"
    few = min(len(seeds.torch.accuracies), len(seeds.paddle.accuracies)) < 2
    why = "and a single run says nothing about others" if few else "and the seeds show no spread"
    more = "; train at least two seeds a side, and better five" if few else ""
    if not pairs:
        return f"{why}{more}"
    possible = f"anything from {pairs[0].interval.words} is compatible"
    return f"{why}; for the first pair {possible}{more}"


def _list_pairs(pairs: Sequence[PairedResult], names: Sequence[str]) -> list[str]:
    if not pairs:
        return []
    labels = list(names) or [str(number) for number in range(len(pairs))]
    headers = ("pair", "PyTorch", "Paddle", "only PyTorch", "only Paddle", "disagree", "McNemar p")
    rows = [
        (
            label,
            *(f"{accuracy:.4f}" for accuracy in pair.accuracies),
            *map(str, (pair.only_torch, pair.only_paddle, pair.disagreeing)),
            f"{pair.p:.3g}",
        )
        for label, pair in zip(labels, pairs, strict=True)
    ]
    return [*table([headers, *rows]), f"first pair: {pairs[0].words}"]


def _list_seeds(seeds: SeedsResult) -> list[str]:
    lines = [_describe_side("PyTorch", seeds.torch), _describe_side("Paddle ", seeds.paddle)]
    if seeds.interval is not None and seeds.p is not None and seeds.detectable is not None:
        low, high = _show_percent(seeds.interval.low), _show_percent(seeds.interval.high)
        lines.append(
            f"difference {_show_percent(seeds.difference)}, between {low} and {high}; Welch p "
            f"{seeds.p:.3g}; one above {_show_percent(seeds.detectable)} would have been seen in "
            f"{POWER:.0%} of cases"
        )
    return [*lines, *map(_describe_margin, seeds.margins)]


def _describe_side(name: str, side: SideResult) -> str:
    if side.interval is None:
        return f"{name} mean {side.mean:.4f}, one seed"
    low, high = side.interval.low, side.interval.high
    return f"{name} mean {side.mean:.4f}, between {low:.4f} and {high:.4f}, std {side.std:.4f}"


def _describe_margin(margin: MarginResult) -> str:
    rule = f"margin {margin.margin:g}: official rule {'passed' if margin.official else 'failed'}"
    if margin.p is None:
        return f"{rule}; equivalence cannot be tested"
    shown = "shown" if margin.equivalent else "not shown"
    return (
        f"{rule}; equivalence {shown} (TOST p {margin.p:.3g}); by chance alone the rule would refuse "
        f"{margin.official_refuses_faithful:.0%} of single pairs of runs"
    )


def _describe_exchange(found: ExchangeResult) -> str:
    return (
        f"two runs disagree on {found.within:.2%} of the examples within a side, {found.between:.2%} "
        f"between sides; permutation p {found.p:.3g} (the smallest possible: {found.smallest_p:.3g})"
    )


def _show_percent(share: float) -> str:
    """Return a share of the examples in percent, two decimals."""
    return f"{100 * share:.2f}%"
