"""The sources of `benchmarks.ports`: the files, the calls that make their models, and their inputs.

Four lists. KNOWN was there first. DEVELOPMENT and SET_ASIDE were written down together, before the
work that they measure: modules drawn with seed 20261124 from the lists of model files of timm, torchvision,
pytorchcv, vit-pytorch, MONAI, transformers, and segmentation_models_pytorch (a drawn module of more
than 6 million parameters without a smaller configuration was passed over), modules of other packages, and
files in the style of research repositories. Nobody looked at a source of SET_ASIDE, nor at its result, before
that work was done; it has been looked at since.

FRESH was drawn with seed 20261125, before the later work that it measures: four modules of each of timm,
transformers, and vit-pytorch, three of each of torchvision, MONAI, and pytorchcv, and one of each of three
other packages, none of them named above, in the order in which they were drawn. Passed over were a module that
makes no model by itself, one without a parameter or a gradient, and one with a package of its own missing. Four
files in the style of research repositories were written with it. Before that work its models were run in
PyTorch alone.
"""

from collections.abc import Callable
from typing import Final

from benchmarks.port_case import PortCase
from benchmarks.port_drawn import DRAWN_1, DRAWN_2, DRAWN_3
from benchmarks.port_latest import LATEST
from reprod_align.model.side import Inputs

import numpy as np

_drawn = np.random.default_rng(0)
_normal = _drawn.standard_normal


def _images() -> Inputs:
    return (_normal((2, 3, 32, 32)),)


def _sequences() -> Inputs:
    return (_normal((2, 16, 32)),)


def _tokens() -> Inputs:
    mask = np.array([[1] * 7, [1] * 5 + [0] * 2])
    return {"input_ids": _drawn.integers(0, 50, (2, 7)), "attention_mask": mask}


def _features() -> Inputs:
    return {"hidden_states": _normal((2, 16, 8, 8)), "temb": _normal((2, 24))}


KNOWN = {
    "nystrom attention": PortCase(
        "nystrom_attention.nystrom_attention",
        "Nystromformer(dim=32, dim_head=8, heads=2, depth=1, num_landmarks=4)",
        _sequences,
    ),
    "conformer block (lucidrains)": PortCase(
        "conformer.conformer",
        "ConformerBlock(dim=32, dim_head=8, heads=2, ff_mult=2, conv_kernel_size=7)",
        _sequences,
    ),
    "conformer (torchaudio)": PortCase(
        "torchaudio.models.conformer",
        "Conformer(input_dim=16, num_heads=2, ffn_dim=32, num_layers=2, depthwise_conv_kernel_size=5)",
        lambda: (_normal((2, 20, 16)), np.array([20, 14])),
    ),
    "DeepSpeech, RNN for CTC": PortCase(
        "torchaudio.models.deepspeech",
        "DeepSpeech(n_feature=16, n_hidden=24, n_class=7)",
        lambda: (_normal((2, 1, 12, 16)),),
    ),
    "ResNet (torchvision)": PortCase(
        "torchvision.models.resnet", "ResNet(BasicBlock, [1, 1, 1, 1], num_classes=5)", _images
    ),
    "DenseNet (torchvision)": PortCase(
        "torchvision.models.densenet", "DenseNet(8, (2, 2), 16, num_classes=5)", _images
    ),
    "ViT (timm)": PortCase(
        "timm.models.vision_transformer",
        "VisionTransformer(img_size=32, patch_size=8, embed_dim=32, depth=2, num_heads=2, num_classes=5)",
        _images,
    ),
    "ViT (vit-pytorch)": PortCase(
        "vit_pytorch.vit",
        "ViT(image_size=32, patch_size=8, num_classes=5, dim=16, depth=2, heads=2, mlp_dim=32, dropout=0.1)",
        _images,
    ),
    "compact transformer (vit-pytorch)": PortCase(
        "vit_pytorch.cct",
        "CCT(img_size=32, embedding_dim=32, n_conv_layers=1, kernel_size=7, stride=2, padding=3, "
        "pooling_kernel_size=3, pooling_stride=2, pooling_padding=1, num_layers=2, num_heads=2, "
        "mlp_ratio=2.0, num_classes=5)",
        _images,
    ),
    "Perceiver": PortCase(
        "perceiver_pytorch.perceiver_pytorch",
        "Perceiver(num_freq_bands=3, depth=1, max_freq=5.0, input_channels=3, num_latents=8, latent_dim=16, "
        "cross_dim_head=8, latent_dim_head=8, latent_heads=2, num_classes=5)",
        lambda: (_normal((2, 12, 12, 3)),),
    ),
    "MLP-Mixer": PortCase(
        "mlp_mixer_pytorch.mlp_mixer_pytorch",
        "MLPMixer(image_size=32, channels=3, patch_size=8, dim=16, depth=2, num_classes=5)",
        _images,
    ),
    "N-BEATS, forecasts": PortCase(
        "nbeats_pytorch.model",
        "NBeatsNet(backcast_length=10, forecast_length=5, hidden_layer_units=16)",
        lambda: (_normal((4, 10)),),
    ),
    "UNet block (diffusers)": PortCase(
        "diffusers.models.unets.unet_2d_blocks",
        "DownBlock2D(in_channels=16, out_channels=16, temb_channels=24, resnet_groups=4)",
        _features,
    ),
    "dense graph convolution (PyG)": PortCase(
        "torch_geometric.nn.dense.dense_gcn_conv",
        "DenseGCNConv(8, 5)",
        lambda: (_normal((2, 6, 8)), (_normal((2, 6, 6)) > 0).astype("float32")),
    ),
    "BERT (transformers)": PortCase(
        "transformers.models.bert.modeling_bert",
        "BertModel(BertConfig(vocab_size=50, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, "
        "intermediate_size=64))",
        _tokens,
    ),
    "decoder (x-transformers)": PortCase(
        "x_transformers.x_transformers",
        "TransformerWrapper(num_tokens=50, max_seq_len=16, attn_layers=Decoder(dim=32, depth=2, heads=2, "
        "attn_dim_head=16))",
        lambda: (_drawn.integers(0, 50, (2, 12)),),
    ),
}

