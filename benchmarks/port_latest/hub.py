"""Modules of transformers and diffusers."""

from typing import Any, Final

from benchmarks.port_case import PortCase

import numpy as np

_T: Final = "transformers.models."
_D: Final = "diffusers.models."


def _draw(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


_MASK9: Final = np.array([[1] * 9, [1] * 6 + [0] * 3])


def _text(seed: int, pad: int, low: int = 3, high: int = 50) -> tuple[np.ndarray, np.ndarray]:
    """Ids that are padded on the right, and labels that leave out the padding."""
    ids = _draw(seed).integers(low, high, (2, 9))
    ids = np.where(_MASK9 == 1, ids, pad)
    return ids, np.where(_MASK9 == 1, ids, -100)


def _align() -> Any:
    ids, _ = _text(201, 0)
    return {
        "input_ids": ids,
        "pixel_values": _draw(202).standard_normal((2, 3, 64, 64)),
        "attention_mask": _MASK9.copy(),
        "token_type_ids": np.zeros((2, 9), np.int64),
    }


def _lm(seed: int, pad: int) -> Any:
    ids, labels = _text(seed, pad)
    return {"input_ids": ids, "attention_mask": _MASK9.copy(), "labels": labels}


def _doge() -> Any:
    return _lm(203, 2)


def _granitemoe() -> Any:
    return _lm(204, 0)


def _longcat() -> Any:
    return _lm(205, 0)


def _open_llama() -> Any:
    return _lm(206, 0)


def _clipseg() -> Any:
    r = _draw(207)
    ids = np.array([[48, 5, 9, 17, 30, 49, 1, 1], [48, 8, 22, 41, 6, 3, 12, 49]])
    return {
        "input_ids": ids,
        "pixel_values": r.standard_normal((2, 3, 64, 64)),
        "attention_mask": np.array([[1] * 6 + [0] * 2, [1] * 8]),
        "labels": (r.random((2, 64, 64)) < 0.3).astype(np.float64),
    }


def _dia() -> Any:
    r = _draw(208)
    codes = r.integers(0, 36, (2, 7, 3))
    codes[:, 0] = 38
    labels = np.concatenate([codes[:, 1:], r.integers(0, 36, (2, 1, 3))], 1)
    keep = np.array([[1] * 7, [1] * 5 + [0] * 2])
    labels = np.where(keep[:, :, None] == 1, labels, -100)
    ids, _ = _text(209, 0, 1, 60)
    return {
        "input_ids": ids,
        "attention_mask": _MASK9.copy(),
        "decoder_input_ids": np.where(keep[:, :, None] == 1, codes, 37),
        "decoder_attention_mask": keep,
        "labels": np.ascontiguousarray(labels.transpose(0, 2, 1)).reshape(6, 7),
    }


def _yolos() -> Any:
    return {"pixel_values": _draw(210).standard_normal((2, 3, 64, 48))}


def _pvt_v2() -> Any:
    return {"pixel_values": _draw(211).standard_normal((2, 3, 64, 64)), "labels": np.array([1, 4])}


def _mobilebert() -> Any:
    ids, labels = _text(212, 0)
    chosen = np.zeros((2, 9), bool)
    chosen[0, [2, 5]] = True
    chosen[1, 3] = True
    segments = np.array([[0] * 5 + [1] * 4, [0] * 4 + [1] * 2 + [0] * 3])
    return {
        "input_ids": np.where(chosen, 2, ids),
        "attention_mask": _MASK9.copy(),
        "token_type_ids": segments,
        "labels": np.where(chosen, labels, -100),
        "next_sentence_label": np.array([0, 1]),
    }


def _roberta() -> Any:
    ids, labels = _text(213, 1)
    chosen = np.zeros((2, 9), bool)
    chosen[0, [1, 6]] = True
    chosen[1, 2] = True
    return {
        "input_ids": np.where(chosen, 49, ids),
        "attention_mask": _MASK9.copy(),
        "labels": np.where(chosen, labels, -100),
    }


def _dinov3() -> Any:
    r = _draw(214)
    return {
        "pixel_values": r.standard_normal((2, 3, 32, 32)),
        "bool_masked_pos": r.random((2, 16)) < 0.3,
    }


def _hunyuan() -> Any:
    r = _draw(215)
    return {
        "hidden_states": r.standard_normal((2, 4, 3, 8, 8)),
        "timestep": np.array([20, 700]),
        "encoder_hidden_states": r.standard_normal((2, 6, 12)),
        "encoder_attention_mask": np.array([[1] * 6, [1] * 4 + [0] * 2]),
        "pooled_projections": r.standard_normal((2, 10)),
        "guidance": np.array([6000.0, 3500.0]),
    }


def _flux() -> Any:
    r = _draw(216)
    img = np.zeros((4, 4, 3))
    img[..., 1] += np.arange(4)[:, None]
    img[..., 2] += np.arange(4)[None]
    return {
        "hidden_states": r.standard_normal((2, 16, 16)),
        "encoder_hidden_states": r.standard_normal((2, 6, 12)),
        "pooled_projections": r.standard_normal((2, 10)),
        "timestep": np.array([0.25, 0.9]),
        "img_ids": img.reshape(16, 3),
        "txt_ids": np.zeros((6, 3)),
        "guidance": np.array([3.5, 7.0]),
    }


def _spatio_temporal() -> Any:
    r = _draw(217)
    context = np.repeat(r.standard_normal((2, 1, 12)), 3, 0)
    return {
        "hidden_states": r.standard_normal((6, 32, 4, 4)),
        "encoder_hidden_states": context,
        "image_only_indicator": np.array([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]]),
    }


