"""The one comparison formula: every kind of value, every layout, in blocks, and where it is worst."""

import math
from typing import Any

from reprod_align.base import blocks
from reprod_align.base.blocks import magnitude, measure_distances, read_both
from reprod_align.base.difference import divide, gap

import numpy as np
import pytest

RANDOM = np.random.default_rng(0)
LAYOUTS = {
    "contiguous": lambda array: np.ascontiguousarray(array),
    "fortran": np.asfortranarray,
    "strided": lambda array: np.repeat(array, 2, 1)[:, ::2],
    "big endian": lambda array: array.astype(">f8"),
}


@pytest.mark.parametrize("block", [1, 3, 7, 50, 1000])
@pytest.mark.parametrize("ours", LAYOUTS)
@pytest.mark.parametrize("theirs", LAYOUTS)
def test_every_layout_and_block_finds_the_planted_element(
    block: int, ours: str, theirs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "_count_block", lambda *_: block)
    expected = RANDOM.integers(-9, 9, (4, 5, 6)).astype(np.float64)
    actual = expected.copy()
    actual[2, 3, 1] += 0.5
    actual[3, 4, 5] += 0.5  # as far off, but not the first
    found = gap(LAYOUTS[ours](expected), LAYOUTS[theirs](actual))
    assert found.difference == 0.5 and not found.ok
    assert found.scale == np.abs(expected).max()
    assert found.words.startswith("at (2, 3, 1) expected ")


@pytest.mark.parametrize("block", [1, 4, 9, 100])
@pytest.mark.parametrize("shape", [(), (7,), (2, 40), (40, 2), (3, 4, 5), (1, 60)])
def test_blocks_are_the_whole_in_order(
    block: int, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "_count_block", lambda *_: block)
    numbers = np.arange(math.prod(shape), dtype=np.float64).reshape(shape)
    for array in (numbers, np.asfortranarray(numbers), np.stack([numbers, -numbers], -1)[..., 0]):
        parts = list(read_both(array, -array))
        assert np.concatenate([part.ravel() for _, part, _ in parts]).tolist() == [
            *range(numbers.size)
        ]
        assert all(start == part.flat[0] == -other.flat[0] for start, part, other in parts)
        assert all(part.size <= 5 * block for _, part, _ in parts)


@pytest.mark.parametrize(
    ("expected", "actual", "apart"),
    [
        (math.nan, math.nan, 0.0),
        (math.inf, math.inf, 0.0),
        (math.inf, -math.inf, math.inf),
        (math.inf, 1.0, math.inf),
        (1.0, math.nan, math.inf),
        (math.nan, math.inf, math.inf),
        (1.7e308, -1.7e308, math.inf),
    ],
)
def test_nan_and_infinity_are_compared_by_place(
    expected: float, actual: float, apart: float
) -> None:
    found = gap(np.array([2.0, expected, 3.0]), np.array([2.0, actual, 3.0]))
    assert found.difference == apart and found.ok == (apart == 0)
    assert found.scale == (max(3.0, expected) if abs(expected) < math.inf else 3.0)
    if apart:
        assert found.words.startswith("at (1,)") and found.exceed == math.inf


def test_a_tolerance_of_nan_fails() -> None:
    assert not gap(np.ones(2), np.ones(2) * 1.1, relative=math.nan).ok


@pytest.mark.parametrize(
    ("expected", "actual", "apart"),
    [
        (np.int64(-(2**63)), np.int64(2**63 - 1), 2**64 - 1),
        (np.int64(2**53), np.int64(2**53 + 1), 1),
        (np.uint64(2**64 - 1), np.int64(-1), 2**64),
        (np.int64(-1), np.uint64(2**64 - 1), 2**64),
        (np.int64(2**63 - 1), np.uint64(2**63), 1),
        (np.uint8(1), np.int8(-1), 2),
        (np.int8(-128), np.int8(127), 255),
        (np.bool_(True), np.bool_(False), 1),
    ],
)
def test_integers_are_exact_and_have_no_tolerance(expected: Any, actual: Any, apart: int) -> None:
    found = gap(np.array([expected]), np.array([actual]), relative=1.0, floor=1e30)
    assert (found.difference, found.tolerance, found.ok) == (float(apart), 0.0, False)
    assert gap(np.array([expected]), np.array([expected])).ok


