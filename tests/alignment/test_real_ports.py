"""`align` on ports that others wrote: `transformers` against `paddlenlp`, without a name map.

Small random models of both libraries, all weights and biases random. What the ports do otherwise is
theirs: each of those faults was confirmed by taking it away, whereupon the pair is faithful.
"""

from collections.abc import Callable
from typing import Any

from reprod_align import align
from reprod_align.match import collect_evidence, match_models
from reprod_align.pair.sides import paddle_side, torch_side

import numpy as np
import paddle
import pytest
import torch

pytest.importorskip("paddlenlp")
pytestmark = pytest.mark.filterwarnings("ignore")  # both libraries warn about themselves

Built = tuple[Any, Any, dict[str, np.ndarray]]
Builder = Callable[[Any, Any], Built]

ENCODER = dict(
    vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
    intermediate_size=64, max_position_embeddings=40, type_vocab_size=2,
)  # fmt: skip
DECODER = {name: value for name, value in ENCODER.items() if name != "type_vocab_size"}
VISION = dict(
    hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
    image_size=32, patch_size=8,
)  # fmt: skip
TEXT = dict(DECODER, max_position_embeddings=16)
SEQ2SEQ = dict(
    vocab_size=100, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
    decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, max_position_embeddings=40,
    attention_dropout=0.1, activation_dropout=0.1,
)  # fmt: skip
DEPTH = dict(num_encoder_layers=2, num_decoder_layers=2)  # Paddle's names for the same
OPT = {name: value for name, value in DECODER.items() if name != "intermediate_size"}


