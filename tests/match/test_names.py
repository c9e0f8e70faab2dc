"""Pairing by the user's map and by equal names."""

from reprod_align.errors import ReprodError
from reprod_align.match import Match, TensorPair
from reprod_align.match.evidence import Evidence, Owner
from reprod_align.match.owners import (
    are_same_family,
    fit_owners,
    map_name,
    pair_by_map,
    pair_by_name,
    pair_owners,
    pair_single_tensors,
    pair_tensors,
    rate_owners,
)
from tests.match.made import Module, linear, make_both, make_evidence, numbers

import numpy as np
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


def own(side: Evidence) -> Owner:
    """Return the only owner."""
    (owner,) = side.owners.values()
    return owner


def test_linear_layers_fit_transposed_and_nothing_else() -> None:
    ours, theirs = make_both({"fc": linear(4, 3, bias=4)}, {"fc": linear(3, 4, bias=4)})
    fit = fit_owners(own(ours), own(theirs))
    assert fit == {"weight": ("weight", [True]), "bias": ("bias", [False])}
    not_transposed = make_evidence("Paddle", {"fc": linear(4, 3, bias=4)})
    assert fit_owners(own(ours), own(not_transposed)) is None


def test_one_tensor_that_does_not_fit_keeps_owners_apart() -> None:
    ours, theirs = make_both({"fc": linear(4, 3, bias=4)}, {"fc": linear(3, 4, bias=5)})
    found = Match()
    pair_owners(found, own(ours), own(theirs))
    assert found == Match()


def test_lone_tensors_of_other_names_are_the_same() -> None:
    scale = {"norm": ("", {"scale": numbers(4)})}
    ours, theirs = make_both({"norm": ("", {"weight": numbers(4)})}, scale)
    assert fit_owners(own(ours), own(theirs)) == {"weight": ("scale", [False])}
    nothing_shared = {"norm": ("", {"scale": numbers(4), "shift": numbers(4)})}
    assert fit_owners(own(ours), own(make_evidence("Paddle", nothing_shared))) is None


def test_paired_owners_hold_paired_tensors() -> None:
    ours, theirs = make_both({"a": linear(4, 3, bias=4)}, {"b": linear(3, 4, bias=4)})
    found = Match()
    pair_owners(found, own(ours), own(theirs))
    assert found.owners == {"a": "b"}
    assert [(pair.torch, pair.paddle) for pair in found.pairs] == [
        (("a.weight",), ("b.weight",)),
        (("a.bias",), ("b.bias",)),
    ]


def test_the_first_way_to_lie_is_taken_and_another_is_noted() -> None:
    side = make_evidence("PyTorch", {"fc": linear(3, 3)})
    tensor = side.info.tensors["fc.weight"]
    found = Match()
    for ways in ([False, True], [True]):
        pair_tensors(found, tensor, tensor, ways)
    assert [(pair.transposed, pair.either_way) for pair in found.pairs] == [
        ((False,), True),
        ((True,), False),
    ]


def test_equal_values_rate_higher_than_equal_names() -> None:
    weight = numbers(4, 4)
    ours = make_evidence("PyTorch", {"fc": ("Linear", {"weight": weight})})
    same = make_evidence("Paddle", {"other": ("Linear", {"weight": weight.T})})
    named = make_evidence("Paddle", {"fc": ("Linear", {"weight": np.square(weight.T)})})
    scores = [rate_owners(own(ours), own(side), ours, side) for side in (same, named)]
    assert scores[0] > scores[1] > 0


def test_layers_of_another_family_rate_below_zero() -> None:
    norm = {"fc": ("LayerNorm", {"weight": numbers(4)})}
    ours, theirs = make_both(norm, {"fc": ("Embedding", {"weight": numbers(4)})})
    assert rate_owners(own(ours), own(theirs), ours, theirs) < 0
    assert rate_owners(own(ours), own(ours), ours, ours) > 0


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("Linear", "Conv2d", True),
        ("Conv1d", "Conv2d", True),
        ("", "Linear", True),
        ("LayerNorm", "RMSNorm", True),
        ("LayerNorm", "BatchNorm1d", False),
        ("Linear", "Embedding", False),
    ],
)
def test_kinds_that_can_hold_the_same_weights(first: str, second: str, same: bool) -> None:
    assert are_same_family(first, second) is same is are_same_family(second, first)


def pair(ours: dict[str, Module], theirs: dict[str, Module], found: Match | None = None) -> Match:
    found = found or Match()
    pair_single_tensors(found, *make_both(ours, theirs))
    return found


def partners(found: Match) -> dict[str, str]:
    return {pair.torch[0]: pair.paddle[0] for pair in found.pairs}


def test_a_layers_weight_may_be_a_bare_parameter_of_its_name() -> None:
    found = pair({"head_proj": linear(4, 3)}, {"": ("", {"head_proj": numbers(3, 4)})})
    assert partners(found) == {"head_proj.weight": "head_proj"}
    assert found.owners == {"head_proj": ""}
    assert found.pairs[0].transposed == (True,)


def test_the_most_alike_name_is_taken_first() -> None:
    theirs = {"": ("", {"up_bias": numbers(4), "down_bias": numbers(4)})}
    found = pair({"up": linear(4, 3, bias=4), "down": linear(4, 3, bias=4)}, theirs)
    assert partners(found) == {"up.bias": "up_bias", "down.bias": "down_bias"}


def test_names_that_say_nothing_are_not_guessed() -> None:
    assert pair({"alpha": linear(4, 3)}, {"": ("", {"omega": numbers(3, 4)})}) == Match()


def test_a_shape_or_a_buffer_that_does_not_fit_is_left_over() -> None:
    head = {"head": linear(4, 3)}
    assert pair(head, {"": ("", {"head": numbers(3, 5)})}) == Match()
    parameter, buffer = ({"norm": ("", {role: numbers(4)})} for role in ("mean", "_mean"))
    assert pair(parameter, buffer) == Match()
    assert partners(pair(parameter, parameter)) == {"norm.mean": "norm.mean"}


def test_a_tensor_with_a_partner_is_left_alone() -> None:
    ours, theirs = {"head": linear(4, 3)}, {"": ("", {"head": numbers(3, 4)})}
    taken = TensorPair(("other",), ("head",), ())
    assert pair(ours, theirs, Match([taken])).pairs == [taken]
