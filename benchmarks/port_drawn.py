"""Sources that were scored once each, before anybody looked at them: two draws, and files written with them.

DRAWN_1 was drawn with `random.Random(20261201)`, DRAWN_2 and, after it in the same order, DRAWN_3 with
`random.Random(20261202)`, from the lists of model files of timm, torchvision, vit-pytorch, MONAI,
transformers, pytorchcv, diffusers and PyG, without those of other lists. docs/porting_scores.md has their
scores.
"""

from typing import Any, Final

from benchmarks.port_case import PortCase

import numpy as np

_SOURCES: Final = "benchmarks.port_sources."


def _draw_1() -> np.random.Generator:
    return np.random.default_rng(13)


def _img32_1() -> Any:
    return (_draw_1().standard_normal((2, 3, 32, 32)),)


def _img64_1() -> Any:
    return (_draw_1().standard_normal((2, 3, 64, 64)),)


def _img128_1() -> Any:
    return (_draw_1().standard_normal((2, 3, 128, 128)),)


def _gray_1() -> Any:
    return (_draw_1().standard_normal((2, 1, 16, 16)),)


def _vol8_1() -> Any:
    return (_draw_1().standard_normal((2, 1, 8, 8, 8)),)


def _pix64_1() -> Any:
    return (_draw_1().uniform(0, 255, (2, 3, 64, 64)),)


def _vol_1() -> Any:
    return (_draw_1().standard_normal((2, 1, 4, 16, 16)),)


def _fmap_1() -> Any:
    return (_draw_1().standard_normal((2, 16, 8, 8)),)


def _voca_1() -> Any:
    return (_draw_1().standard_normal((2, 1, 16, 12)), np.array([1, 3]))


def _ids_1() -> Any:
    return {
        "input_ids": _draw_1().integers(2, 50, (2, 7)),
        "attention_mask": np.array([[1] * 7, [1] * 5 + [0] * 2]),
    }


def _s2s_1() -> Any:
    return {
        "input_ids": _draw_1().integers(2, 50, (2, 11)),
        "attention_mask": np.array([[1] * 11, [1] * 8 + [0] * 3]),
        "decoder_input_ids": _draw_1().integers(2, 50, (2, 5)),
    }


def _vidp_1() -> Any:
    return {"pixel_values_videos": _draw_1().standard_normal((2, 4, 3, 32, 32))}


def _doc_1() -> Any:
    r = _draw_1()
    a = np.sort(r.uniform(0.05, 0.95, (2, 7, 2, 2)), 2)
    b = np.concatenate([a[:, :, 0], a[:, :, 1]], -1)
    return {
        "input_ids": r.integers(2, 50, (2, 7)),
        "attention_mask": np.array([[1] * 7, [1] * 5 + [0] * 2]),
        "bbox": b,
        "pixel_values": r.standard_normal((2, 3, 32, 32)),
        "decoder_input_ids": r.integers(2, 50, (2, 5)),
    }


def _gdino_1() -> Any:
    r = _draw_1()
    return {
        "pixel_values": r.standard_normal((2, 3, 64, 64)),
        "input_ids": np.array(
            [[101, 5, 9, 1012, 7, 30, 1012, 102], [101, 8, 1012, 41, 6, 3, 1012, 102]]
        ),
    }


def _cogv_1() -> Any:
    r = _draw_1()
    return {
        "hidden_states": r.standard_normal((2, 4, 8, 8)),
        "encoder_hidden_states": r.standard_normal((2, 6, 12)),
        "timestep": np.array([5, 300]),
        "original_size": np.array([[64, 64], [64, 48]]),
        "target_size": np.array([[64, 64], [64, 64]]),
        "crop_coords": np.array([[0, 0], [0, 8]]),
    }


def _sana_1() -> Any:
    r = _draw_1()
    return {
        "hidden_states": r.standard_normal((2, 4, 8, 8)),
        "encoder_hidden_states": r.standard_normal((2, 6, 12)),
        "timestep": np.array([5, 300]),
        "encoder_attention_mask": np.array([[1] * 6, [1] * 4 + [0] * 2]),
    }


def _graph_1() -> Any:
    return (_draw_1().standard_normal((5, 8)), np.array([[0, 1, 2, 3, 4, 1], [1, 2, 3, 4, 0, 0]]))


def _graphe_1() -> Any:
    r = _draw_1()
    return (
        r.standard_normal((5, 8)),
        np.array([[0, 1, 2, 3, 4, 1], [1, 2, 3, 4, 0, 0]]),
        r.standard_normal((6, 3)),
    )


def _hourglass_inputs() -> Any:
    g = np.random.default_rng(11)
    return (g.standard_normal((2, 64, 64, 3)),)


def _flow_inputs() -> Any:
    g = np.random.default_rng(12)
    a = g.uniform(0, 255, (2, 3, 32, 48))
    b = 0.7 * np.roll(a, (1, 2), axis=(2, 3)) + 0.3 * g.uniform(0, 255, a.shape)
    return (a, b)


def _dccrn_inputs() -> Any:
    g = np.random.default_rng(13)
    return (0.1 * g.standard_normal((2, 1600)),)


