"""diffusers against ppdiffusers: twelve models of both, each side in an environment of its own."""

from collections.abc import Callable, Mapping
from typing import Any

from examples.zoo.pair import Maker, Pair

import numpy as np

STEP = np.array([3, 7])


def numbers(*shape: int) -> np.ndarray:
    """Return float32 numbers of this shape."""
    return np.random.default_rng(0).standard_normal(shape).astype("float32")


NOISE = {"sample": numbers(2, 4, 16, 16), "timestep": STEP}
WORDS = {"encoder_hidden_states": numbers(2, 5, 8)}
IMAGE = {"sample": numbers(2, 3, 16, 16)}
UNET = dict(
    sample_size=16, in_channels=4, out_channels=4, block_out_channels=(8, 16), layers_per_block=1,
    norm_num_groups=4,
)  # fmt: skip
CROSS = dict(UNET, down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"), cross_attention_dim=8,
             attention_head_dim=4)  # fmt: skip
CODER = dict(
    block_out_channels=(8, 16), down_block_types=("DownEncoderBlock2D",) * 2,
    up_block_types=("UpDecoderBlock2D",) * 2, norm_num_groups=4, sample_size=16,
)  # fmt: skip
TRANSFORMER = dict(num_attention_heads=2, attention_head_dim=8, num_layers=1)

# name: class, settings, batch
ROWS: Mapping[str, tuple[str, Mapping[str, Any], Mapping[str, np.ndarray]]] = {
    "UNet2DModel": ("UNet2DModel", dict(
        UNET, down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"), attention_head_dim=4), NOISE),
    "UNet2DConditionModel": ("UNet2DConditionModel", dict(
        CROSS, up_block_types=("UpBlock2D", "CrossAttnUpBlock2D")), {**NOISE, **WORDS}),
    "AutoencoderKL": ("AutoencoderKL", CODER, IMAGE),
    "AutoencoderTiny": ("AutoencoderTiny", dict(
        encoder_block_out_channels=(8, 8), decoder_block_out_channels=(8, 8),
        num_encoder_blocks=(1, 1), num_decoder_blocks=(1, 1)), IMAGE),
    "AsymmetricAutoencoderKL": ("AsymmetricAutoencoderKL", dict(
        down_block_types=("DownEncoderBlock2D",) * 2, down_block_out_channels=(8, 16),
        up_block_types=("UpDecoderBlock2D",) * 2, up_block_out_channels=(8, 16),
        norm_num_groups=4, sample_size=16), IMAGE),
    "VQModel": ("VQModel", dict(CODER, latent_channels=4, num_vq_embeddings=16), IMAGE),
    "ControlNetModel": ("ControlNetModel", dict(
        {k: v for k, v in CROSS.items() if k not in ("sample_size", "out_channels")},
        conditioning_embedding_out_channels=(4, 8)),
        {**NOISE, **WORDS, "controlnet_cond": numbers(2, 3, 32, 32)}),
    "Transformer2DModel": ("Transformer2DModel", dict(
        TRANSFORMER, in_channels=16, norm_num_groups=4, cross_attention_dim=8),
        {"hidden_states": numbers(2, 16, 4, 4), **WORDS}),
    "Transformer2DModel, patches": ("Transformer2DModel", dict(
        TRANSFORMER, in_channels=4, out_channels=4, sample_size=8, patch_size=2,
        num_embeds_ada_norm=10, norm_type="ada_norm_zero", norm_elementwise_affine=False),
        {"hidden_states": numbers(2, 4, 8, 8), "timestep": STEP, "class_labels": np.array([1, 4])}),
    "TransformerTemporalModel": ("TransformerTemporalModel", dict(
        TRANSFORMER, in_channels=16, norm_num_groups=4),
        {"hidden_states": numbers(2, 16, 4, 4)}),
    "PriorTransformer": ("PriorTransformer", dict(
        TRANSFORMER, embedding_dim=8, num_embeddings=5),
        {"hidden_states": numbers(2, 8), "timestep": STEP, "proj_embedding": numbers(2, 8),
         "encoder_hidden_states": numbers(2, 5, 8)}),
    "SD3Transformer2DModel": ("SD3Transformer2DModel", dict(
        TRANSFORMER, sample_size=8, patch_size=2, in_channels=4, out_channels=4,
        joint_attention_dim=8, caption_projection_dim=16, pooled_projection_dim=8,
        pos_embed_max_size=8),
        {"hidden_states": numbers(2, 4, 8, 8), **WORDS, "pooled_projections": numbers(2, 8),
         "timestep": STEP}),
    "UNet3DConditionModel": ("UNet3DConditionModel", dict(
        {k: v for k, v in CROSS.items() if k != "down_block_types"},
        down_block_types=("CrossAttnDownBlock3D", "DownBlock3D"),
        up_block_types=("UpBlock3D", "CrossAttnUpBlock3D")),
        {"sample": numbers(2, 4, 3, 8, 8), "timestep": STEP, **WORDS}),
    "T2IAdapter": ("T2IAdapter", dict(
        channels=[8, 16], num_res_blocks=1, downscale_factor=4), {"x": numbers(2, 3, 16, 16)}),
}  # fmt: skip


def _make(name: str, settings: Mapping[str, Any]) -> Maker:
    def make(package: Any) -> Any:
        exported = package if hasattr(package, name) else package.models
        return getattr(exported, name)(**settings)

    return make


def _pair(name: str) -> Pair:
    kind, settings, batch = ROWS[name]
    given: Callable[[], Mapping[str, np.ndarray]] = lambda: batch  # noqa: E731
    return Pair(name, _make(kind, settings), _make(kind, settings), given)


PAIRS = tuple(_pair(name) for name in ROWS)
