"""The settings of PyTorch's layers and optimizers. `backends.paddle.settings` is the twin."""

from collections.abc import Mapping
from inspect import unwrap
from typing import Any, Final

from reprod_align.backends.torch.private import step_hooks
from reprod_align.model.settings import (
    OPTIMIZERS,
    ModuleSettings,
    OptimizerSettings,
    Readers,
    Values,
    always,
    function_name,
    is_given,
    layer_kinds,
    own_values,
    pad_amounts,
    read_group,
    read_layer,
    require_optimizer,
    same_pad,
)

import torch
from torch import nn


def optimizer_settings(optimizer: torch.optim.Optimizer, model: nn.Module) -> OptimizerSettings:
    """Return how the optimizer now treats each parameter of the model that it holds.

    Raises ReprodError if it is not an optimizer.
    """
    require_optimizer(optimizer, "torch.optim.Optimizer", ("param_groups", "step"))
    bases = type(optimizer).__mro__
    kind = next((_OPTIMIZERS[base] for base in bases if base in _OPTIMIZERS), "")
    groups = {id(held): group for group in optimizer.param_groups for held in group["params"]}
    settings = {
        name: _read_parameter_settings(kind, parameter, groups[id(parameter)])
        for name, parameter in model.named_parameters(remove_duplicate=False)
        if id(parameter) in groups
    }
    return OptimizerSettings(kind, type(optimizer).__name__, settings, _clip(optimizer))


def _read_parameter_settings(kind: str, parameter: Any, group: Values) -> dict[str, Any]:
    settings = {"frozen": not parameter.requires_grad, "lr": float(group["lr"])}
    return settings | _decay(kind, group) | read_group(kind, group, {}, _OWN_GROUPS)


def _decay(kind: str, group: Values) -> dict[str, Any]:
    if not kind or kind == "Rprop":
        return {}
    decay = float(group["weight_decay"])
    decoupled = kind == "AdamW" or bool(group.get("decoupled_weight_decay", False))
    coupled = {"l1_decay": 0.0} | ({"l2_decay": 0.0} if kind == "AdamW" else {})
    return {"weight_decay": decay} | coupled | ({"decoupled": decoupled} if decay else {})


def _clip(optimizer: torch.optim.Optimizer) -> Values | None:
    # A hook or a step() of the user's own may clip, or do anything else: its code is not read.
    if step_hooks(optimizer):
        return {"kind": "step pre-hook"}
    stock: Any = next((base for base in type(optimizer).__mro__ if base in _OPTIMIZERS), None)
    step = unwrap(optimizer.step)  # of a subclass, or set on the optimizer itself
    own = stock is not None and getattr(step, "__func__", step) is not unwrap(stock.step)
    return {"kind": "step() of its own"} if own else None


_OWN_GROUPS: Final[Mapping[str, Readers]] = {
    "RMSprop": {"eps_place": always("outside the root")},
    "Adamax": {"eps_place": always("gradient")},
}
_OPTIMIZERS: Final[Mapping[type, str]] = {getattr(torch.optim, kind): kind for kind in OPTIMIZERS}


def module_settings(module: nn.Module) -> ModuleSettings:
    """Return the settings of a module; the values of a user-written one are its own attributes."""
    kind = next((_KINDS[base] for base in type(module).__mro__ if base in _KINDS), "")
    return ModuleSettings(kind, type(module).__name__, _read_values(kind, module))


def _read_values(kind: str, layer: nn.Module) -> dict[str, Any]:
    if not kind:
        return own_values(vars(layer), _FRAMEWORK)
    return read_layer(kind, layer, _USUAL, _OWN) | {"data_format": "channels first"}


def _read_padding(layer: Any) -> Any:
    if layer.padding == "same":
        return pad_amounts(same_pad(layer.kernel_size, layer.dilation))
    return (0,) * len(layer.kernel_size) if layer.padding == "valid" else layer.padding


def _read_beta(layer: Any) -> float:
    beta: float = layer.delta if isinstance(layer, nn.HuberLoss) else layer.beta
    return beta


def _read_class_weights(layer: Any) -> Any:
    return _list_numbers(layer.weight)


def _list_numbers(tensor: Any) -> Any:
    return None if tensor is None else tuple(tensor.detach().cpu().double().flatten().tolist())


_USUAL: Final[Readers] = {
    "affine": is_given("weight"),
    "bias": is_given("bias"),
    "divisor_override": lambda layer: getattr(layer, "divisor_override", None),
    "elementwise_affine": is_given("weight"),
    "nonlinearity": lambda layer: getattr(layer, "nonlinearity", "tanh"),
    "norm": is_given("norm"),
    "padding": _read_padding,
    "pos_weight": lambda layer: _list_numbers(layer.pos_weight),
    "weight": _read_class_weights,
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
    "SmoothL1Loss": {"huber": lambda layer: isinstance(layer, nn.HuberLoss), "beta": _read_beta},
}
_FRAMEWORK: Final = tuple(vars(nn.Module()))
_KINDS: Final[Mapping[type, str]] = {
    getattr(nn, kind): kind
    for kind in layer_kinds()
    if hasattr(nn, kind)  # an older PyTorch lacks some
} | {nn.HuberLoss: "SmoothL1Loss"}
