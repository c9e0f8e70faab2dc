"""Each element is judged by what rounding can do there; what stands apart is found; flips are counted."""

from typing import Any

from reprod_align.base import blocks, local
from reprod_align.base.blocks import magnitude
from reprod_align.base.difference import gap
from reprod_align.base.local import (
    Allowance,
    count_flips,
    find_beyond,
    is_named_scores,
    judge,
    may_be_scores,
    measure_ordinary,
    measure_sizes,
)

import numpy as np
import pytest

RANDOM = np.random.default_rng(0)


def rounded(array: np.ndarray) -> np.ndarray:
    """Return the array as another framework computes it."""
    with np.errstate(over="ignore"):
        made = array * (1 + 1e-15 * RANDOM.standard_normal(array.shape))
    return np.where(np.abs(array) > 1e300, array, made)


def with_column(value: float) -> np.ndarray:
    array = RANDOM.standard_normal((4, 3))
    array[:, 1] = value
    return array


def with_outlier() -> np.ndarray:
    array = RANDOM.standard_normal((50, 20))
    array[3] *= 1e-3
    array[7, 7] = 12345678.0
    return array


def with_rows(*sizes: float) -> np.ndarray:
    return RANDOM.standard_normal((len(sizes), 16)) * np.array(sizes)[:, None]


HIDING = {
    "a column of -1e9": (with_column(-1e9), (0, 0)),
    "a column of -1e4": (with_column(-1e4), (2, 2)),
    "the least float32": (with_column(float(np.finfo(np.float32).min)), (0, 0)),
    "the least float64": (with_column(float(np.finfo(np.float64).min)), (0, 0)),
    "minus infinity": (with_column(-np.inf), (0, 0)),
    "an outlier": (with_outlier(), (3,)),
    "a row of 10": (with_rows(1e-4, 10.0, 10.0), (0,)),
    "a channel of 1e7": (with_rows(*[1.0] * 9)[:, :2] * [1e7, 1e-3], (slice(None), 1)),
    "channels of all sizes": (
        with_rows(*[1.0] * 9) * 10.0 ** (np.arange(16) / 2 - 4),
        (slice(None), 1),
    ),
    "rows of all sizes": (with_rows(1e-4, 1e-2, 1.0, 1e2, 1e4), (0,)),
}


@pytest.mark.parametrize("name", HIDING)
@pytest.mark.parametrize("block", [5, 2**14])
@pytest.mark.parametrize("layout", [np.ascontiguousarray, np.asfortranarray])
def test_what_is_small_does_not_hide_behind_what_is_large(
    name: str, block: int, layout: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "_count_block", lambda *_: block)
    expected, where = HIDING[name]
    assert judge(layout(expected), rounded(expected)).ok
    for factor in (-1.0, 1.01):
        wrong = rounded(expected)
        wrong[where] *= factor
        found = judge(layout(expected), wrong)
        assert not found.ok and found.worst is not None
        hit = np.zeros(expected.shape, bool)
        hit[where] = True
        assert hit.flat[found.worst[0]]


def test_local_says_whether_the_whole_tensor_would_allow_it() -> None:
    expected = with_column(-1e9)
    wrong = expected.copy()
    wrong[0, 0] += 0.5
    found = judge(expected, wrong)
    assert gap(expected, wrong).ok and found.local and found.relative > 0.1
    wrong[0, 0] += 5.0
    found = judge(expected, wrong)
    assert not gap(expected, wrong).ok and not found.local and found.relative > 1.0


