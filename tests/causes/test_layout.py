"""The same values in another order: transposed, split, rolled, reversed, in other blocks."""

from reprod_align.causes.layout import explain_layout
from tests.causes.numbers import X, Y, mismatch

import numpy as np
import pytest

HEADS = X.reshape(3, 6, 3, 4).transpose(0, 2, 1, 3)


@pytest.mark.parametrize(("actual", "words"), [
    (X.swapaxes(1, 2), "Paddle's axes are permuted by (0, 2, 1)"),
    (X.swapaxes(1, 2).reshape(X.shape), "transpose first"),
    (HEADS.reshape(X.shape), "split or merged without the transpose"),
    (X.reshape(18, 12), "the shape is (18, 12) instead of (3, 6, 12): reshape"),
    (X[:, ::-1], "the order along axis 1 is reversed"),
    (np.roll(X, 1, axis=1), "rolled forward by 1 along axis 1"),
    (np.concatenate(np.split(X, 3, -1)[::-1], -1), "the 3 blocks (q k v, gates, halves)"),
])  # fmt: skip
def test_a_known_order_is_named(actual: np.ndarray, words: str) -> None:
    assert words in explain_layout(mismatch(X, actual))


def test_other_values_and_unknown_orders_are_not() -> None:
    spoilt = X.swapaxes(1, 2).copy()
    spoilt[0, 0, 0] += 1e-3
    assert explain_layout(mismatch(X, spoilt)) == ""
    assert explain_layout(mismatch(X, Y)) == ""
    shuffled = np.random.default_rng(1).permutation(X.reshape(-1)).reshape(X.shape)
    assert explain_layout(mismatch(X, shuffled)) == ""
