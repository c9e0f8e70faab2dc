"""Whether two modules can hold the same tensors."""

from reprod_align.match.evidence import Evidence, Owner
from reprod_align.match.names import fit_owners, pair_owners, pair_tensors, rate_owners, same_family
from reprod_align.model.tensor_pair import Lay, Match
from tests.match.made import linear, make_both, make_evidence, numbers

import numpy as np
import pytest


def own(side: Evidence) -> Owner:
    """Return the only owner."""
    (owner,) = side.owners.values()
    return owner


def test_linear_layers_fit_transposed_and_nothing_else() -> None:
    ours, theirs = make_both({"fc": linear(4, 3, bias=4)}, {"fc": linear(3, 4, bias=4)})
    fit = fit_owners(own(ours), own(theirs))
    assert fit == {"weight": ("weight", [Lay(True, (3, 4))]), "bias": ("bias", [Lay(False, (4,))])}
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
    assert fit_owners(own(ours), own(theirs)) == {"weight": ("scale", [Lay(False, (4,))])}
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


def test_the_first_way_to_lie_is_taken_and_the_others_are_choices() -> None:
    side = make_evidence("PyTorch", {"fc": linear(3, 3)})
    tensor = side.info.tensors["fc.weight"]
    ways = [Lay(False, (3, 3)), Lay(True, (3, 3))]
    found = Match()
    pair_tensors(found, tensor, tensor, ways)
    assert (found.pairs[0].lay, found.pairs[0].choices) == ((ways[0],), ((ways[1],),))


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
    assert same_family(first, second) is same is same_family(second, first)
