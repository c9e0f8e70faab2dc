"""The rules, in their order: the first that fails is the reason given."""

from typing import Any

from reprod_align import STRICT, Rule
from reprod_align.records import compare
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


def rounded(array: np.ndarray) -> np.ndarray:
    return array * (1 + 1e-15 * np.random.default_rng(1).standard_normal(array.shape))


def hiding() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return pairs in which what is wrong stands beside something large."""
    source = np.random.default_rng(0)
    column = source.standard_normal((4, 3))
    column[:, 2] = -1e9
    one_off = column.copy()
    one_off[1, 0] += 1.0
    visible = np.tril(np.ones((6, 6), bool))
    scores = np.where(visible, source.standard_normal((2, 6, 6)), np.finfo(np.float32).min)
    outlier = source.standard_normal((30, 8))
    outlier[5, 5], outlier[9] = 1e7, 1e-3
    wrong_row = outlier.copy()
    wrong_row[9] = 1.1e-3
    rows = source.standard_normal((3, 64)) * np.array([[1e-4], [10.0], [10.0]])
    return {
        "an error of 1 beside a column of -1e9": (column, one_off),
        "negated scores beside finfo.min": (scores, np.where(visible, -scores, scores)),
        "a row of 1e-3 beside an outlier of 1e7": (outlier, wrong_row),
        "a negated row of 1e-4 beside rows of 10": (rows, rows * np.array([[-1], [1], [1]])),
    }


@pytest.mark.parametrize("name", hiding())
def test_nothing_hides_behind_a_large_number(name: str) -> None:
    expected, wrong = hiding()[name]
    assert compare_records({"x": expected}, {"x": rounded(expected)}, rule=STRICT).passed
    result = compare_records({"x": expected}, {"x": wrong}, rule=STRICT).results[0]
    assert not result.passed and result.exceed > 1e3


def test_an_element_that_hides_is_shown_with_its_place_and_values() -> None:
    expected, wrong = hiding()["a row of 1e-3 beside an outlier of 1e7"]
    result = compare_records({"x": expected}, {"x": wrong}, rule=STRICT).results[0]
    assert result.local is not None and result.tolerance == result.local.tolerance < 1e-4
    assert "difference 1.0e-04 at (9, 0): expected 0.001, got 0.0011; tolerance" in result.reason
    assert "larger values elsewhere in the tensor do not widen it" in result.reason
    assert "there)" in result.largest and result.to_json()["local"] is True


def test_what_fails_as_a_whole_does_not_hide() -> None:
    expected, wrong = hiding()["a row of 1e-3 beside an outlier of 1e7"]
    wrong = wrong + np.eye(30, 8) * 1e7
    result = compare_records({"x": expected}, {"x": wrong}, rule=STRICT).results[0]
    assert not result.passed and result.local is None and result.tolerance == pytest.approx(1e-2)


def test_under_the_official_rule_each_row_has_a_tenth_of_the_largest_row_s_tolerance() -> None:
    expected = np.full((100, 100), 10.0)
    expected[7] = 1e-3
    for off, passed in ((5e-5, True), (2e-4, False)):
        actual = expected.copy()
        actual[7, 7] += off
        assert compare_records({"x": expected}, {"x": actual}).passed == passed


def test_the_guard_of_the_official_rule_looks_at_each_place_too() -> None:
    expected = np.random.default_rng(0).standard_normal((1000, 1000)).astype(np.float32)
    expected[0, 0] = 123456.0
    wrong = expected.copy()
    wrong[5, 5] += 0.08
    assert np.abs(wrong - expected).mean(dtype=np.float64) < 1e-6
    assert not compare_records({"x": expected}, {"x": wrong}).passed
    noise = np.random.default_rng(1).standard_normal(expected.shape).astype(np.float32)
    noise[0, 0] = 0.0
    assert compare_records({"x": expected}, {"x": expected * (1 + 2e-7 * noise)}).passed


def test_flipped_predictions_fail() -> None:
    expected = np.array([[1.0, 1.0 - 1e-10], [0.0, 5.0]])
    wrong = expected.copy()
    wrong[0, 1] += 2e-10
    (result,) = compare_records({"logits": expected}, {"logits": wrong}, rule=STRICT).results
    assert result.reason == "1 of 2 predictions flip, and not between equal scores"
    assert compare_records({"hidden": expected}, {"hidden": wrong}, rule=STRICT).passed
    tie = np.array([[1.0, 1.0 - 1e-12], [0.0, 5.0]])
    other = tie.copy()
    other[0, 1] += 2e-12
    assert compare_records({"logits": tie}, {"logits": other}, rule=STRICT).passed


def test_comparing_again_is_comparing_under_the_other_rule() -> None:
    random = np.random.default_rng(0)
    expected = {name: random.standard_normal(50) for name in ("same", "near", "far", "odd", "nan")}
    actual = expected | {
        "near": expected["near"] * (1 + 1e-8),
        "far": expected["far"] + 1.0,
        "odd": np.ones(3),
        "nan": np.full(50, np.nan),
        "more": np.ones(2),
    }
    first = compare_records(expected, actual)
    again = compare_records(expected, actual, rule=STRICT, known=first)
    assert again.to_json() == compare_records(expected, actual, rule=STRICT).to_json()
    assert [one.passed for one in again.results] == [True, False, False, False, False, False]


def test_comparing_again_measures_nothing_again(monkeypatch: pytest.MonkeyPatch) -> None:
    record = {name: np.arange(4.0) for name in "abc"}
    first = compare_records(record, record)
    monkeypatch.delattr(compare, "compare_arrays")
    again = compare_records(record, record, rule=STRICT, known=first)
    assert again.passed and not again.remarks
    noisy = compare_records(record, record, rule=STRICT, known=first, expect_noise=True)
    (remark,) = noisy.remarks
    assert remark.startswith("bit-identical floats")


def test_flips_are_counted_by_rows() -> None:
    expected = np.zeros((2, 3, 4))
    expected[..., 0], expected[..., 1] = 1.0, 1.0 - 1e-10
    wrong = expected.copy()
    wrong[1, 2, 1] += 2e-10
    (result,) = compare_records({"logits": expected}, {"logits": wrong}, rule=STRICT).results
    assert result.reason == "1 of 6 predictions flip, and not between equal scores"


def test_what_is_not_an_array_is_refused() -> None:
    ragged: Any = [[1], [2, 3]]
    found = compare_records({"x": ragged}, {"x": ragged})
    assert found.reason == "x: arrays of dtype object cannot be compared"


def test_a_number_as_key_does_not_hide_a_text() -> None:
    ours: Any = {"1": np.zeros(2), 1: np.ones(2)}
    theirs: Any = {"1": np.zeros(2), 1: np.zeros(2)}
    found = compare_records(ours, theirs)
    assert [one.key for one in found.results] == ["1", "1 (int)"]
    assert [one.passed for one in found.results] == [True, False]
    assert compare_records({1: np.ones(2)}, {"1": np.ones(2)}).passed  # type: ignore[dict-item]


def test_records_of_rounding_noise_are_remarked_on() -> None:
    noise = np.random.default_rng(0).standard_normal(9) * 1e-17
    found = compare_records({"x": noise}, {"x": -noise}, rule=STRICT)
    assert found.passed and "every float is below 2.2e-16" in found.remarks[0]
    assert not compare_records(
        {"x": noise, "y": np.arange(9.0)}, {"x": noise, "y": np.arange(9.0)}
    ).remarks
    assert "all zeros" in compare_records({"x": np.zeros(3)}, {"x": np.zeros(3)}).remarks[0]
