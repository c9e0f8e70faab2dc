"""Pairing of tensors and modules, on models that hold nothing but what is to be paired."""

from collections.abc import Sequence
from dataclasses import replace

from reprod_align import ReprodError, align
from reprod_align.match import (
    Match,
    collect_evidence,
    find_alternatives,
    keep_common_places,
    match_models,
    pair_by_value,
    pair_modules,
)
from reprod_align.match.modules import DrawnShapes
from reprod_align.match.tensor_pair import TensorPair, cut, find_turns, join
from reprod_align.model.trace import Call, Leaf, Trace
from reprod_align.pair import paddle_side, torch_side

import numpy as np
import paddle
import pytest
import torch
from paddle import nn as pnn
from torch import nn as tnn

Layers = dict[str, object]


def torch_model(**layers: object) -> tnn.Module:
    """Return a module that holds these layers; a dict becomes one that holds its entries."""
    model = tnn.Module()
    for name, layer in layers.items():
        setattr(model, name, torch_model(**layer) if isinstance(layer, dict) else layer)
    return model


def paddle_model(**layers: object) -> pnn.Layer:
    model = pnn.Layer()
    for name, layer in layers.items():
        setattr(model, name, paddle_model(**layer) if isinstance(layer, dict) else layer)
    return model


def sides(ours: Layers, theirs: Layers) -> tuple:
    """Return the evidence of two models, never called, each with the values that it holds."""
    made = torch_side(torch_model(**ours)), paddle_side(paddle_model(**theirs))
    return tuple(collect_evidence(side.describe(), [], side.values(), side.name) for side in made)


def matched(ours: Layers, theirs: Layers) -> Match:
    return match_models(*sides(ours, theirs))


def partners(found: Match) -> dict[str, Sequence[str]]:
    return {" + ".join(pair.torch): list(pair.paddle) for pair in found.pairs}


def parameter(*shape: int) -> object:
    return paddle.create_parameter(shape, "float32", default_initializer=pnn.initializer.Normal())


