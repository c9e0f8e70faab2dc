"""`align` on ports that others wrote: `transformers` against `paddlenlp`, without a name map.

Small random models of both libraries, all weights and biases random. What the ports do otherwise is
theirs: each of those faults was confirmed by taking it away, whereupon the pair is faithful.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from examples.zoo.pair import Batch, Pair, tokens
from examples.zoo.transformers_table import ARCHITECTURES, MOBILE
from reprod_align import align
from reprod_align.alignment import layouts
from reprod_align.alignment.runner import Runner
from reprod_align.match import collect_evidence, match_models
from reprod_align.pair import paddle_side, torch_side

import numpy as np
import paddle
import pytest

pytest.importorskip("paddlenlp")
pytestmark = pytest.mark.filterwarnings("ignore")  # both libraries warn about themselves

Built = tuple[Any, Any, Batch]
ZOO = {architecture.name: architecture for architecture in ARCHITECTURES}


def port(name: str, head: str = "Model", **settings: Any) -> Pair:
    """Return a pair of the zoo, with further settings on both sides."""
    known = ZOO[name]
    return replace(known, settings={**known.settings, **settings}).pair(head)


def fused(**settings: Any) -> Pair:
    """Return Llama, whose Paddle side keeps q, k, v and gate, up in one tensor each."""
    known = ZOO["llama"]
    apart = dict(fuse_attention_qkv=True, fuse_attention_ffn=True)
    changed = replace(known, settings={**known.settings, **settings}, paddle_only=apart)
    return changed.pair("ForCausalLM")


def epsilon(value: float) -> Callable[[Any], None]:
    """Return a change that sets the epsilon of all of Paddle's LayerNorms."""

    def mend(model: Any) -> None:
        for layer in model.sublayers():
            if isinstance(layer, paddle.nn.LayerNorm):
                layer._epsilon = value

    return mend


def share(head: str, table: str, role: str = "weight") -> Callable[[Any], None]:
    """Return a change that ties Paddle's head to its table, as PyTorch does."""

    def mend(model: Any) -> None:
        layers = dict(model.named_sublayers(include_self=True))
        setattr(layers[head], role, layers[table].weight)

    return mend


def scaled(path: str) -> Callable[[Any], None]:
    """Return a change after which Paddle's module returns 1.5 times its first output."""

    def spoil(model: Any) -> None:
        layer = dict(model.named_sublayers())[path]
        own = layer.forward

        def forward(*args: Any, **kwargs: Any) -> Any:
            out = own(*args, **kwargs)
            return (out[0] * 1.5, *out[1:]) if isinstance(out, tuple) else out * 1.5

        layer.forward = forward

    return spoil


WORDS = "ForConditionalGeneration"
OPT = port("opt").given(input_ids=tokens())
MEGATRON = port("megatronbert", "ForMaskedLM").given(input_ids=tokens())
MEGATRON_TABLE = "megatronbert.embeddings.word_embeddings"

FAITHFUL: dict[str, Pair] = {
    "bert, classifier": port("bert", "ForSequenceClassification"),
    "electra, masked words": port("electra", "ForMaskedLM=Generator"),
    "gpt2": port("gpt", "LMHeadModel"),
    "clip": port("clip"),
    "falcon": port("falcon"),
    "mpnet, masked words": port("mpnet", "ForMaskedLM", layer_norm_eps=1e-5),
    "bart, words": port("bart", WORDS).mended(share("", "bart.shared", "lm_head_weight")),
    "bigbird": port("bigbird"),
}
FAITHFUL_TOO: dict[str, Pair] = {
    "bert, masked words": port("bert", "ForMaskedLM"),
    "bert, words": port("bert", "ForTokenClassification"),
    "bert, answers": port("bert", "ForQuestionAnswering"),
    "roberta": port("roberta", "ForMaskedLM"),
    "ernie": port("ernie", "ForSequenceClassification"),
    "convbert": port("convbert"),
    "squeezebert": port("squeezebert"),
    "mobilebert": port("mobilebert"),
    "albert with gelu": port("albert"),
    "albert, masked words": port("albert", "ForMaskedLM", layer_norm_eps=1e-5),
    "mpnet": port("mpnet"),
    "roformer, masked words": port("roformer", "ForMaskedLM"),
    "mbart, words": port("mbart", WORDS).mended(share("", "mbart.shared", "lm_head_weight")),
    "pegasus, words": port("pegasus", WORDS).mended(share("", "pegasus.shared", "lm_head_weight")),
    "megatronbert, masked words": MEGATRON.mended(
        share("cls.predictions", MEGATRON_TABLE, "decoder_weight")
    ),
    "falcon, words": port("falcon", "ForCausalLM").mended(
        share("lm_head", "transformer.word_embeddings")
    ),
    "luke with its epsilon": port("luke").mended(epsilon(1e-12)),
    "megatronbert, no mask": port("megatronbert").given(input_ids=tokens()),
    "bart": port("bart"),
    "pegasus": port("pegasus"),
    "opt, no mask": OPT,
    "dpt": port("dpt"),
    "bit": port("bit"),
}

