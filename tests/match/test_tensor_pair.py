"""Pairs of tensors, and how one lies in the other."""

from dataclasses import replace

from reprod_align.match.tensor_pair import Match, TensorPair, cut, find_turns, join

import numpy as np
import pytest

WHOLE = np.arange(12).reshape(6, 2)


def test_one_tensor_becomes_one() -> None:
    pair = TensorPair(("fc.weight",), ("fc.w",), (True,))
    assert not pair.is_fused
    assert np.array_equal(pair.to_paddle({"fc.weight": WHOLE})["fc.w"], WHOLE.T)


def test_a_whole_is_cut_and_each_part_laid_its_own_way() -> None:
    pair = TensorPair(("qk",), ("q", "k"), (True, False), parts=(3, 3))
    made = pair.to_paddle({"qk": WHOLE})
    assert pair.is_fused
    assert np.array_equal(made["q"], WHOLE[:3].T)
    assert np.array_equal(made["k"], WHOLE[3:])


def test_parts_are_joined_in_their_order() -> None:
    arrays = {"q": WHOLE[:3], "k": WHOLE[3:]}
    right = TensorPair(("q", "k"), ("qk",), (False,), parts=(3, 3)).to_paddle(arrays)
    wrong = TensorPair(("k", "q"), ("qk",), (False,), parts=(3, 3)).to_paddle(arrays)
    assert np.array_equal(right["qk"], WHOLE)
    assert not np.array_equal(wrong["qk"], WHOLE)


def test_a_turned_whole_is_cut_by_its_outputs() -> None:
    pair = TensorPair(("qk",), ("q", "k"), (False, False), parts=(3, 3), turned=True)
    made = pair.to_paddle({"qk": WHOLE.T})
    assert np.array_equal(made["k"], WHOLE[3:])


def test_rows_may_be_stored_group_by_group() -> None:
    pair = TensorPair(("whole",), ("a", "b"), (False, False), parts=(4, 2), groups=2)
    made = pair.to_paddle({"whole": np.array([1, 2, 10, 3, 4, 20])})
    assert (made["a"].tolist(), made["b"].tolist()) == ([1, 2, 3, 4], [10, 20])


def test_a_pair_that_does_not_say_how_each_tensor_lies_is_refused() -> None:
    with pytest.raises(ValueError, match="shorter"):
        TensorPair(("qk",), ("q", "k"), (False,), parts=(3, 3)).to_paddle({"qk": WHOLE})


def test_a_match_knows_which_tensors_have_partners() -> None:
    fused = TensorPair(("q", "k"), ("qk",), (False,), parts=(3, 3))
    found = Match([fused], torch_left=["left"])
    assert found.by_torch() == {"q": fused, "k": fused}
    assert found.paired_names() == {"q", "k", "qk"}


ROWS = np.arange(6).reshape(2, 3)


def test_a_pair_transposes_and_gives_the_shape() -> None:
    shapes = {"torch_shapes": ((2, 3),), "paddle_shapes": ((3, 2),)}
    turned, straight = (TensorPair(("a",), ("b",), (turn,), **shapes) for turn in (True, False))
    assert turned.make([ROWS], "paddle")[0].tolist() == [[0, 3], [1, 4], [2, 5]]
    assert straight.make([ROWS], "paddle")[0].tolist() == [[0, 1], [2, 3], [4, 5]]
    kernel = replace(turned, torch_shapes=((2, 3, 1),))
    assert kernel.make([ROWS.reshape(2, 3, 1)], "paddle")[0].flags.c_contiguous
    assert (turned.words, straight.words) == ("transposed", "reshaped")
    assert turned.lay_other_way() == straight


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
def test_what_does_not_fit_can_lie_in_no_way(ours, theirs, axes) -> None:
    assert find_turns(ours, theirs, *axes) == []


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
