"""Do two records agree? The rules, in order, and the result as a value.

The first rule that fails is the reason given for a key:

1. both records hold it            4. it is not empty, and finite on both sides
2. the same kind of dtype          5. mean |actual - expected| <= mean_abs
3. the same shape                  6. max |actual - expected| <= max_rel * max |expected| + floor

Integers, booleans and texts must be equal. Every test is written `ok = difference <= limit`, so
that a NaN fails it.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reprod_align.base.difference import Array
from reprod_align.base.json import to_plain
from reprod_align.base.text import shorten, shorten_lines
from reprod_align.errors import one_line
from reprod_align.records.diff import (
    INEXACT,
    KINDS,
    Difference,
    compare_arrays,
    count_nonfinite,
    dtype_kind,
)
from reprod_align.records.record import on_host

import numpy as np
import numpy.typing as npt

_SHOWN_FAILURES = 10
_SHOWN_LETTERS = 40  # of a text that differs
_SHOWN_NAMES = 4  # of the tensors that a remark is about
_FEW = 3  # so many identical float tensors can be chance


@dataclass(frozen=True)
class Rule:
    """mean |a - e| <= mean_abs  and  max |a - e| <= max_rel * max |e| + floor.

    The floor is for where the expected values are rounding noise around zero: so may the actual
    ones be.
    """

    name: str
    mean_abs: float
    max_rel: float
    floor: float

    def tolerance(self, scale: float) -> float:
        """Return the largest element-wise difference allowed at max |e| = `scale`."""
        if math.isinf(self.max_rel):
            return math.inf  # also at scale 0
        return self.max_rel * scale + self.floor


# For float64; a side that lost its precision must not bring a coarser tolerance along
STRICT = Rule("strict", math.inf, 1e-9, float(np.finfo(np.float64).eps))
EXACT = Rule("exact", 0.0, 0.0, 0.0)


def official_rule(threshold: float) -> Rule:
    """Return reprod_log's rule, mean |a - e| <= threshold, with a guard on each element.

    The guard, 100 * threshold relative to max |e|, is there because a mean hides one wrong element
    among many: a million zeros with one off by 0.9 have a mean below 1e-6. Its floor is the threshold
    itself: where no element is further off than that, the mean isn't either.
    """
    return Rule("official", threshold, 100 * threshold, threshold)


@dataclass(frozen=True)
class KeyResult:
    """The verdict on one key."""

    key: str
    passed: bool
    reason: str
    """the first rule that failed, in words and numbers; "" if passed"""
    difference: Difference | None
    """None if rules 1 to 4 leave nothing to measure"""
    rule: Rule
    """the rule it was held to: EXACT for integers, booleans and texts"""
    tolerance: float
    """the largest element-wise difference allowed (NaN if nothing was measured)"""
    exceed: float
    """how many times the tolerance the difference is; at most 1 if passed"""
    expected_dtype: str | None
    expected_shape: tuple[int, ...] | None
    actual_dtype: str | None
    actual_shape: tuple[int, ...] | None

    @property
    def numbers(self) -> str:
        """The measured difference in a few words."""
        if self.difference is None:
            return "not comparable"
        mean = f"mean {self.difference.mean_abs:.1e}"
        if self.rule != EXACT and self.rule.mean_abs < math.inf:
            mean += f" (tolerance {self.rule.mean_abs:g})"
        largest = self.difference.max_rel
        return f"{mean}, max relative {largest:.1e} (tolerance {self.rule.max_rel:g})"

    @property
    def is_rounding_around_zero(self) -> bool:
        """True if it passed by the floor alone: both sides hold rounding errors of a true zero."""
        return (
            self.passed
            and self.difference is not None
            and not self.difference.max_rel <= self.rule.max_rel
        )

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain values; inf and nan as strings."""
        measured = {} if self.difference is None else self.difference.to_json()
        verdict = vars(self) | {"rule": self.rule.name}
        plain: dict[str, Any] = to_plain(verdict | measured)
        del plain["difference"]
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
        """The first result that failed: in a forward pass, where the two sides part."""
        return next(iter(self.failures), None)

    @property
    def worst(self) -> KeyResult | None:
        """The result to look at first: not measurable, else furthest beyond its tolerance.

        Where all passed, the one with the largest relative difference, rounding around zero aside.
        """
        return max(self.results, key=_badness, default=None)

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
        if self.first_failure is None:
            return []
        failures = [f"    {one_line(each.key)}: {each.reason}" for each in self.failures]
        return [
            f"  first {unit} that differs: {one_line(self.first_failure.key)}",
            *shorten_lines(failures, _SHOWN_FAILURES, indent="    "),
        ]

    def summary(self, unit: str = "key") -> str:
        """Return the verdict as a few lines of text."""
        remarks = [f"  remark: {remark}" for remark in self.remarks]
        return "\n".join([self.headline, *self.failing(unit), *remarks])

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as plain values that strict JSON can hold; inf and nan as text."""
        worst = self.worst
        return {
            "passed": self.passed,
            "reason": self.reason,
            "rule": to_plain(self.rule),
            "worst": None if worst is None else worst.to_json(),
            "remarks": list(self.remarks),
            "keys": [result.to_json() for result in self.results],
        }


def compare_records(
    expected: Mapping[str, npt.ArrayLike],
    actual: Mapping[str, npt.ArrayLike],
    threshold: float = 1e-6,
    *,
    rule: Rule | None = None,
    expect_noise: bool = False,
) -> Comparison:
    """Return the verdict on two records {name: array of any shape} under `rule`.

    rule None is official_rule(threshold). `expect_noise`: the two sides are different frameworks,
    whose rounding differs, so a remark is made if all floats are bit-identical. Never raises on
    arrays, whatever they hold: what cannot be compared fails.
    """
    rule = official_rule(threshold) if rule is None else rule
    ours = {str(key): _comparable(value) for key, value in expected.items()}
    theirs = {str(key): _comparable(value) for key, value in actual.items()}
    names = [*ours, *sorted(theirs.keys() - ours.keys())]
    results = tuple(_judge(name, ours.get(name), theirs.get(name), rule) for name in names)
    return Comparison(results, rule, _remarks(results, ours, expect_noise))


def _comparable(value: object) -> Array:
    """Return `value`, a tensor of either framework too, as an array; as a refused one if it is none."""
    try:
        return np.asarray(on_host(value))
    except (NotImplementedError, RuntimeError, TypeError, ValueError):
        return np.empty((), dtype=object)


def _badness(result: KeyResult) -> tuple[bool, float, float]:
    """Return what `Comparison.worst` is the maximum of."""
    if result.difference is None:
        return True, 0.0, 0.0
    beyond = 0.0 if result.passed else result.exceed
    relative = 0.0 if result.is_rounding_around_zero else result.difference.max_rel
    return False, beyond, 0.0 if math.isnan(relative) else relative


def _judge(key: str, expected: Array | None, actual: Array | None, rule: Rule) -> KeyResult:
    if expected is None or actual is None:
        side = "actual" if expected is None else "expected"
        word = "extra" if expected is None else "missing"
        return _result(key, expected, actual, rule, f"{word}: only the {side} record has it")
    reason = _kind_fault(expected, actual) or _shape_fault(expected, actual)
    reason = reason or _content_fault(expected, actual)
    if reason:
        return _result(key, expected, actual, rule, reason)
    return _measured(key, expected, actual, rule)


def _measured(key: str, expected: Array, actual: Array, rule: Rule) -> KeyResult:
    inexact = dtype_kind(expected.dtype) in INEXACT
    rule = rule if inexact else EXACT
    difference = compare_arrays(expected, actual)
    tolerance = rule.tolerance(difference.scale)
    mean_ok = difference.mean_abs <= rule.mean_abs
    max_ok = difference.max_abs <= tolerance
    reason = ""
    if not (mean_ok and max_ok):
        reason = _numbers_fault(difference, rule, tolerance, mean_ok, expected, actual)
    exceed = max(_times(difference.mean_abs, rule.mean_abs), _times(difference.max_abs, tolerance))
    return _result(key, expected, actual, rule, reason, difference, tolerance, exceed)


def _result(
    key: str,
    expected: Array | None,
    actual: Array | None,
    rule: Rule,
    reason: str,
    difference: Difference | None = None,
    tolerance: float = math.nan,
    exceed: float = math.inf,
) -> KeyResult:
    return KeyResult(
        key=key,
        passed=not reason,
        reason=reason,
        difference=difference,
        rule=rule,
        tolerance=tolerance,
        exceed=exceed,
        expected_dtype=None if expected is None else str(expected.dtype),
        expected_shape=None if expected is None else expected.shape,
        actual_dtype=None if actual is None else str(actual.dtype),
        actual_shape=None if actual is None else actual.shape,
    )


def _kind_fault(expected: Array, actual: Array) -> str:
    for side in (expected, actual):
        if side.dtype.kind not in KINDS:
            return f"arrays of dtype {side.dtype} cannot be compared"
    kinds = dtype_kind(expected.dtype), dtype_kind(actual.dtype)
    if kinds[0] == kinds[1]:
        return ""
    return (
        f"the kind of dtype differs: expected {kinds[0]} ({expected.dtype}), "
        f"got {kinds[1]} ({actual.dtype})"
    )


def _shape_fault(expected: Array, actual: Array) -> str:
    if expected.shape == actual.shape:
        return ""
    hint = ": transposed?" if expected.shape == actual.shape[::-1] else ""
    return f"the shape differs: expected {expected.shape}, got {actual.shape}{hint}"


def _content_fault(expected: Array, actual: Array) -> str:
    if expected.size == 0:
        return f"nothing to compare: shape {expected.shape} has no elements"
    if dtype_kind(expected.dtype) not in INEXACT:
        return ""
    faults = (_nonfinite("expected", expected), _nonfinite("actual", actual))
    return "; ".join(fault for fault in faults if fault)


def _nonfinite(side: str, array: Array) -> str:
    nans, infinities, first = count_nonfinite(array)
    if first is None:
        return ""
    counts = [f"{n} {name}" for n, name in ((nans, "NaN"), (infinities, "inf")) if n]
    return f"not finite: the {side} side has {' and '.join(counts)}, the first at {first}"


def _numbers_fault(
    difference: Difference,
    rule: Rule,
    tolerance: float,
    mean_ok: bool,
    expected: Array,
    actual: Array,
) -> str:
    place = (
        f"at {difference.worst_index}: "
        f"expected {_text(difference.expected_value, expected.dtype)}, "
        f"got {_text(difference.actual_value, actual.dtype)}"
    )
    if rule == EXACT:
        first = difference.first_index
        where = "" if first == difference.worst_index else f" the first at {first},"
        counted = f"{difference.mismatches} of {difference.size} elements differ"
        return f"{counted},{where} the most {place}"
    largest = f"max difference {difference.max_abs:.1e} {place}"
    if mean_ok:
        return f"{largest}; tolerance {tolerance:.1e} ({rule.name})"
    return (
        f"mean difference {difference.mean_abs:.1e}; tolerance {rule.mean_abs:.1e} "
        f"({rule.name}); {largest}"
    )


def _text(value: Any, dtype: np.dtype[Any]) -> str:
    """Return `value` in the fewest digits that tell it from its neighbours in `dtype`."""
    if isinstance(value, (str, bytes)):
        text = repr(value)
        return text if len(text) <= _SHOWN_LETTERS else text[:_SHOWN_LETTERS] + "…"
    return str(dtype.type(value))


def _times(difference: float, tolerance: float) -> float:
    """Return difference / tolerance; a NaN counts as infinitely far off."""
    if tolerance == 0:
        return 0.0 if difference == 0 else math.inf
    ratio = 0.0 if math.isinf(tolerance) else difference / tolerance
    return math.inf if math.isnan(ratio) else ratio


def _remarks(
    results: tuple[KeyResult, ...], expected: Mapping[str, Array], expect_noise: bool
) -> tuple[str, ...]:
    """Return what looks vacuous: floats that agree too well, floats that say nothing."""
    floats = [r for r in results if r.difference is not None and r.difference.size > 1
              and dtype_kind(expected[r.key].dtype) in INEXACT]  # fmt: skip
    remarks = []
    same = all(r.difference is not None and r.difference.mismatches == 0 for r in floats)
    if expect_noise and same and len(floats) >= _FEW:
        remarks.append("bit-identical floats: were both files written by the same framework?")
    constant = [r.key for r in floats if _is_constant(expected[r.key])]
    zeros = [key for key in constant if expected[key].flat[0] == 0]
    others = [key for key in constant if expected[key].flat[0] != 0]
    if zeros:
        remarks.append(f"all zeros, so little is tested: {shorten(zeros, _SHOWN_NAMES)}")
    if others:
        remarks.append(
            f"one value throughout, so little is tested: {shorten(others, _SHOWN_NAMES)}"
        )
    return tuple(remarks)


def _is_constant(array: Array) -> bool:
    return bool(array.min() == array.max())
