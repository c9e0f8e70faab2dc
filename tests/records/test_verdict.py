"""The rules of a verdict: each planted fault fails, for the right reason, in these words."""

import json
import math
import subprocess
import sys
from typing import Any

import reprod_align
from reprod_align import compare_records
from reprod_align.records.compare import EXACT, STRICT, Comparison, Rule, official_rule

import numpy as np
import pytest

GENERATOR = np.random.default_rng(0)


def only(expected: Any, actual: Any, **options: Any) -> Any:
    """The single result of comparing two values under the key "x"."""
    comparison = compare_records({"x": expected}, {"x": actual}, **options)
    (result,) = comparison.results
    assert comparison.passed == result.passed
    assert comparison.reason == (f"x: {result.reason}" if result.reason else "")
    return result


def test_the_four_pairs_that_reprod_log_lets_through() -> None:
    ones, nan = np.ones((4, 2)), np.full((4, 2), math.nan)
    assert not only(ones, nan).passed and not only(nan, ones).passed
    array = GENERATOR.standard_normal((3, 5))
    assert not only(array, array.T).passed
    assert not only(np.ones((4, 2)), np.ones(2)).passed
    sparse = np.zeros((1000, 1000), np.float32)
    sparse[5, 3] = 0.9
    result = only(np.zeros((1000, 1000), np.float32), sparse)
    assert result.difference.mean_abs < 1e-6 and not result.passed


# Each rule and its words


@pytest.mark.parametrize(
    ("expected", "actual", "reason"),
    [
        (np.ones(2), np.ones(2, int),
         "the kind of dtype differs: expected float (float64), got integer (int64)"),
        (np.ones(2, bool), np.ones(2, np.uint8),
         "the kind of dtype differs: expected bool (bool), got integer (uint8)"),
        (np.ones(2), np.ones(2, complex),
         "the kind of dtype differs: expected float (float64), got complex (complex128)"),
        (np.array(["1"]), np.array([1]),
         "the kind of dtype differs: expected string (<U1), got integer (int64)"),
        (np.array([None]), np.array([None]), "arrays of dtype object cannot be compared"),
        (np.ones(1), np.ones(1, "M8[s]"), "arrays of dtype datetime64[s] cannot be compared"),
        (np.ones((3, 5)), np.ones((5, 3)),
         "the shape differs: expected (3, 5), got (5, 3): transposed?"),
        (np.ones((2, 3, 4)), np.ones((4, 3, 2)),
         "the shape differs: expected (2, 3, 4), got (4, 3, 2): transposed?"),
        (np.ones((4, 2)), np.ones(2), "the shape differs: expected (4, 2), got (2,)"),
        (np.ones((5, 1)), np.ones(5), "the shape differs: expected (5, 1), got (5,)"),
        (np.ones(1), np.array(1.0), "the shape differs: expected (1,), got ()"),
        (np.ones((0, 3)), np.ones((0, 3)), "nothing to compare: shape (0, 3) has no elements"),
        (np.ones(0, int), np.ones(0, int), "nothing to compare: shape (0,) has no elements"),
        (np.array([[1, math.nan], [math.inf, 1]]), np.ones((2, 2)),
         "not finite: the expected side has 1 NaN and 1 inf, the first at (0, 1)"),
        (np.ones(3), np.array([1, 1, -math.inf]),
         "not finite: the actual side has 1 inf, the first at (2,)"),
        (np.full(2, math.nan), np.full(2, math.nan),
         "not finite: the expected side has 2 NaN, the first at (0,); "
         "not finite: the actual side has 2 NaN, the first at (0,)"),
        (np.full(2, math.inf), np.full(2, math.inf),
         "not finite: the expected side has 2 inf, the first at (0,); "
         "not finite: the actual side has 2 inf, the first at (0,)"),
        (np.zeros((9, 9), np.float32), np.eye(9, dtype=np.float32) * 0,  None),
        (np.array([0, 0], np.uint8), np.array([0, 255], np.uint8),
         "1 of 2 elements differ, the most at (1,): expected 0, got 255"),
        (np.array([2**53]), np.array([2**53 + 1]),
         f"1 of 1 elements differ, the most at (0,): expected {2**53}, got {2**53 + 1}"),
        (np.array([True, False]), np.array([True, True]),
         "1 of 2 elements differ, the most at (1,): expected False, got True"),
        (np.array(["cat", "dog"]), np.array(["cat", "cow"]),
         "1 of 2 elements differ, the most at (1,): expected 'dog', got 'cow'"),
        (np.array("a" * 100), np.array("b" * 100),
         f"1 of 1 elements differ, the most at (): expected '{'a' * 39}…, got '{'b' * 39}…"),
        (np.array("a" * 38), np.array("b" * 38),
         f"1 of 1 elements differ, the most at (): expected '{'a' * 38}', got '{'b' * 38}'"),
        (np.arange(3), np.array([0, 2, 9]),
         "2 of 3 elements differ, the first at (1,), the most at (2,): expected 2, got 9"),
        (np.ones(2), np.array([1, 1.5]),
         "mean difference 2.5e-01; tolerance 1.0e-06 (official); "
         "max difference 5.0e-01 at (1,): expected 1.0, got 1.5"),
    ],
)  # fmt: skip
def test_the_reason(expected: Any, actual: Any, reason: str | None) -> None:
    result = only(expected, actual)
    assert result.reason == (reason or "")
    assert result.passed == (reason is None)


