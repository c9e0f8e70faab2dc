"""Sums, and a bias or a gain: what a module's own code makes of its inputs."""

from reprod_align.causes.inputs import explain_sum
from reprod_align.causes.values import explain_bias_or_gain
from tests.causes.numbers import X, Y, Z, mismatch

import numpy as np
import pytest

pytestmark = pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")  # logs of all

ROW = Y[0, 0]


def test_a_residual_that_is_missing_or_too_much() -> None:
    assert explain_sum(mismatch(X + Y, X, X, Y)) == "PyTorch computes y + x, Paddle x"
    hidden = Z + X  # the code's own values are not among the inputs
    assert explain_sum(mismatch(hidden + Y, hidden, Y)).startswith("Paddle does not add x")
    assert explain_sum(mismatch(hidden, hidden + Y, Y)).startswith("Paddle adds x once more")


def test_another_input_is_passed_on() -> None:
    assert explain_sum(mismatch(X, Y, X, Y)) == "PyTorch passes on x here, Paddle y"
    assert explain_sum(mismatch(X * Y, Z * Y, X, Y)) == ""


def test_a_bias_and_a_gain() -> None:
    assert "a bias (or an embedding) is added" in explain_bias_or_gain(mismatch(X, X + ROW))
    assert "a gain (weight), or a statistic that divides them," in explain_bias_or_gain(
        mismatch(X, X * ROW)
    )
    assert "a division of each item" in explain_bias_or_gain(
        mismatch(X, X / np.array([2.0, 3.0, 5.0])[:, None, None])
    )
    assert explain_bias_or_gain(mismatch(X, Y)) == ""
