"""Masks and indices that the port makes in a known wrong way, and softmaxes under them."""

from reprod_align.causes.functions import softmax
from reprod_align.causes.masks import explain_mask, explain_softmax
from reprod_align.causes.mismatch import cite
from tests.causes.numbers import X, Y, mismatch

import numpy as np
import pytest

CAUSAL = np.tri(5, dtype=bool)
PADDING = np.array([[1, 1, 1, 0], [1, 1, 0, 0]])
ADDED = np.where(CAUSAL, 0.0, -1e9)
IDS = np.array([[0, 1, 2, 3], [0, 1, 2, 3]])


@pytest.mark.parametrize(("expected", "actual", "words"), [
    (PADDING, 1 - PADDING, "the mask is inverted: 1 (True) in PyTorch is 0 (False)"),
    (PADDING, np.ones_like(PADDING), "it is 1 everywhere in Paddle"),
    (PADDING, [[1, 1, 1, 0], [1, 1, 1, 0]], "1 places more than PyTorch"),
    (CAUSAL, np.tri(5, k=1, dtype=bool), "hides: one token ahead: the causal mask is shifted"),
    (CAUSAL, np.tri(5, k=-1, dtype=bool), "shows: each token itself: the causal mask is shifted"),
    (ADDED, -ADDED, "the opposite sign"),
    (ADDED, ADDED * 0, "nothing is masked in Paddle"),
    (ADDED, np.where(CAUSAL, 0.0, -1.0), "adds -1 where PyTorch adds -1e+09: too little to hide"),
    (ADDED, np.where(CAUSAL, -1e9, 0.0), "the mask is inverted: Paddle shows"),
    (IDS, IDS + 2, "off by +2 in Paddle: they start at 2, PyTorch's at 0"),
    (IDS, IDS * 0, "the indices are all 0"),
    (IDS, IDS[:, ::-1], "in reverse order along axis 1"),
])  # fmt: skip
def test_a_known_mistake_is_named(expected: np.ndarray, actual: np.ndarray, words: str) -> None:
    assert words in explain_mask(expected, np.asarray(actual))


def test_equal_masks_and_other_shapes_have_no_cause() -> None:
    assert explain_mask(PADDING, PADDING.copy()) == ""
    assert explain_mask(PADDING, PADDING[:, :3]) == ""
    assert explain_mask(IDS, np.array([[5, 9, 2, 7], [1, 8, 3, 3]])) == ""


SCORES = X[:, :, :6]
LATER = np.where(np.tri(6, dtype=bool), 0.0, -np.inf)


def test_a_softmax_over_another_axis() -> None:
    words = explain_softmax(mismatch(softmax(SCORES, -1), softmax(SCORES, 1)))
    assert words == cite("softmax over axis 1 instead of axis 2: set axis=-1", "softmax-axis")


def test_a_softmax_with_another_mask_or_scale() -> None:
    masked, free = softmax(SCORES + LATER, -1), softmax(SCORES, -1)
    assert "all later tokens: the causal mask is missing" in explain_softmax(mismatch(masked, free))
    words = explain_softmax(mismatch(free, masked))
    assert "Paddle masks positions" in words and "is missing in PyTorch" in words
    scaled = explain_softmax(mismatch(free, softmax(SCORES / 2, -1)))
    assert "Paddle's are PyTorch's times 0.5" in scaled


def test_two_softmaxes_of_other_scores_have_no_cause() -> None:
    assert explain_softmax(mismatch(softmax(SCORES, -1), softmax(Y[:, :, :6], -1))) == ""
    assert explain_softmax(mismatch(SCORES, softmax(SCORES, -1))) == ""