def test_what_stands_apart_is_compared_with_its_own_size() -> None:
    for value, allowed in ((-1e9, 1e-7), (float(np.finfo(np.float32).min), 0.0)):
        expected = with_column(value)
        wrong = expected.copy()
        wrong[1, 1] = value * (1 + 1e-12)
        assert not judge(expected, wrong).ok
        wrong[1, 1] = value + allowed
        assert judge(expected, wrong).ok
    outlier = with_outlier()
    wrong = outlier.copy()
    wrong[7, 7] *= 1 + 1e-12
    assert judge(outlier, wrong).ok
    wrong[7, 7] *= 1 + 1e-8
    assert not judge(outlier, wrong).ok
    assert judge(outlier, wrong).relative == pytest.approx(1e-8, rel=1e-3)
    noise = np.where(outlier > 1e6, 1.0, 0.0)  # no more than 1e-9 of it
    assert not judge(outlier, wrong, Allowance(noise=noise)).ok
    wrong[7, 7] = outlier[7, 7] * (1 + 5e-10)
    assert judge(outlier, wrong, Allowance(noise=noise)).ok


def test_a_mask_has_its_zeros_where_they_are() -> None:
    mask = np.triu(np.full((8, 8), -1e9), 1)
    assert judge(mask, mask.copy()).ok and not judge(mask, mask.T).ok
    wrong = mask.copy()
    wrong[3, 0] = 0.5
    assert not judge(mask, wrong).ok


@pytest.mark.parametrize(
    "values",
    [
        np.exp(RANDOM.standard_normal((8, 200)) * 30),
        np.concatenate([with_rows(1.0, 1.0), 1e-17 * RANDOM.standard_normal((40, 16))]),
        np.append(RANDOM.standard_normal(20), np.zeros(20)),
    ],
)
def test_rounding_of_the_largest_is_allowed_where_zero_is_due(values: np.ndarray) -> None:
    values = values / np.abs(values).sum(-1, keepdims=True)
    noise = 1e-16 * RANDOM.standard_normal(values.shape)
    assert judge(values, values + noise).ok


def test_noise_that_is_known_is_allowed_up_to_the_tolerance_of_the_whole() -> None:
    expected = with_rows(1e-6, 10.0)
    actual = expected.copy()
    actual[0, 0] += 5e-9
    noise = np.zeros(expected.shape)
    assert not judge(expected, actual, Allowance(noise=noise)).ok
    noise[0, 0] = 6e-9
    assert judge(expected, actual, Allowance(noise=noise)).ok
    actual[0, 0] += 1.0
    assert not judge(expected, actual, Allowance(noise=noise + 9.0)).ok
    assert not judge(expected, actual, Allowance(noise=noise * np.nan)).ok


def test_nothing_is_allowed_that_the_largest_value_does_not_allow() -> None:
    for seed in range(50):
        source = np.random.default_rng(seed)
        expected = source.standard_normal((6, 5)) * 10.0 ** source.integers(-9, 9, (6, 1))
        actual = expected + source.standard_normal((6, 5)) * 10.0 ** source.integers(-18, 0)
        assert not judge(expected, actual).ok or gap(expected, actual).ok


def test_integers_shapes_nan_and_tolerances_without_a_number_stay_as_they_were() -> None:
    ones = np.ones((2, 3))
    for other in (ones * np.nan, np.where(np.eye(2, 3), -np.inf, ones)):
        assert judge(ones, other).difference == np.inf and judge(ones, other).tolerance == 1e-9
    assert judge(ones, ones.T) == gap(ones, ones.T)
    ids = np.array([2**53, 1])
    assert not judge(ids, ids + [1, 0]).ok and judge(ids, ids).ok
    for relative in (np.nan, np.inf):
        found = gap(ones, ones + 1, relative)
        assert find_beyond(ones, ones + 1, Allowance(relative), found) is None


def test_single_numbers_and_rows_of_one() -> None:
    assert judge(np.array(2.0), np.array(2.0 + 1e-10)).ok
    assert not judge(np.array(2.0), np.array(2.0 + 1e-8)).ok
    column = np.array([[1e-4], [10.0], [10.0], [10.0]])
    assert judge(column, column + [[1e-9], [0.0], [0.0], [0.0]]).ok  # a row of one says nothing
    assert not judge(column, column + [[2e-8], [0.0], [0.0], [0.0]]).ok


