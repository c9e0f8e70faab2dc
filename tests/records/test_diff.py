"""Differences: exact where they can be, NaN where they must be, streamed always."""

import math
import tracemalloc

from reprod_align import ReprodError, compare_arrays
from reprod_align.base import blocks
from reprod_align.base.difference import dtype_kind

import numpy as np
import pytest

GENERATOR = np.random.default_rng(0)


def test_numbers_of_a_small_pair() -> None:
    expected = np.array([[0.0, -4.0], [1.0, 2.0]])
    actual = np.array([[0.0, -4.0], [1.5, 2.25]])
    d = compare_arrays(expected, actual)
    assert (d.mean_abs, d.max_abs, d.min_abs) == (0.1875, 0.5, 0.0)
    assert (d.scale, d.max_rel) == (4.0, 0.125)
    assert (d.mismatches, d.size, d.worst_index) == (2, 4, (1, 0))
    assert (d.expected_value, d.actual_value) == (1.0, 1.5)
    assert type(d.expected_value) is float


def test_no_dimensions() -> None:
    d = compare_arrays(np.array(1.0), np.array(3.0))
    assert (d.worst_index, d.max_abs, d.size) == ((), 2.0, 1)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble])
def test_equal_floats(dtype: type) -> None:
    array = GENERATOR.standard_normal((3, 5)).astype(dtype)
    d = compare_arrays(array, array.copy())
    assert (d.max_abs, d.max_rel, d.mismatches, d.ulp) == (0.0, 0.0, 0, 0)
    assert d.first_index is None


def test_scale_of_zero() -> None:
    zeros = np.zeros(3)
    assert compare_arrays(zeros, zeros).max_rel == 0.0
    assert compare_arrays(zeros, np.array([0, 1e-30, 0])).max_rel == math.inf


def test_computed_in_float64() -> None:
    expected = np.full(4, 1e8, np.float32)
    d = compare_arrays(expected, expected.astype(np.float64) + 0.25)
    assert d.max_abs == 0.25
    huge = np.array([3e38], np.float32)
    assert compare_arrays(huge, -huge).max_abs == float(huge[0]) * 2
    half = np.array([60000], np.float16)
    assert compare_arrays(half, -half).max_abs == 120000


def test_complex() -> None:
    d = compare_arrays(np.array([3 + 4j, 0]), np.array([3 + 4j, 3 - 4j]))
    assert (d.max_abs, d.scale, d.worst_index, d.mismatches) == (5.0, 5.0, (1,), 1)
    single = np.array([1 + 1j], np.complex64)
    assert compare_arrays(single, np.array([1 + np.nextafter(np.float32(1), 2) * 1j])).ulp == 1


# NaN and infinity


@pytest.mark.parametrize("place", [0, 3, 5])
@pytest.mark.parametrize("side", [0, 1, 2])
def test_nan_makes_every_number_nan(place: int, side: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "_count_block", lambda *_: 2)
    pair = [np.arange(6.0), np.arange(6.0) * 7]
    for array in pair if side == 2 else [pair[side]]:
        array[place] = math.nan
    d = compare_arrays(*pair)
    assert math.isnan(d.mean_abs) and math.isnan(d.max_abs) and math.isnan(d.min_abs)
    assert math.isnan(d.max_rel) and d.worst_index == (place,) and d.ulp is None
    assert not d.max_abs <= math.inf


@pytest.mark.parametrize("pair", [(1, 1), (1, -1), (1, 0), (0, 1)])
def test_infinity_never_looks_close(pair: tuple[int, int]) -> None:
    sides = [np.array([math.inf * sign if sign else 0.0, 1.0]) for sign in pair]
    d = compare_arrays(*sides)
    assert not d.max_abs <= 1e300 and not d.mean_abs <= 1e300
    assert d.ulp is None


