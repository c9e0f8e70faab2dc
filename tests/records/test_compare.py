"""The rules, in their order: the first that fails is the reason given."""

from typing import Any

from reprod_align import STRICT, Rule
from reprod_align.records.compare import compare_records

import numpy as np
import pytest

GOOD = np.array([1.0, -2.0])


@pytest.mark.parametrize(
    ("expected", "actual", "reason"),
    [
        ([1, 2], GOOD, "the kind of dtype differs: expected integer (int64), got float (float64)"),
        (np.array(["a"]), np.array([b"a"]), "the kind of dtype differs: expected string"),
        (GOOD[:, None], GOOD[None], "the shape differs: expected (2, 1), got (1, 2): transposed?"),
        (np.ones((4, 2)), np.ones(2), "the shape differs: expected (4, 2), got (2,)"),
        (np.zeros((0, 3)), np.zeros((0, 3)), "nothing to compare: shape (0, 3) has no elements"),
        (GOOD, np.array([np.nan, np.inf]), "not finite: the actual side has 1 NaN and 1 inf"),
        (np.array([np.nan]), np.array([np.nan]), "not finite: the expected side has 1 NaN"),
        (GOOD, GOOD + 1e-3, "mean difference 1.0e-03; tolerance 1.0e-06 (official); max"),
        (np.zeros(10**6), np.eye(1, 10**6)[0] * 0.9, "max difference 9.0e-01 at (0,): expected"),
        ([True, False], [True, True], "1 of 2 elements differ, the most at (1,): expected False"),
        (GOOD, None, "arrays of dtype object cannot be compared"),
    ],
)
def test_the_first_rule_that_fails_is_the_reason(expected: Any, actual: Any, reason: str) -> None:
    found = compare_records({"x": expected}, {"x": actual})
    assert not found.passed and found.results[0].reason.startswith(reason)


def test_missing_and_extra_keys_fail_by_name() -> None:
    found = compare_records({"a": 1.0, "b": 1.0}, {"c": 1.0, "a": 1.0})
    assert [(one.key, one.reason) for one in found.failures] == [
        ("b", "missing: only the expected record has it"),
        ("c", "extra: only the actual record has it"),
    ]


def test_a_tolerance_of_nan_lets_nothing_pass() -> None:
    nan = float("nan")
    assert not compare_records({"x": GOOD}, {"x": GOOD}, nan).passed
    for rule in (Rule("mean", nan, 1.0, 0.0), Rule("largest", 1.0, nan, 0.0)):
        assert not compare_records({"x": GOOD}, {"x": GOOD}, rule=rule).passed


def test_how_far_beyond_the_tolerance() -> None:
    found = compare_records({"x": GOOD}, {"x": GOOD * (1 + 4e-9)}, rule=STRICT).results[0]
    assert found.exceed == pytest.approx(4, rel=1e-6) and not found.passed