_SOURCES: Final = "benchmarks.port_sources."


def _pixels(size: int, channels: int = 3, batch: int = 2) -> Callable[[], Inputs]:
    return lambda: (_normal((batch, channels, size, size)),)


def _ids(length: int = 12, vocabulary: int = 40) -> Callable[[], Inputs]:
    return lambda: {"input_ids": _drawn.integers(2, vocabulary, (2, length))}


def _graph() -> Inputs:
    edges = _drawn.integers(0, 6, (2, 14))
    return (_normal((6, 5)), edges, np.array([0, 0, 0, 1, 1, 1]))


DEVELOPMENT = {
    "EfficientNet (timm)": PortCase(
        "timm.models.efficientnet", "test_efficientnet(num_classes=5)", _pixels(64)
    ),
    "Swin V2 (timm)": PortCase(
        "timm.models.swin_transformer_v2",
        "SwinTransformerV2(img_size=32, patch_size=4, window_size=4, embed_dim=16, depths=(2, 1), num_heads=(2, 2), num_classes=5)",
        _images,
    ),
    "ConvNeXt (torchvision)": PortCase(
        "torchvision.models.convnext",
        "ConvNeXt([CNBlockConfig(8, 16, 1), CNBlockConfig(16, None, 1)], num_classes=5)",
        _images,
    ),
    "ResNeXt for CIFAR (pytorchcv)": PortCase(
        "pytorchcv.models.resnext_cifar", "resnext20_32x2d_cifar10(num_classes=5)", _images
    ),
    "SPNASNet (pytorchcv)": PortCase(
        "pytorchcv.models.spnasnet", "get_spnasnet(num_classes=5)", _pixels(224)
    ),
    "parallel ViT (vit-pytorch)": PortCase(
        "vit_pytorch.parallel_vit",
        "ViT(image_size=32, patch_size=8, num_classes=5, dim=16, depth=2, heads=2, mlp_dim=32, dim_head=8, dropout=0.1)",
        _images,
    ),
    "ViT with a specialized class token (vit-pytorch)": PortCase(
        "vit_pytorch.simple_vit_with_specialized_cls",
        "SimpleViT(image_size=32, patch_size=8, num_classes=5, dim=16, depth=2, heads=2, mlp_dim=32, dim_head=8, specialize_qkv_depth=1)",
        _images,
    ),
    "QuickNAT (MONAI)": PortCase(
        "monai.networks.nets.quicknat", "Quicknat(num_classes=3, num_filters=4)", _pixels(32, 1)
    ),
    "Swin UNETR (MONAI)": PortCase(
        "monai.networks.nets.swin_unetr",
        "SwinUNETR(in_channels=1, out_channels=2, depths=(1, 1, 1, 1), num_heads=(1, 1, 2, 2), window_size=4, feature_size=12, spatial_dims=2)",
        _pixels(64, 1),
    ),
    "GPT-2 (transformers)": PortCase(
        "transformers.models.gpt2.modeling_gpt2",
        "GPT2LMHeadModel(GPT2Config(vocab_size=40, n_positions=16, n_embd=16, n_layer=2, n_head=2))",
        _ids(),
    ),
    "T5 (transformers)": PortCase(
        "transformers.models.t5.modeling_t5",
        "T5EncoderModel(T5Config(vocab_size=40, d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2))",
        _ids(),
    ),
    "WavLM (transformers)": PortCase(
        "transformers.models.wavlm.modeling_wavlm",
        "WavLMModel(WavLMConfig(vocab_size=32, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, "
        "conv_dim=(8, 8), conv_stride=(5, 2), conv_kernel=(10, 3), num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=2, "
        "mask_time_prob=0.0))",
        lambda: {"input_values": _normal((2, 200))},
    ),
    "DINOv3 ConvNeXt (transformers)": PortCase(
        "transformers.models.dinov3_convnext.modeling_dinov3_convnext",
        "DINOv3ConvNextModel(DINOv3ConvNextConfig(hidden_sizes=[8, 16], depths=[1, 1]))",
        lambda: {"pixel_values": _normal((2, 3, 32, 32))},
    ),
    "XLM-RoBERTa (transformers)": PortCase(
        "transformers.models.xlm_roberta.modeling_xlm_roberta",
        "XLMRobertaModel(XLMRobertaConfig(vocab_size=50, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, "
        "intermediate_size=32, max_position_embeddings=20))",
        _tokens,
    ),
    "U-Net (segmentation_models_pytorch)": PortCase(
        "segmentation_models_pytorch.decoders.unet.model",
        "Unet('mobilenet_v2', encoder_depth=3, encoder_weights=None, decoder_channels=(16, 8, 4), classes=3)",
        _pixels(64),
    ),
    "small GPT": PortCase(
        _SOURCES + "small_gpt",
        "GPT(GPTConfig(block_size=16, vocab_size=40, n_layer=2, n_head=2, n_embd=16, dropout=0.1))",
        lambda: (_drawn.integers(0, 40, (2, 12)), _drawn.integers(0, 40, (2, 12))),
    ),
    "speech model with CTC": PortCase(
        _SOURCES + "speech_ctc",
        "SpeechModel()",
        lambda: (
            _normal((2, 20, 8)),
            np.array([20, 16]),
            _drawn.integers(1, 6, (2, 4)),
            np.array([4, 3]),
        ),
    ),
    "graph network": PortCase(_SOURCES + "graph_net", "GraphNet()", _graph),
    "GAN's generator": PortCase(_SOURCES + "gan", "Generator()", lambda: (_normal((3, 8)),)),
}
"""looked at during the work"""

