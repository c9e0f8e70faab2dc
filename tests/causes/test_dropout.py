"""Dropout on one side, with another rate, and with other elements."""

from reprod_align.causes.mismatch import cite
from reprod_align.causes.values import explain_dropout
from tests.causes.numbers import X, Y, mismatch

import numpy as np

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
