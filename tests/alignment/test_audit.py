"""The audit: what each side is set to, in one vocabulary, and the differences that count."""

import inspect
from collections.abc import Callable
from typing import Any

from reprod_align.alignment import audit
from reprod_align.alignment.audit import (
    OptimizerDifference,
    SettingDifference,
    compare_optimizers,
    compare_settings,
    describe_differences,
)
from reprod_align.backends.paddle import settings as paddle_settings
from reprod_align.backends.torch import settings as torch_settings

import numpy as np
import paddle
import pytest
import torch
from paddle import nn as pd
from torch import nn as pt


def differences(torch_layer: Any, paddle_layer: Any) -> list[SettingDifference]:
    return compare_settings(
        torch_settings.module_settings(torch_layer), paddle_settings.module_settings(paddle_layer)
    )


def names(found: list[SettingDifference]) -> list[str]:
    return sorted(difference.name for difference in found)


def same_arguments(kind: str, paddle_name: str, *arguments: Any) -> tuple[str, Any, Any]:
    return kind, getattr(pt, kind)(*arguments), getattr(pd, paddle_name)(*arguments)


def dimensions(kind: str, paddle_name: str, *arguments: Any) -> list[tuple[str, Any, Any]]:
    """The same layer in one, two and three dimensions: `#` in the names is the number."""
    return [
        same_arguments(kind.replace("#", str(n)), paddle_name.replace("#", str(n)), *arguments)
        for n in (1, 2, 3)
    ]


def encoder_layer(framework: Any, **options: Any) -> Any:
    own = {"batch_first": True} if framework is pt else {}
    return framework.TransformerEncoderLayer(4, 2, 8, **options, **own)


def decoder_layer(framework: Any) -> Any:
    own = {"batch_first": True} if framework is pt else {}
    return framework.TransformerDecoderLayer(4, 2, 8, **own)


NO_ARGUMENTS = (
    "ReLU SELU Sigmoid LogSigmoid Tanh Tanhshrink Softsign Hardswish Hardsigmoid Identity Mish "
    "GELU LeakyReLU PReLU RReLU ELU CELU GLU Softplus Softshrink Hardshrink Hardtanh ReLU6 Flatten "
    "AlphaDropout FeatureAlphaDropout Dropout CrossEntropyLoss NLLLoss BCELoss BCEWithLogitsLoss "
    "MultiLabelSoftMarginLoss MultiMarginLoss SmoothL1Loss MSELoss L1Loss SoftMarginLoss KLDivLoss "
    "MultiLabelMarginLoss MarginRankingLoss HingeEmbeddingLoss CosineEmbeddingLoss CTCLoss "
    "TripletMarginLoss TripletMarginWithDistanceLoss GaussianNLLLoss PoissonNLLLoss "
    "CosineSimilarity PairwiseDistance"
)

