"""What a trace says of itself; which leaf of the port's call stands for which of the reference's."""

from reprod_align.model.trace import (
    Call,
    Leaf,
    LeafPair,
    Trace,
    carries_mask,
    equal_in_effect,
    find_unpaired,
    hide_different_places,
    hide_same_places,
    pair_leaves,
    sum_gradients,
)

import numpy as np
import pytest

LARGE = np.arange(3 * 4096 + 5, dtype=np.float64)


def trace(output: np.ndarray, gradient: np.ndarray, buffer: np.ndarray) -> Trace:
    call: Call = Call("", 0, None, {}, {"": Leaf(output, True)})
    return Trace([call], gradients={"weight": gradient}, buffers={"mean": buffer})


def test_equal_runs_have_equal_digests() -> None:
    once, again = (trace(LARGE.copy(), LARGE.T, np.float32(3) * np.ones(())) for _ in range(2))
    assert once.digest() == again.digest() and Trace().digest() == Trace().digest()


@pytest.mark.parametrize("which", range(3))
@pytest.mark.parametrize("at", [0, 4096, -1])
def test_one_bit_anywhere_makes_another_digest(which: int, at: int) -> None:
    arrays = [LARGE, LARGE, LARGE]
    arrays[which] = LARGE.copy()
    arrays[which][at] = np.nextafter(LARGE[at], np.inf)
    assert trace(*arrays).digest() != trace(LARGE, LARGE, LARGE).digest()


def test_a_gradient_that_never_came_is_not_one_of_zeros() -> None:
    with_zeros = trace(LARGE, np.zeros(3), LARGE)
    without = trace(LARGE, np.zeros(3), LARGE)
    without.gradients.clear()
    assert with_zeros.digest() != without.digest()


def test_the_outputs_alone_tell_runs_apart_too() -> None:
    once = trace(LARGE, LARGE, LARGE)
    others = trace(LARGE, LARGE + 1, LARGE), trace(LARGE + 1, LARGE, LARGE)
    told = [once.digest(whole=False) != other.digest(whole=False) for other in others]
    assert told == [False, True]


RANDOM = np.random.default_rng(0)
X, Y = RANDOM.standard_normal((2, 2, 3, 3))
IMAGE = RANDOM.standard_normal((2, 4, 5, 6))
MASK = np.array([[1, 1, 0], [1, 0, 0]])


def leaves(**arrays: np.ndarray) -> dict[str, Leaf]:
    return {name: Leaf(array, array.dtype.kind == "f") for name, array in arrays.items()}


def test_equal_values_decide_before_names() -> None:
    pairs = pair_leaves(leaves(a=X, b=Y), leaves(a=Y, b=X))
    assert pairs == [LeafPair("a", "b", None), LeafPair("b", "a", None)]
    alike = pair_leaves(leaves(a=X, b=Y), leaves(a=Y, b=X), alike=True)
    assert alike == [LeafPair("a", "a", None), LeafPair("b", "b", None)]


def test_permuted_and_merged_axes_are_found_by_value() -> None:
    (turned,) = pair_leaves(leaves(x=IMAGE), leaves(x=IMAGE.transpose(0, 2, 3, 1)))
    assert turned.axes == (0, 2, 3, 1)
    flat = IMAGE.transpose(0, 2, 3, 1).reshape(2, 30, 4)
    assert pair_leaves(leaves(x=IMAGE), leaves(x=flat)) == []  # as outputs of the models
    (merged,) = pair_leaves(leaves(x=IMAGE), leaves(x=flat), inside=True)
    assert np.array_equal(merged.to_port(IMAGE), flat) and merged.to_port(None) is None


def test_axes_cut_into_heads_are_found_by_value() -> None:
    whole = IMAGE.reshape(2, 4, 30)
    heads = whole.reshape(2, 4, 5, 6).transpose(0, 2, 1, 3)
    (cut,) = pair_leaves(leaves(x=whole), leaves(x=heads), inside=True)
    assert np.array_equal(cut.to_port(whole), heads)
    (back,) = pair_leaves(leaves(x=heads), leaves(x=whole), inside=True)
    assert np.array_equal(back.to_port(heads), whole)


def test_masks_that_are_added_are_equal_in_effect_where_both_hide() -> None:
    bias = np.arange(6.0).reshape(2, 3)
    added = np.where(MASK == 0, -1e4, bias)
    assert carries_mask(added) and not carries_mask(IMAGE)
    assert equal_in_effect(np.where(MASK == 0, np.finfo(float).min, bias), added)
    assert not equal_in_effect(bias, added) and not equal_in_effect(added, added + 1)
    assert not equal_in_effect(MASK, MASK) and not equal_in_effect(added, added[:1])


def test_what_fits_nothing_is_told() -> None:
    ours, theirs = leaves(x=X, y=Y), leaves(x=X, z=IMAGE)
    assert find_unpaired(ours, theirs, pair_leaves(ours, theirs)) == ("y", "z")
    assert find_unpaired(ours, ours, pair_leaves(ours, ours)) is None


def test_a_tensor_taken_twice_gets_both_gradients() -> None:
    ours = {"query": Leaf(X, True, Y), "key": Leaf(X, True, 2 * Y)}
    assert np.array_equal(sum_gradients(ours, [LeafPair("query", "x", None)])["query"], 3 * Y)


def test_masks_are_compared_by_the_places_they_hide() -> None:
    additive = np.where(MASK == 0, -1e9, 0.0)
    assert hide_same_places(MASK, additive) and hide_same_places(MASK, MASK == 0)
    moved = np.roll(additive, 1, axis=1)
    assert not hide_same_places(MASK, moved)
    assert hide_different_places(MASK[:, None], moved[:, None, None])
    assert not hide_different_places(MASK[:, None], additive[:, None, None])
