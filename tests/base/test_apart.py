"""Values that stand apart: what hides is found, and what is merely large is not."""

from reprod_align.base import blocks, local
from reprod_align.base.local import measure_ordinary, measure_sizes

import numpy as np
import pytest

RANDOM = np.random.default_rng(0)
SCORES = RANDOM.standard_normal((2, 4, 8, 8))
HIDDEN = np.triu(np.ones((8, 8), bool), 1)
LARGEST = np.abs(SCORES[..., ~HIDDEN]).max()


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("value", ["min", "max", -1e4, -5e4])
def test_constants_that_hide_stand_apart(dtype: type, value: str | float) -> None:
    constant = float(getattr(np.finfo(dtype), value)) if isinstance(value, str) else value
    sizes = measure_sizes(np.where(HIDDEN, constant, SCORES).astype(dtype))
    assert sizes.ordinary == pytest.approx(LARGEST, rel=1e-3)
    assert [one.tolerance for one in sizes.apart] == [0.0] and not sizes.apart[0].computed


def test_the_most_of_a_tensor_may_be_hidden() -> None:
    rows = np.full((20, 50), -1e9)
    rows[:, 0] = RANDOM.standard_normal(20)
    assert measure_ordinary(rows) == np.abs(rows[:, 0]).max()


def test_a_constant_with_scores_added_and_two_masks_at_once_stand_apart() -> None:
    both = SCORES + HIDDEN * -1e9 + (np.arange(8) > 5) * -1e9
    sizes = measure_sizes(both, spread=1e-2)
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
    sizes = measure_sizes(values)
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
    assert measure_sizes(values) == local.Sizes(np.abs(values).max())


@pytest.mark.parametrize("block", [7, 64])
def test_a_gap_that_only_the_sample_has_is_none(
    block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "_count_block", lambda *_: block)
    monkeypatch.setattr(local, "_SAMPLE", 16)
    values = np.ones((100, 100))
    values[50] = 10.0 ** np.linspace(0, 9, 100)
    assert measure_sizes(values) == local.Sizes(1e9)
    values[50] = 1.0
    values[50, 50] = -1e9
    assert measure_ordinary(values) == 1.0


def test_integers_and_nothing_have_no_magnitude() -> None:
    assert measure_ordinary(np.array([5])) == measure_ordinary(np.zeros((0, 2))) == 0.0
    assert measure_ordinary(np.array([np.nan, -np.inf])) == 0.0