TWINS: list[tuple[str, Any, Any]] = [
    same_arguments("Linear", "Linear", 3, 4),
    same_arguments("Bilinear", "Bilinear", 2, 3, 4),
    *dimensions("Conv#d", "Conv#D", 2, 4, 3),
    *dimensions("ConvTranspose#d", "Conv#DTranspose", 2, 4, 3),
    *dimensions("MaxPool#d", "MaxPool#D", 2),
    *dimensions("AvgPool#d", "AvgPool#D", 2),
    *dimensions("AdaptiveAvgPool#d", "AdaptiveAvgPool#D", 2),
    *dimensions("AdaptiveMaxPool#d", "AdaptiveMaxPool#D", 2),
    *dimensions("MaxUnpool#d", "MaxUnPool#D", 2),
    *dimensions("ConstantPad#d", "ConstantPad#D", 1, 2.0),
    *dimensions("ZeroPad#d", "ZeroPad#D", 1),
    *dimensions("ZeroPad#d", "Pad#D", 1),
    *dimensions("ReflectionPad#d", "ReflectionPad#D", 1),
    *dimensions("ReplicationPad#d", "ReplicationPad#D", 1),
    *dimensions("CircularPad#d", "CircularPad#D", 1),
    ("ReflectionPad2d", pt.ReflectionPad2d((1, 2, 3, 4)), pd.Pad2D([1, 2, 3, 4], mode="reflect")),
    *dimensions("BatchNorm#d", "BatchNorm#D", 4),
    same_arguments("SyncBatchNorm", "SyncBatchNorm", 4),
    ("BatchNorm", pt.BatchNorm2d(4), pd.BatchNorm(4)),
    *[
        (f"InstanceNorm{n}d", getattr(pt, f"InstanceNorm{n}d")(4, affine=True), layer(4))
        for n, layer in enumerate((pd.InstanceNorm1D, pd.InstanceNorm2D, pd.InstanceNorm3D), 1)
    ],
    same_arguments("LayerNorm", "LayerNorm", 4),
    same_arguments("LayerNorm", "LayerNorm", [3, 4]),
    same_arguments("GroupNorm", "GroupNorm", 2, 4),
    same_arguments("LocalResponseNorm", "LocalResponseNorm", 3),
    same_arguments("Dropout2d", "Dropout2D", 0.25),
    same_arguments("Dropout3d", "Dropout3D", 0.25),
    same_arguments("Embedding", "Embedding", 5, 3),
    ("Embedding", pt.Embedding(5, 3, padding_idx=4), pd.Embedding(5, 3, padding_idx=-1)),
    *[
        (kind, getattr(pt, kind)(3, 4, 2, batch_first=True), layer(3, 4, 2))
        for kind, layer in (("LSTM", pd.LSTM), ("GRU", pd.GRU), ("RNN", pd.SimpleRNN))
    ],
    (
        "LSTM",
        pt.LSTM(3, 4, bidirectional=True),
        pd.LSTM(3, 4, direction="bidirect", time_major=True),
    ),
    (
        "GRU",
        pt.GRU(3, 4, bias=False, batch_first=True),
        pd.GRU(3, 4, bias_ih_attr=False, bias_hh_attr=False),
    ),
    (
        "LSTMCell",
        pt.LSTMCell(3, 4, bias=False),
        pd.LSTMCell(3, 4, bias_ih_attr=False, bias_hh_attr=False),
    ),
    same_arguments("LSTMCell", "LSTMCell", 3, 4),
    same_arguments("GRUCell", "GRUCell", 3, 4),
    same_arguments("RNNCell", "SimpleRNNCell", 3, 4),
    (
        "MultiheadAttention",
        pt.MultiheadAttention(4, 2, batch_first=True),
        pd.MultiHeadAttention(4, 2),
    ),
    ("TransformerEncoderLayer", encoder_layer(pt), encoder_layer(pd)),
    (
        "TransformerEncoderLayer",
        encoder_layer(pt, activation="gelu", norm_first=True),
        encoder_layer(pd, activation="gelu", normalize_before=True),
    ),
    ("TransformerDecoderLayer", decoder_layer(pt), decoder_layer(pd)),
    (
        "TransformerEncoder",
        pt.TransformerEncoder(encoder_layer(pt), 2),
        pd.TransformerEncoder(encoder_layer(pd), 2),
    ),
    (
        "TransformerDecoder",
        pt.TransformerDecoder(decoder_layer(pt), 2),
        pd.TransformerDecoder(decoder_layer(pd), 2),
    ),
    (
        "Transformer",
        pt.Transformer(4, 2, 1, 1, 8, batch_first=True),
        pd.Transformer(4, 2, 1, 1, 8),
    ),
    *[
        (torch_name, getattr(pt, torch_name)(), getattr(pd, torch_name)())
        for torch_name in NO_ARGUMENTS.split()
    ],
    ("SiLU", pt.SiLU(), pd.Swish()),
    ("SiLU", pt.SiLU(), pd.Silu()),
    ("Softmax2d", pt.Softmax2d(), pd.Softmax2D()),
    ("GELU", pt.GELU(approximate="tanh"), pd.GELU(approximate=True)),
    ("Threshold", pt.Threshold(1.0, 0.0), pd.ThresholdedReLU()),
    ("Softmax", pt.Softmax(-1), pd.Softmax()),
    ("LogSoftmax", pt.LogSoftmax(-1), pd.LogSoftmax()),
    ("SmoothL1Loss", pt.HuberLoss(delta=0.5), pd.SmoothL1Loss(delta=0.5)),
    ("SmoothL1Loss", pt.SmoothL1Loss(beta=0.5), pd.SmoothL1Loss(delta=0.5, is_huber=False)),
    ("Upsample", pt.Upsample(scale_factor=2), pd.Upsample(scale_factor=2)),
    ("Upsample", pt.Upsample((4, 4), mode="bilinear"), pd.Upsample([4, 4], mode="bilinear")),
    ("Upsample", pt.UpsamplingNearest2d(4), pd.UpsamplingNearest2D(4)),
    ("Upsample", pt.UpsamplingBilinear2d(4), pd.UpsamplingBilinear2D(4)),
    same_arguments("PixelShuffle", "PixelShuffle", 2),
    same_arguments("PixelUnshuffle", "PixelUnshuffle", 2),
    same_arguments("ChannelShuffle", "ChannelShuffle", 2),
    same_arguments("Unfold", "Unfold", 2),
    same_arguments("Unfold", "Unfold", [2, 2]),
    same_arguments("Fold", "Fold", (4, 4), 2),
    same_arguments("Unflatten", "Unflatten", 1, (2, 2)),
    same_arguments("AdaptiveLogSoftmaxWithLoss", "AdaptiveLogSoftmaxWithLoss", 4, 10, [3]),
    # the same padding, written in other ways
    ("Conv2d", pt.Conv2d(2, 2, 3, padding=(1, 2)), pd.Conv2D(2, 2, 3, padding=[1, 1, 2, 2])),
    ("Conv2d", pt.Conv2d(2, 2, 3, padding="same"), pd.Conv2D(2, 2, 3, padding="SAME")),
    ("Conv2d", pt.Conv2d(2, 2, 3, padding=1), pd.Conv2D(2, 2, 3, padding="SAME")),
    ("Conv2d", pt.Conv2d(2, 2, 4, padding="same"), pd.Conv2D(2, 2, 4, padding=[1, 2, 1, 2])),
    (
        "Conv2d",
        pt.Conv2d(2, 2, 3, padding="same", dilation=2),
        pd.Conv2D(2, 2, 3, padding=2, dilation=2),
    ),
    ("Conv2d", pt.Conv2d(2, 2, 3, padding="valid"), pd.Conv2D(2, 2, 3)),
    (
        "Conv2d",
        pt.Conv2d(2, 2, 3, padding=(1, 2)),
        pd.Conv2D(2, 2, 3, padding=[[0, 0], [0, 0], [1, 1], [2, 2]]),
    ),
    ("MaxPool2d", pt.MaxPool2d(3, 1, 1), pd.MaxPool2D(3, 1, "SAME")),
    ("AvgPool2d", pt.AvgPool2d(3, padding=1), pd.AvgPool2D(3, padding=1, exclusive=False)),
    ("Dropout", pt.Dropout(0.0), pd.Dropout(0.0, mode="downscale_in_infer")),
    ("Dropout", pt.Identity(), pd.Dropout(0.0)),
]


@pytest.mark.parametrize(("kind", "torch_layer", "paddle_layer"), TWINS)
def test_layers_that_compute_the_same_have_no_difference(
    kind: str, torch_layer: Any, paddle_layer: Any
) -> None:
    assert differences(torch_layer, paddle_layer) == []


def test_every_kind_that_both_frameworks_have_is_compared_above() -> None:
    compared = {
        torch_settings.module_settings(torch_layer).kind: paddle_settings.module_settings(
            layer
        ).kind
        for _, torch_layer, layer in TWINS
        if not isinstance(torch_layer, pt.Identity)
    }
    torch_kinds = set(torch_settings._KINDS.values())
    paddle_kinds = {kind for kind in paddle_settings._KINDS.values() if kind[:-2] != "Pad"}
    both = torch_kinds & paddle_kinds
    assert both - compared.keys() == {"Identity"}
    assert torch_kinds - both == {"RMSNorm", "Dropout1d", "Softmin"}
    assert paddle_kinds - both == {"BatchNorm"}


def test_the_two_modules_offer_the_same_functions() -> None:
    def public(module: object) -> list[str]:
        found = inspect.getmembers(module, inspect.isfunction)
        return [name for name, f in found if name[0] != "_" and f.__module__ == module.__name__]

    assert public(torch_settings) == public(paddle_settings)


DIFFERENT_DEFAULTS: list[tuple[Any, Any, list[str]]] = [
    (pt.InstanceNorm2d(4), pd.InstanceNorm2D(4), ["affine", "bias"]),
    (pt.AvgPool2d(3, padding=1), pd.AvgPool2D(3, padding=1), ["count_include_pad"]),
    (pt.LSTM(3, 4), pd.LSTM(3, 4), ["batch_first"]),
    (pt.MultiheadAttention(4, 2), pd.MultiHeadAttention(4, 2), ["batch_first"]),
    (pt.Softmax(), pd.Softmax(), ["dim"]),
]


