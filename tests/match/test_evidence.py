"""A model's tensors, grouped by the module that holds them."""

from reprod_align.match.evidence import open_containers
from tests.match.made import linear, make_both, make_evidence, numbers

import numpy as np


def test_tensors_go_by_pytorchs_words_on_both_sides() -> None:
    rows = numbers(3)
    norm = ("BatchNorm1d", {"weight": rows + 1, "_mean": rows, "_variance": rows * 2})
    side = make_evidence("Paddle", {"norm": norm, "fc": linear(2, 3)})
    assert list(side.owners["norm"].tensors) == ["weight", "running_mean", "running_var"]
    assert side.owners["fc"].axes == {"weight": "io"}
    assert side.find_axes(side.info.tensors["fc.weight"]) == "io"
    assert make_evidence("PyTorch", {"fc": linear(3, 2)}).owners["fc"].axes == {"weight": "oi"}


def test_counters_and_second_names_need_no_partner() -> None:
    shared = numbers(4, 3)
    modules = {
        "embed": ("Embedding", {"weight": shared}),
        "norm": ("BatchNorm1d", {"weight": numbers(3), "num_batches_tracked": numbers(1)}),
        "head": ("Linear", {"weight": shared}),
    }
    side = make_evidence("PyTorch", modules)
    assert list(side.tensor_names()) == ["embed.weight", "norm.weight"]
    assert [path for path, owner in side.owners.items() if not owner.is_own] == ["head"]
    assert "num_batches_tracked" not in side.owners["norm"].tensors


def test_owners_stand_in_calling_order() -> None:
    modules = {name: linear(2, 2) for name in ("a.x", "b", "c")}
    side = make_evidence("PyTorch", modules, order=["", "c", "a", "b"])
    assert list(side.owners) == ["c", "a.x", "b"]  # a.x was not called: it stands where `a` does
    assert side.in_order({"": ["a", "b", "c"]}) == {"": ["c", "a", "b"]}


def test_parametrized_weights_belong_to_the_layer_around() -> None:
    parts = {"original0": numbers(3, 1), "original1": numbers(3, 2)}
    modules = {"fc": ("Linear", {}), "fc.parametrizations.weight": ("", parts)}
    side = make_evidence("PyTorch", modules)
    assert list(side.owners["fc"].tensors) == ["weight_g", "weight_v"]


def test_fingerprints_survive_a_transpose_and_tell_values_apart() -> None:
    weight = numbers(3, 2)
    same, other = ({"fc": ("Linear", {"weight": array})} for array in (weight.T, weight.T + 1))
    ours = make_evidence("PyTorch", {"fc": ("Linear", {"weight": weight})})
    prints = [side.fingerprint("fc.weight") for side in (ours, make_evidence("Paddle", same))]
    assert np.allclose(*prints)
    assert not np.allclose(prints[0], make_evidence("Paddle", other).fingerprint("fc.weight"))
    constant = {"norm": ("LayerNorm", {"weight": np.ones((2, 2))})}
    assert make_evidence("PyTorch", constant).fingerprint("norm.weight") is None


def test_an_attention_is_opened_where_the_other_side_has_its_parts() -> None:
    names = ("q_proj_weight", "k_proj_weight", "q_proj_bias")
    attention = ("MultiheadAttention", {name: numbers(4, 4) for name in names})
    parts = {"attn.q_proj": linear(4, 4, bias=4), "attn.k_proj": linear(4, 4)}
    ours, theirs = make_both({"attn": attention}, parts)
    opened = open_containers(ours, theirs).owners
    assert list(opened) == ["attn.q_proj", "attn.k_proj"]
    assert list(opened["attn.q_proj"].tensors) == ["weight", "bias"]
    assert list(open_containers(ours, ours).owners) == ["attn"]


def test_a_recurrent_network_is_opened_as_far_as_the_other_side_is() -> None:
    roles = [f"{kind}_{name}_l0" for kind in ("weight", "bias") for name in ("ih", "hh")]
    network = make_evidence("PyTorch", {"rnn": ("LSTM", {r: numbers(8, 2) for r in roles})})
    cell = {"cell": ("LSTMCell", {"weight_ih": numbers(8, 2)})}
    (opened,) = open_containers(network, make_evidence("Paddle", cell)).owners.values()
    assert (opened.path, opened.kind) == ("rnn.l0", "LSTMCell")
    assert "weight_ih" in opened.tensors
    gates = open_containers(network, make_evidence("Paddle", {"x2h": linear(2, 8)})).owners
    assert list(gates) == ["rnn.l0.ih", "rnn.l0.hh"]
