"""Values that are zero, scaled, shifted, rounded, clipped or dropped, everywhere or in places."""

from dataclasses import replace

from reprod_align.causes import explain_forward
from reprod_align.causes.mismatch import Mismatch, cite
from reprod_align.causes.values import (
    explain_bias_or_gain,
    explain_clipping,
    explain_draws,
    explain_dropout,
    explain_factor,
    explain_padding_row,
    explain_places,
    explain_rounding,
    explain_sameness,
    explain_zeros,
)
from tests.causes.numbers import X, Y, mismatch

import numpy as np
import pytest


def test_zeros() -> None:
    assert explain_zeros(mismatch(X, X * 0)) == "Paddle's values are all zero"
    assert explain_zeros(mismatch(X, X)) == ""
    assert explain_zeros(mismatch(X * 0, X * 0)) == ""


def test_a_factor_a_sign_and_a_constant() -> None:
    assert "PyTorch's times 0.5" in explain_factor(mismatch(X, X / 2))
    assert "opposite sign" in explain_factor(mismatch(X, -X))
    assert "plus the constant 0.25" in explain_factor(mismatch(X, X + 0.25))


def test_a_dropout_that_scales_in_eval_mode_is_named_by_its_setting() -> None:
    scaled = replace(mismatch(X, X / 2), kept=[0.9, 0.5])
    assert "downscale_in_infer" in explain_factor(scaled)
    assert "downscale_in_infer" not in explain_factor(replace(scaled, kept=[0.9]))


def test_a_single_wrong_value_is_not_a_factor() -> None:
    spoilt = X / 2
    spoilt[0, 0, 0] += 1e-3
    assert explain_factor(mismatch(X, spoilt)) == ""
    assert explain_factor(mismatch(X, Y)) == ""


def test_a_cast_on_either_side() -> None:
    narrow = X.astype(np.float16).astype(np.float64)
    assert "Paddle's values are PyTorch's rounded to float16" in explain_rounding(
        mismatch(X, narrow)
    )
    assert "the port lacks a cast to float16" in explain_rounding(mismatch(narrow, X))
    upper = (X.astype(np.float32).view(np.uint32) & 0xFFFF0000).view(np.float32)  # cut, not rounded
    assert explain_rounding(mismatch(X, upper.astype(np.float64))) == ""


def test_a_clip_names_its_bounds() -> None:
    expected = "Paddle clips the values to at least -1, PyTorch does not"
    assert explain_clipping(mismatch(X, np.maximum(X, -1))) == cite(expected, "clamp")
    both = explain_clipping(mismatch(np.clip(X, -1, 0.5), X))
    expected = "PyTorch clips the values to at least -1 and at most 0.5, Paddle does not"
    assert both == cite(expected, "clamp")
    assert explain_clipping(mismatch(X, Y)) == ""


def test_values_that_do_not_change_along_an_axis() -> None:
    flat = np.broadcast_to(X[:, :1], X.shape).copy()
    words = explain_sameness(mismatch(X, flat))
    assert words == "Paddle's values are the same all along axis 1: one index or place for all"
    assert explain_sameness(mismatch(flat, X)).startswith("PyTorch's values are the same")
    assert explain_sameness(mismatch(X, Y)) == explain_sameness(mismatch(flat, 2 * flat)) == ""


def test_a_bias_and_a_gain() -> None:
    assert "a bias (or an embedding) is added" in explain_bias_or_gain(mismatch(X, X + Y[0, 0]))
    assert "a gain (weight), or a statistic that divides them," in explain_bias_or_gain(
        mismatch(X, X * Y[0, 0])
    )
    assert "a division of each item" in explain_bias_or_gain(
        mismatch(X, X / np.array([2.0, 3.0, 5.0])[:, None, None])
    )
    assert explain_bias_or_gain(mismatch(X, Y)) == ""


KEEP = np.arange(X.size).reshape(X.shape) % 4 > 0  # drops every fourth


def test_a_dropout_on_one_side_is_named_with_its_rate() -> None:
    words = explain_dropout(mismatch(X, X * KEEP / 0.75))
    expected = "only Paddle has a dropout here: it drops 25%, scaled as dropout with p = 0.25"
    assert words == cite(expected, "dropout-scale")
    assert explain_dropout(mismatch(X * KEEP / 0.75, X)).startswith("only PyTorch has a dropout")


def test_zeros_without_the_scale_may_be_a_mask() -> None:
    whole = np.repeat(np.arange(6) < 3, 12).reshape(6, 12) * np.ones_like(X)
    words = explain_dropout(mismatch(X, X * whole))
    assert "in 50% of the places" in words
    assert "in whole rows" in words


