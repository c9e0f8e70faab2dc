"""The settings of Paddle's layers and optimizers. `backends.torch.settings` is the twin."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from reprod_align.backends.paddle import private
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
    per_dimension,
    plain,
    read_group,
    read_layer,
    require_optimizer,
    same_pad,
)

import paddle
from paddle import nn


def optimizer_settings(optimizer: paddle.optimizer.Optimizer, model: nn.Layer) -> OptimizerSettings:
    """Return how the optimizer now treats each parameter of the model that it holds.

    Raises ReprodError if it is not an optimizer, MissingNameError if its settings cannot be read.
    """
    wanted = ("step", "get_lr", "clear_grad")
    require_optimizer(optimizer, "paddle.optimizer.Optimizer", wanted)
    bases = type(optimizer).__mro__
    kind = next((_OPTIMIZERS[base] for base in bases if base in _OPTIMIZERS), "")
    groups = {
        id(held): group for group in private.read_groups(optimizer) for held in group["params"]
    }
    settings = {
        name: _read_parameter_settings(kind, optimizer, parameter, groups[id(parameter)])
        for name, parameter in model.state_dict().items()  # a shared parameter under each name
        if id(parameter) in groups
    }
    return OptimizerSettings(kind, type(optimizer).__name__, settings, _clip(optimizer))


def _read_parameter_settings(
    kind: str, optimizer: paddle.optimizer.Optimizer, parameter: Any, group: Values
) -> dict[str, Any]:
    settings = {"frozen": parameter.stop_gradient, "lr": _read_learning_rate(optimizer, parameter)}
    settings |= _decay(kind, optimizer, parameter, group)
    return settings | read_group(kind, group, _USUAL_GROUP, _OWN_GROUPS)


def _read_learning_rate(optimizer: paddle.optimizer.Optimizer, parameter: Any) -> float:
    # A group's learning_rate is kept on its parameters: it multiplies the optimizer's.
    own = float(parameter.optimize_attr.get("learning_rate", 1.0))
    ratio = private.read_rate_ratio(optimizer)
    return float(optimizer.get_lr()) * own * (float(ratio(parameter)) if ratio else 1.0)


def _decay(
    kind: str, optimizer: paddle.optimizer.Optimizer, parameter: Any, group: Values
) -> dict[str, Any]:
    if not kind or kind == "Rprop":
        return {}
    l1_decay, l2_decay = _read_regularization(optimizer, parameter, group)
    if kind != "AdamW":
        decoupled = {"decoupled": False} if l2_decay else {}
        return {"weight_decay": l2_decay, "l1_decay": l1_decay} | decoupled
    decays = private.read_decay_choice(optimizer)
    skipped = decays is not None and not decays(parameter.name)
    decay = 0.0 if skipped else float(group["weight_decay"])
    coupled = {"l1_decay": l1_decay, "l2_decay": l2_decay}
    return {"weight_decay": decay} | coupled | ({"decoupled": True} if decay else {})


def _read_regularization(
    optimizer: paddle.optimizer.Optimizer, parameter: Any, group: Values
) -> tuple[float, float]:
    """Return the coefficients of L1 and L2 decay."""
    regularizer = getattr(parameter, "regularizer", None) or optimizer.regularization
    if isinstance(regularizer, paddle.regularizer.L1Decay):
        return private.read_coefficient(regularizer), 0.0
    if regularizer is None:  # Momentum keeps the coefficient itself
        return 0.0, float(group.get("regularization_coeff", 0.0))
    return 0.0, private.read_coefficient(regularizer)


def _pair_of(name: str) -> Callable[[Values], tuple[float, ...]]:
    """Return a reader: Rprop keeps a list of one pair, and from the first step on a tensor of it."""
    return lambda group: tuple(paddle.to_tensor(group[name], "float64").flatten().tolist())


def _clip(optimizer: paddle.optimizer.Optimizer) -> Values | None:
    clips = [_one_clip(group["grad_clip"]) for group in private.read_groups(optimizer)]
    if any(clip != clips[0] for clip in clips):
        return {"kind": "each group in its own way"}
    if clips[0] is not None and clips[0]["kind"] == "global norm" and len(clips) > 1:
        return clips[0] | {"kind": "the norm of each parameter group"}
    return clips[0]


def _one_clip(clip: Any) -> dict[str, Any] | None:
    if clip is None:
        return None
    if isinstance(clip, nn.ClipGradByValue):
        return {"kind": "value", "min": clip.min, "max": clip.max}
    if isinstance(clip, nn.ClipGradByNorm):
        return {"kind": "the norm of each parameter", "max_norm": clip.clip_norm}
    if isinstance(clip, nn.ClipGradByGlobalNorm):
        return {"kind": "global norm", "max_norm": clip.clip_norm}
    return {"kind": type(clip).__name__}


_USUAL_GROUP: Final[Readers] = {
    "alpha": "rho",
    "betas": lambda group: (group["beta1"], group["beta2"]),
    "dampening": always(0.0),
    "eps": "epsilon",
    "etas": _pair_of("etas"),
    "lr_decay": always(0.0),
    "maximize": always(False),
    "momentum": lambda group: group.get("momentum", 0.0),
    "nesterov": lambda group: bool(group.get("use_nesterov")),
    "step_sizes": _pair_of("learning_rate_range"),
}
_OWN_GROUPS: Final[Mapping[str, Readers]] = {
    "RMSprop": {"eps_place": always("inside the root")},
    "Adamax": {"eps_place": always("norm")},
}
_OTHER_OPTIMIZERS: Final = {"SGD": ("SGD", "Momentum"), "RMSprop": ("RMSProp",)}
_OPTIMIZERS: Final[Mapping[type, str]] = {
    getattr(paddle.optimizer, name): kind
    for kind in OPTIMIZERS
    for name in _OTHER_OPTIMIZERS.get(kind, (kind,))
    if hasattr(paddle.optimizer, name)  # an older Paddle lacks some
}


def module_settings(module: nn.Layer) -> ModuleSettings:
    """Return the settings of a module; the values of a user-written one are its own attributes."""
    base = next((base for base in type(module).__mro__ if base in _KINDS), object)
    kind = _KINDS.get(base, "")
    if base.__module__.startswith("paddle.compat."):
        values = read_layer(kind, module, _COMPAT_USUAL, _COMPAT_OWN)
        return ModuleSettings(kind, type(module).__name__, values, "PyTorch")
    kind = _PADS[private.read_pad_mode(module)] + kind if kind.startswith("Pad") else kind
    return ModuleSettings(kind, type(module).__name__, _read_values(kind, module))


def _read_values(kind: str, layer: nn.Layer) -> dict[str, Any]:
    if not kind:
        return own_values(vars(layer), _FRAMEWORK)
    return read_layer(kind, layer, _USUAL, _OWN) | {"data_format": _read_data_format(layer)}


def _read_data_format(layer: Any) -> str:
    last = not _CHANNELS_LAST.isdisjoint(private.read_data_format(layer))
    return "channels last" if last else "channels first"


def _count_dims(layer: Any) -> int:
    """Return 1, 2 or 3: of a convolution or a pool."""
    return next(int(_KINDS[base][-2]) for base in type(layer).__mro__ if base in _KINDS)


def _read_stride(layer: Any) -> Any:
    stride = private.read_stride(layer)
    return private.read_kernel_size(layer) if stride is None else stride


def _read_padding(layer: Any) -> Any:
    """Return one amount per dimension, pairs (before, after), or "same" if the input's size decides."""
    amounts, dims = plain(private.read_padding(layer)), _count_dims(layer)
    if isinstance(amounts, str):
        kernel, stride = (
            per_dimension(private.read_kernel_size(layer), dims),
            per_dimension(_read_stride(layer), dims),
        )
        return _read_named_padding(amounts.upper(), kernel, stride)
    if isinstance(amounts, tuple) and isinstance(amounts[0], tuple):  # batch and channel too
        last = _read_data_format(layer) == "channels last"
        return pad_amounts(amounts[-dims - 1 : -1] if last else amounts[-dims:])
    if isinstance(amounts, tuple) and len(amounts) == 2 * dims:
        return pad_amounts(list(zip(amounts[::2], amounts[1::2], strict=True)))
    return amounts


