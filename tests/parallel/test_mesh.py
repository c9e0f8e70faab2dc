"""Which ranks there are, and which examples each replica sees."""

from reprod_align.errors import ReprodError
from reprod_align.parallel import Mesh, find_order, parse_mesh

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