def test_the_reason_of_one_wrong_element() -> None:
    expected = np.zeros((1000, 1000), np.float32)
    actual = expected.copy()
    actual[5, 3] = 0.9
    assert only(expected, actual).reason == (
        "max difference 9.0e-01 at (5, 3): expected 0.0, got 0.9; tolerance 1.0e-06 (official)"
    )
    expected[0, 0] = 1
    actual[0, 0] = 1
    assert "; tolerance 1.0e-04 (official)" in only(expected, actual).reason


def test_a_value_is_shown_with_the_digits_that_tell_it_apart() -> None:
    expected, actual = np.array([1.0]), np.array([1.00000001])
    assert "expected 1.0, got 1.00000001" in only(expected, actual, rule=STRICT).reason


# Keys


def test_missing_and_extra_keys() -> None:
    one = np.ones(1)
    comparison = compare_records({"b": one, "a": one}, {"z": one, "b": one, "y": one})
    assert [result.key for result in comparison.results] == ["b", "a", "y", "z"]
    assert [result.key for result in comparison.failures] == ["a", "y", "z"]
    assert comparison.reason == "a: missing: only the expected record has it"
    assert comparison.results[2].reason == "extra: only the actual record has it"
    assert comparison.results[1].actual_dtype is None
    assert comparison.results[2].expected_shape is None


def test_no_keys_is_no_pass() -> None:
    comparison = compare_records({}, {})
    assert not comparison.passed
    assert comparison.reason == "nothing to compare: neither record holds anything"
    assert comparison.worst is None and comparison.first_failure is None
    assert comparison.summary() == f"failed: {comparison.reason}"


# Rules


def test_official_rule_at_its_edge() -> None:
    expected = np.full(4, 2.0)
    assert only(expected, expected + 0.25, threshold=0.25).passed
    assert not only(expected, expected + 0.25, threshold=0.2499).passed
    assert only(np.full(4, 0.5), np.full(4, 0.5 + 2**-11), threshold=2**-11).passed


def test_element_guard_is_relative_to_the_largest_expected_value() -> None:
    expected, actual = np.zeros(10**6), np.zeros(10**6)
    expected[0] = actual[0] = 1000.0
    actual[1] = 0.09
    assert only(expected, actual).passed
    actual[1] = 0.11
    assert not only(expected, actual).passed


def test_floor_is_the_epsilon_of_float64() -> None:
    zeros = np.zeros(3)
    assert only(zeros, zeros + 2.2e-16, rule=STRICT).passed
    assert not only(zeros, zeros + 2.3e-16, rule=STRICT).passed
    assert not only(zeros, zeros + 1e-300, rule=Rule("no floor", 1.0, 1e-9, 0.0)).passed


def test_strict_and_exact() -> None:
    expected = GENERATOR.standard_normal(100)
    assert only(expected, expected * (1 + 1e-12), rule=STRICT).passed
    assert not only(expected, expected * (1 + 1e-8), rule=STRICT).passed
    assert only(expected, expected.copy(), rule=EXACT).passed
    assert not only(expected, np.nextafter(expected, 9), rule=EXACT).passed
    assert only(np.array([0.0]), np.array([-0.0]), rule=EXACT).passed


