"""The ranks of a mesh, and how tensors lie on them."""

from dataclasses import replace

from reprod_align.errors import ReprodError
from reprod_align.parallel import (
    MEAN,
    Mesh,
    Placement,
    choose,
    differ,
    find_order,
    guess,
    parse_mesh,
)
from reprod_align.parallel.rank import ShardedDraws

import numpy as np
import pytest


def test_words_name_a_mesh() -> None:
    assert parse_mesh("tp=2") == Mesh(1, 2)
    assert parse_mesh("dp=2, tp=2") == Mesh(2, 2)
    assert parse_mesh("tp=2,sp") == Mesh(1, 2, True)
    assert parse_mesh(parse_mesh("tp=2,sp").name) == Mesh(1, 2, True)


@pytest.mark.parametrize("words", ["", "tp", "tp=1", "sp", "dp=2,sp", "tp=2,tp=2", "tp=0", "xp=2"])
def test_other_words_are_refused(words: str) -> None:
    with pytest.raises(ReprodError):
        parse_mesh(words)


@pytest.mark.parametrize("words", ["pp=2", "ep=2", "sharding=2", "tp=2,pp=2"])
def test_what_gloo_lacks_is_refused_with_the_reason(words: str) -> None:
    with pytest.raises(ReprodError, match=r"gloo|ProcessGroupGLOO"):
        parse_mesh(words)


def test_groups_of_ranks() -> None:
    mesh = Mesh(2, 2)
    assert mesh.groups("tp") == [[0, 1], [2, 3]]
    assert mesh.groups("dp") == [[0, 2], [1, 3]]


def test_the_order_of_examples() -> None:
    whole = {"x": np.arange(8).reshape(4, 2)}
    seen = [{"x": whole["x"][[0, 2]]}, {"x": whole["x"][[1, 3]]}]
    assert find_order(whole, seen).tolist() == [0, 2, 1, 3]
    assert find_order(whole, [seen[0], seen[0]]).tolist() == [0, 2, 0, 2]
    with pytest.raises(ReprodError, match="no example"):
        find_order(whole, [{"x": whole["x"] + 1}])


TP, BOTH = Mesh(1, 2), Mesh(2, 2)
WHOLE = np.arange(8 * 12, dtype=float).reshape(8, 12)


@pytest.mark.parametrize(
    "placement",
    [
        Placement(),
        Placement(None, 0),
        Placement(None, 1),
        Placement(0, 1),
        Placement(0),
        Placement(None, 1, (8, 2, 2)),
        Placement(None, 0, (), 8, 12),
    ],
)
@pytest.mark.parametrize(
    "mesh", [TP, BOTH, replace(BOTH, order=np.array([0, 2, 4, 6, 1, 3, 5, 7]))]
)
def test_what_is_cut_goes_together_again(placement: Placement, mesh: Mesh) -> None:
    if placement.dp is not None and mesh.dp == 1:
        placement = replace(placement, dp=None)
    parts = [placement.scatter(WHOLE, mesh, rank) for rank in range(mesh.size)]
    np.testing.assert_array_equal(placement.gather(parts, mesh), WHOLE)


def test_fused_parts_are_cut_one_by_one() -> None:
    part = Placement(None, 1, (8, 2, 2)).scatter(WHOLE, TP, 1)
    np.testing.assert_array_equal(part, WHOLE[:, [4, 5, 6, 7, 9, 11]])


def test_a_scalar_stays_one_and_stands_for_the_mean() -> None:
    losses = [np.array(1.0), np.array(1.0), np.array(3.0), np.array(3.0)]
    placement = choose(losses, BOTH, {()})
    assert placement.dp == MEAN
    assert placement.gather(losses, BOTH) == 2.0
    assert placement.scatter(np.array(2.0), BOTH, 1).shape == ()


def test_how_tensors_go_together_is_chosen_by_the_shapes_that_the_reference_has() -> None:
    cut = [WHOLE[:, :6], WHOLE[:, 6:]]
    assert choose(cut, TP, {(8, 12)}) == Placement(None, 1)
    assert choose([WHOLE[:4], WHOLE[4:]], TP, {(8, 12)}) == Placement(None, 0)
    assert choose([WHOLE, WHOLE], TP, {(8, 12)}) == Placement()
    assert choose([WHOLE, WHOLE + 1], TP, {(8, 12)}) == Placement()  # it should be whole
    assert choose(cut, TP, {(8, 12)}, None) == Placement()  # the layer gives it whole
    assert differ([WHOLE, WHOLE, WHOLE, WHOLE + 1], BOTH, "tp") == (2, 3)
    assert differ([WHOLE, WHOLE, WHOLE, WHOLE], BOTH, "tp") is None


def test_shapes_tell_how_a_draw_is_cut() -> None:
    assert next(guess((4, 6), (8, 12), BOTH)) == Placement(0, 1)
    assert next(guess((4, 12), (8, 12), BOTH)) == Placement(0, None)
    assert next(guess((6, 4, 2), (4, 6, 4), TP)) == Placement(None, 2)


def test_ranks_draw_their_parts_of_what_the_reference_draws() -> None:
    key = (("", 0), 0)
    one = ShardedDraws(1, {}).uniform((8, 12))
    parts = [ShardedDraws(1, {}, {key: (8, 12)}, mesh=TP, rank=r).uniform((8, 6)) for r in (0, 1)]
    np.testing.assert_array_equal(np.concatenate(parts, 1), one)
