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

from reprod_align.base.blocks import Array, index_at
from reprod_align.base.difference import Difference, Gap, compare_arrays, find_obstacle
from reprod_align.base.local import Allowance, count_flips, find_beyond, is_named_scores
from reprod_align.records.record import read_arrays
from reprod_align.records.verdict import EXACT, STRICT, Comparison, KeyResult, Rule, official_rule

import numpy.typing as npt

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
    key: str,
    expected: Array | None,
    actual: Array | None,
    rule: Rule,
    measured: Difference | None,
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