# pair, module of the first finding (PyTorch's name), what its message says
FAULTY: dict[str, tuple[Pair, str, str]] = {
    "roberta, classifier": (
        port("roberta", "ForSequenceClassification"), "",
        "dropout.p is 0.1 in Paddle: 0.0 gives",
    ),
    "megatronbert, untied head": (
        MEGATRON, "cls.predictions.decoder.weight", "a parameter of its own in Paddle",
    ),
    "opt, a layer scaled": (
        OPT.mended(scaled("decoder.layers.1")), "decoder.layers.1", "times 1.5",
    ),
    "bloom, a layer scaled": (port("bloom").mended(scaled("h.1")), "h.1", "times 1.5"),
    "llama, an attention scaled": (
        port("llama", "ForCausalLM").mended(scaled("llama.layers.1.self_attn")),
        "model.layers.1.self_attn", "times 1.5",
    ),
    "t5, a layer scaled": (
        port("t5", WORDS).mended(scaled("t5.encoder.block.1.layer.1")),
        "encoder.block.1.layer.1", "its own code does not",
    ),
    "megatronbert": (
        port("megatronbert"), "encoder.layer.0.attention.self", "padding mask is missing",
    ),
    "fnet": (
        port("fnet"), "encoder.layer.0.fourier.self", "its inputs agree and its output does not",
    ),
}  # fmt: skip

# pair, PyTorch's tensors that rightly stay alone, Paddle's
PAIRED: dict[str, tuple[Pair, list[str], list[str]]] = {
    "llama, fused": (fused(num_key_value_heads=4), [], []),
    "llama, fused, with fewer key heads": (fused(num_key_value_heads=2), [], []),
    "mobilebert": (
        replace(ZOO["mobilebert"], settings=MOBILE).pair("Model"),
        ["pooler.dense.weight", "pooler.dense.bias"], [],
    ),
    "xlnet": (port("xlnet"), [], []),
    "bart, untied head": (port("bart", WORDS), [], []),
}  # fmt: skip


def built(pair: Pair) -> Built:
    """Return both models and the batch."""
    import transformers
    from paddlenlp import transformers as paddlenlp

    return pair.make(transformers, paddlenlp)


@pytest.mark.parametrize("name", FAITHFUL)
def test_a_faithful_port_passes(name: str) -> None:
    report = align(*built(FAITHFUL[name]))
    assert report.verdict == "faithful", str(report)


def test_a_port_that_computes_in_float32_as_pytorch_does_is_faithful() -> None:
    report = align(*built(port("xlnet", "LMHeadModel")))
    assert report.verdict == "faithful" and report.rounded, str(report)


@pytest.mark.longer
@pytest.mark.parametrize("name", FAITHFUL_TOO)
def test_a_further_faithful_port_passes(name: str) -> None:
    report = align(*built(FAITHFUL_TOO[name]))
    assert report.verdict == "faithful", str(report)


@pytest.mark.parametrize("name", FAULTY)
def test_what_a_port_does_otherwise_is_named_first(name: str) -> None:
    pair, module, words = FAULTY[name]
    report = align(*built(pair))
    first = report.findings[0]
    assert (first.torch_name, words in first.message) == (module, True), str(report)


@pytest.mark.parametrize("name", PAIRED)
def test_every_tensor_with_a_counterpart_finds_it(name: str) -> None:
    pair, ours, theirs = PAIRED[name]
    first, second, _ = built(pair)
    sides = torch_side(first), paddle_side(second)
    found = match_models(*(collect_evidence(s.describe(), [], s.values(), s.name) for s in sides))
    assert (found.torch_left, found.paddle_left) == (ours, theirs)


@pytest.mark.parametrize("heads", [4, 2])
def test_how_a_fused_projection_is_stored_is_found_out(heads: int) -> None:
    report = align(*built(fused(num_key_value_heads=heads)))
    outputs = next(check for check in report.checks if check.what == "outputs, eval mode")
    assert outputs.relative < 1e-5, str(report)  # RMSNorm computes in float32 on both sides


def test_how_a_fused_projection_is_stored_is_found_out_beside_another_fault() -> None:
    first, second, inputs = built(fused(num_key_value_heads=4))
    second.llama.norm.variance_epsilon = 0.5
    report = align(first, second, inputs)
    assert report.findings[0].paddle_name == "llama.norm", str(report)
    assert "self_attn.q_proj.weight" in " ".join(report.remarks)


def test_what_was_tried_of_a_fused_projection_is_taken_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, second, inputs = built(fused(num_key_value_heads=4))

    def forward(self: Any, x: Any) -> Any:
        gate, up = paddle.chunk(self.gate_up_fused_proj(x), 2, axis=-1)
        return self.down_proj(paddle.tanh(gate) * up)

    monkeypatch.setattr(type(second.llama.layers[0].mlp), "forward", forward)
    measure, same = layouts._measure_outputs, []

    def compare_weights(runner: Runner) -> float:
        held, due = runner.port.values(), runner.port_start()
        same.append(all(np.allclose(held[name], due[name], 1e-6) for name in due))
        return measure(runner)

    monkeypatch.setattr(layouts, "_measure_outputs", compare_weights)
    report = align(first, second, inputs)
    assert report.findings[0].paddle_name == "llama.layers.0.mlp", str(report)
    assert len(same) > 1 and all(same[:2])


def test_how_a_fused_projection_is_stored_is_found_out_where_each_attention_is_at_fault() -> None:
    first, second, inputs = built(fused(num_key_value_heads=4))
    for layer in second.llama.layers:
        layer.self_attn.rotary_emb.cos_cached *= 0.5
    report = align(first, second, inputs)
    assert report.findings[0].paddle_name == "llama.layers.0.self_attn", str(report)
    assert "self_attn.q_proj.weight" in " ".join(report.remarks)


def test_a_dropout_that_is_too_much_is_named_where_it_is_called() -> None:
    """Not where the constructor makes it."""
    pair, *_ = FAULTY["roberta, classifier"]
    first = align(*built(pair)).findings[0]
    assert "self.dropout(sequence_output)" in first.paddle_code
