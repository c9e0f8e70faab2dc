"""Compares two records key by key. The first rule that fails is the reason given:

1. both records hold the key       4. it is not empty, and finite on both sides
2. the same kind of dtype          5. mean |actual - expected| <= mean_abs
3. the same shape                  6. |actual - expected| <= max_rel * max(near, spread * tensor) + floor
                                   7. scores (logits, probabilities) choose the same class in each row

Integers, booleans and texts must be equal. Every test is written `ok = difference <= limit`, so
that a NaN fails it.
"""

import math
from collections.abc import Mapping, Sequence
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
    return _compare(_read_arrays(expected), _read_arrays(actual), rule, expect_noise, {})


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
    return _compare(_read_arrays(expected), _read_arrays(actual), rule, expect_noise, measured)


def _compare(
    expected: Mapping[str, Array],
    actual: Mapping[str, Array],
    rule: Rule,
    expect_noise: bool,
    measured: Mapping[str, Difference],
) -> Comparison:
    results = []
    for key in [*expected, *sorted(actual.keys() - expected.keys())]:
        if key not in actual:
            result = _fail(
                key, rule, "missing: only the expected record has it", expected[key], None
            )
        elif key not in expected:
            result = _fail(key, rule, "extra: only the actual record has it", None, actual[key])
        else:
            result = _judge(key, expected[key], actual[key], rule, measured.get(key))
        results.append(result)
    return Comparison(tuple(results), rule, _remarks(results, expected, expect_noise))


def _read_arrays(record: Mapping[Any, npt.ArrayLike]) -> dict[str, Array]:
    """Return the arrays by name; 1 beside "1" is "1 (int)", so that neither hides the other.

    A tensor of either framework becomes an array, and what is neither an array of dtype object.
    """
    items = unread_items(record)
    texts = {key for key, _ in items if isinstance(key, str)}
    found: dict[str, Array] = {}
    for key, value in items:
        hidden = not isinstance(key, str) and str(key) in texts
        try:
            array = np.asarray(on_host(value))
        except (NotImplementedError, RuntimeError, TypeError, ValueError):
            array = np.empty((), dtype=object)
        found[f"{key} ({type(key).__name__})" if hidden else str(key)] = array
    return found


def _describe_flips(key: str, expected: Array, actual: Array, rule: Rule) -> str:
    """Return how many predictions flip, if the key is called scores; "" if none does."""
    from reprod_align.base.predictions import count_flips, is_named_scores

    if not is_named_scores(key, expected):
        return ""
    flips = count_flips(expected, actual, 2 * rule.max_rel * max(rule.spread, _TIE))
    rows = expected.size // expected.shape[-1]
    return f"{flips} of {rows} predictions flip, and not between equal scores" if flips else ""


def _judge(
    key: str, expected: Array, actual: Array, rule: Rule, measured: Difference | None
) -> KeyResult:
    """Return the verdict on two arrays; `measured`: their difference, if it is known."""
    reason = _find_obstacle(expected, actual)
    if reason:
        return _fail(key, rule, reason, expected, actual)
    measured = measured or compare_arrays(expected, actual)
    if not math.isfinite(measured.max_abs):
        reason = _describe_nonfinite(expected, actual)
        if reason:  # else the difference of two finite numbers was too large
            return _fail(key, rule, reason, expected, actual)
    inexact = dtype_kind(expected.dtype) in INEXACT
    rule = rule if inexact else EXACT
    whole = Gap(measured.max_abs, rule.tolerance(measured.scale), measured.scale)
    allowance = Allowance(rule.max_rel, rule.floor, rule.spread)
    local = find_beyond(expected, actual, allowance, whole) if inexact and whole.ok else None
    reason = _describe_fault(measured, whole, local, rule)
    if not reason and math.isfinite(rule.max_rel):
        reason = _describe_flips(key, expected, actual, rule)
    exceeds = _exceed(measured.mean_abs, rule.mean_abs), _exceed(whole.difference, whole.tolerance)
    return KeyResult(
        key=key,
        passed=not reason,
        reason=reason,
        difference=measured,
        rule=rule,
        tolerance=(local or whole).tolerance,
        exceed=max(*exceeds, local.exceed if local else 0.0),
        **_describe_arrays(expected, actual),
        local=local,
    )


