"""The settings of PyTorch's layers. `backends.paddle.settings` is the twin."""

from collections.abc import Mapping
from typing import Any, Final

from reprod_align.backends.torch.optimizer_settings import optimizer_settings as optimizer_settings
from reprod_align.backends.vocabulary import (
    Readers,
    always,
    function_name,
    is_given,
    layer_kinds,
    read_layer,
)
from reprod_align.model.settings import (
    ModuleSettings,
    own_values,
    pad_amounts,
    same_pad,
)

from torch import nn


def module_settings(module: nn.Module) -> ModuleSettings:
    """Return the settings of a module; the values of a user-written one are its own attributes."""
    kind = next((_KINDS[base] for base in type(module).__mro__ if base in _KINDS), "")
    return ModuleSettings(kind, type(module).__name__, _values(kind, module))


def _values(kind: str, layer: nn.Module) -> dict[str, Any]:
    if not kind:
        return own_values(vars(layer), _FRAMEWORK)
    return read_layer(kind, layer, _USUAL, _OWN) | {"data_format": "channels first"}


def _padding(layer: Any) -> Any:
    if layer.padding == "same":
        return pad_amounts(same_pad(layer.kernel_size, layer.dilation))
    return (0,) * len(layer.kernel_size) if layer.padding == "valid" else layer.padding


def _beta(layer: Any) -> float:
    beta: float = layer.delta if isinstance(layer, nn.HuberLoss) else layer.beta
    return beta


def _class_weights(layer: Any) -> Any:
    return _numbers(layer.weight)


def _numbers(tensor: Any) -> Any:
    return None if tensor is None else tuple(tensor.detach().cpu().double().flatten().tolist())


_USUAL: Final[Readers] = {
    "affine": is_given("weight"),
    "bias": is_given("bias"),
    "divisor_override": lambda layer: getattr(layer, "divisor_override", None),
    "elementwise_affine": is_given("weight"),
    "nonlinearity": lambda layer: getattr(layer, "nonlinearity", "tanh"),
    "norm": is_given("norm"),
    "padding": _padding,
    "pos_weight": lambda layer: _numbers(layer.pos_weight),
    "weight": _class_weights,
}
_TRANSFORMER_LAYER: Final[Readers] = {
    "d_model": "self_attn.embed_dim",
    "nhead": "self_attn.num_heads",
    "dim_feedforward": "linear1.out_features",
    "dropout": "dropout1.p",
    "attn_dropout": "self_attn.dropout",
    "act_dropout": "dropout.p",
    "activation": lambda layer: function_name(layer.activation),
    "layer_norm_eps": "norm1.eps",
    "bias": is_given("linear1.bias"),
    "batch_first": "self_attn.batch_first",
}
_BATCH_NORM: Final[Readers] = {"use_global_stats": always(False), "act": always(None)}
_OWN: Final[Mapping[str, Readers]] = {
    "BatchNorm#d": _BATCH_NORM,
    "SyncBatchNorm": _BATCH_NORM,
    "Dropout": {"mode": always("upscale_in_train"), "axis": always(None)},
    "MultiheadAttention": {"bias": is_given("in_proj_bias"), "add_bias_kv": is_given("bias_k")},
    "TransformerEncoderLayer": _TRANSFORMER_LAYER,
    "TransformerDecoderLayer": _TRANSFORMER_LAYER,
    "Upsample": {
        "align_corners": lambda layer: bool(layer.align_corners),
        "align_mode": always(0),
        "recompute_scale_factor": lambda layer: bool(layer.recompute_scale_factor),
    },
    "PairwiseDistance": {"p": "norm"},
    "CrossEntropyLoss": {"use_softmax": always(True), "dim": always(1)},
    "SmoothL1Loss": {"huber": lambda layer: isinstance(layer, nn.HuberLoss), "beta": _beta},
}
_FRAMEWORK: Final = tuple(vars(nn.Module()))
_KINDS: Final[Mapping[type, str]] = {
    getattr(nn, kind): kind
    for kind in layer_kinds()
    if hasattr(nn, kind)  # an older PyTorch lacks some
} | {nn.HuberLoss: "SmoothL1Loss"}
