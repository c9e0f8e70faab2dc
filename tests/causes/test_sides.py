"""What two losses of one output are held against."""

from itertools import product

from reprod_align.causes import explain_loss_sides
from reprod_align.causes.losses import (
    LossSides,
    agree,
    are_constant,
    differentiate,
    is_near,
    name_reductions,
)
from tests.causes.planted import sides

import numpy as np
import pytest


def test_sides_are_exchanged_as_a_whole() -> None:
    planted = sides(lambda z: z.sum(), lambda z: 2 * z.mean())
    other = planted.swap()
    assert (other.expected, other.actual) == (planted.actual, planted.expected)
    assert other.ours is planted.theirs and other.theirs is planted.ours


def test_what_counts_as_equal() -> None:
    assert is_near(1.0, 1 + 1e-9) and not is_near(1.0, 1.00001)
    assert are_constant(np.array([2.0, 2.0])) and not are_constant(np.array([2.0, 2.1]))
    assert agree(np.ones(3), np.ones(3)) and not agree(np.ones(3), np.ones(2))
    sparse = np.where(np.arange(512) == 1, 1.0, 1e-12) * np.ones((1024, 1))
    assert agree(sparse, sparse + 1e-12)  # small elements are judged by the largest of all


def test_a_reduction_has_one_name() -> None:
    found = name_reductions((2, 3, 4), rows=6, counted=6.0)
    assert [round(1 / number) for number in found.values()] == [6, 1, 2, 24]


@pytest.mark.parametrize("shape", [(1,), (5,), (2, 1), (1, 4), (3, 4), (2, 2, 2, 2)])
def test_gradients_of_any_kind_raise_nothing(shape: tuple[int, ...]) -> None:
    random = np.random.default_rng(0)
    made = random.standard_normal(shape)
    kinds = [
        made,
        np.zeros(shape),
        np.ones(shape),
        np.sign(made),
        made * 1e300,
        made - made.mean(-1)[..., None],
    ]
    for scores, one, other in product((made, np.zeros(shape), 1e3 * made), kinds, kinds):
        for values in ((1.0, 2.0), (0.0, 1.0), (-1.0, 0.0)):
            words = explain_loss_sides(LossSides(scores, *values, one, other))
            assert not words or one.size >= 6


def test_slopes_are_exact() -> None:
    x = np.array([-2.0, 0.5, 3.0])
    for function, slopes in (
        (np.square, 2 * x),
        (np.tanh, 1 / np.cosh(x) ** 2),
        (lambda z: z * np.sign(z.real), np.sign(x)),
    ):
        assert np.abs(differentiate(function, x) - slopes).max() < 1e-15