def test_what_large_elements_show_as_noise_is_allowed_to_small_ones() -> None:
    expected = with_rows(1e-6, 1.0, 1.0, 1.0)
    noise = RANDOM.standard_normal(expected.shape) * 1e-10
    found = gap(expected, expected + noise)
    assert found.ok and found.difference > 1e-10  # ten times what the first row has by itself
    assert judge(expected, expected + noise).ok
    assert not judge(expected, expected + noise * np.array([[1], [0], [0], [0]])).ok
    assert not judge(expected, expected + noise * np.array([[60], [1], [1], [1]])).ok


def test_the_mean_stays_with_an_element_that_is_worse_at_its_place() -> None:
    expected, where = HIDING["a row of 10"]
    wrong = expected.copy()
    wrong[where] *= 1 + 1e-5
    found = judge(expected, wrong, with_mean=True)
    assert found.local and np.isclose(found.mean, np.abs(wrong - expected).mean())


SCORES = RANDOM.standard_normal((2, 4, 8, 8))
HIDDEN = np.triu(np.ones((8, 8), bool), 1)
LARGEST = np.abs(SCORES[..., ~HIDDEN]).max()


def find_sizes(values: np.ndarray, **more: float) -> local.Sizes:
    return measure_sizes(values, magnitude(values), **more)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("value", ["min", "max", -1e4, -5e4])
def test_constants_that_hide_stand_apart(dtype: type, value: str | float) -> None:
    constant = float(getattr(np.finfo(dtype), value)) if isinstance(value, str) else value
    sizes = find_sizes(np.where(HIDDEN, constant, SCORES).astype(dtype))
    assert sizes.ordinary == pytest.approx(LARGEST, rel=1e-3)
    assert [one.tolerance for one in sizes.apart] == [0.0] and not sizes.apart[0].computed


def test_the_most_of_a_tensor_may_be_hidden() -> None:
    rows = np.full((20, 50), -1e9)
    rows[:, 0] = RANDOM.standard_normal(20)
    assert measure_ordinary(rows) == np.abs(rows[:, 0]).max()


def test_a_constant_with_scores_added_and_two_masks_at_once_stand_apart() -> None:
    both = SCORES + HIDDEN * -1e9 + (np.arange(8) > 5) * -1e9
    sizes = find_sizes(both, spread=1e-2)
    assert sizes.ordinary == np.abs(both[np.abs(both) < 1e6]).max()
    assert [one.tolerance for one in sizes.apart] == [pytest.approx(1e-11)]


def test_a_mask_of_zeros_has_no_scale() -> None:
    assert measure_ordinary(HIDDEN * -1e9) == 0.0
    assert measure_ordinary(HIDDEN * 1.0) == 1.0  # of 0 and 1


@pytest.mark.parametrize("value", [-1e9, -3e4, 65504.0, 2.0**128 - 2.0**120])
def test_a_single_number_that_a_person_wrote_stands_apart(value: float) -> None:
    assert measure_ordinary(np.array([0.3, value])) == 0.3
    assert measure_ordinary(np.array([0.3, value * 1.0001], np.float32)) > 1e4


@pytest.mark.parametrize("shape", [(40, 40), (400, 400)])
def test_a_rare_outlier_stands_apart(shape: tuple[int, int]) -> None:
    values = RANDOM.standard_normal(shape)
    usual = np.abs(values).max()
    values[3, 5], values[7, 1] = 12345678.0, np.inf
    sizes = find_sizes(values)
    assert sizes.ordinary == usual
    assert [(one.low, one.computed) for one in sizes.apart] == [(12345678.0, True)]