def test_two_dropouts_of_one_input_are_compared() -> None:
    half = np.arange(X.size).reshape(X.shape) % 2 > 0
    words = explain_dropout(mismatch(X * KEEP / 0.75, X * half * 2, X))
    assert "PyTorch drops 25%" in words
    assert "Paddle drops 50%" in words
    other = np.roll(KEEP, 1, axis=-1)
    words = explain_dropout(mismatch(X * KEEP / 0.75, X * other / 0.75, X))
    assert words == "both sides drop 25% of x, but different elements"


def test_other_values_are_not_a_dropout() -> None:
    assert explain_dropout(mismatch(X, Y, X)) == ""
    assert explain_dropout(mismatch(X, Y * KEEP)) == ""


PLACES = {"": "", "pd_block": "block"}


def drawn(*places: str) -> dict:
    return {((place, 0), number): (2, 3 + number) for number, place in enumerate(places)}


def test_a_missing_dropout_is_named() -> None:
    words = explain_draws("pd_block", drawn("block"), {}, PLACES)
    assert words == "only PyTorch draws random numbers here (dropout, noise), of shape (2, 3)"
    words = explain_draws("pd_block", {}, drawn(*["block"] * 5), PLACES)
    assert words.endswith("of shape (2, 3), (2, 4), (2, 5) and 2 more")
    assert words.startswith("only Paddle draws")


def test_other_shapes_are_named_and_equal_ones_are_not() -> None:
    words = explain_draws("pd_block", drawn("block"), {(("block", 0), 0): (9,)}, PLACES)
    assert words == "PyTorch draws random numbers of shape (2, 3) here, Paddle (9,)"
    assert explain_draws("pd_block", drawn("block"), drawn("block"), PLACES) == ""
    turned = {(("block", 0), 0): (3, 2)}  # sequence first on one side
    assert explain_draws("pd_block", drawn("block"), turned, PLACES) == ""


def test_draws_of_a_deeper_place_do_not_count() -> None:
    assert explain_draws("", drawn("block"), {}, PLACES) == ""
    assert explain_draws("elsewhere", drawn("block"), {}, PLACES) == ""


RANDOM = np.random.default_rng(0)
POSITIONS = RANDOM.standard_normal((1, 6, 12))
IDS = np.array([[4, 2, 0], [1, 0, 3]])
TABLE = RANDOM.standard_normal((5, 8))


def test_a_position_that_is_forgotten_for_one_token() -> None:
    actual = X + POSITIONS
    actual[:, 0] = X[:, 0]
    words = explain_forward(X + POSITIONS, actual, [X, POSITIONS], names=["x", "its positions"])
    assert words.startswith("only the first along axis 1 differs: ")
    assert "its positions" in words


def test_some_rows_have_the_other_sign() -> None:
    actual = X.copy()
    actual[:, [1, 4]] *= -1
    words = explain_forward(X, actual, [])
    assert "2 of 6 indices of axis 1" in words and "opposite sign" in words


def test_what_nothing_explains_there_stays_unexplained() -> None:
    actual = X.copy()
    actual[:, 0] = RANDOM.standard_normal((3, 12))
    assert explain_forward(X, actual, [POSITIONS]) == ""
    mismatch = Mismatch(X, RANDOM.standard_normal(X.shape))
    assert explain_places(mismatch, [lambda there: "a cause"]) == ""  # it differs everywhere


@pytest.mark.parametrize("index", [0, 4])
def test_zero_rows_of_one_index_are_a_padding_idx(index: int) -> None:
    rows = TABLE[IDS]
    zeros = np.where((IDS == index)[..., None], 0.0, rows)
    words = explain_padding_row(Mismatch(rows, zeros, [("ids", IDS)]))
    assert words.startswith(f"Paddle returns zeros for the index {index} (padding_idx)")
    words = explain_padding_row(Mismatch(zeros, rows, [("ids", IDS)]))
    assert words.startswith(f"PyTorch returns zeros for the index {index}")


def test_other_zero_rows_are_none() -> None:
    rows = TABLE[IDS]
    zeros = rows * np.array([[1, 0, 1], [1, 1, 1]])[..., None]
    two = np.where((IDS < 2)[..., None], 0.0, rows)
    assert explain_padding_row(Mismatch(rows, two, [("ids", IDS)])) == ""
    assert explain_padding_row(Mismatch(rows, rows * 2, [("ids", IDS)])) == ""
    assert explain_padding_row(Mismatch(rows, zeros, [])) == ""
