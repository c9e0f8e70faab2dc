"""Pairing by the user's map and by equal names."""

from reprod_align.errors import ReprodError
from reprod_align.match.names import map_name, pair_by_map, pair_by_name
from reprod_align.model.tensor_pair import Match
from tests.match.made import linear, make_both, numbers

import pytest


def test_the_longest_prefix_decides() -> None:
    names = {"body": "stem", "body.head": "top", "all": ""}
    assert map_name("body.fc.weight", names) == "stem.fc.weight"
    assert map_name("body.head.fc", names) == "top.fc"
    assert map_name("all.fc", names) == "fc"
    assert map_name("body2.fc", names) is None


def test_the_map_pairs_modules_and_what_they_hold() -> None:
    both = make_both({"body.fc": linear(4, 3, bias=4)}, {"stem.fc": linear(3, 4, bias=4)})
    found = Match()
    pair_by_map(found, *both, {"body": "stem"})
    assert found.owners == {"body.fc": "stem.fc"}
    assert found.by_torch()["body.fc.bias"].paddle == ("stem.fc.bias",)


def test_the_map_pairs_a_single_tensor() -> None:
    both = make_both({"head": linear(4, 3, bias=4)}, {"": ("", {"head_bias": numbers(4)})})
    found = Match()
    pair_by_map(found, *both, {"head.bias": "head_bias"})
    assert [(pair.torch, pair.paddle) for pair in found.pairs] == [(("head.bias",), ("head_bias",))]


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ({"body": "b"}, "the PyTorch model has no module or tensor 'body'"),
        ({"a": "tail"}, "the Paddle model has no module or tensor 'tail'"),
        ({"a": "c"}, "name_map pairs a with c: their tensors do not fit"),
        ({"a.weight": "c.weight"}, r"name_map pairs a.weight \(4, 3\) with c.weight \(5, 4\)"),
        ({"a": "d", "b": "d"}, "name_map sends both a and b to d"),
    ],
)
def test_a_wrong_map_is_refused(names: dict[str, str], said: str) -> None:
    both = make_both(
        {"a": linear(4, 3), "b": linear(4, 3)},
        {"b": linear(3, 4), "c": linear(5, 4), "d": linear(3, 4)},
    )
    with pytest.raises(ReprodError, match=said):
        pair_by_map(Match(), *both, names)


def test_equal_names_are_paired_if_their_tensors_fit() -> None:
    both = make_both({"a": linear(4, 3), "b": linear(4, 3)}, {"a": linear(3, 4), "b": linear(3, 5)})
    found = Match()
    pair_by_name(found, *both)
    assert found.owners == {"a": "a"}


def test_names_numbered_from_another_start_are_left_to_the_order() -> None:
    ours = {"conv1": linear(3, 3), "conv2": linear(3, 3), "fc": linear(3, 3)}
    theirs = {"conv0": linear(3, 3), "conv1": linear(3, 3), "fc": linear(3, 3)}
    found = Match()
    pair_by_name(found, *make_both(ours, theirs))
    assert found.owners == {"fc": "fc"}