def _read_named_padding(name: str, kernel: Any, stride: Any) -> Any:
    if name == "VALID":
        return (0,) * len(kernel)
    return pad_amounts(same_pad(kernel, (1,) * len(kernel))) if set(stride) == {1} else "same"


def _read_dilation(layer: Any) -> Any:
    padding = private.read_padding(layer)
    same = isinstance(padding, str) and padding.upper() == "SAME"
    return 1 if same else private.read_dilation(layer)  # "SAME" makes Paddle forget the dilation


def _read_padding_index(layer: Any) -> int | None:
    index: int | None = private.read_padding_index(layer)
    return index if index is None or index >= 0 else int(private.read_rows(layer) + index)


def _has_bias(layer: nn.Layer) -> bool:
    # Without a bias Paddle's cells keep one that is zero and never trained.
    biases = [value for name, value in layer.named_parameters() if "bias" in name]
    return any(not bias.stop_gradient or bool(bias.any()) for bias in biases)


def _read_mode(layer: Any) -> str:
    mode: str = _UPSAMPLINGS.get(type(layer).__name__) or layer.mode
    return mode


def _align_corners(layer: Any) -> bool:
    return bool(getattr(layer, "align_corners", _read_mode(layer) == "bilinear"))


def _align_mode(layer: Any) -> int:
    shifted = _read_mode(layer).endswith("linear") and not _align_corners(layer)
    return int(layer.align_mode) if shifted else 0


