"""Values that are zero, scaled, shifted, rounded, dropped, or drawn otherwise."""

from dataclasses import replace

from reprod_align.causes.mismatch import cite
from reprod_align.causes.values import (
    explain_draws,
    explain_dropout,
    explain_factor,
    explain_rounding,
    explain_zeros,
)
from tests.causes.numbers import X, Y, mismatch

import numpy as np


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


KEEP = np.arange(X.size).reshape(X.shape) % 4 > 0  # drops every fourth


def test_a_dropout_on_one_side_is_named_with_its_rate() -> None:
    words = explain_dropout(mismatch(X, X * KEEP / 0.75))
    expected = "only Paddle has a dropout here: it drops 25%, scaled as dropout with p = 0.25"
    assert words == cite(expected, "dropout-scale")
    assert explain_dropout(mismatch(X * KEEP / 0.75, X)).startswith("only PyTorch has a dropout")


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