@pytest.mark.parametrize(("torch_layer", "paddle_layer", "expected"), DIFFERENT_DEFAULTS)
def test_the_defaults_that_truly_differ(
    torch_layer: Any, paddle_layer: Any, expected: list[str]
) -> None:
    assert names(differences(torch_layer, paddle_layer)) == expected


FAULTS: list[tuple[Any, Any, str]] = [
    (
        pt.BatchNorm2d(4),
        pd.BatchNorm2D(4, momentum=0.1),
        "momentum: PyTorch 0.1, Paddle 0.1, which means momentum=0.9 in PyTorch; "
        "set momentum=0.9 in Paddle",
    ),
    (
        pt.LayerNorm(4, eps=1e-12),
        pd.LayerNorm(4),
        "eps: PyTorch 1e-12, Paddle 1e-05; set epsilon=1e-12 in Paddle",
    ),
    (
        pt.AvgPool2d(3, padding=1),
        pd.AvgPool2D(3, padding=1),
        "count_include_pad: PyTorch True, Paddle exclusive=True, which means "
        "count_include_pad=False in PyTorch; set exclusive=False in Paddle",
    ),
    (
        pt.GELU(),
        pd.GELU(approximate=True),
        "approximate: PyTorch 'none', Paddle True, which means approximate='tanh' in PyTorch; "
        "set approximate=False in Paddle",
    ),
    (
        pt.Linear(3, 4, bias=False),
        pd.Linear(3, 4),
        "bias: PyTorch False, Paddle bias_attr=None, which means bias=True in PyTorch; "
        "set bias_attr=False in Paddle",
    ),
    (
        pt.LSTM(3, 4, bidirectional=True, batch_first=True),
        pd.LSTM(3, 4),
        "bidirectional: PyTorch True, Paddle direction='forward', which means "
        "bidirectional=False in PyTorch; set direction='bidirect' in Paddle",
    ),
    (
        pt.MaxPool2d(2, dilation=2),
        pd.MaxPool2D(2),
        "dilation: PyTorch (2, 2), Paddle (1, 1), where it cannot be set",
    ),
    (
        pt.CosineSimilarity(eps=1e-6),
        pd.CosineSimilarity(),
        "eps: PyTorch 1e-06, Paddle 1e-08; set eps=1e-06 in Paddle",
    ),
    (
        pt.SmoothL1Loss(beta=0.5),
        pd.SmoothL1Loss(delta=0.5),
        "huber: PyTorch False, Paddle True; set is_huber=False in Paddle",
    ),
    (
        pt.Dropout(0.1),
        pd.Dropout(0.1, mode="downscale_in_infer"),
        "mode: PyTorch 'upscale_in_train', Paddle 'downscale_in_infer'; "
        "set mode='upscale_in_train' in Paddle",
    ),
    (pt.GELU(), pd.ReLU(), "kind: GELU in PyTorch, ReLU in Paddle"),
    (
        pt.MaxPool2d(2),
        pd.AvgPool2D(2),
        "kind: MaxPool2d in PyTorch, AvgPool2d in Paddle",
    ),
    (
        pt.LSTM(3, 4),
        pd.LSTM(3, 4),
        "batch_first: PyTorch False, Paddle time_major=False, which means batch_first=True "
        "in PyTorch; set time_major=True in Paddle "
        "(no fault where the model transposes its tensors to match)",
    ),
]


@pytest.mark.parametrize(("torch_layer", "paddle_layer", "message"), FAULTS)
def test_a_wrong_setting_is_told_in_both_conventions(
    torch_layer: Any, paddle_layer: Any, message: str
) -> None:
    assert [found.message for found in differences(torch_layer, paddle_layer)] == [message]


def encoder(framework: Any, norm: Any = None) -> Any:
    return framework.TransformerEncoder(encoder_layer(framework), 2, norm)


def bilinear(framework: Any, **options: Any) -> Any:
    return framework.Upsample(scale_factor=2, mode="bilinear", **options)


LAST_PADDING = [[0, 0], [1, 1], [2, 2], [0, 0]]


def conv_2d(**options: Any) -> Any:
    return pd.Conv2D(4, 4, 3, **options)