def _has_compat_bias(layer: nn.Layer) -> bool:
    return any(getattr(layer, name) is not None for name in ("in_proj_bias", "q_proj_bias"))


def _read_class_weights(layer: Any) -> Any:
    return _list_numbers(private.read_class_weights(layer))


def _list_numbers(tensor: Any) -> Any:
    return None if tensor is None else tuple(tensor.astype("float64").flatten().tolist())


_CHANNELS_LAST: Final = {"NLC", "NWC", "NHWC", "NDHWC"}
_UPSAMPLINGS: Final = {"UpsamplingNearest2D": "nearest", "UpsamplingBilinear2D": "bilinear"}
_USUAL: Final[Readers] = {
    "affine": is_given("weight"),
    "bias": is_given("bias"),
    "dim": private.read_axis,
    "divisor_override": lambda layer: getattr(layer, "divisor", None),
    "elementwise_affine": is_given("weight"),
    "eps": private.read_epsilon,
    "nonlinearity": lambda layer: getattr(layer, "activation", "tanh"),
    "norm": is_given("norm"),
    "output_size": private.read_output_size,
    "pos_weight": lambda layer: _list_numbers(layer.pos_weight),
    "return_indices": private.read_return_mask,
    "weight": _read_class_weights,
}
_SIZES: Final[Readers] = {
    "kernel_size": private.read_kernel_size,
    "stride": _read_stride,
    "padding": _read_padding,
}
_CONVOLUTION: Final[Readers] = {**_SIZES, "dilation": _read_dilation}
_BATCH_NORM: Final[Readers] = {
    "momentum": lambda layer: 1 - private.read_momentum(layer),
    "num_features": lambda layer: private.read_running_mean(layer).shape[0],
    "track_running_stats": always(True),
    "use_global_stats": lambda layer: bool(private.read_use_global_stats(layer)),
    "act": private.read_activation,
}
_CELL: Final[Readers] = {"bias": _has_bias}
_RECURRENT: Final[Readers] = {
    "bidirectional": lambda layer: layer.num_directions == 2,
    "batch_first": lambda layer: not layer.time_major,
    "bias": _has_bias,
    "proj_size": lambda layer: getattr(layer, "proj_size", 0),
}
_TRANSFORMER_LAYER: Final[Readers] = {
    "d_model": "self_attn.embed_dim",
    "nhead": "self_attn.num_heads",
    "dim_feedforward": lambda layer: layer.linear1.weight.shape[1],
    "dropout": "dropout1.p",
    "attn_dropout": "self_attn.dropout",
    "act_dropout": "dropout.p",
    "activation": lambda layer: function_name(layer.activation),
    "norm_first": "normalize_before",
    "layer_norm_eps": private.read_norm_epsilon,
    "bias": is_given("linear1.bias"),
    "batch_first": always(True),
}
_WINDOW: Final[Readers] = {
    "kernel_size": "kernel_sizes",
    "dilation": "dilations",
    "padding": "paddings",
    "stride": "strides",
}
_OWN: Final[Mapping[str, Readers]] = {
    "Linear": {
        "in_features": lambda layer: layer.weight.shape[0],
        "out_features": lambda layer: layer.weight.shape[1],
    },
    "Conv#d": _CONVOLUTION,
    "ConvTranspose#d": _CONVOLUTION,
    "MaxPool#d": {**_SIZES, "dilation": always(1)},
    "AvgPool#d": {**_SIZES, "count_include_pad": lambda layer: not layer.exclusive},
    "MaxUnpool#d": _SIZES,
    "BatchNorm": _BATCH_NORM,
    "BatchNorm#d": _BATCH_NORM,
    "SyncBatchNorm": _BATCH_NORM,
    "InstanceNorm#d": {"affine": is_given("scale"), "track_running_stats": always(False)},
    "Embedding": {"padding_idx": _read_padding_index},
    "LSTM": _RECURRENT,
    "GRU": _RECURRENT,
    "RNN": _RECURRENT,
    "LSTMCell": _CELL,
    "GRUCell": _CELL,
    "RNNCell": _CELL,
    "MultiheadAttention": {
        "bias": is_given("q_proj.bias"),
        "add_bias_kv": always(False),
        "add_zero_attn": always(False),
        "batch_first": always(True),
    },
    "TransformerEncoderLayer": _TRANSFORMER_LAYER,
    "TransformerDecoderLayer": _TRANSFORMER_LAYER,
    "Transformer": {"batch_first": always(True)},
    "GELU": {
        "approximate": lambda layer: (
            "tanh" if private.read_approximate(layer) in (True, "tanh") else "none"
        )
    },
    "Softshrink": {"lambd": private.read_threshold},
    "Hardshrink": {"lambd": private.read_threshold},
    "Hardtanh": {"min_val": private.read_least, "max_val": private.read_largest},
    "Upsample": {
        "mode": _read_mode,
        "align_corners": _align_corners,
        "align_mode": _align_mode,
        "recompute_scale_factor": lambda layer: bool(
            getattr(layer, "recompute_scale_factor", False)
        ),
    },
    "Unfold": _WINDOW,
    "Fold": _WINDOW,
    "Flatten": {"start_dim": "start_axis", "end_dim": "stop_axis"},
    "Unflatten": {"unflattened_size": "shape"},
    # the last dimension, -1, is the second of two
    "CrossEntropyLoss": {"dim": lambda layer: 1 if layer.axis == -1 else layer.axis},
    "SmoothL1Loss": {"huber": lambda layer: getattr(layer, "is_huber", True), "beta": "delta"},
    "AdaptiveLogSoftmaxWithLoss": {"head_bias": "is_head_bias"},
}