def test_integers_are_exact_under_every_rule() -> None:
    for rule in (None, STRICT, EXACT, Rule("loose", 9.0, 9.0, 9.0)):
        result = only(np.array([10**9]), np.array([10**9 + 1]), rule=rule)
        assert not result.passed and result.rule == EXACT and result.exceed == math.inf


def test_a_rule_on_the_mean_alone() -> None:
    rule = Rule("mean", 0.5, math.inf, 0.0)
    assert only(np.zeros(4), np.array([0, 0, 0, 1.0]), rule=rule).passed
    assert not only(np.zeros(4), np.array([0, 0, 0, 9.0]), rule=rule).passed


@pytest.mark.parametrize("rule", [official_rule(math.inf), STRICT, Rule("", math.inf, math.inf, 0)])
def test_no_rule_lets_nan_or_infinity_through(rule: Rule) -> None:
    for bad in (math.nan, math.inf, -math.inf):
        for pair in ((bad, bad), (bad, 1.0), (1.0, bad)):
            assert not only(np.array([pair[0]]), np.array([pair[1]]), rule=rule).passed


def test_a_tolerance_that_is_no_number_lets_nothing_through() -> None:
    for rule in (official_rule(math.nan), Rule("", math.nan, 1.0, 0), Rule("", 1.0, math.nan, 0)):
        result = only(np.ones(2), np.ones(2), rule=rule)
        assert not result.passed and result.exceed == math.inf


def test_a_difference_beyond_the_largest_float_fails() -> None:
    largest = np.array([np.finfo(np.float64).max])
    result = only(largest, -largest)
    assert not result.passed and result.difference.max_abs == math.inf
    free = only(largest, -largest, rule=Rule("anything finite", math.inf, math.inf, 0))
    assert free.passed and free.exceed <= 1


def test_what_cannot_be_measured_has_no_difference() -> None:
    for other in (np.full(2, math.nan), np.ones(3), np.ones(2, int)):
        result = only(np.ones(2), other)
        assert result.difference is None and result.exceed == math.inf
        assert (result.numbers, result.largest) == ("not comparable", "")


def test_equal_data_are_nowhere_near_a_tolerance() -> None:
    for rule in (STRICT, EXACT, official_rule(1e-6)):
        result = only(np.ones(2), np.ones(2), rule=rule)
        assert result.exceed == 0 and not result.is_rounding_around_zero


def test_dtypes_of_one_kind_may_differ() -> None:
    assert only(np.ones(2, np.float32), np.ones(2)).passed
    assert only(np.ones(2, np.int32), np.ones(2, np.uint64)).passed
    assert only(np.ones(2, np.complex64), np.ones(2, complex)).passed


# The comparison as a value


def sample() -> Comparison:
    expected = {"a": np.ones(2), "b": np.ones(2), "c": np.array([1, 2]), "d": np.ones(2)}
    actual = {"a": np.ones(2), "b": np.array([1, 1.5]), "c": np.array([1, 3]), "d": np.ones(3)}
    return compare_records(expected, actual)


def test_worst_and_first_failure() -> None:
    comparison = sample()
    assert comparison.worst is not None and comparison.worst.key == "d"
    assert comparison.first_failure is not None and comparison.first_failure.key == "b"
    close = compare_records({"a": 1.0, "b": 2.0}, {"a": 1.0 + 1e-8, "b": 2.0 + 1e-7})
    assert close.passed and close.worst is not None and close.worst.key == "b"
    assert close.worst.exceed == pytest.approx(0.1, rel=1e-6)


def test_summary() -> None:
    assert sample().summary().splitlines() == [
        "failed  4 compared, worst d: not comparable",
        "  first key that differs: b",
        "    b: mean difference 2.5e-01; tolerance 1.0e-06 (official); "
        "max difference 5.0e-01 at (1,): expected 1.0, got 1.5",
        "    c: 1 of 2 elements differ, the most at (1,): expected 2, got 3",
        "    d: the shape differs: expected (2,), got (3,)",
        "  remark: one value throughout, so little is tested: a, b",
    ]
    assert sample().failing("layer")[0] == "  first layer that differs: b"
    many = compare_records({str(n): n for n in range(57)}, {str(n): -1 for n in range(57)})
    assert many.summary().splitlines()[-1] == "    ... and 47 more"
    assert len(many.summary().splitlines()) == 13


def test_names_cannot_forge_lines() -> None:
    comparison = compare_records({"a\ndiff check passed": 1}, {})
    assert len(comparison.summary().splitlines()) == 3
    assert "\n" not in comparison.reason