NAMED_FAULTS: list[tuple[Any, Any, list[str]]] = [
    (pt.Conv2d(4, 4, 3, stride=2), pd.Conv2D(4, 4, 3), ["stride"]),
    (pt.Conv2d(4, 4, 3, padding=1), pd.Conv2D(4, 4, 3), ["padding"]),
    (pt.Conv2d(4, 4, 3, padding=1), pd.Conv2D(4, 4, 3, padding=[1, 2, 1, 1]), ["padding"]),
    (pt.Conv2d(4, 4, 3, padding=1, padding_mode="reflect"), pd.Conv2D(4, 4, 3, padding=1), ["padding_mode"]),
    (pt.Conv2d(4, 4, 3, dilation=2), pd.Conv2D(4, 4, 3), ["dilation"]),
    (pt.Conv2d(4, 4, 3, dilation=2), conv_2d(padding="SAME", dilation=2), ["dilation", "padding"]),
    (pt.Conv2d(4, 4, 3, 2, padding=1), conv_2d(stride=2, padding="SAME"), ["padding"]),
    (pt.Conv2d(4, 4, 3, padding=(1, 2)), conv_2d(padding=LAST_PADDING, data_format="NHWC"), ["data_format"]),
    (pt.Conv2d(4, 4, 3, groups=2), pd.Conv2D(4, 4, 3), ["groups"]),
    (pt.Conv2d(4, 4, 3), pd.Conv2D(4, 4, 3, data_format="NHWC"), ["data_format"]),
    (pt.PixelShuffle(2), pd.PixelShuffle(2, data_format="NHWC"), ["data_format"]),
    (pt.BatchNorm2d(4), pd.BatchNorm(4, data_layout="NHWC"), ["data_format"]),
    (pt.Dropout2d(0.1), pd.Dropout2D(0.1, data_format="NHWC"), ["data_format"]),
    (pt.ConvTranspose1d(4, 4, 3, 2, output_padding=1), pd.Conv1DTranspose(4, 4, 3, 2), ["output_padding"]),
    (pt.MaxPool2d(2, ceil_mode=True), pd.MaxPool2D(2), ["ceil_mode"]),
    (pt.MaxPool2d(3, stride=2), pd.MaxPool2D(3), ["stride"]),
    (pt.MaxPool2d(3), pd.MaxPool2D(3, return_mask=True), ["return_indices"]),
    (pt.AvgPool2d(2, divisor_override=3), pd.AvgPool2D(2), ["divisor_override"]),
    (pt.AdaptiveAvgPool2d((1, None)), pd.AdaptiveAvgPool2D(1), ["output_size"]),
    (pt.ZeroPad2d((1, 2, 3, 4)), pd.ZeroPad2D([1, 2, 4, 3]), ["padding"]),
    (pt.ConstantPad1d(1, 2.0), pd.ConstantPad1D(1, 3.0), ["value"]),
    (pt.ZeroPad2d(1), pd.Pad2D(1, mode="reflect"), ["kind"]),
    (pt.BatchNorm1d(4), pd.BatchNorm1D(4, use_global_stats=True), ["use_global_stats"]),
    (pt.BatchNorm1d(4, momentum=0.5, track_running_stats=False), pd.BatchNorm1D(4), ["track_running_stats"]),
    (pt.BatchNorm1d(4, momentum=None), pd.BatchNorm1D(4), ["momentum"]),
    (pt.BatchNorm2d(4), pd.BatchNorm(4, act="relu"), ["act"]),
    (pt.LayerNorm(4, bias=False), pd.LayerNorm(4), ["bias"]),
    (pt.LayerNorm(4, elementwise_affine=False), pd.LayerNorm(4, bias_attr=False), ["elementwise_affine"]),
    (pt.LayerNorm(4), pd.BatchNorm1D(4), ["kind"]),
    (pt.GroupNorm(2, 4), pd.GroupNorm(4, 4), ["num_groups"]),
    (pt.Dropout(0.1), pd.Dropout(0.2), ["p"]),
    (pt.Dropout(0.1), pd.Dropout(0.1, axis=1), ["axis"]),
    (pt.Dropout(0.1), pd.Dropout2D(0.1), ["kind"]),
    (pt.Identity(), pd.Dropout(0.1), ["kind"]),
    (pt.Embedding(5, 3, padding_idx=0), pd.Embedding(5, 3), ["padding_idx"]),
    (pt.Embedding(5, 3, max_norm=1.0), pd.Embedding(5, 3), ["max_norm"]),
    (pt.GRU(3, 4, 2, dropout=0.1, batch_first=True), pd.GRU(3, 4, 2), ["dropout"]),
    (pt.RNN(3, 4, nonlinearity="relu", batch_first=True), pd.SimpleRNN(3, 4), ["nonlinearity"]),
    (pt.RNNCell(3, 4, bias=False), pd.SimpleRNNCell(3, 4), ["bias"]),
    (pt.MultiheadAttention(4, 2, batch_first=True), pd.MultiHeadAttention(4, 4), ["num_heads"]),
    (pt.MultiheadAttention(4, 2, 0.1, batch_first=True), pd.MultiHeadAttention(4, 2), ["dropout"]),
    (encoder_layer(pt), encoder_layer(pd, normalize_before=True), ["norm_first"]),
    (encoder_layer(pt), encoder_layer(pd, activation="gelu"), ["activation"]),
    (encoder_layer(pt), encoder_layer(pd, act_dropout=0.0), ["act_dropout"]),
    (encoder_layer(pt), encoder_layer(pd, layer_norm_eps=1e-6), ["layer_norm_eps"]),
    (encoder(pt, pt.LayerNorm(4)), encoder(pd), ["norm"]),
    (pt.LeakyReLU(0.2), pd.LeakyReLU(), ["negative_slope"]),
    (pt.ReLU6(), pd.Hardtanh(), ["max_val", "min_val"]),
    (pt.Softplus(beta=2), pd.Softplus(), ["beta"]),
    (pt.Softmax(1), pd.Softmax(2), ["dim"]),
    (pt.Flatten(2), pd.Flatten(), ["start_dim"]),
    (bilinear(pt), bilinear(pd, align_mode=1), ["align_mode"]),
    (bilinear(pt, align_corners=True), bilinear(pd), ["align_corners"]),
    (pt.Upsample(scale_factor=2), pd.Upsample(scale_factor=3), ["scale_factor"]),
    (pt.PixelShuffle(2), pd.PixelShuffle(3), ["upscale_factor"]),
    (pt.CrossEntropyLoss(label_smoothing=0.1), pd.CrossEntropyLoss(), ["label_smoothing"]),
    (pt.CrossEntropyLoss(ignore_index=0), pd.CrossEntropyLoss(), ["ignore_index"]),
    (pt.CrossEntropyLoss(), pd.CrossEntropyLoss(use_softmax=False), ["use_softmax"]),
    (pt.NLLLoss(torch.tensor([1.0, 2.0])), pd.NLLLoss(), ["weight"]),
    (pt.NLLLoss(torch.tensor([1.0, 2.0])), pd.NLLLoss(paddle.to_tensor([1.0, 2.0, 3.0])), ["weight"]),
    (pt.NLLLoss(torch.tensor([1.0, 2.0])), pd.NLLLoss(paddle.to_tensor([1.0, 3.0])), ["weight"]),
    (pt.BCEWithLogitsLoss(pos_weight=torch.tensor([2.0])), pd.BCEWithLogitsLoss(), ["pos_weight"]),
    (pt.KLDivLoss(reduction="batchmean"), pd.KLDivLoss(), ["reduction"]),
    (pt.MSELoss(), pd.L1Loss(), ["kind"]),
]  # fmt: skip


@pytest.mark.parametrize(("torch_layer", "paddle_layer", "expected"), NAMED_FAULTS)
def test_every_planted_setting_is_named(
    torch_layer: Any, paddle_layer: Any, expected: list[str]
) -> None:
    assert names(differences(torch_layer, paddle_layer)) == expected


def test_what_may_be_no_fault_is_not_conclusive() -> None:
    (softmax,) = differences(pt.Softmax(1), pd.Softmax())
    assert not softmax.conclusive and "no fault where" in softmax.message
    (other,) = differences(pt.Softmax(1), pd.Softmax(2))
    assert other.conclusive and "no fault" not in other.message
    assert not differences(pt.LSTM(3, 4), pd.LSTM(3, 4))[0].conclusive
    assert differences(pt.Dropout(0.1), pd.Dropout(0.2))[0].conclusive
    assert differences(pt.Softmax2d(), pd.Softmax()) == []  # kinds that may coincide
    assert differences(pt.Conv2d(3, 4, 1), pd.Linear(3, 4)) == []
    assert names(differences(pt.Conv2d(3, 4, 1, bias=False), pd.Linear(3, 4))) == ["bias"]


