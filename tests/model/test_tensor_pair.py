"""Tensors of two models that hold the same numbers."""

from reprod_align.model.tensor_pair import Lay, Match, TensorPair

import numpy as np
import pytest

WHOLE = np.arange(12).reshape(6, 2)
TURN, KEEP = Lay(True, (2, 3)), Lay(False, (3, 2))


def test_one_tensor_becomes_one() -> None:
    pair = TensorPair(("fc.weight",), ("fc.w",), (Lay(True, (2, 6)),))
    assert not pair.is_fused
    assert np.array_equal(pair.to_paddle({"fc.weight": WHOLE})["fc.w"], WHOLE.T)


def test_a_whole_is_cut_and_each_part_laid_its_own_way() -> None:
    pair = TensorPair(("qk",), ("q", "k"), (TURN, KEEP), sizes=(3, 3))
    made = pair.to_paddle({"qk": WHOLE})
    assert pair.is_fused
    assert np.array_equal(made["q"], WHOLE[:3].T)
    assert np.array_equal(made["k"], WHOLE[3:])


def test_parts_are_joined_in_their_order() -> None:
    arrays = {"q": WHOLE[:3], "k": WHOLE[3:]}
    lay = (Lay(False, (6, 2)),)
    right = TensorPair(("q", "k"), ("qk",), lay, sizes=(3, 3)).to_paddle(arrays)
    wrong = TensorPair(("k", "q"), ("qk",), lay, sizes=(3, 3)).to_paddle(arrays)
    assert np.array_equal(right["qk"], WHOLE)
    assert not np.array_equal(wrong["qk"], WHOLE)


def test_a_turned_whole_is_cut_by_its_outputs() -> None:
    pair = TensorPair(("qk",), ("q", "k"), (KEEP, KEEP), sizes=(3, 3), turned=True)
    made = pair.to_paddle({"qk": WHOLE.T})
    assert np.array_equal(made["k"], WHOLE[3:])


def test_rows_may_be_stored_group_by_group() -> None:
    lays = Lay(False, (4,)), Lay(False, (2,))
    pair = TensorPair(("whole",), ("a", "b"), lays, sizes=(4, 2), groups=2)
    made = pair.to_paddle({"whole": np.array([1, 2, 10, 3, 4, 20])})
    assert (made["a"].tolist(), made["b"].tolist()) == ([1, 2, 3, 4], [10, 20])


def test_a_pair_without_a_lay_for_each_tensor_is_refused() -> None:
    with pytest.raises(ValueError, match="shorter"):
        TensorPair(("qk",), ("q", "k"), (KEEP,), sizes=(3, 3)).to_paddle({"qk": WHOLE})


def test_a_match_knows_which_tensors_have_partners() -> None:
    fused = TensorPair(("q", "k"), ("qk",), (KEEP,), sizes=(3, 3))
    found = Match([fused], torch_left=["left"])
    assert found.by_torch() == {"q": fused, "k": fused}
    assert found.paired_names() == {"q", "k", "qk"}