def _graph_inputs() -> Any:
    g = np.random.default_rng(14)
    b, n = (3, 10)
    a = g.integers(1, 4, (b, n, n)) * (g.random((b, n, n)) < 0.3)
    a = np.triu(a, 1)
    a = a + a.transpose(0, 2, 1)
    return {
        "node_feat": g.integers(0, 12, (b, n, 3)).astype(np.int64),
        "adj": a.astype(np.int64),
        "num_nodes": np.array([10, 7, 5], dtype=np.int64),
    }


def _ssm_inputs() -> Any:
    g = np.random.default_rng(15)
    ids = g.integers(0, 97, (2, 20)).astype(np.int64)
    tgt = ids.copy()
    tgt[1, 15:] = -100
    return (ids, tgt)


def _dien_inputs() -> Any:
    g = np.random.default_rng(16)
    b, t = (6, 9)
    ln = np.array([9, 7, 5, 4, 3, 8], dtype=np.int64)
    keep = np.arange(t)[None] < ln[:, None]

    def seq(hi):
        return (g.integers(1, hi, (b, t)) * keep).astype(np.int64)

    def one(lo, hi):
        return g.integers(lo, hi, (b,)).astype(np.int64)

    return {
        "user": one(0, 50),
        "item": one(1, 120),
        "cate": one(1, 20),
        "hour": one(0, 24),
        "hist_item": seq(120),
        "hist_cate": seq(20),
        "neg_item": seq(120),
        "neg_cate": seq(20),
        "hist_len": ln,
        "dense": g.random((b, 3)) * 4,
    }


def _simmatch_inputs() -> Any:
    g = np.random.default_rng(17)
    u = g.standard_normal((8, 3, 16, 16))
    return (
        g.standard_normal((4, 3, 16, 16)),
        u + 0.05 * g.standard_normal(u.shape),
        u[..., ::-1].copy() + 0.3 * g.standard_normal(u.shape),
        g.integers(0, 5, (4,)).astype(np.int64),
    )


def _pvcnn_inputs() -> Any:
    g = np.random.default_rng(18)
    xyz = g.uniform(-1, 1, (2, 3, 64))
    nrm = g.standard_normal((2, 3, 64))
    nrm /= np.linalg.norm(nrm, axis=1, keepdims=True)
    return (np.concatenate([xyz, nrm], 1), np.array([0, 3], dtype=np.int64))


