"""What a module's own code makes of its inputs."""

from reprod_align.causes.inputs import explain_pooling, explain_sum
from tests.causes.numbers import X, Y, Z, mismatch

import numpy as np


def test_a_residual_that_is_missing_or_too_much() -> None:
    assert explain_sum(mismatch(X + Y, X, X, Y)) == "PyTorch computes y + x, Paddle x"
    hidden = Z + X  # the code's own values are not among the inputs
    assert explain_sum(mismatch(hidden + Y, hidden, Y)).startswith("Paddle does not add x")
    assert explain_sum(mismatch(hidden, hidden + Y, Y)).startswith("Paddle adds x once more")


def test_another_input_is_passed_on() -> None:
    assert explain_sum(mismatch(X, Y, X, Y)) == "PyTorch passes on x here, Paddle y"
    assert explain_sum(mismatch(X * Y, Z * Y, X, Y)) == ""


KEEP = np.array([[1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0], [1, 1, 1, 0, 0, 0]])


def test_a_pooling_over_padding() -> None:
    kept = (X * KEEP[:, :, None]).sum(1) / KEEP.sum(1)[:, None]
    words = explain_pooling(mismatch(kept, X.mean(1), X, KEEP))
    assert words == (
        "PyTorch takes the mean over axis 1 without padding of x, Paddle the mean over axis 1"
    )


def test_another_reduction() -> None:
    words = explain_pooling(mismatch(X[:, 0], X.max(1), X))
    assert words == "PyTorch takes the first along axis 1 of x, Paddle the maximum over axis 1"
    assert explain_pooling(mismatch(X[:, 0], Y.max(1), X)) == ""