def test_what_a_layer_repeats_from_its_sub_modules_is_known() -> None:
    found = names(differences(encoder_layer(pt, dropout=0.2), encoder_layer(pd)))
    assert set(found) <= {"dropout", "attn_dropout", "act_dropout"} and found


def layer_class(base: Any, **attributes: Any) -> Any:
    layer = type("Layer", (base,), {})()
    for name, value in attributes.items():
        setattr(layer, name, value)
    return layer


OWN_ATTRIBUTES: list[tuple[dict[str, Any], dict[str, Any], list[str]]] = [
    ({"variance_epsilon": 1e-6}, {"epsilon": 1e-6}, []),
    ({"variance_epsilon": 1e-6}, {"epsilon": 1e-5}, ["eps"]),
    ({"eps": 1e-6}, {"_eps": 1e-5}, ["eps"]),
    ({"num_attention_heads": 12}, {"num_heads": 8}, ["num_heads"]),
    ({"scale": 0.125}, {"scale": 1.0}, ["scale"]),
    ({"dropout": 0.1, "p": 0.1}, {"drop_prob": 0.2}, []),  # which of the two is meant?
    ({"dropout": 0.1, "p": 0.1}, {"dropout": 0.2}, ["dropout"]),
    ({"only_here": 1}, {"only_there": 2}, []),
    ({"kernel": (3, 3)}, {"kernel": 3}, []),
    ({"kernel": (3, 3)}, {"kernel": [3, 5]}, ["kernel"]),
    ({"causal": True}, {"causal": False}, ["causal"]),
    ({"momentum": 0.1}, {"momentum": 0.1}, []),
    ({"__secret": 1, "name": "a", "dtype": "x"}, {"__secret": 2, "name": "b", "dtype": "y"}, []),
    ({"table": np.zeros(3), "fn": len}, {"table": np.ones(3), "fn": max}, []),
]


@pytest.mark.parametrize(("theirs", "ours", "expected"), OWN_ATTRIBUTES)
def test_user_written_layers_are_compared_by_attribute(
    theirs: dict[str, Any], ours: dict[str, Any], expected: list[str]
) -> None:
    found = differences(layer_class(pt.Module, **theirs), layer_class(pd.Layer, **ours))
    assert names(found) == expected


def test_a_user_written_layers_message_has_both_names() -> None:
    theirs = layer_class(pt.Module, variance_epsilon=1e-6)
    (found,) = differences(theirs, layer_class(pd.Layer, epsilon=1e-5))
    assert found.message == "eps: PyTorch variance_epsilon=1e-06, Paddle epsilon=1e-05"
    assert found.conclusive
    (found,) = differences(layer_class(pt.Module, scale=None), layer_class(pd.Layer, scale=0.125))
    assert not found.conclusive


def test_a_user_written_momentum_may_follow_its_framework() -> None:
    theirs = layer_class(pt.Module, momentum=0.1)
    assert not differences(theirs, layer_class(pd.Layer, momentum=0.9))[0].conclusive
    assert differences(theirs, layer_class(pd.Layer, momentum=0.8))[0].conclusive


def test_a_framework_layer_and_a_user_written_one_share_what_all_layers_name() -> None:
    theirs = pt.RMSNorm(4, eps=1e-6)
    assert names(differences(theirs, layer_class(pd.Layer, variance_epsilon=1e-5))) == ["eps"]
    assert differences(theirs, layer_class(pd.Layer, variance_epsilon=1e-6, scale=3.0)) == []
    assert differences(theirs, layer_class(pd.Layer, eps=1e-6)) == []


def test_a_subclass_is_read_as_its_base() -> None:
    own = type("MyNorm", (pd.LayerNorm,), {})(4, epsilon=1e-6)
    settings = paddle_settings.module_settings(own)
    assert (settings.kind, settings.class_name) == ("LayerNorm", "MyNorm")
    projection = pt.MultiheadAttention(4, 2).out_proj
    settings = torch_settings.module_settings(projection)
    assert (settings.kind, settings.class_name) == ("Linear", "NonDynamicallyQuantizableLinear")
    assert names(differences(pt.LayerNorm(4), own)) == ["eps"]


def test_a_frozen_bias_is_a_bias() -> None:
    cell = pd.GRUCell(3, 4)
    for parameter in cell.parameters():
        parameter.stop_gradient = True
    assert differences(pt.GRUCell(3, 4), cell) == []


def test_training_is_no_setting() -> None:
    assert differences(pt.Dropout(0.1).eval(), pd.Dropout(0.1)) == []
    frozen = layer_class(pt.Module, width=1).eval()
    assert torch_settings.module_settings(frozen).values == {"width": 1}
    assert paddle_settings.module_settings(layer_class(pd.Layer, width=1)).values == {"width": 1}


# ---------------------------------------------------------------------------- optimizers


class Twins:
    """A Linear and a LayerNorm on both sides; `pairs` maps the parameters' names."""

    def __init__(self) -> None:
        self.torch = pt.Sequential(pt.Linear(3, 3), pt.LayerNorm(3))
        self.paddle = pd.Sequential(pd.Linear(3, 3), pd.LayerNorm(3))
        self.pairs = {name: name for name, _ in self.torch.named_parameters()}

    def compare(self, torch_optimizer: Any, paddle_optimizer: Any) -> list[OptimizerDifference]:
        theirs = torch_settings.optimizer_settings(torch_optimizer, self.torch)
        ours = paddle_settings.optimizer_settings(paddle_optimizer, self.paddle)
        return compare_optimizers(theirs, ours, self.pairs)


