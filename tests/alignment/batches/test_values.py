"""Other values that a model should take as well."""

from typing import Any

from reprod_align.alignment.batches.axes import (
    change_integers,
    change_masks,
    keep,
    mirror,
    nudge,
    shuffle,
    spread,
)

import numpy as np
import pytest

FLOATS = np.random.default_rng(0).normal(size=(3, 5)) + 4
IDS = np.arange(15).reshape(3, 5)
MASK = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 0], [1, 1, 1, 1, 1]])
ARRAYS = {"x": FLOATS, "ids": IDS, "mask": MASK, "t": np.array(3)}
BATCH = frozenset({"x", "ids", "mask"})


@pytest.mark.parametrize(("change", "times"), [(spread, -4), (mirror, -1), (nudge, 1)])
def test_floats_move_away_from_their_mean(change: Any, times: float) -> None:
    made = change(ARRAYS, BATCH, 1)["x"]
    ratio = (made - FLOATS.mean()) / (FLOATS - FLOATS.mean())
    assert np.allclose(ratio / times, 1, atol=0.011) and made.dtype == FLOATS.dtype


def test_a_nudge_is_small_and_moves_all() -> None:
    made = nudge(ARRAYS, BATCH, 1)["x"]
    assert (made != FLOATS).all() and np.abs(made - FLOATS).max() < 0.01 * np.ptp(FLOATS)


@pytest.mark.parametrize("axis", [0, 1])
def test_whole_numbers_keep_to_the_range_of_their_column_or_row(axis: int) -> None:
    for change in (mirror, nudge, shuffle):
        made = change(ARRAYS, BATCH, axis)["ids"]
        assert (np.sort(made, axis) == np.sort(IDS, axis)).all() and (made != IDS).any()
        assert made.dtype == IDS.dtype


def test_rows_of_a_mask_stay_rows() -> None:
    assert mirror(ARRAYS, BATCH, 1)["mask"].tolist() == MASK[[2, 0, 1]].tolist()
    assert mirror({"mask": MASK}, frozenset(), 1)["mask"].tolist() == MASK.tolist()


def test_floats_that_hold_whole_numbers_are_rearranged() -> None:
    made = mirror({"ids": IDS.astype("float32")}, BATCH, 1)["ids"]
    assert made.dtype == np.float32 and made.tolist() == np.roll(IDS, 1, 1).tolist()


def test_nothing_is_changed_that_should_be_kept() -> None:
    assert all(made is ARRAYS[key] for key, made in keep(ARRAYS, BATCH, 1).items())
    kept = FLOATS.copy()
    mirror(ARRAYS, BATCH, 1)
    assert (kept == FLOATS).all()


def test_integers_change_their_dtype_where_they_fit() -> None:
    words, made = change_integers({"ids": IDS, "x": FLOATS, "flag": MASK == 1})
    assert words == "int32 in place of int64"
    assert (made["ids"].dtype, made["x"].dtype, made["flag"].dtype) == ("int32", "float64", "bool")
    words, made = change_integers({"ids": IDS.astype("int32")})
    assert words == "int64 in place of int32" and made["ids"].dtype == np.int64
    assert change_integers({"x": FLOATS}) is None
    assert change_integers({"ids": IDS * 2**40}) is None


def test_a_mask_that_hides_something_hides_nothing_and_the_other_way_round() -> None:
    full, wide = np.ones((2, 5), "int64"), np.ones((2, 1, 1, 4), bool)
    made = change_masks({"attention_mask": full, "x": FLOATS, "wide_mask": wide, "mask": MASK})
    assert made["attention_mask"].tolist() == [[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]]
    assert made["wide_mask"].reshape(2, 4).tolist() == [[True] * 4, [True, True, True, False]]
    assert made["mask"].all() and made["x"] is FLOATS and full.all()


@pytest.mark.parametrize("arrays", [{"ids": MASK}, {"mask": IDS}, {"mask": MASK[:, :1]}, {0: MASK}])
def test_what_is_not_called_a_mask_or_is_none_stays(arrays: dict) -> None:
    assert change_masks(arrays) is None
