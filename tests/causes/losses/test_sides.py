"""What two losses of one output are held against."""

from reprod_align.causes.losses.sides import agree, are_constant, is_near, name_reductions
from tests.causes.losses.planted import sides

import numpy as np


def test_sides_are_exchanged_as_a_whole() -> None:
    planted = sides(lambda z: z.sum(), lambda z: 2 * z.mean())
    other = planted.swap()
    assert (other.expected, other.actual) == (planted.actual, planted.expected)
    assert other.ours is planted.theirs and other.theirs is planted.ours


def test_what_counts_as_equal() -> None:
    assert is_near(1.0, 1 + 1e-9) and not is_near(1.0, 1.00001)
    assert are_constant(np.array([2.0, 2.0])) and not are_constant(np.array([2.0, 2.1]))
    assert agree(np.ones(3), np.ones(3)) and not agree(np.ones(3), np.ones(2))


def test_a_reduction_has_one_name() -> None:
    found = name_reductions((2, 3, 4), rows=6, counted=6.0)
    assert [round(1 / number) for number in found.values()] == [6, 1, 2, 24]
