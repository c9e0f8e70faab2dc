"""A difference at a few indices of one axis is explained by what is there."""

from reprod_align.causes import explain_forward
from reprod_align.causes.mismatch import Mismatch
from reprod_align.causes.values import explain_padding_row, explain_places

import numpy as np
import pytest

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((3, 6, 12))
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
