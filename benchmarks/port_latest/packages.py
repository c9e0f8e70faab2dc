"""Modules of timm, vit-pytorch, pytorchcv, PyG, and four small packages."""

from typing import Any, Final

from benchmarks.port_case import PortCase

import numpy as np


def _r() -> np.random.Generator:
    return np.random.default_rng(20271130)


def _img64() -> Any:
    return (_r().standard_normal((2, 3, 64, 64)),)


def _img112() -> Any:
    return (_r().standard_normal((2, 3, 112, 112)),)


def _video() -> Any:
    return (_r().standard_normal((2, 3, 4, 32, 32)),)


def _edges() -> Any:
    return np.array([[0, 1, 2, 3, 4, 1, 5, 5, 2, 0], [1, 2, 3, 4, 0, 0, 2, 0, 1, 4]])


def _graph_e() -> Any:
    r = _r()
    return (r.standard_normal((6, 8)), _edges(), r.standard_normal((10, 3)))


def _graph_r() -> Any:
    r = _r()
    return {
        "x": r.standard_normal((6, 8)),
        "edge_index": _edges(),
        "edge_type": np.array([0, 1, 2, 0, 1, 2, 0, 0, 1, 2]),
        "edge_attr": r.standard_normal((10, 3)),
    }


def _wav() -> Any:
    return (0.1 * _r().standard_normal((2, 1, 400)),)


def _vec() -> Any:
    return (_r().standard_normal((4, 6)),)


def _frames() -> Any:
    r = _r()
    rot = np.linalg.qr(r.standard_normal((2, 7, 3, 3)))[0]
    rot = rot * np.sign(np.linalg.det(rot))[..., None, None]
    return {
        "x": r.standard_normal((2, 7, 16)),
        "pairwise_repr": r.standard_normal((2, 7, 7, 16)),
        "rotations": rot,
        "translations": r.standard_normal((2, 7, 3)),
        "mask": np.array([[True] * 7, [True] * 5 + [False] * 2]),
    }


def _seq() -> Any:
    return (_r().standard_normal((2, 6, 20)),)


CASES: Final = {
    "SKNet (timm)": PortCase(
        "timm.models.sknet",
        "ResNet(block=SelectiveKernelBasic, layers=[1,1,1,1], num_classes=5, stem_width=16, "
        "channels=(16,16,32,32), zero_init_last=False, "
        "block_args=dict(sk_kwargs=dict(rd_ratio=1/8, rd_divisor=8, split_input=True)))",
        _img64,
    ),
    "CoaT (timm)": PortCase(
        "timm.models.coat",
        "CoaT(img_size=64, patch_size=4, num_classes=5, embed_dims=(16,24,24,24), "
        "serial_depths=(1,1,1,1), parallel_depth=1, num_heads=8, mlp_ratios=(2,2,2,2))",
        _img64,
    ),
    "ViT for video (vit-pytorch)": PortCase(
        "vit_pytorch.vit_3d",
        "ViT(image_size=32, image_patch_size=8, frames=4, frame_patch_size=2, num_classes=5, dim=32, "
        "depth=2, heads=4, mlp_dim=48, dim_head=8)",
        _video,
    ),
    "Video wrapper of an image net (vit-pytorch)": PortCase(
        "vit_pytorch.accept_video_wrapper",
        "AcceptVideoWrapper(__import__('vit_pytorch.extractor', fromlist=['Extractor']).Extractor("
        "__import__('vit_pytorch').ViT(image_size=32, patch_size=8, num_classes=5, dim=32, depth=2, "
        "heads=4, mlp_dim=48, dim_head=8)), add_time_pos_emb=True, output_pos_add_pos_emb=1, "
        "time_seq_len=6, dim_emb=32, proj_embed_to_dim=16, moss=dict(dim=16, local_time=3, "
        "local_height=3, local_width=3, hidden_dim=8, orders=2, causal=True))",
        _video,
    ),
    "IBPPose (pytorchcv)": PortCase(
        "pytorchcv.models.ibppose_coco",
        "IbpPose(passes=2, backbone_out_channels=32, outs_channels=10, depth=2, growth_rate=8, "
        "use_bn=True, in_size=(64, 64))",
        _img64,
    ),
    "AirNet (pytorchcv)": PortCase(
        "pytorchcv.models.airnet",
        "AirNet(channels=[[32],[32,32],[64]], init_block_channels=16, ratio=2, in_size=(112, 112), "
        "num_classes=5)",
        _img112,
    ),
    "Transformer convolution (PyG)": PortCase(
        "torch_geometric.nn.conv.transformer_conv",
        "TransformerConv(8, 6, heads=2, beta=True, edge_dim=3)",
        _graph_e,
    ),
    "Edge-conditioned convolution (PyG)": PortCase(
        "torch_geometric.nn.conv.nn_conv",
        "NNConv(8, 6, torch.nn.Sequential(torch.nn.Linear(3, 16), torch.nn.ReLU(), "
        "torch.nn.Linear(16, 48)), aggr='mean')",
        _graph_e,
    ),
    "Relational GAT convolution (PyG)": PortCase(
        "torch_geometric.nn.conv.rgat_conv",
        "RGATConv(8, 6, num_relations=3, num_bases=2, heads=2, dim=1, edge_dim=3)",
        _graph_r,
    ),
    "Parametrized sinc filterbank (asteroid-filterbanks)": PortCase(
        "asteroid_filterbanks.param_sinc_fb",
        "nn.Sequential(__import__('asteroid_filterbanks').Encoder(ParamSincFB(16, 31, stride=10, "
        "sample_rate=8000.0)), __import__('asteroid_filterbanks').Decoder(ParamSincFB(16, 31, stride=10, "
        "sample_rate=8000.0)))",
        _wav,
    ),
    "Masked MLP (zuko)": PortCase(
        "zuko.nn",
        "MaskedMLP(torch.arange(6).repeat(2)[:, None] > torch.arange(6), hidden_features=(16, 16), "
        "activation=nn.ELU, residual=True)",
        _vec,
    ),
    "Invariant point attention block (invariant-point-attention)": PortCase(
        "invariant_point_attention.invariant_point_attention",
        "IPABlock(dim=16, heads=2, scalar_key_dim=8, scalar_value_dim=8, point_key_dim=4, "
        "point_value_dim=4)",
        _frames,
    ),
    "TCN (pytorch-tcn)": PortCase(
        "pytorch_tcn.tcn",
        "TCN(num_inputs=6, num_channels=[16, 16, 24], kernel_size=3, dropout=0.0, causal=True, "
        "use_skip_connections=True, output_projection=5)",
        _seq,
    ),
}