BuildTorch = Callable[[Any], Any]
SAME_OPTIMIZERS: list[tuple[str, BuildTorch, BuildTorch]] = [
    (
        "SGD",
        lambda p: torch.optim.SGD(p, 0.1, weight_decay=0.01),
        lambda p: paddle.optimizer.SGD(0.1, p, weight_decay=0.01),
    ),
    (
        "SGD",
        lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
        lambda p: paddle.optimizer.Momentum(0.1, 0.9, p, use_nesterov=True, weight_decay=0.01),
    ),
    ("SGD", lambda p: torch.optim.SGD(p, 0.1), lambda p: paddle.optimizer.Momentum(0.1, 0.0, p)),
    ("Adam", lambda p: torch.optim.Adam(p), lambda p: paddle.optimizer.Adam(parameters=p)),
    (
        "Adam",
        lambda p: torch.optim.Adam(p, weight_decay=0.01, decoupled_weight_decay=True),
        lambda p: paddle.optimizer.AdamW(parameters=p),
    ),
    (
        "Adam",
        lambda p: torch.optim.Adam(p),
        lambda p: paddle.optimizer.AdamW(parameters=p, weight_decay=0.0),
    ),
    ("AdamW", lambda p: torch.optim.AdamW(p), lambda p: paddle.optimizer.AdamW(parameters=p)),
    (
        "Adagrad",
        lambda p: torch.optim.Adagrad(p, 0.1, eps=1e-6),
        lambda p: paddle.optimizer.Adagrad(0.1, parameters=p),
    ),
    (
        "Adadelta",
        lambda p: torch.optim.Adadelta(p, 0.1, 0.95),
        lambda p: paddle.optimizer.Adadelta(0.1, parameters=p),
    ),
    (
        "NAdam",
        lambda p: torch.optim.NAdam(p),
        lambda p: paddle.optimizer.NAdam(parameters=p),
    ),
    ("RAdam", lambda p: torch.optim.RAdam(p), lambda p: paddle.optimizer.RAdam(parameters=p)),
    (
        "Rprop",
        lambda p: torch.optim.Rprop(p, 1e-3, step_sizes=(1e-5, 50)),
        lambda p: paddle.optimizer.Rprop(parameters=p),
    ),
]


@pytest.mark.parametrize(("kind", "build_torch", "build_paddle"), SAME_OPTIMIZERS)
def test_optimizers_that_step_the_same_have_no_difference(
    kind: str, build_torch: BuildTorch, build_paddle: BuildTorch
) -> None:
    twins = Twins()
    theirs = build_torch(twins.torch.parameters())
    assert torch_settings.optimizer_settings(theirs, twins.torch).kind == kind
    assert twins.compare(theirs, build_paddle(twins.paddle.parameters())) == []


def settings_and_messages(found: list[OptimizerDifference]) -> list[tuple[str, str]]:
    return [(difference.setting, difference.message) for difference in found]


def test_the_optimizers_defaults_that_differ() -> None:
    twins = Twins()
    found = twins.compare(
        torch.optim.RMSprop(twins.torch.parameters(), 0.01),
        paddle.optimizer.RMSProp(0.01, parameters=twins.paddle.parameters()),
    )
    assert settings_and_messages(found) == [
        ("alpha", "alpha: 0.99 in PyTorch, 0.95 in Paddle (its rho)"),
        ("eps", "eps: 1e-08 in PyTorch, 1e-06 in Paddle (its epsilon)"),
        (
            "eps_place",
            "eps_place: outside the square root in PyTorch, inside the square root in Paddle",
        ),
    ]
    assert [difference.conclusive for difference in found] == [True, True, False]
    found = twins.compare(
        torch.optim.Adamax(twins.torch.parameters()),
        paddle.optimizer.Adamax(parameters=twins.paddle.parameters()),
    )
    assert [difference.setting for difference in found] == ["lr", "eps_place"]


def test_decayed_norms_and_biases_are_named_together() -> None:
    twins = Twins()
    named = dict(twins.torch.named_parameters())
    groups = [
        {"params": [named["0.weight"]], "weight_decay": 0.01},
        {"params": [named[n] for n in named if n != "0.weight"], "weight_decay": 0.0},
    ]
    (found,) = twins.compare(
        torch.optim.AdamW(groups), paddle.optimizer.AdamW(parameters=twins.paddle.parameters())
    )
    assert found.message == (
        "weight_decay: Paddle decays 3 parameters (0.bias, 1.weight, 1.bias) by 0.01 "
        "that PyTorch does not"
    )
    assert found.torch_names == found.paddle_names == ("0.bias", "1.weight", "1.bias")
    own = dict(twins.paddle.named_parameters())
    decayed = {own["0.weight"].name}
    right = paddle.optimizer.AdamW(
        parameters=list(own.values()), apply_decay_param_fun=decayed.__contains__
    )
    assert twins.compare(torch.optim.AdamW(groups), right) == []
    by_group = paddle.optimizer.AdamW(
        parameters=[
            {"params": [own["0.weight"]]},
            {"params": [own[n] for n in own if n != "0.weight"], "weight_decay": 0.0},
        ]
    )
    assert twins.compare(torch.optim.AdamW(groups), by_group) == []


def test_the_other_way_round_it_is_pytorch_that_decays() -> None:
    twins = Twins()
    own = twins.paddle.parameters()
    (found,) = twins.compare(
        torch.optim.AdamW(twins.torch.parameters()),
        paddle.optimizer.AdamW(parameters=own, apply_decay_param_fun=lambda name: False),
    )
    assert found.message == (
        "weight_decay: PyTorch decays 4 parameters (0.weight, 0.bias, 1.weight, ...) by 0.01 "
        "that Paddle does not"
    )


def test_adam_with_a_decay_is_not_adamw() -> None:
    twins = Twins()
    found = twins.compare(
        torch.optim.AdamW(twins.torch.parameters()),
        paddle.optimizer.Adam(parameters=twins.paddle.parameters(), weight_decay=0.01),
    )
    assert settings_and_messages(found) == [
        (
            "decoupled",
            "decoupled: the decay is taken off the weights (AdamW) in PyTorch, "
            "the decay is added to the gradient (L2) in Paddle",
        )
    ]


def test_a_regularizer_of_a_parameter_overrides_the_optimizers() -> None:
    twins = Twins()
    attr = paddle.ParamAttr(regularizer=paddle.regularizer.L2Decay(0.5), learning_rate=0.1)
    twins.paddle[0] = pd.Linear(3, 3, weight_attr=attr)
    own = twins.paddle.parameters()
    for optimizer in (
        paddle.optimizer.SGD(0.1, own, weight_decay=0.01),
        paddle.optimizer.Momentum(0.1, 0.0, own, weight_decay=0.01),
    ):
        found = twins.compare(
            torch.optim.SGD(twins.torch.parameters(), 0.1, weight_decay=0.01), optimizer
        )
        assert [(d.setting, d.paddle_value, d.paddle_names) for d in found] == [
            ("lr", pytest.approx(0.01), ("0.weight",)),
            ("weight_decay", 0.5, ("0.weight",)),
        ]
        assert found[1].message == (
            "weight_decay: 0.01 in PyTorch, 0.5 in Paddle, for 1 parameter (0.weight)"
        )


