"""A tensor kept whole on one side, in parts on the other."""

from reprod_align.match import Match
from reprod_align.match.fused import pair_fused
from tests.match.made import Module, linear, make_both

import numpy as np


def fuse(ours: dict[str, Module], theirs: dict[str, Module]) -> Match:
    found = Match()
    pair_fused(found, *make_both(ours, theirs))
    return found


PARTS = ("q_proj", "k_proj", "v_proj")


def test_a_whole_is_cut_into_parts_in_the_order_of_q_k_v() -> None:
    theirs = {f"attn.{name}": linear(2, 4, bias=4) for name in reversed(PARTS)}
    weight, bias = fuse({"attn.qkv": linear(12, 2, bias=12)}, theirs).pairs
    assert weight.paddle == tuple(f"attn.{name}.weight" for name in PARTS)
    assert bias.paddle == tuple(f"attn.{name}.bias" for name in PARTS)
    assert (weight.parts, bias.parts) == ((4, 4, 4), (4, 4, 4))
    whole = np.arange(24.0).reshape(12, 2)
    made = weight.to_paddle({"attn.qkv.weight": whole})
    assert np.array_equal(made["attn.k_proj.weight"], whole[4:8].T)


def test_parts_are_joined_to_a_whole() -> None:
    ours = {f"attn.{name}": linear(4, 2) for name in PARTS}
    (pair,) = fuse(ours, {"attn.qkv": linear(2, 12)}).pairs
    parts = {name: np.full((4, 2), number) for number, name in enumerate(pair.torch)}
    assert pair.to_paddle(parts)["attn.qkv.weight"][0].tolist() == [0] * 4 + [1] * 4 + [2] * 4


def test_parts_that_do_not_add_up_are_refused() -> None:
    theirs = {f"attn.{name}": linear(2, 5) for name in PARTS}
    assert fuse({"attn.qkv": linear(12, 2)}, theirs).pairs == []


def test_parts_of_another_kind_of_layer_are_refused() -> None:
    parts = {f"attn.{name}": ("Embedding", linear(4, 2)[1]) for name in PARTS}
    assert fuse({"attn.qkv": linear(12, 2)}, parts).pairs == []


def test_names_that_say_nothing_fuse_nothing_where_both_sides_have_a_whole() -> None:
    theirs = {"mlp.a": linear(2, 4), "mlp.b": linear(2, 4), "mlp.whole": linear(2, 8)}
    assert fuse({"mlp.all": linear(8, 2)}, theirs).pairs == []
    del theirs["mlp.whole"]
    (pair,) = fuse({"mlp.all": linear(8, 2)}, theirs).pairs
    assert (pair.paddle, pair.parts) == (("mlp.a.weight", "mlp.b.weight"), (4, 4))


def test_a_bias_is_no_whole_without_its_weight() -> None:
    theirs = {"self.q_proj": linear(2, 4, bias=4), "self.k_proj": linear(2, 4, bias=4)}
    theirs["self.out_proj"] = linear(8, 8)
    assert fuse({"self.output.dense": linear(8, 8, bias=8)}, theirs).pairs == []