def filled(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype("float32")


def qkv(linear: type, sizes: Sequence[int] = (8, 8, 8), **more: object) -> Layers:
    names = zip(("q_proj", "k_proj", "v_proj"), sizes, strict=True)
    return {**{name: linear(8, size) for name, size in names}, **more}


# ---------------------------------------------------------------- how a tensor lies


def test_a_weight_fits_one_with_an_axis_split_in_two() -> None:
    assert find_turns((8, 2, 4), (8, 8), "", "") == [False]
    assert find_turns((8, 8), (8, 2, 4), "oi", "") == [False, True]
    assert find_turns((8, 2, 4), (4, 16), "", "") == []


def test_a_patch_convolution_fits_a_linear_layer() -> None:
    shapes = (5, 3, 2, 2), (12, 5)
    pair = TensorPair(("conv",), ("linear",), tuple(find_turns(*shapes, "oi", "io")),
                      torch_shapes=shapes[:1], paddle_shapes=shapes[1:])  # fmt: skip
    kernel = filled(5, 3, 2, 2)
    assert np.array_equal(pair.to_paddle({"conv": kernel})["linear"], kernel.reshape(5, 12).T)


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("sizes", [(8, 8, 8), (8, 4, 4), (12, 4)])
def test_joined_is_what_cut_undoes(groups: int, sizes: tuple[int, ...]) -> None:
    parts = [filled(size, 3) for size in sizes]
    back = cut(join(parts, groups), sizes, groups)
    assert all(np.array_equal(*pair) for pair in zip(parts, back, strict=True))


def test_groups_are_heads_with_their_share_of_every_part() -> None:
    q, k, v = np.arange(4), np.arange(10, 12), np.arange(20, 22)
    assert join([q, k, v], 2).tolist() == [0, 1, 10, 20, 2, 3, 11, 21]


# ---------------------------------------------------------------- a whole and its parts


def test_a_fused_projection_is_cut_into_three() -> None:
    found = matched(
        {"attn": {"c_attn": tnn.Linear(8, 24), "c_proj": tnn.Linear(8, 8)}},
        {"attn": qkv(pnn.Linear, out_proj=pnn.Linear(8, 8))},
    )
    names = [f"attn.{letter}_proj" for letter in "qkv"]
    assert partners(found)["attn.c_attn.weight"] == [f"{name}.weight" for name in names]
    assert partners(found)["attn.c_attn.bias"] == [f"{name}.bias" for name in names]
    assert partners(found)["attn.c_proj.weight"] == ["attn.out_proj.weight"]


def test_three_projections_are_joined_in_the_order_of_their_names() -> None:
    found = matched(
        {"attn": {f"{letter}_proj": tnn.Linear(8, 8) for letter in "vqk"}},
        {"attn": {"qkv": pnn.Linear(8, 24)}},
    )
    joined_names = " + ".join(f"attn.{letter}_proj.weight" for letter in "qkv")
    assert partners(found)[joined_names] == ["attn.qkv.weight"]


def test_what_only_one_side_has_is_not_made_of_layers_that_have_partners() -> None:
    block = {"query": (4, 4), "key": (4, 4)}
    found = matched(
        {"attention": {"self": {n: tnn.Linear(*s) for n, s in block.items()}},
         "pooler": {"dense": tnn.Linear(8, 8)}},
        {"attention": {n: pnn.Linear(*s) for n, s in block.items()}},
    )  # fmt: skip
    assert partners(found)["attention.self.query.weight"] == ["attention.query.weight"]
    assert found.torch_left == ["pooler.dense.weight", "pooler.dense.bias"]
    assert found.paddle_left == []


def test_a_layer_as_wide_as_q_k_and_v_together_is_none_of_theirs() -> None:
    blocks = range(2)
    found = matched(
        {
            f"h{n}": {"attn": {"c_attn": tnn.Linear(8, 24)}, "c_fc": tnn.Linear(8, 24)}
            for n in blocks
        },
        {f"layers{n}": {"attn": qkv(pnn.Linear), "linear1": pnn.Linear(8, 24)} for n in blocks},
    )
    assert found.torch_left == found.paddle_left == []
    assert partners(found)["h1.c_fc.weight"] == ["layers1.linear1.weight"]


def experts(first: str, second: str, last: str) -> list[Layers]:
    """Return three of Paddle's experts: two layers (4 -> 6) and one (6 -> 4)."""
    return [
        {first: pnn.Linear(4, 6, bias_attr=False), last: pnn.Linear(6, 4, bias_attr=False),
         second: pnn.Linear(4, 6, bias_attr=False)}
        for _ in range(3)
    ]  # fmt: skip


@pytest.mark.parametrize("names", [("w1", "w3", "w2"), ("gate_proj", "up_proj", "down_proj")])
@pytest.mark.parametrize("turned", [False, True])
def test_a_stack_of_experts_is_cut_into_theirs(names: tuple[str, str, str], turned: bool) -> None:
    """As transformers 5 keeps them: (experts, gate and up, in) and (experts, in, out)."""
    first, second = names[1::-1] if turned else names[:2]  # held in either order
    held = {str(n): expert for n, expert in enumerate(experts(first, second, names[2]))}
    found = matched(
        {"mlp": {"experts": {"gate_up_proj": tnn.Parameter(torch.randn(3, 12, 4)),
                             "down_proj": tnn.Parameter(torch.randn(3, 4, 6))}}},
        {"mlp": {"experts": held}},
    )  # fmt: skip
    assert found.torch_left == found.paddle_left == []
    assert partners(found)["mlp.experts.gate_up_proj"] == [
        f"mlp.experts.{n}.{name}.weight" for n in range(3) for name in names[:2]
    ]
    pair = found.by_torch()["mlp.experts.gate_up_proj"]
    stack = np.arange(144.0).reshape(3, 12, 4)
    parts = pair.to_paddle({"mlp.experts.gate_up_proj": stack})
    assert np.array_equal(parts[f"mlp.experts.1.{names[1]}.weight"], stack[1, 6:].T)
    assert np.array_equal(pair.to_torch(parts)["mlp.experts.gate_up_proj"], stack)
    assert pair.drop_shapes() == replace(
        pair, either_way=False
    )  # a map of other sizes cuts otherwise


def test_a_stack_of_other_sizes_is_no_experts() -> None:
    for shape in ((2, 12, 4), (3, 13, 4), (3, 12, 5)):
        found = matched(
            {"experts": {"gate_up_proj": tnn.Parameter(torch.randn(*shape))}},
            {"experts": {str(n): one for n, one in enumerate(experts("w1", "w3", "w2"))}},
        )
        assert found.torch_left == ["experts.gate_up_proj"], shape


class Stacked(tnn.Module):
    """Experts in one tensor, as transformers 5 has them."""

    def __init__(self) -> None:
        super().__init__()
        self.gate_up_proj = tnn.Parameter(torch.randn(3, 12, 4))
        self.down_proj = tnn.Parameter(torch.randn(3, 4, 6))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        total = torch.zeros_like(x)
        for both, down in zip(self.gate_up_proj, self.down_proj, strict=True):
            gate, up = tnn.functional.linear(x, both).chunk(2, dim=-1)
            total = total + tnn.functional.linear(tnn.functional.silu(gate) * up, down)
        return total


class Expert(pnn.Layer):
    """One of several, with three layers."""

    def __init__(self, power: float) -> None:
        super().__init__()
        self.power = power
        self.w1 = pnn.Linear(4, 6, bias_attr=False)
        self.w2 = pnn.Linear(6, 4, bias_attr=False)
        self.w3 = pnn.Linear(4, 6, bias_attr=False)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return self.w2(pnn.functional.silu(self.w1(x)) * self.w3(x)) * self.power


class Apart(pnn.Layer):
    """Experts one by one."""

    def __init__(self, power: float) -> None:
        super().__init__()
        self.experts = pnn.LayerList([Expert(power if n == 1 else 1.0) for n in range(3)])

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return sum(expert(x) for expert in self.experts)


@pytest.mark.parametrize(("power", "verdict"), [(1.0, "faithful"), (1.001, "diverges")])
def test_align_judges_experts_that_one_side_stacks(power: float, verdict: str) -> None:
    x = np.random.default_rng(0).standard_normal((5, 4))
    report = align(tnn.Sequential(Stacked()), Apart(power), (x,))
    assert report.verdict == verdict, report


def test_nothing_is_fused_where_both_sides_have_the_parts() -> None:
    ours = {"block": qkv(tnn.Linear, c_fc=tnn.Linear(8, 24))}
    names = ("query", "key", "value")
    theirs = {"layer": {**{n: pnn.Linear(8, 8) for n in names}, "linear1": pnn.Linear(8, 24)}}
    found = matched(ours, theirs)
    assert not any(pair.is_fused for pair in found.pairs)
    assert partners(found)["block.k_proj.weight"] == ["layer.key.weight"]


def grouped_heads() -> tuple[Layers, Layers]:
    """Four heads of q, two of k and v; qkv_proj has the shape of gate_proj."""
    ours = {
        "attn": qkv(tnn.Linear, (8, 4, 4)),
        "mlp": {n: tnn.Linear(8, 16) for n in ("gate", "up")},
    }
    theirs = {"attn": {"qkv_proj": pnn.Linear(8, 16)}, "mlp": {"gate_up": pnn.Linear(8, 32)}}
    return ours, theirs


def test_a_fused_projection_of_the_shape_of_another_layer() -> None:
    found = matched(*grouped_heads())
    assert found.torch_left == found.paddle_left == []
    assert partners(found)["mlp.gate.weight + mlp.up.weight"] == ["mlp.gate_up.weight"]


def test_rows_stored_head_by_head_are_among_the_alternatives() -> None:
    torch_side_, paddle_side_ = sides(*grouped_heads())
    parts = [torch_side_.values[f"attn.{letter}_proj.weight"] for letter in "qkv"]
    expected = join(parts, 2).T
    others = [other for _, other in find_alternatives(match_models(torch_side_, paddle_side_))]
    made = [pair.to_paddle(torch_side_.values) for other in others for pair in other.pairs]
    assert any(np.array_equal(d.get("attn.qkv_proj.weight", 0), expected) for d in made)


def test_weights_that_the_port_holds_decide_how_rows_are_stored() -> None:
    ours, theirs = sides(*grouped_heads())
    for kind in ("weight", "bias"):
        parts = [ours.values[f"attn.{letter}_proj.{kind}"] for letter in "qkv"]
        theirs.values[f"attn.qkv_proj.{kind}"] = join(parts, 2).T
    groups = {pair.paddle[0]: pair.groups for pair in match_models(ours, theirs).pairs}
    assert groups["attn.qkv_proj.weight"] == groups["attn.qkv_proj.bias"] == 2
    assert groups["mlp.gate_up.weight"] == 1


class TorchHeads(tnn.Module):
    """Self-attention of two heads, from three projections."""

    def __init__(self) -> None:
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj = (tnn.Linear(8, 8) for _ in range(3))
        self.num_heads = 2

    def forward(self, x: torch.Tensor) -> torch.Tensor:  # (B, S, 8)
        q, k, v = (p(x).unflatten(-1, (2, 4)).transpose(1, 2)
                   for p in (self.q_proj, self.k_proj, self.v_proj))  # fmt: skip
        return ((q @ k.mT).softmax(-1) @ v).transpose(1, 2).flatten(2)


class PaddleHeads(pnn.Layer):
    """The same from one projection, stored head by head."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = pnn.Linear(8, 24)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:  # (B, S, 8)
        split = self.qkv(x).reshape([*x.shape[:2], 2, 12]).transpose([0, 2, 1, 3])
        q, k, v = split.chunk(3, axis=-1)
        mixed = pnn.functional.softmax(q @ k.transpose([0, 1, 3, 2]), axis=-1) @ v
        return mixed.transpose([0, 2, 1, 3]).flatten(2)


def test_align_finds_out_how_a_fused_projection_is_stored() -> None:
    report = align(TorchHeads(), PaddleHeads(), (filled(2, 5, 8),))
    assert report.passed, str(report)
    assert any("laid out by comparing outputs" in remark for remark in report.remarks)


# ---------------------------------------------------------------- single tensors


def test_a_linear_layer_here_is_a_bare_parameter_there() -> None:
    ours = {f"{n}_projection": tnn.Linear(8, 4, bias=False) for n in ("visual", "text")}
    found = matched(
        ours, {"vision_projection": parameter(8, 4), "text_projection": parameter(8, 4)}
    )
    assert partners(found) == {
        "text_projection.weight": ["text_projection"],
        "visual_projection.weight": ["vision_projection"],
    }
    assert found.doubts == []  # both partners are held by the model itself: nothing to exchange


def test_a_square_bare_parameter_may_lie_either_way() -> None:
    ours = {"embed": tnn.Embedding(9, 8), "text_projection": tnn.Linear(8, 8, bias=False)}
    sides_ = sides(ours, {"embed": pnn.Embedding(9, 8), "text_projection": parameter(8, 8)})
    found = match_models(*sides_)
    (other,) = (other for _, other in find_alternatives(found))
    laid = [m.by_torch()["text_projection.weight"].transposed[0] for m in (found, other)]
    assert laid == [False, True]


def test_a_bias_may_be_held_by_the_module_around() -> None:
    ours = {"body": tnn.Linear(8, 8), "lm_head": tnn.Linear(8, 8), "tail": tnn.Linear(8, 8)}
    theirs = {
        "body": pnn.Linear(8, 8),
        "lm_head": pnn.Linear(8, 8, bias_attr=False),
        "tail": pnn.Linear(8, 8),
        "lm_head_bias": parameter(8),
    }
    assert partners(matched(ours, theirs))["lm_head.bias"] == ["lm_head_bias"]


def test_a_tied_weight_here_may_be_a_tensor_of_its_own_there() -> None:
    embed, head = tnn.Embedding(9, 8), tnn.Linear(8, 9, bias=False)
    head.weight = embed.weight
    found = matched(
        {"embed": embed, "lm_head": head},
        {"embed": pnn.Embedding(9, 8), "lm_head_weight": parameter(9, 8)},
    )
    assert partners(found) == {
        "embed.weight": ["embed.weight"],
        "lm_head.weight": ["lm_head_weight"],
    }


def test_one_tensor_of_another_shape_does_not_take_the_others_along() -> None:
    found = matched({"up": tnn.Linear(8, 6)}, {"up": pnn.Linear(9, 6)})
    assert partners(found) == {"up.bias": ["up.bias"]}
    assert (found.torch_left, found.paddle_left) == (["up.weight"], ["up.weight"])


def test_tensors_whose_names_say_nothing_are_left_over() -> None:
    theirs = {"alpha": pnn.Linear(8, 4, bias_attr=False), "omega": parameter(4)}
    found = matched({"alpha": tnn.Linear(8, 4)}, theirs)
    assert (found.torch_left, found.paddle_left) == (["alpha.bias"], ["omega"])


def test_a_bias_that_is_left_out_is_not_the_bias_of_another_layer() -> None:
    theirs = {
        "attn": {"dense": pnn.Linear(8, 8, bias_attr=False)},
        "pooler": {"dense": pnn.Linear(8, 8)},
    }
    found = matched({"attn": {"dense": tnn.Linear(8, 8)}}, theirs)
    assert found.torch_left == ["attn.dense.bias"]
    assert found.paddle_left == ["pooler.dense.weight", "pooler.dense.bias"]


def test_a_layer_that_one_side_keeps_in_a_module_is_known_by_the_name_around_it() -> None:
    head = {"transform": pnn.Linear(8, 8, bias_attr=False)}
    theirs = {"pooler": {"dense": pnn.Linear(8, 8)}, "head": head}
    found = matched({"head": {"transform": {"dense": tnn.Linear(8, 8)}}}, theirs)
    assert partners(found) == {"head.transform.dense.weight": ["head.transform.weight"]}


# ---------------------------------------------------------------- modules


def test_each_module_has_one_counterpart() -> None:
    attention = torch_model(c_proj=tnn.Linear(8, 8))
    attention.register_buffer("bias", torch.ones(3, 3).tril(), persistent=False)
    theirs = paddle_model(attn={"c_proj": pnn.Linear(8, 8)}, norm=pnn.LayerNorm(8))
    theirs.register_buffer("bias", paddle.ones([3, 3]).tril(), persistable=False)
    made = torch_side(torch_model(attn=attention, norm=tnn.LayerNorm(8))), paddle_side(theirs)
    both = [collect_evidence(side.describe(), [], side.values(), side.name) for side in made]
    pairs = pair_modules(match_models(*both), *both)
    assert pairs["attn"] == "attn" and pairs[""] == ""
    assert len(set(pairs.values())) == len(pairs)


def test_a_module_that_is_missing_there_is_not_paired_with_the_one_around() -> None:
    patch = torch_model(patch=tnn.Conv2d(3, 4, 2))
    patch.register_parameter("class_embedding", tnn.Parameter(torch.ones(4)))
    theirs = paddle_model(conv=pnn.Conv2D(3, 4, 2), norm=pnn.LayerNorm(4))
    theirs.class_embedding = parameter(4)
    ours = torch_model(vision={"embeddings": patch, "norm": tnn.LayerNorm(4)})
    made = torch_side(ours), paddle_side(paddle_model(vision=theirs))
    both = [collect_evidence(side.describe(), [], side.values(), side.name) for side in made]
    found = match_models(*both)
    assert partners(found)["vision.embeddings.class_embedding"] == ["vision.class_embedding"]
    assert pair_modules(found, *both)["vision"] == "vision"


def test_halves_of_a_fused_layer_are_no_counterparts_of_the_whole() -> None:
    ours = {"attn": qkv(tnn.Linear, extra=tnn.Linear(5, 5))}
    both = sides(ours, {"attn": {"qkv_proj": pnn.Linear(8, 24)}})
    pairs = pair_modules(match_models(*both), *both)
    assert "attn.qkv_proj" not in pairs.values()


def output(path: str, values: np.ndarray) -> Call:
    return Call(path, 0, 0, outputs={"": Leaf(values, True)}, finished=1)


def nested() -> tuple:
    """Return two blocks, which here stand in a module that adds their input, and there do that."""
    ours = {n: {"block": {"conv": tnn.Linear(size, 8)}} for n, size in (("3", 8), ("4", 9))}
    theirs = {n: {"conv": pnn.Linear(size, 8)} for n, size in (("2", 8), ("3", 9))}
    return sides({"features": ours}, {"blocks": theirs})


def test_of_nested_modules_the_outer_one_is_the_counterpart() -> None:
    both = nested()
    pairs = pair_modules(match_models(*both), *both)
    assert (pairs["features.3"], pairs["features.4"]) == ("blocks.2", "blocks.3")


def test_of_nested_modules_the_one_with_the_same_output_is_the_counterpart() -> None:
    both = nested()
    pairs = pair_modules(match_models(*both), *both)
    ours, theirs = ("features.3.block", "features.3"), ("blocks.2",)
    traces = [Trace([output(path, filled(n, 3)) for n, path in enumerate(paths, 1)])
              for paths in (ours, theirs)]  # fmt: skip
    pair_by_value(pairs, *both, *traces)
    assert pairs["features.3.block"] == "blocks.2" and "features.3" not in pairs


# ---------------------------------------------------------------- where draws are told apart


def drawn(*places: str) -> DrawnShapes:
    return {((place, 0), number): (2, 3) for number, place in enumerate(places)}


PLACES = {"": "", "block": "block", "block.attn": "block.attn"}


def test_a_dropout_may_stand_inside_a_module_here_and_after_it_there() -> None:
    ours, theirs = drawn("block.attn", "block.attn", "block"), drawn("block.attn", "block", "block")
    assert keep_common_places(PLACES, ours, theirs) == {"": "", "block": "block"}


def test_places_with_the_same_draws_stay() -> None:
    ours = drawn("block.attn", "block")
    assert keep_common_places(PLACES, ours, ours) == PLACES


def test_where_a_draw_is_missing_all_places_stay() -> None:
    ours, theirs = drawn("block.attn", "block.attn", "block"), drawn("block.attn", "block")
    assert keep_common_places(PLACES, ours, theirs) == PLACES


def test_a_counter_of_batches_is_no_candidate_for_what_is_left_over() -> None:
    ours = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.BatchNorm1d(3))
    theirs = paddle.nn.Sequential(paddle.nn.Linear(3, 3), paddle.nn.BatchNorm1D(3))
    theirs.extra = theirs.create_parameter([1])
    theirs.register_buffer("count", paddle.zeros([1]))
    rows = np.random.default_rng(0).standard_normal((4, 3))
    assert align(ours, theirs, (rows,)).passed


NORMED = [torch.nn.utils.parametrizations.weight_norm]  # the older function warns that it is old


@pytest.mark.parametrize("wrap", NORMED)
@pytest.mark.parametrize("linear", [True, False])
def test_weight_norm_is_paired_by_its_parts(wrap, linear: bool) -> None:
    kinds = (tnn.Linear, pnn.Linear) if linear else (tnn.Conv1d, pnn.Conv1D)
    more = () if linear else (1,)
    ours = tnn.Sequential(wrap(kinds[0](3, 5, *more)), wrap(kinds[0](5, 5, *more)))
    port = [
        paddle.nn.utils.weight_norm(kinds[1](size, 5, *more), dim=int(linear)) for size in (3, 5)
    ]
    rows = np.random.default_rng(0).standard_normal((2, 3, 3))
    assert align(ours, pnn.Sequential(*port), (rows,)).passed
    port[1].weight_g.set_value(port[1].weight_g * 2)
    report = align(ours, pnn.Sequential(*port), (rows,), copy_weights=False)
    assert not report.passed and report.findings[0].stage == "weights"


def test_spectral_norm_is_paired_by_its_parts() -> None:
    ours = tnn.Sequential(torch.nn.utils.parametrizations.spectral_norm(tnn.Conv1d(3, 5, 1)))
    port = pnn.Sequential(paddle.nn.utils.spectral_norm(pnn.Conv1D(3, 5, 1)))
    rows = np.random.default_rng(0).standard_normal((2, 3, 3))
    report = align(ours, port, (rows,))
    first = report.checks[0]
    assert (
        first.passed and "eval" in first.what
    )  # in training torch's newer one iterates in another order


@pytest.mark.parametrize(
    ("name_map", "words"),
    [({"0": "0", "2": "0"}, "sends both 0 and 2 to 0"), ({"0": "2"}, "their tensors do not fit")],
)
def test_a_map_that_cannot_be_meant_is_refused(name_map, words) -> None:
    ours, theirs = (fw.Sequential(fw.Linear(3, 4), fw.ReLU(), fw.Linear(4, 5)) for fw in (tnn, pnn))
    with pytest.raises(ReprodError, match=words):
        align(ours, theirs, (np.ones((2, 3)),), name_map=name_map)


class _Ours(tnn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attn_norm, self.attn = tnn.LayerNorm(6), tnn.Linear(6, 6)
        self.ffn_norm, self.ffn = tnn.LayerNorm(6), tnn.Linear(6, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attn(self.attn_norm(x))
        return x + torch.relu(self.ffn(self.ffn_norm(x)))


class _Theirs(pnn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.self_attn, self.mlp = pnn.Linear(6, 6), pnn.Linear(6, 6)
        self.input_layernorm, self.post_attention_layernorm = pnn.LayerNorm(6), pnn.LayerNorm(6)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        x = x + self.self_attn(self.input_layernorm(x))
        return x + pnn.functional.relu(self.mlp(self.post_attention_layernorm(x)))


def test_norms_of_ones_are_paired_in_the_order_of_their_calls() -> None:
    """No output tells them apart, their gradients do: attn_norm is not post_attention_layernorm."""
    rows = np.random.default_rng(0).standard_normal((3, 6))
    report = align(_Ours(), _Theirs(), (rows,))
    assert report.passed
    assert report.pairs["attn_norm"] == "input_layernorm"


class _Crossed(tnn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cross_w = tnn.Parameter(torch.randn(2, 4))
        self.cross_b = tnn.Parameter(torch.randn(2, 4))
        self.register_buffer("mask", torch.ones(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for w, b in zip(self.cross_w, self.cross_b, strict=True):
            x = x * (x * w).sum(-1, keepdim=True) + b
        return x


class _CrossedPort(pnn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.cross_weight = self.create_parameter([2, 4])
        self.cross_bias = self.create_parameter([2, 4])

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        for at in range(2):
            mixed = (x * self.cross_weight[at]).sum(-1, keepdim=True)
            x = x * mixed + self.cross_bias[at]
        return x


def test_what_is_left_over_is_paired_whether_or_not_the_port_has_a_fault_elsewhere(
    monkeypatch,
) -> None:
    rows = (np.random.default_rng(0).standard_normal((3, 4)),)
    report = align(_Crossed(), _CrossedPort(), rows)
    assert report.passed
    assert any("cross_w with cross_weight, cross_b with cross_bias" in it for it in report.remarks)
    own = _CrossedPort.forward
    monkeypatch.setattr(_CrossedPort, "forward", lambda self, x: own(self, x) * 1.01)
    wrong = align(_Crossed(), _CrossedPort(), rows)
    kinds = {one.kind for one in wrong.findings}
    assert kinds and "parameter-unpaired" not in kinds


class _Scale(tnn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.affine_weight = tnn.Parameter(torch.ones(4))
        self.affine_bias = tnn.Parameter(torch.zeros(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.affine_weight + self.affine_bias


class _Scaled(tnn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.revin, self.fc = _Scale(), tnn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(self.revin(x))


class _ScalePort(pnn.Layer):
    """Is never called as a layer; its numbers are for another sum, or for the same in another order."""

    def __init__(self, adds: bool) -> None:
        super().__init__()
        constant = pnn.initializer.Constant(0.0 if adds else 1.0)
        self.gamma = self.create_parameter([4], default_initializer=constant)
        self.beta = self.create_parameter([4], is_bias=True)
        self.adds = adds

    def rescale(self, x: paddle.Tensor) -> paddle.Tensor:
        return (x + self.gamma if self.adds else x * self.gamma) + self.beta


class _ScaledPort(pnn.Layer):
    def __init__(self, adds: bool) -> None:
        super().__init__()
        self.scaler, self.fc = _ScalePort(adds), pnn.Linear(4, 3)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return self.fc(self.scaler.rescale(x))


def test_what_is_left_over_is_paired_where_outputs_agree_already() -> None:
    """Ones here and ones there: the outputs tell nothing, the gradients and the training do."""
    rows = (np.random.default_rng(0).standard_normal((3, 4)),)
    report = align(_Scaled(), _ScaledPort(adds=False), rows)
    assert report.passed and any(
        "revin.affine_weight with scaler.gamma" in it for it in report.remarks
    )


def test_what_is_left_over_stays_so_where_it_brings_the_outputs_apart() -> None:
    rows = (np.random.default_rng(0).standard_normal((3, 4)),)
    report = align(_Scaled(), _ScaledPort(adds=True), rows)
    assert not report.passed and report.findings[0].kind == "parameter-unpaired"
