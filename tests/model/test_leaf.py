"""Which leaf of the port's call stands for which of the reference's."""

from reprod_align.model.leaf import (
    LeafPair,
    find_unpaired,
    hide_different_places,
    hide_same_places,
    pair_leaves,
    sum_gradients,
)
from reprod_align.model.trace import Leaf

import numpy as np

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