def test_what_is_not_finite_is_counted_on_its_own_side(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "_count_block", lambda *_: 2)
    array = np.zeros((2, 4), np.float32)
    assert compare_arrays(array, array).nonfinite == ""
    other = array.copy()
    other[0, 3], other[1, 0], other[1, 1] = math.inf, math.nan, -math.inf
    theirs = "not finite: the actual side has 1 NaN and 2 inf, the first at (0, 3)"
    assert compare_arrays(array, other).nonfinite == theirs
    array[1, 3] = math.nan
    ours = "not finite: the expected side has 1 NaN, the first at (1, 3)"
    assert compare_arrays(array, other).nonfinite == f"{ours}; {theirs}"
    assert compare_arrays(other, other).nonfinite.count("1 NaN and 2 inf, the first at (0, 3)") == 2
    part = np.array([0, complex(0, math.nan)])
    assert "actual side has 1 NaN, the first at (1,)" in compare_arrays(part * 0, part).nonfinite
    huge = np.array([1e308, 1e308])
    assert compare_arrays(huge, -huge).nonfinite == ""


# Integers, booleans, texts


@pytest.mark.parametrize(
    ("expected", "actual", "gap"),
    [
        (np.uint8(0), np.uint8(255), 255),
        (np.int8(-128), np.int8(127), 255),
        (np.uint8(1), np.int8(-1), 2),
        (np.int64(-(2**63)), np.int64(2**63 - 1), 2**64 - 1),
        (np.uint64(0), np.uint64(2**64 - 1), 2**64 - 1),
        (np.uint64(2**64 - 1), np.int64(-1), 2**64),
        (np.int64(-1), np.uint64(2**64 - 1), 2**64),
        (np.int64(-(2**63)), np.uint64(2**63), 2**64),
        (np.int64(2**63 - 1), np.uint64(2**63), 1),
        (np.int64(2**53), np.int64(2**53 + 1), 1),
        (np.uint64(2**63), np.uint64(2**63 + 1), 1),
        (np.int16(5), np.uint32(5), 0),
    ],
)
def test_integers_neither_wrap_nor_round(
    expected: np.integer, actual: np.integer, gap: int
) -> None:
    d = compare_arrays(np.array([expected]), np.array([actual]))
    assert d.max_abs == float(gap)
    assert d.mismatches == (gap != 0)
    assert d.ulp is None
    assert (d.expected_value, d.actual_value) == (int(expected), int(actual))


def test_scale_of_the_smallest_integer() -> None:
    smallest = np.array([-128], np.int8)
    assert compare_arrays(smallest, smallest).scale == 128


def test_the_kind_of_a_dtype_is_a_word() -> None:
    assert [dtype_kind(np.dtype(one)) for one in ("u1", "f2", "M8[s]")] == [
        "integer",
        "float",
        "datetime64[s]",
    ]


def test_booleans_and_texts_are_counted() -> None:
    d = compare_arrays(np.array([True, False, True, True]), np.array([True, True, True, False]))
    assert (d.mismatches, d.mean_abs, d.max_abs, d.worst_index) == (2, 0.5, 1.0, (1,))
    assert (d.expected_value, d.actual_value, d.scale) == (False, True, 1.0)
    d = compare_arrays(np.array(["a", "b"]), np.array(["a", "bcd"]))
    assert (d.mismatches, d.worst_index, d.actual_value) == (1, (1,), "bcd")
    d = compare_arrays(np.array([b"a"]), np.array([b"a"]))
    assert (d.mismatches, d.max_abs, d.max_rel) == (0, 0.0, 0.0)


# Units in the last place


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_ulp_of_neighbours(dtype: type) -> None:
    one, tiny = dtype(1), np.finfo(dtype).smallest_subnormal
    after = np.nextafter(one, dtype(2))
    assert compare_arrays(np.array([one]), np.array([after])).ulp == 1
    assert compare_arrays(np.array([one]), np.array([after])).to_json()["ulp"] == 1
    assert compare_arrays(np.array([-one]), np.array([-after])).ulp == 1
    assert compare_arrays(np.array([dtype(0)]), np.array([dtype(-0.0)])).ulp == 0
    assert compare_arrays(np.array([tiny]), np.array([-tiny])).ulp == 2
    assert compare_arrays(np.array([one]), np.array([after + after - one])).ulp == 2


def test_ulp_is_of_the_coarser_dtype() -> None:
    single, double = np.array([1], np.float32), np.array([1 + 2.0**-23])
    assert compare_arrays(single, double).ulp == 1
    assert compare_arrays(double, single).ulp == 1


