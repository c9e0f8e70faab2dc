"""Compares two records key by key. The first rule that fails is the reason given:

1. both records hold the key       4. it is not empty, and finite on both sides
2. the same kind of dtype          5. mean |actual - expected| <= mean_abs
3. the same shape                  6. |actual - expected| <= max_rel * max(near, spread * tensor) + floor
                                   7. scores (logits, probabilities) choose the same class in each row

Integers, booleans and texts must be equal. Every test is written `ok = difference <= limit`, so
that a NaN fails it.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reprod_align.base.difference import Array, Gap, divide, index_at, parts
from reprod_align.base.local import Allowance, find_beyond
from reprod_align.records.diff import (
    INEXACT,
    KINDS,
    Difference,
    compare_arrays,
    count_nonfinite,
    dtype_kind,
)
from reprod_align.records.record import on_host, unread_items
from reprod_align.records.verdict import EXACT, STRICT, Comparison, KeyResult, Rule, official_rule

import numpy as np
import numpy.typing as npt

_SHOWN_LETTERS = 40  # of a text that differs
_SHOWN_NAMES = 4  # of the tensors that a remark is about
_TIE = 1e-2  # of a tolerance: scores so near are a tie
_FEW = 3  # so many identical float tensors can be chance


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
    return _compare(expected, actual, rule, expect_noise, {})


def compare_again(
    known: Comparison,
    expected: Mapping[str, npt.ArrayLike],
    actual: Mapping[str, npt.ArrayLike],
    rule: Rule,
    *,
    expect_noise: bool = False,
) -> Comparison:
    """Return the verdict on the same two records under another rule, by what was measured for `known`."""
    measured = {one.key: one.difference for one in known.results if one.difference is not None}
    return _compare(expected, actual, rule, expect_noise, measured)


def _compare(
    expected: Mapping[str, npt.ArrayLike],
    actual: Mapping[str, npt.ArrayLike],
    rule: Rule,
    expect_noise: bool,
    known: Mapping[str, Difference],
) -> Comparison:
    ours, theirs = _name_arrays(expected), _name_arrays(actual)
    names = [*ours, *sorted(theirs.keys() - ours.keys())]
    results = tuple(
        _compare_key(name, ours.get(name), theirs.get(name), rule, known.get(name))
        for name in names
    )
    return Comparison(results, rule, _remarks(results, ours, expect_noise))


def _name_arrays(record: Mapping[Any, npt.ArrayLike]) -> dict[str, Array]:
    """Return the arrays by name; 1 beside "1" is "1 (int)", so that neither hides the other."""
    items = unread_items(record)
    texts = {key for key, _ in items if isinstance(key, str)}

    def name(key: object) -> str:
        known = not isinstance(key, str) and str(key) in texts
        return f"{key} ({type(key).__name__})" if known else str(key)

    return {name(key): _as_array(value) for key, value in items}


def _as_array(value: object) -> Array:
    """Return `value`, a tensor of either framework too, as an array; dtype object if it is neither."""
    try:
        return np.asarray(on_host(value))
    except (NotImplementedError, RuntimeError, TypeError, ValueError):
        return np.empty((), dtype=object)


def _compare_key(
    key: str, expected: Array | None, actual: Array | None, rule: Rule, known: Difference | None
) -> KeyResult:
    measured = _Measured(rule)
    if expected is None:
        reason = "extra: only the actual record has it"
    elif actual is None:
        reason = "missing: only the expected record has it"
    else:
        reason = _kind_fault(expected, actual) or _shape_fault(expected, actual)
        reason = reason or _emptiness(expected)
        if not reason:
            found = _measure(known or compare_arrays(expected, actual), expected, actual, rule)
            reason = _content_fault(found.difference, expected, actual)
            measured = measured if reason else found
            reason = reason or _numbers_fault(measured, expected, actual)
            reason = reason or _predictions_fault(key, expected, actual, measured.rule)
    return KeyResult(
        key=key,
        passed=not reason,
        reason=reason,
        difference=measured.difference,
        rule=measured.rule,
        tolerance=measured.tolerance,
        exceed=measured.exceed,
        expected_dtype=None if expected is None else str(expected.dtype),
        expected_shape=None if expected is None else expected.shape,
        actual_dtype=None if actual is None else str(actual.dtype),
        actual_shape=None if actual is None else actual.shape,
        local=measured.local,
    )


@dataclass(frozen=True)
class _Measured:
    """What rules 5 and 6 have to judge; without a difference, nothing could be measured."""

    rule: Rule
    difference: Difference | None = None
    local: Gap | None = None
    """the element that is too far off for its own place, though not for the whole tensor"""
    whole: float = math.nan
    """the largest difference that is allowed anywhere"""

    @property
    def tolerance(self) -> float:
        return self.whole if self.local is None else self.local.tolerance

    @property
    def exceed(self) -> float:
        if self.difference is None:
            return math.inf
        times = (
            (self.difference.mean_abs, self.rule.mean_abs),
            (self.difference.max_abs, self.whole),
        )
        own = 0.0 if self.local is None else self.local.exceed
        return max(*(_exceed(*pair) for pair in times), own)


def _measure(difference: Difference, expected: Array, actual: Array, rule: Rule) -> _Measured:
    """Return what the rule has to judge of two arrays of equal shape and kind of dtype, not empty."""
    if dtype_kind(expected.dtype) not in INEXACT:
        return _Measured(EXACT, difference, None, EXACT.tolerance(difference.scale))
    whole = rule.tolerance(difference.scale)
    allowance = Allowance(rule.max_rel, rule.floor, rule.spread)
    found = Gap(difference.max_abs, whole, difference.scale)
    local = find_beyond(expected, actual, allowance, found) if found.ok else None
    return _Measured(rule, difference, local, whole)


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


def _emptiness(expected: Array) -> str:
    if expected.size:
        return ""
    return f"nothing to compare: shape {expected.shape} has no elements"


def _content_fault(difference: Difference | None, expected: Array, actual: Array) -> str:
    """Return what is not finite; a finite difference shows that all is."""
    assert difference is not None  # both sides can be subtracted
    if math.isfinite(difference.max_abs):
        return ""
    faults = (_nonfinite("expected", expected), _nonfinite("actual", actual))
    return "; ".join(fault for fault in faults if fault)


def _nonfinite(side: str, array: Array) -> str:
    nans, infinities, first = count_nonfinite(array)
    if first is None:
        return ""
    counts = [f"{n} {name}" for n, name in ((nans, "NaN"), (infinities, "inf")) if n]
    return f"not finite: the {side} side has {' and '.join(counts)}, the first at {first}"


def _numbers_fault(measured: _Measured, expected: Array, actual: Array) -> str:
    difference, rule = measured.difference, measured.rule
    assert difference is not None  # both sides can be subtracted
    mean_ok = difference.mean_abs <= rule.mean_abs
    max_ok = difference.max_abs <= measured.whole
    if mean_ok and max_ok:
        return _local_fault(measured, expected, actual)
    place = _describe_place(
        difference.worst_index, difference.expected_value, difference.actual_value, expected, actual
    )
    if rule == EXACT:
        first = difference.first_index
        where = "" if first == difference.worst_index else f" the first at {first},"
        counted = f"{difference.mismatches} of {difference.size} elements differ"
        return f"{counted},{where} the most {place}"
    largest = f"max difference {difference.max_abs:.1e} {place}"
    if mean_ok:
        return f"{largest}; tolerance {measured.whole:.1e} ({rule.name})"
    mean = f"mean difference {difference.mean_abs:.1e}; tolerance {rule.mean_abs:.1e} ({rule.name})"
    return f"{mean}; {largest}"


def _local_fault(measured: _Measured, expected: Array, actual: Array) -> str:
    """Return what is wrong with an element that hides behind larger ones; "" if none does."""
    found = measured.local
    if found is None or found.worst is None:
        return ""
    position, shape, value, other = found.worst
    place = _describe_place(index_at(position, shape), value, other, expected, actual)
    return (
        f"difference {found.difference:.1e} {place}; tolerance {found.tolerance:.1e} there "
        f"({measured.rule.name}): larger values elsewhere in the tensor are no scale for it"
    )


def _describe_place(
    index: tuple[int, ...], value: Any, other: Any, expected: Array, actual: Array
) -> str:
    shown = _show(value, expected.dtype), _show(other, actual.dtype)
    return f"at {index}: expected {shown[0]}, got {shown[1]}"


def _predictions_fault(key: str, expected: Array, actual: Array, rule: Rule) -> str:
    """Return how many predictions flip, if the key is called scores; "" if none does."""
    from reprod_align.base.predictions import count_flips, is_named_scores

    if not (is_named_scores(key, expected) and math.isfinite(rule.max_rel)):
        return ""
    flips = count_flips(expected, actual, 2 * rule.max_rel * max(rule.spread, _TIE))
    rows = expected.size // expected.shape[-1]
    return f"{flips} of {rows} predictions flip, and not between equal scores" if flips else ""


def _show(value: Any, dtype: np.dtype[Any]) -> str:
    """Return `value` in the fewest digits that tell it from its neighbours in `dtype`."""
    if isinstance(value, (str, bytes)):
        text = repr(value)
        return text if len(text) <= _SHOWN_LETTERS else text[:_SHOWN_LETTERS] + "…"
    return str(dtype.type(value))


def _exceed(difference: float, tolerance: float) -> float:
    """Return difference / tolerance; a NaN counts as infinitely far off."""
    ratio = 0.0 if math.isinf(tolerance) else divide(difference, tolerance)
    return math.inf if math.isnan(ratio) else ratio


def _remarks(
    results: tuple[KeyResult, ...], expected: Mapping[str, Array], expect_noise: bool
) -> tuple[str, ...]:
    """Return what looks vacuous: floats that agree too well, floats that say nothing."""
    from reprod_align.base.text import shorten

    floats = {
        result.key: result.difference
        for result in results
        if result.difference is not None
        and result.difference.size > 1
        and dtype_kind(expected[result.key].dtype) in INEXACT
    }
    remarks = []
    same = all(difference.mismatches == 0 for difference in floats.values())
    if expect_noise and same and len(floats) >= _FEW:
        remarks.append("bit-identical floats: were both files written by the same framework?")
    constant = [key for key in floats if _is_constant(expected[key])]
    sizes = [difference.scale for difference in floats.values()]
    if sizes and 0 < max(sizes) <= STRICT.floor:
        remarks.append(
            f"every float is below {STRICT.floor:.1e}, so rounding noise alone is tested"
        )
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
    return all((part == array.flat[0]).all() for _, part in parts(array))