def _fail(
    key: str, rule: Rule, reason: str, expected: Array | None, actual: Array | None
) -> KeyResult:
    """Return the verdict on what rules 1 to 4 leave nothing to measure of."""
    return KeyResult(
        key=key,
        passed=False,
        reason=reason,
        difference=None,
        rule=rule,
        tolerance=math.nan,
        exceed=math.inf,
        **_describe_arrays(expected, actual),
    )


def _describe_arrays(expected: Array | None, actual: Array | None) -> dict[str, Any]:
    return {
        "expected_dtype": None if expected is None else str(expected.dtype),
        "expected_shape": None if expected is None else expected.shape,
        "actual_dtype": None if actual is None else str(actual.dtype),
        "actual_shape": None if actual is None else actual.shape,
    }


def _find_obstacle(expected: Array, actual: Array) -> str:
    """Return which of rules 2 to 4 forbids to subtract the arrays; "" if none does."""
    for dtype in (expected.dtype, actual.dtype):
        if dtype.kind not in KINDS:
            return f"arrays of dtype {dtype} cannot be compared"
    kinds = dtype_kind(expected.dtype), dtype_kind(actual.dtype)
    if kinds[0] != kinds[1]:
        return (
            f"the kind of dtype differs: expected {kinds[0]} ({expected.dtype}), "
            f"got {kinds[1]} ({actual.dtype})"
        )
    if expected.shape != actual.shape:
        hint = ": transposed?" if expected.shape == actual.shape[::-1] else ""
        return f"the shape differs: expected {expected.shape}, got {actual.shape}{hint}"
    return "" if expected.size else f"nothing to compare: shape {expected.shape} has no elements"


def _describe_nonfinite(expected: Array, actual: Array) -> str:
    faults = []
    for side, array in (("expected", expected), ("actual", actual)):
        nans, infinities, first = count_nonfinite(array)
        if first is not None:
            counts = [f"{n} {name}" for n, name in ((nans, "NaN"), (infinities, "inf")) if n]
            faults.append(
                f"not finite: the {side} side has {' and '.join(counts)}, the first at {first}"
            )
    return "; ".join(faults)


def _describe_fault(measured: Difference, whole: Gap, local: Gap | None, rule: Rule) -> str:
    """Return what fails rule 5 or 6; "" if nothing does.

    local: the element that hides behind larger ones, if there is one.
    """
    mean_ok = measured.mean_abs <= rule.mean_abs
    if mean_ok and whole.ok:
        if local is None or local.worst is None:
            return ""
        position, shape, *values = local.worst
        place = _describe_place(measured, index_at(position, shape), *values)
        return (
            f"difference {local.difference:.1e} {place}; tolerance {local.tolerance:.1e} there "
            f"({rule.name}): larger values elsewhere in the tensor are no scale for it"
        )
    place = _describe_place(
        measured, measured.worst_index, measured.expected_value, measured.actual_value
    )
    if rule == EXACT:
        first = measured.first_index
        where = "" if first == measured.worst_index else f" the first at {first},"
        return f"{measured.mismatches} of {measured.size} elements differ,{where} the most {place}"
    largest = f"max difference {measured.max_abs:.1e} {place}"
    if mean_ok:
        return f"{largest}; tolerance {whole.tolerance:.1e} ({rule.name})"
    mean = f"mean difference {measured.mean_abs:.1e}; tolerance {rule.mean_abs:.1e} ({rule.name})"
    return f"{mean}; {largest}"


def _describe_place(measured: Difference, index: tuple[int, ...], *values: Any) -> str:
    """Return both values in the fewest digits that tell each from its neighbours in its dtype."""
    shown = []
    for value, dtype in zip(values, measured.dtypes, strict=True):
        text = repr(value) if isinstance(value, (str, bytes)) else str(dtype.type(value))
        long = isinstance(value, (str, bytes)) and len(text) > _SHOWN_LETTERS
        shown.append(text[:_SHOWN_LETTERS] + "…" if long else text)
    return f"at {index}: expected {shown[0]}, got {shown[1]}"


def _exceed(difference: float, tolerance: float) -> float:
    """Return difference / tolerance; a NaN counts as infinitely far off."""
    ratio = 0.0 if math.isinf(tolerance) else divide(difference, tolerance)
    return math.inf if math.isnan(ratio) else ratio


def _remarks(
    results: Sequence[KeyResult], expected: Mapping[str, Array], expect_noise: bool
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
    constant = [
        key
        for key in floats
        if all((part == expected[key].flat[0]).all() for _, part in parts(expected[key]))
    ]
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