def test_json_is_strict() -> None:
    expected = {"nan": math.nan, "zero": np.zeros(2), "c": np.array([1j]), "s": np.array(b"x")}
    actual = {"nan": 1.0, "zero": np.ones(2), "c": np.array([2j]), "s": np.array(b"y"), "k": 1}
    comparison = compare_records(expected, actual)
    text = json.dumps(comparison.to_json(), allow_nan=False)
    read = json.loads(text)
    assert [key["key"] for key in read["keys"]] == ["nan", "zero", "c", "s", "k"]
    assert read["passed"] is False and read["reason"] == comparison.reason
    assert read["keys"][1]["max_rel"] == "inf" and read["keys"][0]["tolerance"] == "nan"
    assert read["keys"][1]["worst_index"] == [0] and read["keys"][1]["expected_shape"] == [2]
    assert read["rule"]["name"] == "official" and read["rule"]["floor"] == 1e-6
    assert json.loads(json.dumps(compare_records({}, {}).to_json(), allow_nan=False))["keys"] == []
    json.dumps(compare_records({"a": 1.0}, {"a": 1.0}, rule=STRICT).to_json(), allow_nan=False)


# Remarks


def test_remark_on_bit_identical_floats() -> None:
    record = {name: GENERATOR.standard_normal(4) for name in "abc"} | {"loss": 0.5, "ids": [1, 2]}
    (remark,) = compare_records(record, record, expect_noise=True).remarks
    assert remark == "bit-identical floats: were both files written by the same framework?"
    assert compare_records(record, record).remarks == ()
    noisy = record | {"b": record["b"] * (1 + 1e-15)}  # type: ignore[operator]
    assert compare_records(record, noisy, expect_noise=True).remarks == ()
    few = {name: record[name] for name in ("a", "b", "loss", "ids")}
    assert compare_records(few, few, expect_noise=True).remarks == ()


def test_remarks_on_constant_tensors() -> None:
    record = {f"z{n}": np.zeros(3) for n in range(6)} | {"ones": np.ones(2), "one": np.ones(1)}
    record |= {"ids": np.zeros(3, int), "c": np.zeros(2, complex)}
    comparison = compare_records(record, record)
    assert comparison.passed
    assert comparison.remarks == (
        "all zeros, so little is tested: z0, z1, z2, z3 and 3 more",
        "one value throughout, so little is tested: ones",
    )


# The package


def test_public_names() -> None:
    assert sorted(reprod_align.__all__) == reprod_align.__all__
    for name in reprod_align.__all__:
        assert getattr(reprod_align, name) is not None
    assert set(reprod_align.__all__) >= {"Gate", "Recorder", "check", "compare_records"}
    assert reprod_align.__version__ == "0.1.0"