def test_ulp_of_long_doubles_is_that_of_doubles() -> None:
    one = np.array([1, 1], np.longdouble)
    found = compare_arrays(one, one + np.array([0, 2.0**-51]))
    assert found.ulp == 2 and type(found.actual_value) is float


def test_ulp_of_the_largest_distance() -> None:
    largest = np.array([np.finfo(np.float64).max])
    assert compare_arrays(largest / 2, -largest / 2).ulp == 2 * int((largest / 2).view(np.int64)[0])


# Blocks


@pytest.mark.parametrize("block", [1, 3, 7, 1000])
def test_blocks_change_nothing(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = GENERATOR.standard_normal((4, 5, 6))
    actual = expected + GENERATOR.standard_normal((4, 5, 6)) * 1e-3
    whole = compare_arrays(expected, actual)
    monkeypatch.setattr(blocks, "_count_block", lambda *_: block)
    for e, a in ((expected, actual), (np.asfortranarray(expected), actual)):
        parts = compare_arrays(e, a)
        rounding = e.size * np.finfo(np.float64).eps  # of a sum of positive numbers, in any order
        assert parts.mean_abs == pytest.approx(whole.mean_abs, rel=rounding)
        assert (parts.max_abs, parts.worst_index) == (whole.max_abs, whole.worst_index)
        assert (parts.ulp, parts.mismatches, parts.scale) == (
            whole.ulp,
            whole.mismatches,
            whole.scale,
        )


def test_the_first_of_equal_differences_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "_count_block", lambda *_: 2)
    assert compare_arrays(np.zeros(6), np.array([0, 0, 0, 1.0, 1.0, 1.0])).worst_index == (3,)


def test_layout_and_byte_order_do_not_matter() -> None:
    array = GENERATOR.standard_normal((3, 4))
    for other in (np.asfortranarray(array), array.astype(">f8"), np.repeat(array, 2, 1)[:, ::2]):
        d = compare_arrays(array, other)
        assert (d.max_abs, d.mismatches, d.ulp) == (0.0, 0, 0)


def test_memory_does_not_grow_with_the_array() -> None:
    expected = np.ones((8, 1 << 20), np.float32)  # 32 MB, 64 MB in float64
    tracemalloc.start()
    for actual in (expected, np.asfortranarray(expected)):
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        compare_arrays(expected, actual)
        assert tracemalloc.get_traced_memory()[1] - before < 60 * 2**20
    tracemalloc.stop()


# What is refused


@pytest.mark.parametrize(
    ("expected", "actual", "said"),
    [
        (np.ones((4, 2)), np.ones((2, 4)), r"shape differs: expected \(4, 2\), got \(2, 4\)"),
        (np.ones((4, 2)), np.ones(2), r"shape differs: expected \(4, 2\), got \(2,\)"),
        (np.ones(1), np.array(1.0), r"shape differs: expected \(1,\), got \(\)"),
        (np.ones(2), np.ones(2, int), r"float \(float64\), got integer \(int64\)"),
        (np.ones(2), np.ones(2, complex), r"float \(float64\), got complex \(complex128\)"),
        (np.array(["a"]), np.array([b"a"]), r"string \(<U1\), got bytes \(\|S1\)"),
        (np.array([None]), np.array([None]), "dtype object cannot be compared"),
        (np.ones((0, 3)), np.ones((0, 3)), r"nothing to compare: shape \(0, 3\)"),
    ],
)
def test_refused(expected: np.ndarray, actual: np.ndarray, said: str) -> None:
    with pytest.raises(ReprodError, match=said):
        compare_arrays(expected, actual)


@pytest.mark.parametrize(
    ("actual", "smallest"),
    [([1.5, 3.0], 0.5), ([1.0, 3.0], 0.0), ([1.0, math.nan], math.nan)],
)
def test_the_smallest_difference(actual: list[float], smallest: float) -> None:
    found = compare_arrays(np.array([1.0, 2.0]), np.array(actual))
    np.testing.assert_equal(found.min_abs, smallest)