# The layers of `paddle.compat` keep weights as PyTorch does, and name settings as PyTorch does.
_COMPAT_USUAL: Final[Readers] = {
    "bias": is_given("bias"),
    "divisor_override": lambda layer: getattr(layer, "divisor_override", None),
}
_COMPAT_OWN: Final[Mapping[str, Readers]] = {
    "MultiheadAttention": {"bias": _has_compat_bias},
    "Unfold": _WINDOW,
}

# Paddle's classes whose names are not PyTorch's with a capital D.
_OTHER_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    **{f"ConvTranspose{dims}d": (f"Conv{dims}DTranspose",) for dims in (1, 2, 3)},
    **{f"MaxUnpool{dims}d": (f"MaxUnPool{dims}D",) for dims in (1, 2, 3)},
    **{f"ConstantPad{dims}d": (f"ConstantPad{dims}D", f"ZeroPad{dims}D") for dims in (1, 2, 3)},
    "RMSNorm": (),  # a newer Paddle has one, with other attributes
    "RNN": ("SimpleRNN",),
    "RNNCell": ("SimpleRNNCell",),
    "MultiheadAttention": ("MultiHeadAttention",),
    "SiLU": ("Silu", "Swish"),
    "Threshold": ("ThresholdedReLU",),
    "Hardtanh": ("Hardtanh", "ReLU6"),
    "Upsample": ("Upsample", "UpsamplingNearest2D", "UpsamplingBilinear2D"),
}
_PADS: Final = {"constant": "Constant", "reflect": "Reflection", "replicate": "Replication",
                "circular": "Circular"}  # fmt: skip
"""mode -> what stands before Pad1d, Pad2d, Pad3d in PyTorch's names"""


def _list_class_names(kind: str) -> tuple[str, ...]:
    return _OTHER_NAMES.get(kind, (f"{kind[:-1]}D" if kind[-2:] in ("1d", "2d", "3d") else kind,))


def _find_compat_classes() -> dict[type, str]:
    """Return the classes of `paddle.compat.nn` that have a kind, each with it."""
    names = {name: kind for kind in layer_kinds() for name in (kind, f"{kind[:-1]}D")}
    layers = getattr(getattr(paddle, "compat", None), "nn", None)  # an older Paddle has none
    own = [name for name in getattr(layers, "__all__", ()) if name in names]
    return {getattr(layers, name): names[name] for name in own}


_FRAMEWORK: Final = tuple(vars(nn.Layer()))
_KINDS: Final[Mapping[type, str]] = (
    {
        getattr(nn, name): kind
        for kind in layer_kinds()
        for name in _list_class_names(kind)
        if hasattr(nn, name)  # an older Paddle lacks some
    }
    | {getattr(nn, f"Pad{dims}D"): f"Pad{dims}d" for dims in (1, 2, 3)}
    | _find_compat_classes()
)