DRAWN_1: Final = {
    "LCNetV2 (timm)": PortCase(
        "timm.models.lcnetv2",
        "LCNetV2(scale=0.125, depths=(1,1,2,2), num_classes=5, head_hidden_size=32)",
        _pix64_1,
    ),
    "MViTv2 (timm)": PortCase(
        "timm.models.mvitv2",
        "MultiScaleVit(MultiScaleVitCfg(depths=(1,2), embed_dim=(16,32), num_heads=(1,2), "
        "stride_q=((1,1),(2,2)), stride_kv_adaptive=(2,2)), img_size=(64,64), num_classes=5)",
        _img64_1,
    ),
    "CPUBone (timm)": PortCase(
        "timm.models.cpubone",
        "CPUBone([8,8,16,16,24], [0,1,1,1,2], num_classes=5, head_widths=(32,48), fused_conv=True, "
        "fused_downsample=True, attn_mlp_ratio=4, expand_groups=2, small_kernels=True, "
        "attn_upsample='nearest')",
        _img128_1,
    ),
    "DPN (timm)": PortCase(
        "timm.models.dpn",
        "DPN(k_sec=(1,2,1,1), inc_sec=(8,8,8,8), k_r=16, groups=4, num_classes=5, small=True, "
        "num_init_features=8)",
        _img64_1,
    ),
    "RegNet (torchvision)": PortCase(
        "torchvision.models.regnet",
        "RegNet(BlockParams([1,1,2,1], [8,16,16,24], [4,8,8,8], [1.0,1.0,1.0,1.0], [2,2,2,2], "
        "se_ratio=0.25), num_classes=5, stem_width=8)",
        _img64_1,
    ),
    "FCN head (torchvision)": PortCase(
        "torchvision.models.segmentation.fcn", "FCNHead(16, 5)", _fmap_1
    ),
    "Jumbo ViT (vit-pytorch)": PortCase(
        "vit_pytorch.jumbo_vit",
        "JumboViT(image_size=32, patch_size=8, num_classes=5, dim=16, depth=2, heads=2, mlp_dim=3, "
        "num_jumbo_cls=2, jumbo_cls_k=2, dim_head=8)",
        _img32_1,
    ),
    "ATS ViT (vit-pytorch)": PortCase(
        "vit_pytorch.ats_vit",
        "ViT(image_size=32, patch_size=8, num_classes=5, dim=32, depth=2, max_tokens_per_depth=(16,16), "
        "heads=4, mlp_dim=48, dim_head=8)",
        _img32_1,
    ),
    "CvT (vit-pytorch)": PortCase(
        "vit_pytorch.cvt",
        "CvT(num_classes=5, s1_emb_dim=8, s2_emb_dim=16, s2_heads=2, s2_depth=1, s3_emb_dim=24, "
        "s3_heads=2, s3_depth=2)",
        _img64_1,
    ),
    "VNet's transitions (MONAI)": PortCase(
        "monai.networks.nets.vnet",
        "nn.Sequential(InputTransition(3, 1, 16, ('elu', {'inplace': True})), DownTransition(3, 16, 2, "
        "('elu', {'inplace': True}), dropout_prob=0.5), OutputTransition(3, 32, 2, ('elu', {'inplace': "
        "True})))",
        _vol8_1,
    ),
    "DAF3D's backbone with FPN (MONAI)": PortCase(
        "monai.networks.nets.daf3d",
        "Daf3dBackboneWithFPN(Daf3dResNet([1,1,1,1], [32,32,32,32], n_input_channels=1, "
        "feed_forward=False, bias_downsample=False), "
        "{'layer1':'feat1','layer2':'feat2','layer3':'feat3','layer4':'feat4'}, [64,64,64,64], 128, 3)",
        _vol_1,
    ),
    "AutoencoderKL's encoder and decoder (MONAI)": PortCase(
        "monai.networks.nets.autoencoderkl",
        "nn.Sequential(Encoder(2, 1, (8,16), 4, (1,1), 4, 1e-6, (False,True)), Decoder(2, (8,16), 4, 1, "
        "(1,1), 4, 1e-6, (False,True)))",
        _gray_1,
    ),
    "LongT5 (transformers)": PortCase(
        "transformers.models.longt5.modeling_longt5",
        "LongT5Model(__import__('transformers').LongT5Config(vocab_size=50, d_model=32, d_kv=8, d_ff=48, "
        "num_layers=2, num_decoder_layers=1, num_heads=4, local_radius=3, global_block_size=4, "
        "encoder_attention_type='transient-global', use_cache=False))",
        _s2s_1,
    ),
    "V-JEPA 2 (transformers)": PortCase(
        "transformers.models.vjepa2.modeling_vjepa2",
        "VJEPA2Model(__import__('transformers').VJEPA2Config(patch_size=8, crop_size=32, "
        "frames_per_clip=4, hidden_size=24, num_attention_heads=2, num_hidden_layers=2, "
        "pred_hidden_size=24, pred_num_attention_heads=2, pred_num_hidden_layers=1, "
        "pred_num_mask_tokens=2))",
        _vidp_1,
    ),
    "OPT (transformers)": PortCase(
        "transformers.models.opt.modeling_opt",
        "OPTModel(__import__('transformers').OPTConfig(vocab_size=50, hidden_size=32, "
        "num_hidden_layers=2, num_attention_heads=4, ffn_dim=48, max_position_embeddings=64, "
        "word_embed_proj_dim=16, use_cache=False))",
        _ids_1,
    ),
    "OLMo 3 (transformers)": PortCase(
        "transformers.models.olmo3.modeling_olmo3",
        "Olmo3Model(__import__('transformers').Olmo3Config(vocab_size=50, hidden_size=32, "
        "num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=48, "
        "max_position_embeddings=64, eos_token_id=2, sliding_window=4, "
        "layer_types=['sliding_attention','full_attention'], use_cache=False))",
        _ids_1,
    ),
    "UDOP (transformers)": PortCase(
        "transformers.models.udop.modeling_udop",
        "UdopModel(__import__('transformers').UdopConfig(vocab_size=50, d_model=32, d_kv=8, d_ff=48, "
        "num_layers=1, num_decoder_layers=1, num_heads=4, max_2d_position_embeddings=64, image_size=32, "
        "patch_size=8, use_cache=False))",
        _doc_1,
    ),
    "Grounding DINO (transformers)": PortCase(
        "transformers.models.grounding_dino.modeling_grounding_dino",
        "GroundingDinoModel(__import__('transformers').GroundingDinoConfig(backbone_config=__import__('transformers').SwinConfig(image_size=64,"
        " window_size=4, embed_dim=16, depths=[1,1,1], num_heads=[2,2,4], out_indices=[2,3]), "
        "text_config=__import__('transformers').BertConfig(vocab_size=1040, hidden_size=32, "
        "num_hidden_layers=1, num_attention_heads=4, intermediate_size=48, max_position_embeddings=64), "
        "num_queries=5, d_model=32, encoder_layers=1, encoder_ffn_dim=48, encoder_attention_heads=4, "
        "decoder_layers=2, decoder_ffn_dim=48, decoder_attention_heads=4, num_feature_levels=3, "
        "encoder_n_points=2, decoder_n_points=2, max_text_len=8, disable_custom_kernels=True))",
        _gdino_1,
    ),
    "VOCA (pytorchcv)": PortCase(
        "pytorchcv.models.voca",
        "VOCA(audio_features=12, base_persons=4, encoder_features=10, vertices=20)",
        _voca_1,
    ),
    "HRNet's stages (pytorchcv)": PortCase(
        "pytorchcv.models.hrnet",
        "nn.Sequential(HRInitBlock(3, 16, 8, 1), HRStage([16], [8,16], 1, 2, [1,1]), HRStage([8,16], "
        "[8,16,24], 1, 3, [1,1,1]))",
        _img64_1,
    ),
    "CogView4 transformer (diffusers)": PortCase(
        "diffusers.models.transformers.transformer_cogview4",
        "CogView4Transformer2DModel(in_channels=4, out_channels=4, num_layers=2, attention_head_dim=16, "
        "num_attention_heads=2, text_embed_dim=12, time_embed_dim=16, condition_dim=8, sample_size=8, "
        "rope_axes_dim=(16,16))",
        _cogv_1,
    ),
    "Sana transformer (diffusers)": PortCase(
        "diffusers.models.transformers.sana_transformer",
        "SanaTransformer2DModel(in_channels=4, out_channels=4, num_attention_heads=2, "
        "attention_head_dim=16, num_layers=2, num_cross_attention_heads=2, cross_attention_head_dim=16, "
        "cross_attention_dim=32, caption_channels=12, sample_size=8)",
        _sana_1,
    ),
    "Cluster-GCN convolution (PyG)": PortCase(
        "torch_geometric.nn.conv.cluster_gcn_conv",
        "ClusterGCNConv(8, 4, diag_lambda=0.5)",
        _graph_1,
    ),
    "GAT convolution (PyG)": PortCase(
        "torch_geometric.nn.conv.gat_conv", "GATConv(8, 4, heads=2, edge_dim=3)", _graphe_1
    ),
    "stacked hourglass pose (research style)": PortCase(
        _SOURCES + "hourglass_pose",
        "PoseNet(default_opt(nstack=2, inp_dim=64, num_joints=16))",
        _hourglass_inputs,
    ),
    "recurrent optical flow (research style)": PortCase(
        _SOURCES + "flow_gru",
        "FlowGRU(chans=(16, 32, 48), hidden=32, radius=3, iters=2)",
        _flow_inputs,
    ),
    "complex speech enhancement DCCRN (research style)": PortCase(
        _SOURCES + "dccrn_lite",
        "DCCRNLite(EnhConfig(channels=[8, 16, 24], rnn_hidden=48, masking_mode='E'))",
        _dccrn_inputs,
    ),
    "graph transformer with GATv2 (research style)": PortCase(
        _SOURCES + "graph_transformer",
        "GraphTransformer(get_args(['--n_layers', '3', '--hidden_dim', '64']))",
        _graph_inputs,
    ),
    "S4D and Mamba language model (research style)": PortCase(
        _SOURCES + "s4d_mamba_lm", "SSMLanguageModel(ModelArgs(d_model=64, n_layer=4))", _ssm_inputs
    ),
    "DIEN recommendation (research style)": PortCase(
        _SOURCES + "dien_rec", "DIEN(dnn_hidden_units=(64, 32), topk=3)", _dien_inputs
    ),
    "SimMatch with MoCo queue (research style)": PortCase(
        _SOURCES + "simmatch_moco",
        "SimMatchMoCo(num_classes=5, dim=32, K=64, threshold=0.22)",
        _simmatch_inputs,
    ),
    "PVCNN point-voxel segmentation (research style)": PortCase(
        _SOURCES + "pvcnn_seg", "PVCNN(num_classes=10, num_shapes=4)", _pvcnn_inputs
    ),
}