def test_adamw_adds_a_regularizer_to_its_decay() -> None:
    twins = Twins()
    attr = paddle.ParamAttr(regularizer=paddle.regularizer.L2Decay(0.5))
    twins.paddle[0] = pd.Linear(3, 3, weight_attr=attr)
    found = twins.compare(
        torch.optim.AdamW(twins.torch.parameters()),
        paddle.optimizer.AdamW(parameters=twins.paddle.parameters()),
    )
    assert [(d.setting, d.paddle_value) for d in found] == [("l2_decay", 0.5)]


def test_an_l1_decay_is_no_weight_decay() -> None:
    twins = Twins()
    for build in (paddle.optimizer.Momentum, paddle.optimizer.Adam):
        own = twins.paddle.parameters()
        optimizer = build(parameters=own, weight_decay=paddle.regularizer.L1Decay(0.01))
        settings = paddle_settings.optimizer_settings(optimizer, twins.paddle)
        values = settings.parameters["0.weight"]
        assert (values["weight_decay"], values["l1_decay"]) == (0.0, 0.01)


def test_each_groups_own_values_are_read() -> None:
    twins = Twins()
    own = dict(twins.paddle.named_parameters())
    optimizer = paddle.optimizer.Momentum(
        0.1,
        0.9,
        [
            {"params": [own["0.weight"]], "weight_decay": 0.3, "learning_rate": 0.5},
            {"params": [own["0.bias"]], "momentum": 0.8},
        ],
        weight_decay=0.2,
    )
    settings = paddle_settings.optimizer_settings(optimizer, twins.paddle).parameters
    read = [(s["lr"], s["weight_decay"], s["momentum"]) for s in settings.values()]
    assert settings.keys() == {"0.weight", "0.bias"}
    assert read == [(0.05, 0.3, 0.9), (0.1, 0.2, 0.8)]


def test_what_an_optimizer_does_not_hold_is_missing() -> None:
    twins = Twins()
    some = [value for name, value in twins.paddle.named_parameters() if name != "0.bias"]
    theirs = torch.optim.SGD(twins.torch.parameters(), 0.1)
    (found,) = twins.compare(theirs, paddle.optimizer.SGD(0.1, some))
    assert found.message == "missing: the Paddle optimizer does not hold 0.bias"
    assert (found.torch_names, found.paddle_names) == (("0.bias",), ("0.bias",))
    twins.torch[0].bias.requires_grad_(False)
    assert twins.compare(theirs, paddle.optimizer.SGD(0.1, some)) == []
    few = torch.optim.SGD([twins.torch[0].weight], 0.1)
    (found,) = twins.compare(few, paddle.optimizer.SGD(0.1, some))
    assert found.message == "missing: the PyTorch optimizer does not hold 1.weight, 1.bias"


def test_a_frozen_parameters_settings_do_not_count() -> None:
    twins = Twins()
    ours = paddle.optimizer.SGD(0.2, twins.paddle.parameters())
    theirs = torch.optim.SGD(twins.torch.parameters(), 0.1)
    twins.torch[0].weight.requires_grad_(False)
    twins.paddle[0].bias.stop_gradient = True
    (found,) = twins.compare(theirs, ours)
    assert found.torch_names == ("1.weight", "1.bias")
    few = torch.optim.SGD([twins.torch[0].weight, *twins.torch[1].parameters()], 0.2)
    assert twins.compare(few, ours) == []  # Paddle holds 0.bias too, and never changes it


def test_the_learning_rate_is_the_schedulers_at_this_time() -> None:
    twins = Twins()
    theirs = torch.optim.SGD(twins.torch.parameters(), 0.1)
    schedule = paddle.optimizer.lr.StepDecay(0.1, step_size=1)
    ours = paddle.optimizer.SGD(schedule, twins.paddle.parameters())
    assert twins.compare(theirs, ours) == []
    schedule.step()
    (found,) = twins.compare(theirs, ours)
    assert found.message == "lr: 0.1 in PyTorch, 0.01 in Paddle (its learning_rate)"


@pytest.mark.parametrize(
    ("clip", "words"),
    [
        (pd.ClipGradByGlobalNorm(1.0), "global norm 1"),
        (pd.ClipGradByNorm(2.0), "the norm of each parameter 2"),
        (pd.ClipGradByValue(3.0), "value -3 to 3"),
    ],
)
def test_clipping_is_said_in_words(clip: Any, words: str) -> None:
    twins = Twins()
    theirs = torch.optim.AdamW(twins.torch.parameters())
    ours = paddle.optimizer.AdamW(parameters=twins.paddle.parameters(), grad_clip=clip)
    (found,) = twins.compare(theirs, ours)
    assert found.conclusive
    assert found.message == (
        f"clip: Paddle's optimizer clips gradients by {words}; PyTorch's side does not"
    )
    theirs.register_step_pre_hook(lambda *_: None)
    (found,) = twins.compare(theirs, ours)
    assert not found.conclusive and "cannot be compared" in found.message


def test_groups_are_clipped_one_by_one() -> None:
    twins = Twins()
    own = twins.paddle.parameters()
    for build in (paddle.optimizer.AdamW, paddle.optimizer.Adam):
        groups = [{"params": own[:1]}, {"params": own[1:]}]
        ours = build(parameters=groups, grad_clip=pd.ClipGradByGlobalNorm(1.0))
        clip = paddle_settings.optimizer_settings(ours, twins.paddle).clip
        assert clip == {"kind": "the norm of each parameter group", "max_norm": 1.0}
    groups = [{"params": own[:1]}, {"params": own[1:], "grad_clip": pd.ClipGradByValue(1.0)}]
    ours = paddle.optimizer.Adam(parameters=groups)
    clip = paddle_settings.optimizer_settings(ours, twins.paddle).clip
    assert clip == {"kind": "each group in its own way"}


def test_optimizers_of_other_kinds_differ() -> None:
    twins = Twins()
    found = twins.compare(
        torch.optim.SGD(twins.torch.parameters(), 0.001),
        paddle.optimizer.Adam(parameters=twins.paddle.parameters()),
    )
    assert settings_and_messages(found) == [("kind", "kind: SGD in PyTorch, Adam in Paddle")]
    found = twins.compare(
        torch.optim.LBFGS(twins.torch.parameters(), 0.001),
        paddle.optimizer.Lamb(parameters=twins.paddle.parameters()),
    )
    assert [(d.setting, d.conclusive) for d in found] == [("kind", False)]
    mine = type("MyAdamW", (paddle.optimizer.AdamW,), {})(parameters=twins.paddle.parameters())
    assert twins.compare(torch.optim.AdamW(twins.torch.parameters()), mine) == []