def test_importing_imports_no_framework() -> None:
    code = """
import sys
import reprod_align, reprod_align.compat
print(sorted({name.partition(".")[0] for name in sys.modules} & {"torch", "paddle", "reprod_log"}))
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_within_the_threshold_everywhere_is_official(dtype: type) -> None:
    """Also where the expected values are zero, or rounding errors of zero."""
    for expected in (np.zeros(4), np.array([3e-7, -2e-7, 0, 1e-7])):
        a, b = expected.astype(dtype), (expected[::-1] * -1.5).astype(dtype) + dtype(1e-7)
        assert compare_records({"x": a}, {"x": b}).passed
        assert not compare_records({"x": a}, {"x": b + dtype(2e-6)}).passed


def test_strict_stays_strict_for_float32() -> None:
    """A side that lost its precision must not bring its own, coarser, tolerance along."""
    precise, coarse = np.array([1e-8, 2e-8]), np.array([-5e-8, 9e-8], dtype=np.float32)
    assert not compare_records({"x": precise}, {"x": coarse}, rule=STRICT).passed
    assert not compare_records({"x": coarse}, {"x": precise}, rule=STRICT).passed


def test_tensors_and_odd_values_are_compared_or_refused() -> None:
    import torch

    tensor = torch.ones(3, dtype=torch.bfloat16, requires_grad=True)
    assert compare_records({"x": tensor}, {"x": np.ones(3)}).passed
    assert not compare_records({"x": [[1], [2, 3]]}, {"x": [[1], [2, 3]]}).passed
    assert not compare_records({"x": 1.0}, {"x": 1.0, 1: 2.0, "b": 3.0}).passed


def test_within_the_threshold_is_not_strict() -> None:
    assert not compare_records({"x": np.zeros(4)}, {"x": np.full(4, 1e-7)}, rule=STRICT).passed
    assert compare_records({"x": np.zeros(4)}, {"x": np.full(4, 1e-17)}, rule=STRICT).passed


def test_the_headline_shows_the_tolerance_that_decides() -> None:
    seen = compare_records({"acc": 0.75}, {"acc": 0.748}, 0.0015)
    assert not seen.passed and seen.headline == (
        "failed  1 compared, worst acc: mean 2.0e-03 (tolerance 0.0015), "
        "max relative 2.7e-03 (tolerance 0.15)"
    )
    strict = compare_records({"acc": 0.75}, {"acc": 0.75}, rule=STRICT)
    assert strict.headline.startswith("passed  1 compared, worst acc: ")
    assert strict.headline.endswith("acc: mean 0.0e+00, max relative 0.0e+00 (tolerance 1e-09)")
    exact = compare_records({"n": 3}, {"n": 4})
    assert exact.headline.endswith("n: mean 1.0e+00, max relative 3.3e-01 (tolerance 0)")


def test_a_result_as_json_holds_numbers_and_no_array() -> None:
    large = np.arange(100_000.0)
    text = json.dumps(compare_records({"x": large}, {"x": large}).to_json(), allow_nan=False)
    assert len(text) < 2000 and json.loads(text)["keys"][0]["ulp"] == 0


def test_the_worst_key_is_the_furthest_beyond_its_tolerance() -> None:
    ours = {"far": np.ones(2), "id": np.array([10**9]), "fine": np.ones(2)}
    theirs = ours | {"far": np.full(2, 9.0), "id": np.array([10**9 + 1])}
    found = compare_records(ours, theirs)
    assert found.worst is not None and found.worst.key == "id", "an integer may not be off at all"
    scores = np.array([[1.0, 1.0 - 1e-10], [0.0, 5.0]])
    flipped = scores + np.array([[0, 2e-10], [0, 0]])
    near = {"fine": np.array([1.0, 2.0]), "logits": scores}
    found = compare_records(
        near, {"fine": near["fine"] * (1 + 9e-10), "logits": flipped}, rule=STRICT
    )
    assert found.worst is not None and found.worst.key == "logits", "it alone failed"


def test_where_all_passed_the_worst_key_is_relatively_the_furthest() -> None:
    ours = {"large": np.array([1e6, 2e6]), "small": np.array([1e-3, 2e-3])}
    theirs = {"large": ours["large"] + 1e-7, "small": ours["small"] + 1e-9}
    found = compare_records(ours, theirs)
    assert found.passed and found.worst is not None and found.worst.key == "small"
    ours = {"bias": np.array([1e-17, -1e-17]), "out": np.array([1.0, 2.0])}
    theirs = {"bias": -ours["bias"], "out": ours["out"] * (1 + 1e-12)}
    found = compare_records(ours, theirs, rule=STRICT)
    assert found.passed and found.worst is not None and found.worst.key == "out"


def test_json_names_the_worst_key_the_remarks_and_the_rules() -> None:
    plain = sample().to_json()
    assert plain["worst"]["key"] == "d" and plain["remarks"] == list(sample().remarks) != []
    assert [key["rule"] for key in plain["keys"]] == ["official", "official", "exact", "official"]
    last = plain["keys"][3]
    assert (last["expected_dtype"], last["expected_shape"]) == ("float64", [2])
    assert (last["actual_dtype"], last["actual_shape"]) == ("float64", [3])
    assert list(plain) == ["passed", "reason", "rule", "worst", "remarks", "keys"]
    assert compare_records({}, {}).to_json()["worst"] is None
    near = {"x": np.array([1.0, 2.0])}, {"x": np.array([1.0, 2.0]) * (1 + 1e-12)}
    assert compare_records(*near).to_json()["keys"][0]["ulp"] is None, "not measured: it passed"
    far = {"x": np.array([1.0, 2.0])}, {"x": np.array([1.0, np.nextafter(2.0, 3)])}
    assert compare_records(*far, rule=EXACT).to_json()["keys"][0]["ulp"] == 1


def test_a_key_is_called_a_key() -> None:
    assert "  first key that differs: b" in sample().summary().splitlines()
    assert sample().failing()[0] == "  first key that differs: b"
