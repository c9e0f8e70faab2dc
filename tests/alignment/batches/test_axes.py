"""Which axes are the batch and the sequence, on inputs of many shapes."""

from typing import Any

from reprod_align.alignment.batches.axes import (
    change_integers,
    change_masks,
    find_batch,
    find_sequences,
    is_mask,
    keep,
    mirror,
    nudge,
    resize,
    shuffle,
    spread,
    take_rows,
)

import numpy as np
import pytest

IDS = np.arange(12).reshape(2, 6)
PADDED = np.array([[1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1]])


def lengths(arrays: dict) -> list:
    return list(find_sequences(arrays, find_batch(arrays)))


def test_the_batch_is_axis_0_of_what_shares_its_length() -> None:
    arrays = {
        "ids": IDS,
        "mask": np.ones((2, 1, 6, 6)),
        "positions": np.arange(6),
        "t": np.ones(()),
    }
    assert find_batch(arrays) == {"ids", "mask"}
    assert find_batch({"shared": np.ones((1, 4)), "x": np.ones((3, 4))}) == {"x"}
    assert find_batch({"t": np.ones(())}) == frozenset()


def test_a_sequence_is_every_axis_of_its_length_or_the_first_of_each_input() -> None:
    arrays = {"x": np.ones((2, 6, 4)), "mask": np.ones((2, 1, 6, 6)), "label": np.ones(2)}
    assert lengths(arrays) == [
        (6, {"x": (1,), "mask": (2, 3), "label": ()}),
        (6, {"x": (1,), "mask": (2,), "label": ()}),
        (4, {"x": (2,), "mask": (), "label": ()}),
    ]


def test_an_axis_of_an_input_that_is_no_batch_counts_too() -> None:
    assert lengths({"ids": IDS, "positions": np.arange(6)}) == [
        (6, {"ids": (1,), "positions": (0,)})
    ]


def test_the_batch_is_no_sequence_even_where_both_are_as_long() -> None:
    assert lengths({"x": np.ones((4, 4))}) == [(4, {"x": (1,)})]


def test_examples_are_cut_or_repeated_and_what_has_no_batch_stays() -> None:
    arrays = {"ids": IDS, "positions": np.arange(6)}
    made = take_rows(arrays, find_batch(arrays), 1)
    assert made["ids"].tolist() == IDS[:1].tolist() and made["positions"].shape == (6,)
    assert take_rows(arrays, find_batch(arrays), 3)["ids"].tolist() == IDS[[0, 1, 0]].tolist()


def test_a_sequence_is_cut_at_its_end_and_made_longer_there_and_back() -> None:
    axes = {"ids": (1,)}
    assert resize({"ids": IDS}, axes, 4)["ids"].tolist() == IDS[:, :4].tolist()
    longer = resize({"ids": IDS}, axes, 8)["ids"]
    assert longer[0].tolist() == [0, 1, 2, 3, 4, 5, 5, 4]


def test_padding_stays_at_its_end_in_a_longer_mask() -> None:
    longer = resize({"mask": PADDED}, {"mask": (1,)}, 12)["mask"]
    assert longer[0].tolist() == [1] * 8 + [0] * 4


def test_what_is_padded_on_the_left_is_cut_on_the_left() -> None:
    arrays = {"ids": IDS, "mask": PADDED[:, ::-1] * [[1], [1]]}
    arrays["mask"][0, :3] = 0
    made = resize(arrays, {"ids": (1,), "mask": (1,)}, 3)
    assert made["ids"].tolist() == IDS[:, 3:].tolist() and made["mask"].any(1).all()


def test_lengths_and_places_stay_within_a_sequence_that_is_cut() -> None:
    arrays = {"ids": IDS, "lengths": np.array([6, 2]), "score": np.array([6.0, 2.0])}
    axes = {"ids": (1,), "lengths": (), "score": ()}
    made = resize(arrays, axes, 3)
    assert made["lengths"].tolist() == [3, 2] and made["score"].tolist() == [6.0, 2.0]
    assert resize(arrays, axes, 3, last=1)["lengths"].tolist() == [2, 2]
    assert resize(arrays, axes, 12)["lengths"].tolist() == [6, 2]
    assert resize({**arrays, "lengths": np.array([9, 2])}, axes, 3)["lengths"].tolist() == [9, 2]
    assert resize(arrays, axes, 12, follow=True)["lengths"].tolist() == [12, 2]
    assert resize(arrays, axes, 12, follow=True)["score"].tolist() == [6.0, 2.0]


