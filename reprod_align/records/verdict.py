"""The verdict on two records: rules, a result for each key, and all of them as text and JSON."""

import math
from dataclasses import dataclass
from typing import Any

from reprod_align.base.difference import Difference, Gap
from reprod_align.base.local import SPREAD
from reprod_align.errors import join_lines, one_line

import numpy as np

OFFICIAL = "official"
"""the name of reprod_log's rule"""
_SHOWN_FAILURES = 10


@dataclass(frozen=True)
class Rule:
    """mean |a - e| <= mean_abs  and  |a - e| <= max_rel * max(near, spread * tensor) + floor.

    tensor: the largest |e|; near: that in the element's row and channel; values that stand apart left
    out: masks, sentinels and outliers (`base/local.py`). The floor is for expected values that are
    rounding noise around zero: the actual ones may be too.
    """

    name: str
    mean_abs: float
    max_rel: float
    floor: float
    spread: float = SPREAD
    """the share of the largest row's tolerance that every row has"""


# For float64; a side that lost its precision must not bring a coarser tolerance along
STRICT = Rule("strict", math.inf, 1e-9, float(np.finfo(np.float64).eps))
EXACT = Rule("exact", 0.0, 0.0, 0.0)


def official_rule(threshold: float) -> Rule:
    """Return reprod_log's rule, mean |a - e| <= threshold, with a guard on each element.

    A mean hides one wrong element among many: a million zeros with one off by 0.9 have a mean below
    1e-6. The guard is 100 * threshold relative to the values around, with the threshold itself as floor:
    where no element is further off than that, the mean isn't either. Float32 rounding is near, so that
    every row has a tenth of the largest row's tolerance.
    """
    return Rule(OFFICIAL, threshold, 100 * threshold, threshold, spread=0.1)


@dataclass(frozen=True, kw_only=True)
class KeyResult:
    """The verdict on one key."""

    key: str
    passed: bool
    reason: str
    """the first rule that failed, in words and numbers; "" if passed"""
    difference: Difference | None = None
    """None if rules 1 to 4 leave nothing to measure"""
    rule: Rule
    """the rule it was held to: EXACT for integers, booleans and texts"""
    tolerance: float = math.nan
    """the largest difference allowed: at the place of `local`, else anywhere; NaN if nothing was measured"""
    exceed: float = math.inf
    """how many times the tolerance the difference is; at most 1 if passed"""
    expected_dtype: str | None
    expected_shape: tuple[int, ...] | None
    actual_dtype: str | None
    actual_shape: tuple[int, ...] | None
    local: Gap | None = None
    """the element that exceeds the tolerance of its own place, though not that of the whole tensor"""

    @property
    def numbers(self) -> str:
        """The measured difference and what is allowed, in a few words."""
        if self.difference is None:
            return "not comparable"
        mean = f"mean {self.difference.mean_abs:.1e}"
        if self.rule != EXACT and self.rule.mean_abs < math.inf:
            mean += f" (tolerance {self.rule.mean_abs:g})"
        return f"{mean}, {self.largest}"

    @property
    def largest(self) -> str:
        """The largest relative difference and its tolerance, in words; "" if nothing was measured."""
        if self.difference is None:
            return ""
        if self.local is not None:
            allowed = f"tolerance {self.local.tolerance:.1e} there"
            return f"difference {self.local.difference:.1e} ({allowed})"
        return f"max relative {self.difference.max_rel:.1e} (tolerance {self.rule.max_rel:g})"

    @property
    def is_rounding_around_zero(self) -> bool:
        """True if it passed by the floor alone: both sides hold rounding errors of a true zero."""
        measured = self.difference
        return self.passed and measured is not None and not measured.max_rel <= self.rule.max_rel

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain values; inf and nan as text. `ulp` is measured where the key failed."""
        from reprod_align.base.files import to_plain  # where it is asked for: an import stays light

        measured = {} if self.difference is None else self.difference.to_json(not self.passed)
        own = vars(self) | {"rule": self.rule.name, "local": self.local is not None}
        del own["difference"]
        plain: dict[str, Any] = to_plain(own | measured)
        return plain


@dataclass(frozen=True)
class Comparison:
    """The verdict on two records: one result per key, the expected record's order, extras last."""

    results: tuple[KeyResult, ...]
    rule: Rule
    remarks: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """True if there are keys, and all of them passed."""
        return bool(self.results) and all(result.passed for result in self.results)

    @property
    def reason(self) -> str:
        """Why it failed: "KEY: " and the reason of the first key that did; "" if it passed."""
        first = self.first_failure
        if first is not None:
            return f"{one_line(first.key)}: {first.reason}"
        return "" if self.results else "nothing to compare: neither record holds anything"

    @property
    def failures(self) -> tuple[KeyResult, ...]:
        """The results that failed, in order."""
        return tuple(result for result in self.results if not result.passed)

    @property
    def first_failure(self) -> KeyResult | None:
        """The first result that failed: in a forward pass, where the two sides diverge."""
        return next(iter(self.failures), None)

    @property
    def worst(self) -> KeyResult | None:
        """The result to look at first: not measurable, else furthest beyond its tolerance.

        Where all passed, the one with the largest relative difference, rounding around zero aside.
        """
        return max(self.results, key=_rank, default=None)

    @property
    def word(self) -> str:
        """The verdict as a word: "passed" or "failed"."""
        return "passed" if self.passed else "failed"

    @property
    def headline(self) -> str:
        """The verdict in one line, with the worst key and its numbers."""
        worst = self.worst
        if worst is None:
            return f"{self.word}: {self.reason}"
        key = one_line(worst.key)
        return f"{self.word}  {len(self.results)} compared, worst {key}: {worst.numbers}"

    def failing(self, unit: str = "key") -> list[str]:
        """Return lines about what failed, the first ten by name; `unit` is what a key is."""
        from reprod_align.base.text import shorten_lines

        if self.first_failure is None:
            return []
        failures = [f"    {one_line(each.key)}: {each.reason}" for each in self.failures]
        return [
            f"  first {unit} that differs: {one_line(self.first_failure.key)}",
            *shorten_lines(failures, _SHOWN_FAILURES, indent="    "),
        ]

    def summary(self) -> str:
        """Return the verdict as a few lines of text."""
        remarks = [f"  remark: {remark}" for remark in self.remarks]
        return join_lines([self.headline, *self.failing(), *remarks])

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as plain values that strict JSON can hold; inf and nan as text."""
        from reprod_align.base.files import to_plain

        return {
            "passed": self.passed,
            "reason": self.reason,
            "rule": to_plain(self.rule),
            "worst": None if self.worst is None else self.worst.to_json(),
            "remarks": list(self.remarks),
            "keys": [result.to_json() for result in self.results],
        }


def _rank(result: KeyResult) -> tuple[bool, float, float]:
    """Return what `Comparison.worst` is the maximum of."""
    if result.difference is None:
        return True, 0.0, 0.0
    beyond = 0.0 if result.passed else result.exceed
    relative = 0.0 if result.is_rounding_around_zero else result.difference.max_rel
    return False, beyond, 0.0 if math.isnan(relative) else relative
