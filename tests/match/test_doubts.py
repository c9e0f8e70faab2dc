"""Other pairings that names and shapes allow just as well."""

from reprod_align.match import exchange, find_alternatives, note_doubts
from reprod_align.match.evidence import Evidence
from reprod_align.match.owners import pair_owners
from reprod_align.match.tensor_pair import Match, TensorPair, join
from tests.match.made import linear, make_both, make_evidence, numbers

import numpy as np


def match_owners(torch: Evidence, paddle: Evidence, partners: dict[str, str]) -> Match:
    found = Match()
    for path, other in partners.items():
        pair_owners(found, torch.owners[path], paddle.owners[other])
    return found


def test_every_other_order_is_offered() -> None:
    both = make_both({n: linear(3, 3) for n in "abc"}, {n: linear(3, 3) for n in "xyz"})
    found = match_owners(*both, dict(zip("abc", "xyz", strict=True)))
    found.doubts = [(("a", "b", "c"),)]
    orders = {tuple(other.owners.values()) for _, other in find_alternatives(found)}
    assert len(orders) == 5 and ("x", "y", "z") not in orders


def test_exchanged_owners_take_their_tensors_along() -> None:
    both = make_both({n: linear(3, 3) for n in "ab"}, {n: linear(3, 3) for n in "xy"})
    found = match_owners(*both, {"a": "x", "b": "y"})
    other = exchange(found, [("a", "b")], (1, 0))
    assert other.owners == {"a": "y", "b": "x"}
    assert other.by_torch()["a.weight"].paddle == ("y.weight",)
    assert found.owners == {"a": "x", "b": "y"}  # the match itself is as it was


def test_look_alikes_with_names_that_say_nothing_are_doubtful() -> None:
    both = make_both({n: linear(3, 3) for n in "ab"}, {n: linear(3, 3) for n in "xy"})
    found = match_owners(*both, {"a": "x", "b": "y"})
    note_doubts(found, *both, {})
    assert found.doubts == [(("a", "b"),)]
    ((words, other),) = find_alternatives(found)
    assert words == "a with y, b with x" and other.owners == {"a": "y", "b": "x"}


def test_names_and_the_users_map_leave_no_doubt() -> None:
    ours = {"query": linear(3, 3), "key": linear(3, 3)}
    both = make_both(ours, {"q_proj": linear(3, 3), "k_proj": linear(3, 3)})
    partners = {"query": "q_proj", "key": "k_proj"}
    found = match_owners(*both, partners)
    note_doubts(found, *both, {})
    assert found.doubts == []
    both = make_both({n: linear(3, 3) for n in "ab"}, {n: linear(3, 3) for n in "xy"})
    mapped = match_owners(*both, {"a": "x", "b": "y"})
    note_doubts(mapped, *both, {"a": "x"})
    assert mapped.doubts == []


def test_the_weights_that_the_port_holds_decide_how_a_square_matrix_lies() -> None:
    weight = numbers(3, 3)
    ours = make_evidence("PyTorch", {"fc": ("Linear", {"weight": weight})})
    for held, transposed in ((weight.T, True), (weight, False), (weight + 1, False)):
        theirs = make_evidence("Paddle", {"": ("", {"fc": held})})
        found = Match([TensorPair(("fc.weight",), ("fc",), (False,), either_way=True)])
        note_doubts(found, ours, theirs, {})
        assert found.pairs[0].transposed[0] is transposed
        (other,) = (other for _, other in find_alternatives(found))
        assert other.pairs[0].transposed[0] is not transposed


def test_weights_that_lie_the_same_both_ways_change_nothing() -> None:
    symmetric = np.eye(3)
    ours = make_evidence("PyTorch", {"fc": ("Linear", {"weight": symmetric})})
    theirs = make_evidence("Paddle", {"": ("", {"fc": symmetric})})
    pair = TensorPair(("fc.weight",), ("fc",), (False,), either_way=True)
    found = Match([pair])
    note_doubts(found, ours, theirs, {})
    assert found.pairs == [pair]


def test_counts_of_heads_that_a_model_names_are_offered_first() -> None:
    parts = {f"{name}": ("Linear", {"weight": numbers(8, 2) * n})
             for n, name in enumerate("qkv", 1)}  # fmt: skip
    ours = make_evidence("PyTorch", {"": ("", {}), **parts}, values={"num_heads": 4})
    names = tuple(f"{name}.weight" for name in "qkv")
    whole = join([ours.values[name] for name in names], 2).T
    for held, groups in ((whole, 2), (np.zeros((2, 24)), 1)):
        theirs = make_evidence("Paddle", {"qkv": ("Linear", {"weight": held})})
        found = Match([TensorPair(names, ("qkv.weight",), (True,), (8, 8, 8))])
        note_doubts(found, ours, theirs, {})
        assert found.pairs[0].groups == groups
        assert [next(iter(change.values())).groups for change in found.layouts] == [4, 2]