def test_the_longest_of_the_examples_that_are_taken_fills_the_sequence() -> None:
    arrays = {"ids": IDS, "lengths": np.array([2, 6]), "label": np.array([0, 6])}
    made = take_rows(arrays, find_batch(arrays), 1)
    assert made["lengths"].tolist() == [6] and made["label"].tolist() == [0]
    assert made["lengths"].dtype == arrays["lengths"].dtype


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (PADDED, True),
        (PADDED == 1, True),
        (np.where(PADDED == 1, 0.0, -1e9), True),
        (np.where(PADDED == 1, 0.0, -np.inf), True),
        (IDS, False),
        (IDS / 7, False),
        (np.zeros((0, 3)), True),
    ],
)
def test_a_mask_holds_at_most_two_values(array: np.ndarray, expected: bool) -> None:
    assert is_mask(array) is expected


FLOATS = np.random.default_rng(0).normal(size=(3, 5)) + 4
TOKENS = np.arange(15).reshape(3, 5)
MASK = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 0], [1, 1, 1, 1, 1]])
ARRAYS = {"x": FLOATS, "ids": TOKENS, "mask": MASK, "t": np.array(3)}
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
        assert (np.sort(made, axis) == np.sort(TOKENS, axis)).all() and (made != TOKENS).any()
        assert made.dtype == TOKENS.dtype


def test_rows_of_a_mask_stay_rows() -> None:
    assert mirror(ARRAYS, BATCH, 1)["mask"].tolist() == MASK[[2, 0, 1]].tolist()
    assert mirror({"mask": MASK}, frozenset(), 1)["mask"].tolist() == MASK.tolist()


def test_padding_stays_at_the_end_and_goes_with_its_lengths() -> None:
    targets = np.array([[4, 9, 6, 5, 3], [2, 1, 8, 7, 0], [3, 5, 8, 0, 0]])
    given = {"targets": targets, "lengths": np.array([5, 4, 3]), "labels": np.array([1, 2, 3])}
    for change, axis in ((mirror, 0), (mirror, 1), (shuffle, 1)):
        made = change(given, frozenset(given), axis)
        assert ((made["targets"] > 0).sum(1) == made["lengths"]).all()
        assert (made["targets"][:, 3:] == np.roll(targets, 1, 0)[:, 3:]).all()
        assert (made["targets"] != np.roll(targets, 1, 0)).any() == (axis == 1)


def test_floats_that_hold_whole_numbers_are_rearranged() -> None:
    made = mirror({"ids": TOKENS.astype("float32")}, BATCH, 1)["ids"]
    assert made.dtype == np.float32 and made.tolist() == np.roll(TOKENS, 1, 1).tolist()


def test_nothing_is_changed_that_should_be_kept() -> None:
    assert all(made is ARRAYS[key] for key, made in keep(ARRAYS, BATCH, 1).items())
    kept = FLOATS.copy()
    mirror(ARRAYS, BATCH, 1)
    assert (kept == FLOATS).all()


def test_integers_change_their_dtype_where_they_fit() -> None:
    words, made = change_integers({"ids": TOKENS, "x": FLOATS, "flag": MASK == 1})
    assert words == "int32 in place of int64"
    assert (made["ids"].dtype, made["x"].dtype, made["flag"].dtype) == ("int32", "float64", "bool")
    words, made = change_integers({"ids": TOKENS.astype("int32")})
    assert words == "int64 in place of int32" and made["ids"].dtype == np.int64
    assert change_integers({"x": FLOATS}) is None
    assert change_integers({"ids": TOKENS * 2**40}) is None


def test_a_mask_that_hides_something_hides_nothing_and_the_other_way_round() -> None:
    full, wide = np.ones((2, 5), "int64"), np.ones((2, 1, 1, 4), bool)
    made = change_masks({"attention_mask": full, "x": FLOATS, "wide_mask": wide, "mask": MASK})
    assert made["attention_mask"].tolist() == [[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]]
    assert made["wide_mask"].reshape(2, 4).tolist() == [[True] * 4, [True, True, True, False]]
    assert made["mask"].all() and made["x"] is FLOATS and full.all()


@pytest.mark.parametrize(
    "arrays", [{"ids": MASK}, {"mask": TOKENS}, {"mask": MASK[:, :1]}, {0: MASK}]
)
def test_what_is_not_called_a_mask_or_is_none_stays(arrays: dict) -> None:
    assert change_masks(arrays) is None