CASES: Final = {
    "ALIGN (transformers)": PortCase(
        _T + "align.modeling_align",
        "AlignModel(AlignConfig(text_config=dict(vocab_size=50, hidden_size=32, num_hidden_layers=2, "
        "num_attention_heads=4, intermediate_size=48, max_position_embeddings=32), "
        "vision_config=dict(image_size=64, width_coefficient=0.1, depth_coefficient=0.3, initializer_range=0.3), "
        "projection_dim=32, initializer_range=0.3))",
        _align,
    ),
    "Doge (transformers)": PortCase(
        _T + "doge.modeling_doge",
        "DogeForCausalLM(DogeConfig(vocab_size=50, hidden_size=32, intermediate_size=48, "
        "num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, "
        "max_position_embeddings=64, use_cache=False))",
        _doge,
    ),
    "Granite MoE (transformers)": PortCase(
        _T + "granitemoe.modeling_granitemoe",
        "GraniteMoeForCausalLM(GraniteMoeConfig(vocab_size=50, hidden_size=32, intermediate_size=24, "
        "num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, "
        "max_position_embeddings=64, embedding_multiplier=12.0, logits_scaling=6.0, "
        "residual_multiplier=0.22, attention_multiplier=0.125, num_local_experts=4, "
        "num_experts_per_tok=2, output_router_logits=True, use_cache=False))",
        _granitemoe,
    ),
    "LongCat-Flash (transformers)": PortCase(
        _T + "longcat_flash.modeling_longcat_flash",
        "LongcatFlashForCausalLM(LongcatFlashConfig(vocab_size=50, hidden_size=32, "
        "num_hidden_layers=2, num_layers=1, num_attention_heads=4, max_position_embeddings=64, "
        "ffn_hidden_size=48, q_lora_rank=16, kv_lora_rank=16, qk_nope_head_dim=8, "
        "qk_rope_head_dim=8, head_dim=8, v_head_dim=8, moe_topk=2, n_routed_experts=4, "
        "zero_expert_num=2, expert_ffn_hidden_size=24, use_cache=False))",
        _longcat,
    ),
    "CLIPSeg (transformers)": PortCase(
        _T + "clipseg.modeling_clipseg",
        "CLIPSegForImageSegmentation(CLIPSegConfig(text_config=dict(vocab_size=50, hidden_size=32, "
        "intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, "
        "max_position_embeddings=16, bos_token_id=48, eos_token_id=49), "
        "vision_config=dict(hidden_size=32, intermediate_size=48, num_hidden_layers=3, "
        "num_attention_heads=4, image_size=64, patch_size=16), projection_dim=24, "
        "extract_layers=[0,1,2], reduce_dim=16, decoder_num_attention_heads=2, "
        "decoder_intermediate_size=32, use_complex_transposed_convolution=True))",
        _clipseg,
    ),
    "Dia (transformers)": PortCase(
        _T + "dia.modeling_dia",
        "DiaForConditionalGeneration(DiaConfig(encoder_config=DiaEncoderConfig("
        "max_position_embeddings=64, num_hidden_layers=2, hidden_size=32, num_attention_heads=4, "
        "num_key_value_heads=4, head_dim=8, intermediate_size=48, vocab_size=60), "
        "decoder_config=DiaDecoderConfig(max_position_embeddings=64, num_hidden_layers=2, "
        "hidden_size=48, intermediate_size=64, num_attention_heads=4, num_key_value_heads=2, "
        "head_dim=8, cross_num_attention_heads=4, cross_head_dim=8, cross_num_key_value_heads=4, "
        "cross_hidden_size=32, vocab_size=40, num_channels=3), pad_token_id=37, eos_token_id=36, "
        "bos_token_id=38, delay_pattern=[0,2,3], use_cache=False))",
        _dia,
    ),
    "YOLOS (transformers)": PortCase(
        _T + "yolos.modeling_yolos",
        "YolosForObjectDetection(YolosConfig(hidden_size=32, num_hidden_layers=3, "
        "num_attention_heads=4, intermediate_size=48, image_size=[64,64], patch_size=16, "
        "num_detection_tokens=6, num_labels=5))",
        _yolos,
    ),
    "PVT V2 (transformers)": PortCase(
        _T + "pvt_v2.modeling_pvt_v2",
        "PvtV2ForImageClassification(PvtV2Config(image_size=64, depths=[1,2,1,1], "
        "hidden_sizes=[8,16,24,32], num_attention_heads=[1,2,3,4], mlp_ratios=[4,4,2,2], "
        "num_labels=5))",
        _pvt_v2,
    ),
    "MobileBERT (transformers)": PortCase(
        _T + "mobilebert.modeling_mobilebert",
        "MobileBertForPreTraining(MobileBertConfig(vocab_size=50, hidden_size=48, "
        "num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, "
        "max_position_embeddings=32, embedding_size=16, intra_bottleneck_size=24, "
        "num_feedforward_networks=2))",
        _mobilebert,
    ),
    "RoBERTa PreLayerNorm (transformers)": PortCase(
        _T + "roberta_prelayernorm.modeling_roberta_prelayernorm",
        "RobertaPreLayerNormForMaskedLM(__import__('transformers').RobertaPreLayerNormConfig("
        "vocab_size=50, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, "
        "intermediate_size=48, max_position_embeddings=32, type_vocab_size=1))",
        _roberta,
    ),
    "DINOv3 ViT (transformers)": PortCase(
        _T + "dinov3_vit.modeling_dinov3_vit",
        "DINOv3ViTModel(DINOv3ViTConfig(patch_size=8, hidden_size=32, intermediate_size=48, "
        "num_hidden_layers=2, num_attention_heads=4, image_size=32, use_gated_mlp=True, "
        "hidden_act='silu', num_register_tokens=2))",
        _dinov3,
    ),
    "Open-Llama (transformers)": PortCase(
        _T + "deprecated.open_llama.modeling_open_llama",
        "OpenLlamaForCausalLM(OpenLlamaConfig(vocab_size=50, hidden_size=32, intermediate_size=48, "
        "num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=64, use_cache=False))",
        _open_llama,
    ),
    "HunyuanVideo transformer (diffusers)": PortCase(
        _D + "transformers.transformer_hunyuan_video",
        "HunyuanVideoTransformer3DModel(in_channels=4, out_channels=4, num_attention_heads=2, "
        "attention_head_dim=16, num_layers=1, num_single_layers=1, num_refiner_layers=1, "
        "mlp_ratio=2.0, text_embed_dim=12, pooled_projection_dim=10, rope_axes_dim=(4,6,6))",
        _hunyuan,
    ),
    "Flux transformer (diffusers)": PortCase(
        _D + "transformers.transformer_flux",
        "FluxTransformer2DModel(patch_size=1, in_channels=16, num_layers=1, num_single_layers=2, "
        "attention_head_dim=16, num_attention_heads=2, joint_attention_dim=12, "
        "pooled_projection_dim=10, guidance_embeds=True, axes_dims_rope=(4,6,6))",
        _flux,
    ),
    "spatio-temporal transformer (diffusers)": PortCase(
        _D + "transformers.transformer_temporal",
        "TransformerSpatioTemporalModel(num_attention_heads=2, attention_head_dim=16, in_channels=32, "
        "num_layers=1, cross_attention_dim=12)",
        _spatio_temporal,
    ),
}