_EDGES_2 = np.array([[0, 1, 2, 3, 4, 1, 2], [1, 2, 3, 4, 0, 0, 4]])


def _draw_2() -> np.random.Generator:
    return np.random.default_rng(17)


def _img32_2() -> Any:
    return (_draw_2().standard_normal((2, 3, 32, 32)),)


def _img64_2() -> Any:
    return (_draw_2().standard_normal((2, 3, 64, 64)),)


def _img128_2() -> Any:
    return (_draw_2().standard_normal((2, 3, 128, 128)),)


def _gray32_2() -> Any:
    return (_draw_2().standard_normal((2, 1, 32, 32)),)


def _vol8_2() -> Any:
    return (_draw_2().standard_normal((2, 1, 8, 8, 8)),)


def _vid_2() -> Any:
    return (_draw_2().standard_normal((2, 3, 9, 16, 16)),)


def _vid4_2() -> Any:
    return (_draw_2().standard_normal((2, 3, 4, 16, 16)),)


def _series_2() -> Any:
    return (_draw_2().standard_normal((2, 3, 64)),)


def _packs_2() -> Any:
    return (_draw_2().standard_normal((2, 2, 1, 24, 16)),)


def _lowhigh_2() -> Any:
    r = _draw_2()
    return ({"low": r.standard_normal((2, 24, 16, 16)), "high": r.standard_normal((2, 48, 8, 8))},)


def _pix_2() -> Any:
    return {"pixel_values": _draw_2().standard_normal((2, 3, 64, 64))}


def _ids_2() -> Any:
    return {
        "input_ids": _draw_2().integers(3, 50, (2, 11)),
        "attention_mask": np.array([[1] * 11, [1] * 8 + [0] * 3]),
    }


def _tst_2() -> Any:
    r = _draw_2()
    m = np.ones((2, 11))
    m[1, 2:4] = 0
    return {
        "past_values": r.uniform(0.5, 3.0, (2, 11)) * m,
        "past_time_features": r.standard_normal((2, 11, 2)),
        "past_observed_mask": m,
        "static_categorical_features": np.array([[0], [2]]),
        "static_real_features": r.standard_normal((2, 1)),
        "future_values": r.uniform(0.5, 3.0, (2, 4)),
        "future_time_features": r.standard_normal((2, 4, 2)),
        "decoder_attention_mask": np.tile(np.tril(np.ones((4, 4))), (2, 1, 1, 1)),
    }