@pytest.mark.parametrize(
    "values",
    [
        RANDOM.standard_normal(1000) ** 9,  # no gap
        np.repeat([10.0, 1e-4], [30, 10]),  # the large ones are the most
        np.append(RANDOM.standard_normal(3), 1e-17 * RANDOM.standard_normal(40)),  # rounding of those
        np.full(9, -1e9),
        np.array([31234.5, 27654.3, 98123.4, 1.0]),  # large, and no constant
        np.zeros(5),
        np.array(7.0),
    ],
)  # fmt: skip
def test_nothing_else_does(values: np.ndarray) -> None:
    assert find_sizes(values) == local.Sizes(np.abs(values).max())


@pytest.mark.parametrize("block", [7, 64])
def test_a_gap_that_only_the_sample_has_is_none(
    block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "_count_block", lambda *_: block)
    monkeypatch.setattr(local, "_SAMPLE", 16)
    values = np.ones((100, 100))
    values[50] = 10.0 ** np.linspace(0, 9, 100)
    assert find_sizes(values) == local.Sizes(1e9)
    values[50] = 1.0
    values[50, 50] = -1e9
    assert measure_ordinary(values) == 1.0


def test_integers_and_nothing_have_no_magnitude() -> None:
    assert measure_ordinary(np.array([5])) == measure_ordinary(np.zeros((0, 2))) == 0.0
    assert measure_ordinary(np.array([np.nan, -np.inf])) == 0.0


_SCORES_ROWS = np.array([[1.0, 2.0, -1e9], [3.0, 0.0, -1e9]])


def test_flips_are_counted_by_row() -> None:
    assert count_flips(_SCORES_ROWS, _SCORES_ROWS) == 0
    assert count_flips(_SCORES_ROWS, _SCORES_ROWS[:, [1, 0, 2]]) == 2
    assert count_flips(_SCORES_ROWS[None], _SCORES_ROWS[None, :, [1, 0, 2]]) == 2


def test_a_tie_may_fall_either_way() -> None:
    near = _SCORES_ROWS.copy()
    near[0, 0] = 2.0 - 1e-12
    other = near.copy()
    other[0, 0] += 2e-12
    assert count_flips(near, other) == 1 and count_flips(near, other, 1e-11) == 0
    near[0, 0] = 2.0 - 1e-8  # -1e9 is no scale
    assert count_flips(near, other, 1e-11) == 1


def test_nan_and_infinity_are_not_chosen_by_accident() -> None:
    expected = np.array([[np.nan, 1.0], [-np.inf, -np.inf]])
    assert count_flips(expected, expected, 1e-11) == 0
    assert count_flips(expected, np.array([[2.0, 1.0], [0.0, -np.inf]]), 1e-11) == 1
    assert count_flips(np.array([[5.0, 1.0]]), np.array([[np.nan, 1.0]]), 1e-11) == 1


def test_scores_are_told_by_their_name() -> None:
    assert is_named_scores("model.start_logits", _SCORES_ROWS) and is_named_scores(
        "prob", _SCORES_ROWS
    )
    assert not is_named_scores("hidden", _SCORES_ROWS) and may_be_scores(_SCORES_ROWS)
    assert not may_be_scores(_SCORES_ROWS[0]) and not may_be_scores(_SCORES_ROWS.astype(int))
    assert not may_be_scores(_SCORES_ROWS[:, :1]) and not may_be_scores(_SCORES_ROWS[:0])


def test_what_may_be_rounding_of_an_outlier_is_measured_by_it_however_many_lie_between() -> None:
    """A softmax of values from 0 to -120: Paddle's gives no less than exp(-64)."""
    sizes = np.array([[1.1, 7e-3, 2e-6, 9e-11, 4e-14, 6e-19, 2e-24, 3e-28, 5e-35, 8e-40, 2e-46]])
    least = np.maximum(sizes, 1.6e-28)
    assert judge(sizes, least).ok
    assert not judge(sizes, sizes * [[1, 1, 1, 1.001, 1, 1, 1, 1, 1, 1, 1]]).ok