SET_ASIDE = {
    "BEiT (timm)": PortCase(
        "timm.models.beit",
        "Beit(img_size=32, patch_size=8, embed_dim=32, depth=2, num_heads=2, num_classes=5, init_values=0.1)",
        _images,
    ),
    "ConViT (timm)": PortCase(
        "timm.models.convit",
        "ConVit(img_size=32, patch_size=8, embed_dim=16, depth=2, num_heads=2, local_up_to_layer=1, num_classes=5)",
        _images,
    ),
    "TinyViT (timm)": PortCase(
        "timm.models.tiny_vit",
        "TinyVit(num_classes=5, embed_dims=(8, 16, 16, 32), depths=(1, 1, 1, 1), num_heads=(1, 1, 2, 2), window_sizes=(4, 4, 4, 4))",
        _pixels(64),
    ),
    "DLA (timm)": PortCase("timm.models.dla", "dla46x_c(num_classes=5)", _pixels(64)),
    "ShuffleNet V2 (torchvision)": PortCase(
        "torchvision.models.shufflenetv2", "shufflenet_v2_x0_5(num_classes=5)", _images
    ),
    "MobileNet V3 (torchvision)": PortCase(
        "torchvision.models.mobilenetv3", "mobilenet_v3_small(num_classes=5)", _images
    ),
    "MNASNet (torchvision)": PortCase(
        "torchvision.models.mnasnet", "mnasnet0_5(num_classes=5)", _images
    ),
    "VoVNet (pytorchcv)": PortCase(
        "pytorchcv.models.vovnet", "vovnet27s(num_classes=5)", _pixels(224)
    ),
    "ERFNet (pytorchcv)": PortCase(
        "pytorchcv.models.erfnet", "get_erfnet(in_size=(64, 64), num_classes=5)", _pixels(64)
    ),
    "ChannelNet (pytorchcv)": PortCase(
        "pytorchcv.models.channelnet", "get_channelnet(num_classes=5)", _pixels(224)
    ),
    "ViT with orthogonal residuals (vit-pytorch)": PortCase(
        "vit_pytorch.simple_vit_orthog_residual_update",
        "SimpleViT(image_size=32, patch_size=8, num_classes=5, dim=16, depth=2, heads=2, mlp_dim=32, dim_head=8)",
        _images,
    ),
    "T2T ViT (vit-pytorch)": PortCase(
        "vit_pytorch.t2t",
        "T2TViT(image_size=32, num_classes=5, dim=16, depth=2, heads=2, mlp_dim=32, dim_head=8)",
        _images,
    ),
    "ViViT (vit-pytorch)": PortCase(
        "vit_pytorch.vivit",
        "ViViT(image_size=16, image_patch_size=8, frames=4, frame_patch_size=2, num_classes=5, dim=16, spatial_depth=1, "
        "temporal_depth=1, heads=2, mlp_dim=32, dim_head=8)",
        lambda: (_normal((2, 3, 4, 16, 16)),),
    ),
    "ViT with keel norms (vit-pytorch)": PortCase(
        "vit_pytorch.vit_with_keel_post_ln",
        "ViT(image_size=32, patch_size=8, num_classes=5, dim=16, depth=2, heads=2, mlp_dim=32, dim_head=8)",
        _images,
    ),
    "MaxViT (vit-pytorch)": PortCase(
        "vit_pytorch.max_vit",
        "MaxViT(num_classes=5, dim=8, depth=(1, 1), dim_head=8, dim_conv_stem=8, window_size=4)",
        _images,
    ),
    "Restormer (MONAI)": PortCase(
        "monai.networks.nets.restormer",
        "Restormer(in_channels=3, out_channels=3, dim=8, num_blocks=(1, 1), heads=(1, 2), num_refinement_blocks=1)",
        _images,
    ),
    "RegUNet (MONAI)": PortCase(
        "monai.networks.nets.regunet",
        "RegUNet(spatial_dims=2, in_channels=1, num_channel_initial=4, depth=2)",
        _pixels(32, 1),
    ),
    "AutoEncoder (MONAI)": PortCase(
        "monai.networks.nets.autoencoder",
        "AutoEncoder(spatial_dims=2, in_channels=1, out_channels=1, channels=(4, 8), strides=(2, 2), num_res_units=1, inter_channels=[8])",
        _pixels(32, 1),
    ),
    "DynUNet (MONAI)": PortCase(
        "monai.networks.nets.dynunet",
        "DynUNet(spatial_dims=2, in_channels=1, out_channels=2, kernel_size=[3, 3, 3], strides=[1, 2, 2], "
        "upsample_kernel_size=[2, 2], filters=[4, 8, 16])",
        _pixels(32, 1),
    ),
    "Llama (transformers)": PortCase(
        "transformers.models.llama.modeling_llama",
        "LlamaModel(LlamaConfig(vocab_size=40, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, "
        "num_key_value_heads=1, intermediate_size=32))",
        _ids(),
    ),
    "BigBird (transformers)": PortCase(
        "transformers.models.big_bird.modeling_big_bird",
        "BigBirdModel(BigBirdConfig(vocab_size=50, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, "
        "intermediate_size=32, max_position_embeddings=20, attention_type='original_full'))",
        _tokens,
    ),
    "Helium (transformers)": PortCase(
        "transformers.models.helium.modeling_helium",
        "HeliumModel(HeliumConfig(vocab_size=40, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, "
        "num_key_value_heads=2, head_dim=8, intermediate_size=32))",
        _ids(),
    ),
    "MPT (transformers)": PortCase(
        "transformers.models.mpt.modeling_mpt",
        "MptModel(MptConfig(vocab_size=40, d_model=16, n_layers=2, n_heads=2, max_seq_len=32))",
        _ids(),
    ),
    "MobileNet V1 (transformers)": PortCase(
        "transformers.models.mobilenet_v1.modeling_mobilenet_v1",
        "MobileNetV1Model(MobileNetV1Config(depth_multiplier=0.25))",
        lambda: {"pixel_values": _normal((2, 3, 64, 64))},
    ),
    "PAN (segmentation_models_pytorch)": PortCase(
        "segmentation_models_pytorch.decoders.pan.model",
        "PAN('mobilenet_v2', encoder_weights=None, decoder_channels=8, classes=3)",
        _pixels(128),
    ),
    "FPN (segmentation_models_pytorch)": PortCase(
        "segmentation_models_pytorch.decoders.fpn.model",
        "FPN('mobilenet_v2', encoder_weights=None, decoder_pyramid_channels=16, decoder_segmentation_channels=32, classes=3)",
        _pixels(64),
    ),
    "local attention (lucidrains)": PortCase(
        "local_attention.transformer",
        "LocalTransformer(num_tokens=40, max_seq_len=16, dim=16, depth=1, heads=2, dim_head=8, local_attn_window_size=4, causal=True)",
        lambda: (_drawn.integers(0, 40, (2, 12)),),
    ),
    "Whisper's encoder (openai)": PortCase(
        "whisper.model",
        "AudioEncoder(n_mels=8, n_ctx=10, n_state=16, n_head=2, n_layer=2)",
        lambda: (_normal((2, 8, 20)),),
    ),
    "denoiser with a registry": PortCase(
        _SOURCES + "diffusion_unet",
        "Denoiser(num_classes=5)",
        lambda: (_normal((2, 3, 16, 16)), np.array([3, 70]), np.array([1, 4])),
    ),
    "language model with rotary embeddings": PortCase(
        _SOURCES + "rotary_lm",
        "LanguageModel(Args(n_kv_heads=2))",
        lambda: (_drawn.integers(1, 40, (2, 12)), _drawn.integers(1, 40, (2, 12))),
    ),
    "VQ-VAE": PortCase(_SOURCES + "vqvae", "VQVAE()", _images),
    "point network": PortCase(_SOURCES + "point_net", "PointNet()", lambda: (_normal((2, 24, 3)),)),
    "forecaster with nested inputs": PortCase(
        _SOURCES + "forecaster",
        "Forecaster()",
        lambda: {
            "past": {"values": _normal((2, 16, 3)), "extra": [np.array([0.5, 2.0]), 2]},
            "marks": _normal((2, 16, 2)),
        },
    ),
}
"""looked at when the work is done"""