def _traj_2() -> Any:
    r = _draw_2()
    return {
        "states": r.standard_normal((2, 6, 5)),
        "actions": r.uniform(-1, 1, (2, 6, 3)),
        "rewards": r.standard_normal((2, 6, 1)),
        "returns_to_go": r.uniform(0, 5, (2, 6, 1)),
        "timesteps": np.array([[0, 1, 2, 3, 4, 5], [7, 8, 9, 10, 0, 0]]),
        "attention_mask": np.array([[1] * 6, [1] * 4 + [0] * 2]),
    }


def _imtext_2() -> Any:
    r = _draw_2()
    i = r.integers(5, 45, (2, 12))
    i[:, 2] = 46
    i[:, 3:7] = 48
    i[:, 7] = 47
    return {
        "input_ids": i,
        "attention_mask": np.array([[1] * 12, [1] * 10 + [0] * 2]),
        "token_type_ids": (i == 48).astype(np.int64),
        "pixel_values": r.standard_normal((2, 3, 32, 32)),
    }


def _uvit_2() -> Any:
    r = _draw_2()
    return {
        "input_ids": r.integers(0, 24, (2, 8, 8)),
        "encoder_hidden_states": r.standard_normal((2, 6, 12)),
        "pooled_text_emb": r.standard_normal((2, 10)),
        "micro_conds": np.array([[64.0, 64.0, 0.0, 0.0, 6.0], [64.0, 48.0, 0.0, 8.0, 5.0]]),
    }


def _graph_2() -> Any:
    return (_draw_2().standard_normal((5, 48)), _EDGES_2)


def _graphw_2() -> Any:
    r = _draw_2()
    return (r.standard_normal((5, 48)), _EDGES_2, r.uniform(0.2, 1.5, (7,)))


def _yolo_inputs() -> Any:
    g = np.random.default_rng(41)
    return (g.random((2, 3, 64, 96)),)


def _vocoder_inputs() -> Any:
    g = np.random.default_rng(42)
    t = 9
    return {
        "spec": g.standard_normal((2, 20, t)),
        "spec_lengths": np.array([9, 6], dtype=np.int64),
        "noise": g.standard_normal((2, 32, t)),
        "wav": np.tanh(0.3 * g.standard_normal((2, 1, t * 32))),
        "sid": np.array([1, 4], dtype=np.int64),
    }


def _tagger_inputs() -> Any:
    g = np.random.default_rng(43)
    b, t, c = (3, 8, 6)
    ln = np.array([8, 5, 6], dtype=np.int64)
    keep = np.arange(t)[None] < ln[:, None]
    return {
        "words": (g.integers(1, 200, (b, t)) * keep).astype(np.int64),
        "chars": (g.integers(1, 40, (b, t, c)) * keep[..., None]).astype(np.int64),
        "lengths": ln,
        "tags": (g.integers(0, 7, (b, t)) * keep).astype(np.int64),
    }


def _nerf_inputs() -> Any:
    g = np.random.default_rng(44)
    return (
        0.3 * g.standard_normal((10, 3)),
        g.standard_normal((10, 3)),
        g.integers(0, 4, (10,)).astype(np.int64),
    )


