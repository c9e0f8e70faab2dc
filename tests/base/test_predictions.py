"""Predictions flip, or are a tie."""

from reprod_align.base.local import count_flips, is_named_scores, may_be_scores

import numpy as np

SCORES = np.array([[1.0, 2.0, -1e9], [3.0, 0.0, -1e9]])


def test_flips_are_counted_by_row() -> None:
    assert count_flips(SCORES, SCORES) == 0
    assert count_flips(SCORES, SCORES[:, [1, 0, 2]]) == 2
    assert count_flips(SCORES[None], SCORES[None, :, [1, 0, 2]]) == 2


def test_a_tie_may_fall_either_way() -> None:
    near = SCORES.copy()
    near[0, 0] = 2.0 - 1e-12
    other = near.copy()
    other[0, 0] += 2e-12
    assert count_flips(near, other) == 1 and count_flips(near, other, 1e-11) == 0
    near[0, 0] = 2.0 - 1e-8  # -1e9 is no scale
    assert count_flips(near, other, 1e-11) == 1


def test_nan_and_infinity_are_not_chosen_by_accident() -> None:
    expected = np.array([[np.nan, 1.0], [-np.inf, -np.inf]])
    assert count_flips(expected, expected, 1e-11) == 0
    assert count_flips(expected, np.array([[2.0, 1.0], [0.0, -np.inf]]), 1e-11) == 1
    assert count_flips(np.array([[5.0, 1.0]]), np.array([[np.nan, 1.0]]), 1e-11) == 1


def test_scores_are_told_by_their_name() -> None:
    assert is_named_scores("model.start_logits", SCORES) and is_named_scores("prob", SCORES)
    assert not is_named_scores("hidden", SCORES) and may_be_scores(SCORES)
    assert not may_be_scores(SCORES[0]) and not may_be_scores(SCORES.astype(int))
    assert not may_be_scores(SCORES[:, :1]) and not may_be_scores(SCORES[:0])
