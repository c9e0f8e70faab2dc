"""What a cause is given: inputs that may explain a tensor, and those that cannot."""

from reprod_align.causes.mismatch import Mismatch
from tests.causes.numbers import X, Y, mismatch

import numpy as np


def test_the_latest_input_comes_first_and_integers_hold_no_numbers() -> None:
    given = mismatch(X, Y, X, np.arange(6), Y)
    assert [source.name for source in given.sources] == ["z", "x"]
    assert given.widths == [6, 12]


def test_inputs_that_cannot_explain_the_tensor_are_left_out() -> None:
    same_again, another_shape, constant = X.copy(), X[:, :4], np.ones(12)
    given = Mismatch(X, Y, [("first", X), ("again", same_again), ("cut", another_shape),
                            ("ones", constant), ("row", X[0, 0])])  # fmt: skip
    assert [source.name for source in given.sources] == ["row", "again"]
    assert all(source.values.shape == X.shape for source in given.sources)


def test_few_values_prove_nothing() -> None:
    assert mismatch(X, Y).is_telling
    assert not mismatch(X, np.sign(X)).is_telling
    assert not mismatch(np.full_like(X, np.nan), Y).is_telling
