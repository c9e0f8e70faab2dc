"""Pairing two models as sequences of modules."""

from reprod_align.match import Match
from reprod_align.match.owners import align_sequences, group_look_alikes, is_taken, pair_by_order
from tests.match.made import Module, linear, make_both, make_evidence, numbers

import numpy as np


def pair(ours: dict[str, Module], theirs: dict[str, Module]) -> dict[str, str]:
    found = Match()
    pair_by_order(found, *make_both(ours, theirs))
    return found.owners


def test_the_largest_sum_in_order_is_found() -> None:
    crossing = np.array([[1.0, 5.0], [5.0, 1.0]])
    assert len(align_sequences(crossing)) == 1  # 5 alone is more than 1 + 1
    assert align_sequences(np.array([[3.0, 5.0], [5.0, 3.0]])) == [(0, 0), (1, 1)]
    assert align_sequences(np.array([[-1.0, 2.0, 0.0], [-1.0, -1.0, 2.0]])) == [(0, 1), (1, 2)]


def test_scores_below_zero_are_never_paired() -> None:
    assert align_sequences(np.array([[-1.0]])) == []
    assert align_sequences(np.array([[0.0]])) == [(0, 0)]


def test_modules_are_paired_in_order_where_names_say_nothing() -> None:
    ours = {"a": linear(4, 3), "b": linear(5, 4), "c": linear(2, 5)}
    theirs = {"x": linear(3, 4), "y": linear(4, 5), "z": linear(5, 2)}
    assert pair(ours, theirs) == {"a": "x", "b": "y", "c": "z"}
    del theirs["y"]
    assert pair(ours, theirs) == {"a": "x", "c": "z"}


def test_look_alikes_are_exchanged_where_values_say_so() -> None:
    first, second = numbers(3, 3), np.square(numbers(3, 3))
    ours = {"a": ("Linear", {"weight": first}), "b": ("Linear", {"weight": second})}
    theirs = {"x": ("Linear", {"weight": second.T}), "y": ("Linear", {"weight": first.T})}
    assert pair(ours, theirs) == {"a": "y", "b": "x"}


def test_look_alikes_are_exchanged_where_names_say_so() -> None:
    ours = {"attn.query": linear(3, 3), "attn.key": linear(3, 3)}
    theirs = {"attn.k_proj": linear(3, 3), "attn.q_proj": linear(3, 3)}
    assert pair(ours, theirs) == {"attn.query": "attn.q_proj", "attn.key": "attn.k_proj"}
    unknown = {"attn.x": linear(3, 3), "attn.y": linear(3, 3)}
    assert pair(ours, unknown) == {"attn.query": "attn.x", "attn.key": "attn.y"}


def test_what_is_paired_already_is_left_alone() -> None:
    both = make_both({"a": linear(3, 3)}, {"x": linear(3, 3)})
    found = Match(owners={"a": "other"})
    pair_by_order(found, *both)
    assert found == Match(owners={"a": "other"})
    assert is_taken(both[0].owners["a"], {"a.weight"})
    assert not is_taken(both[0].owners["a"], {"b.weight"})


def test_look_alikes_of_repeated_blocks_come_together() -> None:
    names = [f"blocks.{n}.{name}" for n in range(2) for name in ("q", "k")]
    modules = {name: linear(3, 3) for name in names} | {"blocks.0.wide": linear(6, 3)}
    owners = make_evidence("PyTorch", modules).owners
    partners = {path: path for path in owners}
    assert group_look_alikes(partners, owners, 2) == [[names[:2], names[2:]]]
    assert group_look_alikes(partners, owners, 1) == []


def list_blocks(*names: str) -> dict[str, Module]:
    return {f"blocks.{n}.{name}": linear(6, 6) if name in ("attend", "mix") else linear(3, 3)
            for n in range(3) for name in names}  # fmt: skip


def test_a_layer_that_is_called_too_late_is_not_taken_for_one_of_the_next_block() -> None:
    ours, theirs = (
        list_blocks("na", "attend", "nb", "mix"),
        list_blocks("attend", "m1", "mix", "m2"),
    )
    found = pair(ours, theirs)
    assert found == {
        f"blocks.{n}.{ours}": f"blocks.{n}.{theirs}" for n in range(3)
        for ours, theirs in (("na", "m1"), ("attend", "attend"), ("nb", "m2"), ("mix", "mix"))
    }  # fmt: skip


def norm() -> Module:
    return "LayerNorm", {"weight": numbers(3)}


def test_a_norm_of_each_block_may_stand_in_the_next_one() -> None:
    ours, theirs = {"embedded": norm()}, dict[str, Module]()
    for n in range(3):
        ours |= {f"blocks.{n}.fc": linear(3, 3), f"blocks.{n}.after": norm()}
        theirs |= {f"blocks.{n}.before": norm(), f"blocks.{n}.fc": linear(3, 3)}
    theirs["last"] = norm()
    paired = pair(ours, theirs)
    assert [paired[f"blocks.{n}.after"] for n in range(3)] == [
        "blocks.1.before",
        "blocks.2.before",
        "last",
    ]
    assert paired["embedded"] == "blocks.0.before" and paired["blocks.1.fc"] == "blocks.1.fc"