def test_texts_are_equal_or_not() -> None:
    ((_, apart, _, _),) = measure_distances(np.array(["a", "b"]), np.array(["a", "bc"]))
    assert apart.tolist() == [0.0, 1.0]
    ((_, apart, _, _),) = measure_distances(np.array(b"a"), np.array(b"b"))
    assert apart.tolist() == [1.0]


def test_floats_against_integers_and_half_precision_are_subtracted_in_float64() -> None:
    assert gap(np.array([1, 2]), np.array([1.0, 2.5])).difference == 0.5
    assert gap(np.array([60000], np.float16), np.array([-60000], np.float16)).difference == 120000
    single = np.full(4, 1e8, np.float32)
    assert gap(single, single.astype(np.float64) + 0.25).difference == 0.25
    assert gap(np.array([3 + 4j, 0]), np.array([3 + 4j, 3 - 4j])).difference == 5.0


def test_the_tolerance_is_relative_to_the_largest_element_plus_a_floor() -> None:
    expected, actual = np.array([0.0, -4.0]), np.array([4e-3, -4.0])
    found = gap(expected, actual, relative=1e-3, floor=1e-9)
    assert found.tolerance == 1e-3 * 4 + 1e-9 and found.ok and found.exceed < 1
    assert found.relative == 1e-3
    assert not gap(expected, actual, relative=0.9e-3).ok


def test_other_shapes_are_infinitely_far_and_nothing_agrees_with_nothing() -> None:
    found = gap(np.ones((2, 3)), np.ones((3, 2)))
    assert found.difference == math.inf and not found.ok
    assert found.words == "shape (2, 3) expected, got (3, 2)"
    assert gap(np.ones((0, 3)), np.ones((0, 3))).ok


def test_magnitude_is_that_of_finite_floats() -> None:
    assert magnitude(np.array([1.0, -3.0, math.nan, math.inf])) == 3.0
    assert magnitude(None) == magnitude(np.array([5])) == magnitude(np.zeros((0, 2))) == 0.0


def test_division_by_a_scale_of_zero() -> None:
    assert (divide(0.0, 0.0), divide(1.0, 0.0), divide(1.0, 4.0)) == (0.0, math.inf, 0.25)
    assert math.isnan(divide(math.nan, 0.0)) and math.isnan(divide(math.nan, 1.0))


@pytest.mark.parametrize("at", [0, 20000, 99999])
def test_a_difference_is_found_in_every_block(at: int) -> None:
    expected = np.linspace(1, 2, 100000).reshape(100, 1000)
    actual = expected.copy()
    actual.flat[at] += 1e-3
    found = gap(expected, actual)
    assert not found.ok and found.difference == pytest.approx(1e-3) and found.scale == 2.0
    assert found.words.startswith(f"at ({at // 1000}, {at % 1000})")
    actual.flat[at] = np.nan
    assert gap(expected, actual).difference == np.inf
    assert magnitude(actual) == pytest.approx(2.0, rel=1e-4)


@pytest.mark.parametrize("block", [3, 1000])
@pytest.mark.parametrize("actual", LAYOUTS)
def test_the_mean_is_measured_where_it_is_wanted(
    block: int, actual: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "_count_block", lambda *_: block)
    expected, theirs = np.arange(20.0).reshape(4, 5), np.arange(20.0).reshape(4, 5)
    theirs[1, 2] += 3.0
    theirs[3, 4] -= 1.0
    assert gap(expected, LAYOUTS[actual](theirs), with_mean=True).mean == 4 / 20
    assert math.isnan(gap(expected, theirs).mean)
    theirs[0, 0] = math.nan
    assert math.isnan(gap(expected, theirs, with_mean=True).mean)
    assert math.isnan(gap(expected, theirs[:2], with_mean=True).mean)
    assert gap(np.full(3, -1e308), np.full(3, 0.7e308), with_mean=True).mean == math.inf