def _forecast_inputs() -> Any:
    g = np.random.default_rng(45)
    b, t, p, n = (3, 48, 24, 5)
    ts = np.arange(t + p)[None, :, None]
    per = np.array([24.0, 12.0, 24.0, 8.0, 16.0])
    y = (
        np.sin(2 * np.pi * ts / per + g.random((b, 1, n)) * 6) * g.uniform(0.5, 2, (b, 1, n))
        + 0.02 * ts * g.standard_normal((b, 1, n))
        + 0.3 * g.standard_normal((b, t + p, n))
        + 3
    )
    h = g.integers(0, 168, (b, 1)) + np.arange(t + p)[None]
    mark = np.stack([h % 24, h // 24 % 7], -1).astype(np.int64)
    return {"batch_x": y[:, :t], "batch_mark": mark, "batch_y": y[:, t:]}


def _restore_inputs() -> Any:
    g = np.random.default_rng(46)
    return (g.random((2, 3, 22, 30)),)


DRAWN_2: Final = {
    "InceptionNeXt (timm)": PortCase(
        "timm.models.inception_next",
        "MetaNeXt(num_classes=5, depths=(1,1,2,1), dims=(16,24,32,48), ls_init_value=1.0)",
        _img64_2,
    ),
    "TNT (timm)": PortCase(
        "timm.models.tnt",
        "TNT(img_size=32, patch_size=8, num_classes=5, embed_dim=24, inner_dim=8, depth=2, "
        "num_heads_inner=2, num_heads_outer=3, first_stride=4)",
        _img32_2,
    ),
    "VGG (timm)": PortCase(
        "timm.models.vgg",
        "VGG([8,'M',12,'M',16,16,'M'], num_classes=5, mlp_ratio=0.00390625, norm_layer=nn.BatchNorm2d)",
        _img64_2,
    ),
    "RepViT (timm)": PortCase(
        "timm.models.repvit",
        "RepVit(img_size=64, embed_dim=(8,16,24), depth=(1,2,1), num_classes=5)",
        _img64_2,
    ),
    "LR-ASPP head (torchvision)": PortCase(
        "torchvision.models.segmentation.lraspp", "LRASPPHead(24, 48, 5, 64)", _lowhigh_2
    ),
    "SqueezeNet (torchvision)": PortCase(
        "torchvision.models.squeezenet", "SqueezeNet('1_1', num_classes=5)", _img64_2
    ),
    "1D ViT (vit-pytorch)": PortCase(
        "vit_pytorch.vit_1d",
        "ViT(seq_len=64, patch_size=8, num_classes=5, dim=32, depth=2, heads=4, mlp_dim=48, dim_head=8)",
        _series_2,
    ),
    "Simple ViT 3D with flash attention (vit-pytorch)": PortCase(
        "vit_pytorch.simple_flash_attn_vit_3d",
        "SimpleViT(image_size=16, image_patch_size=8, frames=4, frame_patch_size=2, num_classes=5, "
        "dim=32, depth=2, heads=4, mlp_dim=48, dim_head=8)",
        _vid4_2,
    ),
    "Simple ViT with sparse gating (vit-pytorch)": PortCase(
        "vit_pytorch.simple_vit_with_sparse_gating",
        "SimpleViTWithSparseGating(image_size=32, patch_size=8, num_classes=5, dim=32, depth=2, heads=4, "
        "mlp_dim=48, num_register_tokens=2, dim_head=8)",
        _img32_2,
    ),
    "VarAutoEncoder (MONAI)": PortCase(
        "monai.networks.nets.varautoencoder",
        "VarAutoEncoder(spatial_dims=2, in_shape=(1,32,32), out_channels=1, latent_size=6, "
        "channels=(8,12,16), strides=(1,2,2), use_mean_at_inference=True)",
        _gray32_2,
    ),
    "NaViT (MONAI)": PortCase(
        "monai.networks.nets.navit",
        "NaViT(image_size=32, patch_size=8, num_classes=5, hidden_size=32, mlp_dim=48, num_layers=2, "
        "num_heads=4, in_channels=1, spatial_dims=2)",
        _packs_2,
    ),
    "HighResNet (MONAI)": PortCase(
        "monai.networks.nets.highresnet",
        "HighResNet(spatial_dims=3, in_channels=1, out_channels=3, "
        "layer_params=({'name':'conv_0','n_features':8,'kernel_size':3},{'name':'res_1','n_features':8,'kernels':(3,3),'repeat':1},{'name':'res_2','n_features':12,'kernels':(3,3),'repeat':2},{'name':'conv_1','n_features':16,'kernel_size':1},{'name':'conv_2','kernel_size':1}))",
        _vol8_2,
    ),
    "Time Series Transformer (transformers)": PortCase(
        "transformers.models.time_series_transformer.modeling_time_series_transformer",
        "TimeSeriesTransformerModel(__import__('transformers').TimeSeriesTransformerConfig(prediction_length=4,"
        " context_length=8, lags_sequence=[1,2,3], num_time_features=2, "
        "num_static_categorical_features=1, num_static_real_features=1, cardinality=[3], "
        "embedding_dimension=[4], encoder_layers=2, decoder_layers=2, d_model=32, use_cache=False))",
        _tst_2,
    ),
    "UPerNet (transformers)": PortCase(
        "transformers.models.upernet.modeling_upernet",
        "UperNetForSemanticSegmentation(__import__('transformers').UperNetConfig(backbone_config=__import__('transformers').ConvNextConfig(hidden_sizes=[8,12,16,24],"
        " depths=[1,1,1,1], layer_scale_init_value=0.5, initializer_range=0.1, "
        "out_features=['stage1','stage2','stage3','stage4']), initializer_range=0.1, hidden_size=16, "
        "auxiliary_channels=8, num_labels=5))",
        _pix_2,
    ),
    "ConvNeXt V2 (transformers)": PortCase(
        "transformers.models.convnextv2.modeling_convnextv2",
        "ConvNextV2ForImageClassification(__import__('transformers').ConvNextV2Config(hidden_sizes=[8,16,24,32],"
        " depths=[1,1,2,1], image_size=64, num_labels=5))",
        _pix_2,
    ),
    "Mamba 2 (transformers)": PortCase(
        "transformers.models.mamba2.modeling_mamba2",
        "Mamba2Model(__import__('transformers').Mamba2Config(vocab_size=50, hidden_size=32, num_heads=8, "
        "head_dim=8, state_size=8, num_hidden_layers=2, n_groups=2, chunk_size=4, use_cache=False))",
        _ids_2,
    ),
    "Decision Transformer (transformers)": PortCase(
        "transformers.models.decision_transformer.modeling_decision_transformer",
        "DecisionTransformerModel(__import__('transformers').DecisionTransformerConfig(state_dim=5, "
        "act_dim=3, hidden_size=32, max_ep_len=20, n_positions=32, n_layer=2, n_head=4, use_cache=False))",
        _traj_2,
    ),
    "Gemma 3 (transformers)": PortCase(
        "transformers.models.gemma3.modeling_gemma3",
        "Gemma3Model(__import__('transformers').Gemma3Config(text_config=__import__('transformers').Gemma3TextConfig(vocab_size=50,"
        " hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, "
        "num_key_value_heads=2, head_dim=8, query_pre_attn_scalar=8, max_position_embeddings=64, "
        "sliding_window=4, layer_types=['sliding_attention','full_attention'], use_cache=False), "
        "vision_config=__import__('transformers').SiglipVisionConfig(hidden_size=24, "
        "intermediate_size=32, num_hidden_layers=2, num_attention_heads=2, image_size=32, patch_size=8, "
        "vision_use_head=False), mm_tokens_per_image=4, boi_token_index=46, eoi_token_index=47, "
        "image_token_index=48))",
        _imtext_2,
    ),
    "ContextNet (pytorchcv)": PortCase(
        "pytorchcv.models.contextnet",
        "ContextNet(aux=True, in_size=(128,128), num_classes=5)",
        _img128_2,
    ),
    "FractalNet for CIFAR (pytorchcv)": PortCase(
        "pytorchcv.models.fractalnet_cifar",
        "CIFARFractalNet(channels=[8,8,12,16,16], num_columns=3, dropout_probs=[0.0,0.1,0.2,0.3,0.4], "
        "loc_drop_prob=0.15, glob_drop_ratio=0.5, num_classes=5)",
        _img32_2,
    ),
    "LTX video autoencoder (diffusers)": PortCase(
        "diffusers.models.autoencoders.autoencoder_kl_ltx",
        "AutoencoderKLLTXVideo(latent_channels=8, block_out_channels=(8,16), "
        "down_block_types=('LTXVideoDownBlock3D','LTXVideoDownBlock3D'), "
        "decoder_block_out_channels=(8,16), layers_per_block=(1,1,1), decoder_layers_per_block=(1,1,1), "
        "spatio_temporal_scaling=(True,True), decoder_spatio_temporal_scaling=(True,True), "
        "decoder_inject_noise=(False,False,False), downsample_type=('conv','conv'), "
        "upsample_residual=(False,False), upsample_factor=(1,1), patch_size=2)",
        _vid_2,
    ),
    "UViT 2D (diffusers)": PortCase(
        "diffusers.models.unets.uvit_2d",
        "UVit2DModel(hidden_size=32, cond_embed_dim=10, micro_cond_encode_dim=8, micro_cond_embed_dim=40,"
        " encoder_hidden_size=12, vocab_size=24, codebook_size=20, in_channels=16, block_out_channels=16,"
        " num_res_blocks=1, downsample=True, upsample=True, block_num_heads=2, num_hidden_layers=2, "
        "num_attention_heads=4, intermediate_size=48, sample_size=8)",
        _uvit_2,
    ),
    "Anti-symmetric convolution (PyG)": PortCase(
        "torch_geometric.nn.conv.antisymmetric_conv", "AntiSymmetricConv(48, num_iters=2)", _graph_2
    ),
    "SSG convolution (PyG)": PortCase(
        "torch_geometric.nn.conv.ssg_conv", "SSGConv(48, 40, alpha=0.2, K=3)", _graphw_2
    ),
    "YOLO CSP-PAN (research style)": PortCase(
        _SOURCES + "yolo_pan", "Model(get_args([]))", _yolo_inputs
    ),
    "HiFi-GAN vocoder (research style)": PortCase(
        _SOURCES + "mrf_vocoder", "SynthesizerTrn(HParams())", _vocoder_inputs
    ),
    "BiLSTM-CRF tagger (research style)": PortCase(
        _SOURCES + "bilstm_crf", "build_tagger()", _tagger_inputs
    ),
    "BiGRU-CRF tagger (research style)": PortCase(
        _SOURCES + "bilstm_crf", "build_tagger(encoder='bigru', attn_layers=1)", _tagger_inputs
    ),
    "Hash-grid NeRF (research style)": PortCase(
        _SOURCES + "hash_nerf", "NGP(hidden=32, n_levels=6)", _nerf_inputs
    ),
    "Autoformer (research style)": PortCase(
        _SOURCES + "times_forecast",
        "Model(Configs(model='Autoformer', factor=1.5))",
        _forecast_inputs,
    ),
    "TimesNet (research style)": PortCase(
        _SOURCES + "times_forecast",
        "Model(Configs(model='TimesNet', d_model=16, d_ff=24))",
        _forecast_inputs,
    ),
    "NAF/Restormer/Swin restoration (research style)": PortCase(
        _SOURCES + "restore_net", "RestoreNet(parse_args([]))", _restore_inputs
    ),
}


def _draw_3() -> np.random.Generator:
    return np.random.default_rng(19)


def _img32_3() -> Any:
    return (_draw_3().standard_normal((2, 3, 32, 32)),)


def _img64_3() -> Any:
    return (_draw_3().standard_normal((2, 3, 64, 64)),)


def _gray32_3() -> Any:
    return (_draw_3().standard_normal((2, 1, 32, 32)),)


def _ids_3() -> Any:
    return {"input_ids": _draw_3().integers(3, 50, (2, 7))}


def _clip_3() -> Any:
    r = _draw_3()
    return {
        "input_ids": r.integers(3, 50, (2, 7)),
        "attention_mask": np.array([[1] * 7, [1] * 5 + [0] * 2]),
        "pixel_values": r.standard_normal((2, 3, 32, 32)),
    }


def _cog_3() -> Any:
    r = _draw_3()
    return {
        "hidden_states": r.standard_normal((2, 4, 8, 8)),
        "encoder_hidden_states": r.standard_normal((2, 6, 12)),
        "timestep": np.array([5, 300]),
        "original_size": np.array([[64.0, 64.0], [64.0, 48.0]]),
        "target_size": np.array([[64.0, 64.0], [64.0, 64.0]]),
        "crop_coords": np.array([[0.0, 0.0], [0.0, 8.0]]),
    }


def _graph_3() -> Any:
    return (
        _draw_3().standard_normal((5, 8)),
        np.array([[0, 1, 2, 3, 4, 1], [1, 2, 3, 4, 0, 0]]),
        _draw_3().standard_normal((6, 3)),
    )


def _img224_3() -> Any:
    return (_draw_3().standard_normal((1, 3, 224, 224)),)


DRAWN_3: Final = {
    "Xception, aligned (timm)": PortCase(
        "timm.models.xception_aligned",
        "XceptionAligned([dict(in_chs=64, out_chs=24, stride=2), dict(in_chs=24, out_chs=32, stride=2), "
        "dict(in_chs=32, out_chs=(32,40,48), stride=1, no_skip=True, start_with_relu=False)], "
        "num_classes=5)",
        _img64_3,
    ),
    "Visformer (timm)": PortCase(
        "timm.models.visformer",
        "Visformer(img_size=64, patch_size=8, num_classes=5, init_channels=8, embed_dim=32, "
        "depth=(1,1,1), num_heads=4)",
        _img64_3,
    ),
    "PiT (vit-pytorch)": PortCase(
        "vit_pytorch.pit",
        "PiT(image_size=32, patch_size=4, num_classes=5, dim=16, depth=(1,1), heads=2, mlp_dim=24, "
        "dim_head=8)",
        _img32_3,
    ),
    "ScalableViT (vit-pytorch)": PortCase(
        "vit_pytorch.scalable_vit",
        "ScalableViT(num_classes=5, dim=16, depth=(1,1), heads=(2,2), reduction_factor=(4,2), "
        "window_size=(4,None), iwsa_dim_key=8, iwsa_dim_value=8, ssa_dim_key=8, ssa_dim_value=8, "
        "ff_expansion_factor=2)",
        _img32_3,
    ),
    "ViT autoencoder (MONAI)": PortCase(
        "monai.networks.nets.vitautoenc",
        "ViTAutoEnc(1, (32,32), (16,16), deconv_chns=8, hidden_size=32, mlp_dim=48, num_layers=2, "
        "num_heads=4, spatial_dims=2)",
        _gray32_3,
    ),
    "asymmetric VAE (diffusers)": PortCase(
        "diffusers.models.autoencoders.autoencoder_asym_kl",
        "AsymmetricAutoencoderKL(down_block_types=('DownEncoderBlock2D','DownEncoderBlock2D'), "
        "down_block_out_channels=(8,16), up_block_types=('UpDecoderBlock2D','UpDecoderBlock2D'), "
        "up_block_out_channels=(8,16), norm_num_groups=4, sample_size=32)",
        _img32_3,
    ),
    "CogView3+ transformer (diffusers)": PortCase(
        "diffusers.models.transformers.transformer_cogview3plus",
        "CogView3PlusTransformer2DModel(in_channels=4, out_channels=4, num_layers=2, "
        "attention_head_dim=16, num_attention_heads=2, text_embed_dim=12, time_embed_dim=16, "
        "condition_dim=8, pos_embed_max_size=16, sample_size=8)",
        _cog_3,
    ),
    "GEN convolution (PyG)": PortCase(
        "torch_geometric.nn.conv.gen_conv",
        "GENConv(8, 4, edge_dim=3, learn_t=True, msg_norm=True)",
        _graph_3,
    ),
    "Mamba (transformers)": PortCase(
        "transformers.models.mamba.modeling_mamba",
        "MambaModel(__import__('transformers').MambaConfig(vocab_size=50, hidden_size=24, "
        "num_hidden_layers=2, state_size=8, use_cache=False, use_mambapy=False))",
        _ids_3,
    ),
    "Chinese CLIP (transformers)": PortCase(
        "transformers.models.chinese_clip.modeling_chinese_clip",
        "ChineseCLIPModel(__import__('transformers').ChineseCLIPConfig(text_config=dict(vocab_size=50, "
        "hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, "
        "max_position_embeddings=40), vision_config=dict(hidden_size=32, intermediate_size=48, "
        "num_hidden_layers=2, num_attention_heads=4, image_size=32, patch_size=8), projection_dim=16))",
        _clip_3,
    ),
}