def test_a_shared_parameter_has_all_its_names() -> None:
    shared = pt.Linear(2, 2)
    model = pt.Sequential(shared, shared)
    settings = torch_settings.optimizer_settings(torch.optim.SGD(model.parameters(), 0.1), model)
    own = pd.Linear(2, 2)
    twin = pd.Sequential(own, own)
    ours = paddle_settings.optimizer_settings(paddle.optimizer.SGD(0.1, twin.parameters()), twin)
    expected = {"0.weight", "0.bias", "1.weight", "1.bias"}
    assert settings.parameters.keys() == ours.parameters.keys() == expected


# ---------------------------------------------------------------------------- facts


def paddle_of(array: np.ndarray) -> Any:
    return paddle.to_tensor(array)


def test_fact_paddles_momentum_keeps_what_pytorchs_replaces() -> None:
    batch = np.arange(6, dtype="float32").reshape(3, 2)
    theirs, ours = pt.BatchNorm1d(2, momentum=0.1), pd.BatchNorm1D(2, momentum=0.9)
    theirs(torch.from_numpy(batch))
    with pytest.warns(UserWarning, match="track global mean"):
        ours(paddle_of(batch))
    np.testing.assert_allclose(theirs.running_mean, ours._mean.numpy(), rtol=1e-6)
    new = (theirs.running_var.numpy() - 0.9) / (ours._variance.numpy() - 0.9)
    np.testing.assert_allclose(new, 3 / 2, rtol=1e-4)  # over n - 1 and over n


def test_fact_same_padding_forgets_the_dilation() -> None:
    image = np.random.default_rng(0).normal(size=(1, 2, 5, 5)).astype("float32")
    ours = pd.Conv2D(2, 2, 3, padding="SAME", dilation=2)
    theirs = pt.Conv2d(2, 2, 3, padding="same")
    theirs.weight.data = torch.from_numpy(ours.weight.numpy())
    theirs.bias.data = torch.from_numpy(ours.bias.numpy())
    assert differences(theirs, ours) == []
    expected = theirs(torch.from_numpy(image)).detach().numpy()
    np.testing.assert_allclose(ours(paddle_of(image)).numpy(), expected, atol=1e-5)


def test_fact_a_negative_ignore_index_is_counted_by_paddle() -> None:
    logits = np.random.default_rng(0).normal(size=(4, 3)).astype("float32")
    labels = np.array([0, 2, -100, 1])
    theirs = pt.CrossEntropyLoss()(torch.from_numpy(logits), torch.from_numpy(labels))
    ours = pd.CrossEntropyLoss()(paddle_of(logits), paddle_of(labels))
    assert float(ours) == pytest.approx(float(theirs) * 3 / 4, rel=1e-5)


def test_fact_paddle_returns_zeros_for_the_padding_index() -> None:
    weight = np.ones((3, 2), "float32")
    theirs, ours = pt.Embedding(3, 2, padding_idx=1), pd.Embedding(3, 2, padding_idx=1)
    theirs.weight.data = torch.from_numpy(weight)
    ours.weight.set_value(weight)
    assert theirs(torch.tensor([1])).sum() == 2 and float(ours(paddle_of(np.array([1]))).sum()) == 0


def test_fact_align_mode_1_is_not_pytorchs() -> None:
    image = np.random.default_rng(0).normal(size=(1, 1, 3, 3)).astype("float32")
    expected = pt.Upsample(scale_factor=2, mode="bilinear")(torch.from_numpy(image)).numpy()
    for mode, same in ((0, True), (1, False)):
        ours = pd.Upsample(scale_factor=2, mode="bilinear", align_mode=mode)
        assert np.allclose(ours(paddle_of(image)).numpy(), expected, atol=1e-5) is same


def test_fact_a_groups_learning_rate_multiplies_the_optimizers() -> None:
    layer = pd.Linear(1, 1, bias_attr=False)
    layer.weight.set_value(np.ones((1, 1), "float32"))
    group = {"params": [layer.weight], "learning_rate": 0.5}
    optimizer = paddle.optimizer.SGD(0.1, [group])
    layer(paddle.ones([1, 1])).backward()
    optimizer.step()
    read = paddle_settings.optimizer_settings(optimizer, layer).parameters["weight"]["lr"]
    assert layer.weight.item() == pytest.approx(1 - read) and read == pytest.approx(0.05)


def test_fact_rmsprop_adds_eps_inside_the_square_root() -> None:
    layer = pd.Linear(1, 1, bias_attr=False)
    layer.weight.set_value(np.zeros((1, 1), "float32"))
    optimizer = paddle.optimizer.RMSProp(1.0, 0.0, 3.0, parameters=layer.parameters())
    layer(paddle.ones([1, 1])).backward()
    optimizer.step()
    assert layer.weight.item() == pytest.approx(-1 / (1 + 3) ** 0.5)
    weight = pt.Parameter(torch.zeros(1))
    weight.grad = torch.ones(1)
    torch.optim.RMSprop([weight], 1.0, 0.0, 3.0).step()
    assert weight.item() == pytest.approx(-1 / (1 + 3))


@pytest.mark.parametrize(
    ("setting", "theirs", "named"),
    [
        ("weight_decay", float(np.float32(0.01)), False),  # the number that Paddle's AdamW keeps
        ("weight_decay", 0.01 * (1 + 1e-6), True),
        ("eps", float(np.float32(0.01)), True),
    ],
)
def test_a_decay_is_equal_if_its_float32_is(setting: str, theirs: float, named: bool) -> None:
    ours = {"frozen": False, setting: 0.01}
    found = audit._compare_parameters(ours, ours | {setting: theirs})
    assert [name for name, *_ in found] == ([setting] if named else [])


@pytest.mark.parametrize(("values", "told"), [((3, 5), True), ((True, False), False)])
def test_exchanged_numbers_are_told_and_switches_are_not(
    values: tuple[float, float], told: bool
) -> None:
    found = [
        SettingDifference("first", *values, "first differs"),
        SettingDifference("second", *values[::-1], "second differs"),
    ]
    assert ("first and second are exchanged" in describe_differences(found)) is told
