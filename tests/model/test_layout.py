"""How a tensor of one model lies in the other."""

from reprod_align.model.tensor_pair import Lay, cut, find_lays, join

import numpy as np
import pytest

ROWS = np.arange(6).reshape(2, 3)


def find_turns(ours: tuple[int, ...], theirs: tuple[int, ...], *axes: str) -> list[bool]:
    return [lay.transposed for lay in find_lays(ours, theirs, *axes)]


def test_a_lay_transposes_and_gives_the_shape() -> None:
    assert Lay(True, (3, 2))(ROWS).tolist() == [[0, 3], [1, 4], [2, 5]]
    assert Lay(False, (3, 2))(ROWS).tolist() == [[0, 1], [2, 3], [4, 5]]
    assert Lay(True, (3, 2))(ROWS.reshape(2, 3, 1)).flags.c_contiguous
    assert (Lay(True, (3, 2)).words, Lay(False, (2, 3)).words) == ("transposed", "")


def test_the_kinds_of_the_layers_decide_and_never_the_shape() -> None:
    square = (3, 3)
    assert find_turns(square, square, "oi", "io") == [True]
    assert find_turns(square, square, "oi", "oi") == [False]
    assert find_turns(square, square, "", "") == [False]
    assert find_turns(square, square, "oi", "") == [False, True]


@pytest.mark.parametrize(
    ("ours", "theirs", "axes"),
    [
        ((2, 3), (2, 3), ("oi", "io")),  # not transposed
        ((2, 3), (3, 2), ("oi", "oi")),
        ((4,), (5,), ("", "")),
        ((2, 6), (4, 3), ("", "")),  # as many elements
        ((2, 3, 4), (3, 2, 4), ("", "")),
    ],
)
def test_what_does_not_fit_has_no_lay(ours, theirs, axes) -> None:
    assert find_lays(ours, theirs, *axes) == []


def test_axes_of_length_one_and_merged_axes_fit() -> None:
    assert find_turns((5, 3, 1, 1), (3, 5), "oi", "io") == [True]
    assert find_turns((2, 3), (6,), "", "") == [False]
    assert find_turns((), (1,), "", "") == [False]
    assert find_turns((1, 4), (4, 1), "oi", "io") == [False]  # a vector has nothing to transpose


def test_parts_are_cut_and_joined_by_groups() -> None:
    whole = np.array([[1], [2], [10], [3], [4], [20]])
    parts = cut(whole, (4, 2), 2)
    assert [part.ravel().tolist() for part in parts] == [[1, 2, 3, 4], [10, 20]]
    assert np.array_equal(join(parts, 2), whole)
    assert not np.array_equal(join(parts, 1), whole)
