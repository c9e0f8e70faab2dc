"""Pooling and softmax: over which axis, with which mask, at which scale."""

from reprod_align.causes.functions import softmax
from reprod_align.causes.inputs import explain_pooling
from reprod_align.causes.masks import explain_softmax
from reprod_align.causes.mismatch import cite
from tests.causes.numbers import X, Y, mismatch

import numpy as np

KEEP = np.array([[1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0], [1, 1, 1, 0, 0, 0]])
SCORES = X[:, :, :6]
CAUSAL = np.where(np.tri(6, dtype=bool), 0.0, -np.inf)


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


def test_a_softmax_over_another_axis() -> None:
    words = explain_softmax(mismatch(softmax(SCORES, -1), softmax(SCORES, 1)))
    assert words == cite("softmax over axis 1 instead of axis 2: set axis=-1", "softmax-axis")


def test_a_softmax_with_another_mask_or_scale() -> None:
    masked, free = softmax(SCORES + CAUSAL, -1), softmax(SCORES, -1)
    assert "all later tokens: the causal mask is missing" in explain_softmax(mismatch(masked, free))
    assert "Paddle masks positions" in explain_softmax(mismatch(free, masked))
    scaled = explain_softmax(mismatch(free, softmax(SCORES / 2, -1)))
    assert "Paddle's are PyTorch's times 0.5" in scaled


def test_two_softmaxes_of_other_scores_have_no_cause() -> None:
    assert explain_softmax(mismatch(softmax(SCORES, -1), softmax(Y[:, :, :6], -1))) == ""
    assert explain_softmax(mismatch(SCORES, softmax(SCORES, -1))) == ""