FRESH = {
    "Hiera (timm)": PortCase(
        "timm.models.hiera",
        "Hiera(img_size=(32, 32), num_classes=5, embed_dim=16, stages=(1, 1, 1), q_pool=2, mask_unit_size=(4, 4), "
        "mask_unit_attn=(True, True, False))",
        _images,
    ),
    "GhostNet (timm)": PortCase("timm.models.ghostnet", "ghostnet_050(num_classes=5)", _images),
    "Gemma 4's vision tower (timm)": PortCase(
        "timm.models.gemma4_vit",
        "Gemma4VitClassifier(img_size=32, patch_size=8, num_classes=5, embed_dim=32, depth=2, num_heads=2, head_dim=16, "
        "intermediate_size=64, position_embedding_size=16)",
        _images,
    ),
    "Hiera of SAM 2 (timm)": PortCase(
        "timm.models.hieradet_sam2",
        "HieraDet(num_classes=5, embed_dim=16, stages=(1, 1, 2, 1), window_spec=(4, 2, 2, 2), global_att_blocks=(3,))",
        _pixels(64),
    ),
    "SwiftFormer (transformers)": PortCase(
        "transformers.models.swiftformer.modeling_swiftformer",
        "SwiftFormerForImageClassification(SwiftFormerConfig(image_size=64, depths=[1, 1, 1, 1], embed_dims=[8, 16, 16, 32], "
        "mlp_ratio=2, num_labels=5))",
        lambda: {"pixel_values": _normal((2, 3, 64, 64))},
    ),
    "GPT-NeoX (transformers)": PortCase(
        "transformers.models.gpt_neox.modeling_gpt_neox",
        "GPTNeoXForCausalLM(GPTNeoXConfig(vocab_size=40, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, "
        "intermediate_size=32, rotary_pct=0.5, max_position_embeddings=32))",
        _ids(),
    ),
    "BioGPT (transformers)": PortCase(
        "transformers.models.biogpt.modeling_biogpt",
        "BioGptForCausalLM(BioGptConfig(vocab_size=50, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, "
        "intermediate_size=32, max_position_embeddings=20))",
        _tokens,
    ),
    "Splinter (transformers)": PortCase(
        "transformers.models.splinter.modeling_splinter",
        "SplinterForQuestionAnswering(SplinterConfig(vocab_size=50, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, "
        "intermediate_size=32, max_position_embeddings=20, question_token_id=3))",
        lambda: {
            "input_ids": np.array([[2, 9, 3, 14, 21, 8, 30], [2, 40, 12, 3, 7, 5, 11]]),
            "token_type_ids": np.array([[0, 0, 0, 1, 1, 1, 1], [0, 0, 0, 0, 1, 1, 1]]),
        },
    ),
    "MobileNet V2 (torchvision)": PortCase(
        "torchvision.models.mobilenetv2", "MobileNetV2(num_classes=5, width_mult=0.25)", _images
    ),
    "ViT (torchvision)": PortCase(
        "torchvision.models.vision_transformer",
        "VisionTransformer(image_size=32, patch_size=8, num_layers=2, num_heads=2, hidden_dim=16, mlp_dim=32, dropout=0.1, "
        "num_classes=5)",
        _images,
    ),
    "MaxViT (torchvision)": PortCase(
        "torchvision.models.maxvit",
        "MaxVit(input_size=(32, 32), stem_channels=8, partition_size=2, block_channels=[8, 16], block_layers=[1, 1], head_dim=8, "
        "stochastic_depth_prob=0.1, num_classes=5)",
        _images,
    ),
    "CaiT (vit-pytorch)": PortCase(
        "vit_pytorch.cait",
        "CaiT(image_size=32, patch_size=8, num_classes=5, dim=16, depth=2, cls_depth=1, heads=2, mlp_dim=32, dim_head=8, "
        "dropout=0.1, layer_dropout=0.05)",
        _images,
    ),
    "Twins SVT (vit-pytorch)": PortCase(
        "vit_pytorch.twins_svt",
        "TwinsSVT(num_classes=5, s1_emb_dim=8, s1_local_patch_size=4, s1_global_k=4, s2_emb_dim=16, s2_local_patch_size=2, "
        "s2_global_k=2, s3_emb_dim=16, s3_local_patch_size=2, s3_global_k=2, s3_depth=1, s4_emb_dim=32, s4_local_patch_size=2, "
        "s4_global_k=1, s4_depth=1)",
        _pixels(64),
    ),
    "ViT with normed queries and keys (vit-pytorch)": PortCase(
        "vit_pytorch.simple_vit_with_qk_norm",
        "SimpleViT(image_size=32, patch_size=8, num_classes=5, dim=16, depth=2, heads=2, mlp_dim=32, dim_head=8)",
        _images,
    ),
    "ViT with learnable memories (vit-pytorch)": PortCase(
        "vit_pytorch.learnable_memory_vit",
        "Adapter(vit=ViT(image_size=32, patch_size=8, num_classes=5, dim=16, depth=2, heads=2, mlp_dim=32, dim_head=8), "
        "num_memories_per_layer=3, num_classes=4)",
        _images,
    ),
    "SPADE autoencoder (MONAI)": PortCase(
        "monai.networks.nets.spade_autoencoderkl",
        "SPADEAutoencoderKL(spatial_dims=2, label_nc=3, num_res_blocks=1, channels=(8, 8), attention_levels=(False, True), "
        "norm_num_groups=4, spade_intermediate_channels=8)",
        lambda: (
            _normal((2, 1, 16, 16)),
            np.eye(3)[_drawn.integers(0, 3, (2, 16, 16))].transpose(0, 3, 1, 2),
        ),
    ),
    "masked autoencoder (MONAI)": PortCase(
        "monai.networks.nets.masked_autoencoder_vit",
        "MaskedAutoEncoderViT(in_channels=1, img_size=32, patch_size=8, hidden_size=16, mlp_dim=32, num_layers=2, num_heads=2, "
        "decoder_hidden_size=16, decoder_mlp_dim=32, decoder_num_layers=1, decoder_num_heads=2, spatial_dims=2)",
        _pixels(32, 1),
    ),
    "fully connected net (MONAI)": PortCase(
        "monai.networks.nets.fullyconnectednet",
        "FullyConnectedNet(in_channels=12, out_channels=3, hidden_channels=[16, 8], dropout=0.1)",
        lambda: (_normal((4, 3, 4)),),
    ),
    "i-RevNet (pytorchcv)": PortCase(
        "pytorchcv.models.irevnet",
        "IRevNet(channels=[[24] * 2, [96] * 2], init_block_channels=12, final_block_channels=192, in_size=(56, 56), num_classes=5)",
        _pixels(56),
    ),
    "DenseNet for CIFAR (pytorchcv)": PortCase(
        "pytorchcv.models.densenet_cifar", "densenet40_k12_cifar10()", _images
    ),
    "X-DenseNet for CIFAR (pytorchcv)": PortCase(
        "pytorchcv.models.xdensenet_cifar", "xdensenet40_2_k24_bc_cifar10()", _images
    ),
    "finite scalar perturbation (lucidrains)": PortCase(
        "vector_quantize_pytorch.finite_scalar_perturbation",
        "FSP(levels=[5, 4, 3], dim=8, quantize_rate=0.5)",
        lambda: (_normal((2, 10, 8)),),
    ),
    "Linformer (lucidrains)": PortCase(
        "linformer.linformer",
        "LinformerLM(num_tokens=40, dim=16, seq_len=12, depth=2, k=4, heads=2, one_kv_head=True, share_kv=True)",
        lambda: (_drawn.integers(0, 40, (2, 12)),),
    ),
    "axial attention (lucidrains)": PortCase(
        "axial_attention.axial_attention",
        "AxialImageTransformer(dim=8, depth=2, heads=2, reversible=False, axial_pos_emb_shape=(8, 8))",
        _pixels(8, 8),
    ),
    "image classifier with its training loop": PortCase(
        _SOURCES + "train_cifar", "WideResNet(depth=10, widen=1, num_classes=5, drop=0.1)", _images
    ),
    "binarized network": PortCase(
        _SOURCES + "binary_net", "BinaryNet(width=8, n_classes=5)", _images
    ),
    "encoder and heads of nested configs": PortCase(
        _SOURCES + "config_encoder",
        "build_model(ModelConfig(head=HeadConfig(kind='attention', num_classes=4)))",
        lambda: {"feats": _normal((2, 14, 12)), "lengths": np.array([14, 9])},
    ),
    "dependency parser with masked losses": PortCase(
        _SOURCES + "dependency_parser",
        "DependencyParser(n_words=40, n_tags=6, n_labels=5)",
        lambda: (
            np.array([[5, 9, 21, 33, 8, 17], [12, 3, 30, 7, 0, 0]]),
            np.array([[1, 2, 3, 4, 5, 1], [2, 2, 4, 1, 0, 0]]),
            np.array([[0, 1, 1, 3, 3, 5], [0, 0, 2, 2, 0, 0]]),
            _drawn.integers(0, 5, (2, 6)),
        ),
    ),
}
"""looked at when a later piece of work is done"""

CASES = KNOWN | DEVELOPMENT | SET_ASIDE | FRESH | DRAWN_1 | DRAWN_2 | DRAWN_3 | LATEST