def tokens(length: int = 10, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(3, 99, size=(2, length))


def padded() -> dict[str, np.ndarray]:
    mask = np.ones((2, 10), "int64")
    mask[-1, -3:] = 0
    return {"input_ids": tokens(), "attention_mask": mask}


def image() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((2, 3, 32, 32)).astype("float32")


def same(name: str, config: str, settings: dict[str, Any], **more: np.ndarray) -> Builder:
    """Return a builder of the same class with the same settings on both sides."""

    def build(ours: Any, theirs: Any) -> Built:
        models = [getattr(zoo, name)(getattr(zoo, config)(**settings)) for zoo in (ours, theirs)]
        return models[0], models[1], more or padded()

    return build


def gpt2(ours: Any, theirs: Any) -> Built:
    config = ours.GPT2Config(vocab_size=100, n_embd=32, n_layer=2, n_head=4, n_positions=40)
    other = theirs.GPTConfig(**dict(DECODER, intermediate_size=128))
    return ours.GPT2LMHeadModel(config), theirs.GPTLMHeadModel(other), {"input_ids": tokens()}


def clip(ours: Any, theirs: Any) -> Built:
    ids = tokens()
    ids[:, -1] = 99
    settings = dict(
        text_config=dict(TEXT, eos_token_id=99), vision_config=VISION, projection_dim=16
    )
    models = [zoo.CLIPModel(zoo.CLIPConfig(**settings)) for zoo in (ours, theirs)]
    return models[0], models[1], {"input_ids": ids, "pixel_values": image()}


def falcon(ours: Any, theirs: Any) -> Built:
    known = dict(
        vocab_size=100, hidden_size=32, num_attention_heads=4, parallel_attn=True, multi_query=True
    )
    config = ours.FalconConfig(**known, num_hidden_layers=2, new_decoder_architecture=False)
    other = theirs.RWConfig(**known, n_layer=2, n_head=4)
    return ours.FalconModel(config), theirs.RWModel(other), padded()


def seq2seq(name: str, **more: Any) -> Builder:
    def build(ours: Any, theirs: Any) -> Built:
        config = getattr(ours, f"{name}Config")(**SEQ2SEQ, **more)
        other = getattr(theirs, f"{name}Config")(**SEQ2SEQ, **DEPTH, **more)
        inputs = {**padded(), "decoder_input_ids": tokens(7, 3)}
        return getattr(ours, f"{name}Model")(config), getattr(theirs, f"{name}Model")(other), inputs

    return build


def opt(ours: Any, theirs: Any) -> Built:
    config = ours.OPTConfig(**OPT, ffn_dim=64, word_embed_proj_dim=32, dropout=0.0)
    other = theirs.OPTConfig(
        **DECODER, word_embed_proj_dim=32, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
    )
    return ours.OPTModel(config), theirs.OPTModel(other), {"input_ids": tokens()}


def llama(**settings: Any) -> Builder:
    """Return a builder whose Paddle side keeps q, k, v and gate, up in one tensor each."""

    def build(ours: Any, theirs: Any) -> Built:
        config = ours.LlamaConfig(**DECODER, **settings)
        other = theirs.LlamaConfig(
            **DECODER, **settings, fuse_attention_qkv=True, fuse_attention_ffn=True
        )
        return ours.LlamaForCausalLM(config), theirs.LlamaForCausalLM(other), padded()

    return build


def epsilon(build: Builder, value: float) -> Builder:
    """Return a builder of the same pair with this epsilon in all of Paddle's LayerNorms."""

    def built(ours: Any, theirs: Any) -> Built:
        first, second, inputs = build(ours, theirs)
        for layer in second.sublayers():
            if isinstance(layer, paddle.nn.LayerNorm):
                layer._epsilon = value
        return first, second, inputs

    return built


def share(build: Builder, head: str, table: str, role: str = "weight") -> Builder:
    """Return a builder of the same pair whose Paddle side ties its head to its table, as PyTorch does."""

    def built(ours: Any, theirs: Any) -> Built:
        first, second, inputs = build(ours, theirs)
        layers = dict(second.named_sublayers(include_self=True))
        setattr(layers[head], role, layers[table].weight)
        return first, second, inputs

    return built


def worded(name: str, **more: Any) -> Builder:
    """Return a builder of a sequence-to-sequence model with its head."""

    def build(ours: Any, theirs: Any) -> Built:
        config = getattr(ours, f"{name}Config")(**SEQ2SEQ, **more)
        other = getattr(theirs, f"{name}Config")(**SEQ2SEQ, **DEPTH, **more)
        kind, inputs = (
            f"{name}ForConditionalGeneration",
            {**padded(), "decoder_input_ids": tokens(7, 3)},
        )
        return getattr(ours, kind)(config), getattr(theirs, kind)(other), inputs

    return build


def falcon_words(ours: Any, theirs: Any) -> Built:
    known = dict(
        vocab_size=100, hidden_size=32, num_attention_heads=4, parallel_attn=True, multi_query=True
    )
    config = ours.FalconConfig(**known, num_hidden_layers=2, new_decoder_architecture=False)
    other = theirs.RWConfig(**known, n_layer=2, n_head=4)
    return ours.FalconForCausalLM(config), theirs.RWForCausalLM(other), padded()


def bigbird(ours: Any, theirs: Any) -> Built:
    config = ours.BigBirdConfig(
        **ENCODER, attention_type="original_full", hidden_act="gelu", hidden_dropout_prob=0.0
    )
    other = theirs.BigBirdConfig(
        **ENCODER, num_layers=2, nhead=4, dim_feedforward=64, activation="gelu", dropout=0.0,
        hidden_dropout_prob=0.0, attn_dropout=0.1, act_dropout=0.0,
        attention_type="default_attention", block_size=1, window_size=1,
        num_global_blocks=1, num_rand_blocks=1,
    )  # fmt: skip
    return ours.BigBirdModel(config), theirs.BigBirdModel(other), {"input_ids": tokens()}


def t5(ours: Any, theirs: Any) -> Built:
    settings = dict(vocab_size=100, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4)
    models = [zoo.T5ForConditionalGeneration(zoo.T5Config(**settings)) for zoo in (ours, theirs)]
    return models[0], models[1], {**padded(), "decoder_input_ids": tokens(7, 3)}


def bloom(ours: Any, theirs: Any) -> Built:
    settings = dict(vocab_size=100, hidden_size=32, n_layer=2, n_head=4)
    models = [zoo.BloomModel(zoo.BloomConfig(**settings)) for zoo in (ours, theirs)]
    return models[0], models[1], padded()


def llama_model(ours: Any, theirs: Any) -> Built:
    models = [zoo.LlamaForCausalLM(zoo.LlamaConfig(**DECODER)) for zoo in (ours, theirs)]
    return models[0], models[1], padded()


def scaled(build: Builder, path: str) -> Builder:
    """Return a builder of the same pair in which Paddle's module returns 1.5 times its first output."""

    def built(ours: Any, theirs: Any) -> Built:
        first, second, inputs = build(ours, theirs)
        layer = dict(second.named_sublayers())[path]
        own = layer.forward

        def forward(*args: Any, **kwargs: Any) -> Any:
            out = own(*args, **kwargs)
            return (out[0] * 1.5, *out[1:]) if isinstance(out, tuple) else out * 1.5

        layer.forward = forward
        return first, second, inputs

    return built


SMALL = dict(ENCODER, embedding_size=16)
MOBILE = dict(SMALL, intra_bottleneck_size=16, num_feedforward_networks=2)
LUKE = dict(ENCODER, entity_vocab_size=20, entity_emb_size=16)
XLNET = dict(vocab_size=100, d_model=32, n_layer=2, n_head=4, d_inner=64)
BART, MBART = worded("Bart", pad_token_id=1), worded("MBart", pad_token_id=1, scale_embedding=True)
PEGASUS = worded("Pegasus", pad_token_id=0, scale_embedding=True, activation_function="relu")
MEGATRON = same("MegatronBertForMaskedLM", "MegatronBertConfig", ENCODER, input_ids=tokens())
MEGATRON_TABLE = "megatronbert.embeddings.word_embeddings"

FAITHFUL: dict[str, Builder] = {
    "bert, classifier": same("BertForSequenceClassification", "BertConfig", ENCODER),
    "electra, masked words": lambda ours, theirs: (
        ours.ElectraForMaskedLM(ours.ElectraConfig(**SMALL)),
        theirs.ElectraGenerator(theirs.ElectraConfig(**SMALL)),
        padded(),
    ),
    "gpt2": gpt2,
    "clip": clip,
    "falcon": falcon,
    "mpnet, masked words": same(
        "MPNetForMaskedLM", "MPNetConfig", dict(ENCODER, layer_norm_eps=1e-5)
    ),
    "bart, words": share(BART, "", "bart.shared", "lm_head_weight"),
    "bigbird": bigbird,
}
FAITHFUL_TOO: dict[str, Builder] = {
    "bert, masked words": same("BertForMaskedLM", "BertConfig", ENCODER),
    "bert, words": same("BertForTokenClassification", "BertConfig", ENCODER),
    "bert, answers": same("BertForQuestionAnswering", "BertConfig", ENCODER),
    "roberta": same("RobertaForMaskedLM", "RobertaConfig", dict(ENCODER, pad_token_id=1)),
    "ernie": same("ErnieForSequenceClassification", "ErnieConfig", ENCODER),
    "convbert": same(
        "ConvBertModel", "ConvBertConfig", dict(SMALL, head_ratio=2, conv_kernel_size=3)
    ),
    "squeezebert": same(
        "SqueezeBertModel", "SqueezeBertConfig",
        dict(ENCODER, embedding_size=32, q_groups=2, k_groups=2, v_groups=2,
             post_attention_groups=1, intermediate_groups=2, output_groups=2),
    ),
    "mobilebert": same(
        "MobileBertModel", "MobileBertConfig", dict(MOBILE, classifier_activation=True)
    ),
    "albert with gelu": same("AlbertModel", "AlbertConfig", dict(SMALL, hidden_act="gelu")),
    "albert, masked words": same(
        "AlbertForMaskedLM", "AlbertConfig", dict(SMALL, hidden_act="gelu", layer_norm_eps=1e-5)
    ),
    "mpnet": same("MPNetModel", "MPNetConfig", dict(ENCODER, layer_norm_eps=1e-12)),
    "roformer, masked words": same(
        "RoFormerForMaskedLM", "RoFormerConfig", dict(ENCODER, embedding_size=32)
    ),
    "mbart, words": share(MBART, "", "mbart.shared", "lm_head_weight"),
    "pegasus, words": share(PEGASUS, "", "pegasus.shared", "lm_head_weight"),
    "megatronbert, masked words": share(
        MEGATRON, "cls.predictions", MEGATRON_TABLE, "decoder_weight"
    ),
    "falcon, words": share(falcon_words, "lm_head", "transformer.word_embeddings"),
    "luke with its epsilon": epsilon(same("LukeModel", "LukeConfig", LUKE), 1e-12),
    "megatronbert, no mask": same(
        "MegatronBertModel", "MegatronBertConfig", ENCODER, input_ids=tokens()
    ),
    "bart": seq2seq("Bart", pad_token_id=1),
    "pegasus": seq2seq(
        "Pegasus", pad_token_id=0, scale_embedding=True, activation_function="relu"
    ),
    "opt, no mask": opt,
    "dpt": same(
        "DPTModel", "DPTConfig",
        dict(VISION, backbone_out_indices=[0, 1, 0, 1], is_hybrid=False), pixel_values=image(),
    ),
    "bit": same(
        "BitModel", "BitConfig",
        dict(embedding_size=16, hidden_sizes=[32, 64], depths=[1, 2], num_groups=4),
        pixel_values=image(),
    ),
}  # fmt: skip

# builder, module of the first finding (PyTorch's name), what its message says
FAULTY: dict[str, tuple[Builder, str, str]] = {
    "roberta, classifier": (
        same("RobertaForSequenceClassification", "RobertaConfig", dict(ENCODER, pad_token_id=1)),
        "", "PyTorch drops nothing; Paddle drops",
    ),
    "megatronbert, untied head": (
        MEGATRON, "cls.predictions.decoder.weight", "a parameter of its own in Paddle",
    ),
    "opt, a layer scaled": (scaled(opt, "decoder.layers.1"), "decoder.layers.1", "times 1.5"),
    "bloom, a layer scaled": (scaled(bloom, "h.1"), "h.1", "times 1.5"),
    "llama, an attention scaled": (
        scaled(llama_model, "llama.layers.1.self_attn"), "model.layers.1.self_attn", "times 1.5",
    ),
    "t5, a layer scaled": (
        scaled(t5, "t5.encoder.block.1.layer.1"), "encoder.block.1.layer.1", "its own code does not",
    ),
    "megatronbert": (
        same("MegatronBertModel", "MegatronBertConfig", ENCODER),
        "encoder.layer.0.attention.self", "padding mask is missing",
    ),
    "fnet": (
        same("FNetModel", "FNetConfig", {k: v for k, v in ENCODER.items()
                                         if k != "num_attention_heads"}, input_ids=tokens()),
        "encoder.layer.0.fourier.self", "its inputs agree and its output does not",
    ),
}  # fmt: skip

# builder, PyTorch's tensors that rightly stay alone, Paddle's
PAIRED: dict[str, tuple[Builder, list[str], list[str]]] = {
    "llama, fused": (llama(), [], []),
    "llama, fused, with fewer key heads": (llama(num_key_value_heads=2), [], []),
    "mobilebert": (
        same("MobileBertModel", "MobileBertConfig", MOBILE),
        ["pooler.dense.weight", "pooler.dense.bias"], [],
    ),
    "xlnet": (
        same("XLNetModel", "XLNetConfig",
             XLNET), [], [],
    ),
    "bart, untied head": (
        lambda ours, theirs: (
            ours.BartForConditionalGeneration(ours.BartConfig(**SEQ2SEQ)),
            theirs.BartForConditionalGeneration(theirs.BartConfig(**SEQ2SEQ, **DEPTH)),
            {},
        ), [], [],
    ),
}  # fmt: skip


def built(build: Builder) -> Built:
    """Return the pair; the PyTorch side's weights, biases too, are moved away from their constants."""
    import transformers
    from paddlenlp import transformers as paddlenlp

    torch.manual_seed(0)
    paddle.seed(0)
    first, second, inputs = build(transformers, paddlenlp)
    with torch.no_grad():
        for parameter in first.parameters():
            if parameter.requires_grad:
                parameter += torch.randn_like(parameter) * (0.1 if parameter.dim() < 2 else 0.02)
    return first, second, inputs


@pytest.mark.parametrize("name", FAITHFUL)
def test_a_faithful_port_passes(name: str) -> None:
    report = align(*built(FAITHFUL[name]))
    assert report.verdict == "faithful", str(report)


def test_a_port_that_computes_in_float32_as_pytorch_does_passes() -> None:
    report = align(*built(same("XLNetLMHeadModel", "XLNetConfig", XLNET, input_ids=tokens())))
    assert report.verdict == "agrees to float32", str(report)


@pytest.mark.longer
@pytest.mark.parametrize("name", FAITHFUL_TOO)
def test_a_further_faithful_port_passes(name: str) -> None:
    report = align(*built(FAITHFUL_TOO[name]))
    assert report.verdict == "faithful", str(report)


@pytest.mark.parametrize("name", FAULTY)
def test_what_a_port_does_otherwise_is_named_first(name: str) -> None:
    build, module, words = FAULTY[name]
    report = align(*built(build))
    first = report.findings[0]
    assert (first.torch_name, words in first.message) == (module, True), str(report)


@pytest.mark.parametrize("name", PAIRED)
def test_every_tensor_with_a_counterpart_finds_it(name: str) -> None:
    build, ours, theirs = PAIRED[name]
    first, second, _ = built(build)
    sides = torch_side(first), paddle_side(second)
    found = match_models(*(collect_evidence(s.describe(), [], s.values(), s.name) for s in sides))
    assert (found.torch_left, found.paddle_left) == (ours, theirs)


@pytest.mark.parametrize("heads", [4, 2])
def test_how_a_fused_projection_is_stored_is_found_out(heads: int) -> None:
    report = align(*built(llama(num_key_value_heads=heads)))
    outputs = next(check for check in report.checks if check.what == "outputs, eval mode")
    assert outputs.relative < 1e-5, str(report)  # RMSNorm computes in float32 on both sides
