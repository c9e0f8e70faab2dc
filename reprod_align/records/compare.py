"""Compares two records key by key: rules, a result for each key, their text and JSON.

The first rule that fails is the reason given:

1. both records hold the key       4. it is not empty, and finite on both sides
2. the same kind of dtype          5. mean |actual - expected| <= mean_abs
3. the same shape                  6. |actual - expected| <= max_rel * max(near, spread * tensor) + floor
                                   7. scores (logits, probabilities) choose the same class in each row

Integers, booleans and texts must be equal. Every test is written `ok = difference <= limit`, so
that a NaN fails it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reprod_align.base.blocks import Array, index_at
from reprod_align.base.difference import Difference, Gap, compare_arrays, find_obstacle
from reprod_align.base.local import SPREAD, Allowance, count_flips, find_beyond, is_named_scores
from reprod_align.errors import join_lines, one_line
from reprod_align.records import read_arrays

import numpy as np
import numpy.typing as npt

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


_SHOWN_LETTERS = 40  # of a text that differs
_SHOWN_NAMES = 4  # of the tensors that a remark is about
_TIE = 1e-2  # of a tolerance: scores so near are a tie; faithful pairs leave up to 4e-12 (docs/tolerances.md)
_FEW = 3  # so many identical float tensors can be chance


def compare_records(
    expected: Mapping[str, npt.ArrayLike],
    actual: Mapping[str, npt.ArrayLike],
    threshold: float = 1e-6,
    *,
    rule: Rule | None = None,
    expect_noise: bool = False,
    known: Comparison | None = None,
) -> Comparison:
    """Return the verdict on two records {name: array of any shape} under `rule`.

    rule None is official_rule(threshold). `expect_noise`: the two sides are different frameworks,
    whose rounding differs, so a remark is made if all floats are bit-identical. `known`: the verdict on
    the same two records under another rule, so that nothing is measured again. Never raises on arrays,
    whatever they hold: what cannot be compared fails.
    """
    rule = official_rule(threshold) if rule is None else rule
    measured = {one.key: one.difference for one in known.results} if known else {}
    expected, actual = read_arrays(expected), read_arrays(actual)
    results = tuple(
        _judge(key, expected.get(key), actual.get(key), rule, measured.get(key))
        for key in (*expected, *sorted(actual.keys() - expected.keys()))
    )
    return Comparison(results, rule, _list_remarks(results, expect_noise))


def _judge(
    key: str, expected: Array | None, actual: Array | None, rule: Rule, measured: Difference | None
) -> KeyResult:
    """Return the verdict on two arrays; None: that record lacks the key. measured: as in `known`."""
    facts: dict[str, Any] = {
        "key": key,
        "expected_dtype": None if expected is None else str(expected.dtype),
        "expected_shape": None if expected is None else expected.shape,
        "actual_dtype": None if actual is None else str(actual.dtype),
        "actual_shape": None if actual is None else actual.shape,
    }
    if expected is None:
        reason = "extra: only the actual record has it"
    elif actual is None:
        reason = "missing: only the expected record has it"
    else:
        reason = find_obstacle(expected, actual)
        if not reason:
            measured = measured or compare_arrays(expected, actual)
            reason = measured.nonfinite
    if reason or expected is None or actual is None or measured is None:
        return KeyResult(passed=False, reason=reason, rule=rule, **facts)
    rule = rule if measured.is_inexact else EXACT
    mean = Gap(measured.mean_abs, rule.mean_abs, measured.scale)
    whole = measured.hold_to(rule.max_rel, rule.floor)
    local, flips = None, 0
    if measured.is_inexact and whole.ok:
        allowance = Allowance(rule.max_rel, rule.floor, rule.spread)
        local = find_beyond(expected, actual, allowance, whole)
        finite = math.isfinite(rule.max_rel)
        if mean.ok and local is None and finite and is_named_scores(key, expected):
            flips = count_flips(expected, actual, 2 * rule.max_rel * max(rule.spread, _TIE))
    reason = _describe_fault(measured, mean, whole, local, rule)
    if flips:
        rows = expected.size // expected.shape[-1]
        reason = f"{flips} of {rows} predictions flip, and not between equal scores"
    return KeyResult(
        passed=not reason,
        reason=reason,
        difference=measured,
        rule=rule,
        tolerance=(local or whole).tolerance,
        exceed=max(one.exceed for one in (mean, whole, local) if one is not None),
        local=local,
        **facts,
    )


def _describe_fault(
    measured: Difference, mean: Gap, whole: Gap, local: Gap | None, rule: Rule
) -> str:
    """Return what fails rule 5 or 6; "" if nothing does.

    mean, whole: the mean and the largest difference, and what each may be.
    local: the element that is further off than its own place allows, where the whole tensor is not.
    """
    if mean.ok and whole.ok:
        if local is None or local.worst is None:
            return ""
        position, shape, *values = local.worst
        place = _describe_place(measured, index_at(position, shape), *values)
        return (
            f"difference {local.difference:.1e} {place}; tolerance {local.tolerance:.1e} there "
            f"({rule.name}): larger values elsewhere in the tensor do not widen it"
        )
    values = [measured.expected_value, measured.actual_value]
    place = _describe_place(measured, measured.worst_index, *values)
    if rule == EXACT:
        first = measured.first_index
        where = "" if first == measured.worst_index else f" the first at {first},"
        return f"{measured.mismatches} of {measured.size} elements differ,{where} the most {place}"
    largest = f"max difference {measured.max_abs:.1e} {place}"
    if mean.ok:
        return f"{largest}; tolerance {whole.tolerance:.1e} ({rule.name})"
    limit = f"tolerance {mean.tolerance:.1e} ({rule.name})"
    return f"mean difference {mean.difference:.1e}; {limit}; {largest}"


def _describe_place(measured: Difference, index: tuple[int, ...], *values: Any) -> str:
    """Return both values in the fewest digits that tell each from its neighbours in its dtype."""
    shown = []
    for value, dtype in zip(values, measured.dtypes, strict=True):
        text = repr(value) if isinstance(value, (str, bytes)) else str(dtype.type(value))
        long = isinstance(value, (str, bytes)) and len(text) > _SHOWN_LETTERS
        shown.append(text[:_SHOWN_LETTERS] + "…" if long else text)
    return f"at {index}: expected {shown[0]}, got {shown[1]}"


def _list_remarks(results: Sequence[KeyResult], expect_noise: bool) -> tuple[str, ...]:
    """Return what looks vacuous: floats that agree too well, floats that say nothing."""
    from reprod_align.base.text import shorten

    floats = {
        result.key: result.difference
        for result in results
        if result.difference is not None
        and result.difference.size > 1
        and result.difference.is_inexact
    }
    remarks = []
    same = all(difference.mismatches == 0 for difference in floats.values())
    if expect_noise and same and len(floats) >= _FEW:
        remarks.append("bit-identical floats: were both files written by the same framework?")
    largest = max((difference.scale for difference in floats.values()), default=0.0)
    if 0 < largest <= STRICT.floor:
        remarks.append(
            f"every float is below {STRICT.floor:.1e}, so rounding noise alone is tested"
        )
    constants = {key: difference.constant for key, difference in floats.items()}
    for what, names in (
        ("all zeros", [key for key, value in constants.items() if value == 0]),
        ("one value throughout", [key for key, value in constants.items() if value]),
    ):
        if names:
            remarks.append(f"{what}, so little is tested: {shorten(names, _SHOWN_NAMES)}")
    return tuple(remarks)
