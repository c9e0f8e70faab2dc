"""The settings of Paddle's layers. `backends.torch.settings` is the twin."""

from collections.abc import Mapping
from typing import Any, Final

from reprod_align.backends.paddle import compat, private
from reprod_align.backends.paddle.optimizer_settings import optimizer_settings as optimizer_settings
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
    per_dimension,
    plain,
    same_pad,
)

from paddle import nn


def module_settings(module: nn.Layer) -> ModuleSettings:
    """Return the settings of a module; the values of a user-written one are its own attributes."""
    base = next((base for base in type(module).__mro__ if base in _KINDS), object)
    kind = _KINDS.get(base, "")
    if compat.follows_torch(base):
        values = read_layer(kind, module, compat.READERS, compat.OWN)
        return ModuleSettings(kind, type(module).__name__, values, "PyTorch")
    kind = _PADS[private.read_pad_mode(module)] + kind if kind.startswith("Pad") else kind
    return ModuleSettings(kind, type(module).__name__, _values(kind, module))


def _values(kind: str, layer: nn.Layer) -> dict[str, Any]:
    if not kind:
        return own_values(vars(layer), _FRAMEWORK)
    return read_layer(kind, layer, _USUAL, _OWN) | {"data_format": _data_format(layer)}


def _data_format(layer: Any) -> str:
    last = not _CHANNELS_LAST.isdisjoint(private.read_data_format(layer))
    return "channels last" if last else "channels first"


def _dims(layer: Any) -> int:
    """Return 1, 2 or 3: of a convolution or a pool."""
    return next(int(_KINDS[base][-2]) for base in type(layer).__mro__ if base in _KINDS)


def _stride(layer: Any) -> Any:
    stride = private.read_stride(layer)
    return private.read_kernel_size(layer) if stride is None else stride


def _padding(layer: Any) -> Any:
    """Return one amount per dimension, pairs (before, after), or "same" if the input's size decides."""
    amounts, dims = plain(private.read_padding(layer)), _dims(layer)
    if isinstance(amounts, str):
        kernel, stride = (
            per_dimension(private.read_kernel_size(layer), dims),
            per_dimension(_stride(layer), dims),
        )
        return _named_padding(amounts.upper(), kernel, stride)
    if isinstance(amounts, tuple) and isinstance(amounts[0], tuple):  # batch and channel too
        last = _data_format(layer) == "channels last"
        return pad_amounts(amounts[-dims - 1 : -1] if last else amounts[-dims:])
    if isinstance(amounts, tuple) and len(amounts) == 2 * dims:
        return pad_amounts(list(zip(amounts[::2], amounts[1::2], strict=True)))
    return amounts


def _named_padding(name: str, kernel: Any, stride: Any) -> Any:
    if name == "VALID":
        return (0,) * len(kernel)
    return pad_amounts(same_pad(kernel, (1,) * len(kernel))) if set(stride) == {1} else "same"


def _dilation(layer: Any) -> Any:
    padding = private.read_padding(layer)
    same = isinstance(padding, str) and padding.upper() == "SAME"
    return 1 if same else private.read_dilation(layer)  # "SAME" makes Paddle forget the dilation


def _padding_index(layer: Any) -> int | None:
    index: int | None = private.read_padding_index(layer)
    return index if index is None or index >= 0 else int(private.read_rows(layer) + index)


def _has_bias(layer: nn.Layer) -> bool:
    # Without a bias Paddle's cells keep one that is zero and never trained.
    biases = [value for name, value in layer.named_parameters() if "bias" in name]
    return any(not bias.stop_gradient or bool(bias.any()) for bias in biases)


def _mode(layer: Any) -> str:
    mode: str = _UPSAMPLINGS.get(type(layer).__name__) or layer.mode
    return mode


def _align_corners(layer: Any) -> bool:
    return bool(getattr(layer, "align_corners", _mode(layer) == "bilinear"))


def _align_mode(layer: Any) -> int:
    shifted = _mode(layer).endswith("linear") and not _align_corners(layer)
    return int(layer.align_mode) if shifted else 0


def _class_weights(layer: Any) -> Any:
    return _numbers(private.read_class_weights(layer))


def _numbers(tensor: Any) -> Any:
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
    "pos_weight": lambda layer: _numbers(layer.pos_weight),
    "return_indices": private.read_return_mask,
    "weight": _class_weights,
}
_SIZES: Final[Readers] = {
    "kernel_size": private.read_kernel_size,
    "stride": _stride,
    "padding": _padding,
}
_CONVOLUTION: Final[Readers] = {**_SIZES, "dilation": _dilation}
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
    "Embedding": {"padding_idx": _padding_index},
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
        "mode": _mode,
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
_PADS: Final = {
    "constant": "Constant",
    "reflect": "Reflection",
    "replicate": "Replication",
    "circular": "Circular",
}  # before Pad1d, Pad2d, Pad3d


def _class_names(kind: str) -> tuple[str, ...]:
    return _OTHER_NAMES.get(kind, (f"{kind[:-1]}D" if kind[-2:] in ("1d", "2d", "3d") else kind,))


_FRAMEWORK: Final = tuple(vars(nn.Layer()))
_COMPAT: Final = compat.compat_classes(layer_kinds())
_KINDS: Final[Mapping[type, str]] = (
    {
        getattr(nn, name): kind
        for kind in layer_kinds()
        for name in _class_names(kind)
        if hasattr(nn, name)  # an older Paddle lacks some
    }
    | {getattr(nn, f"Pad{dims}D"): f"Pad{dims}d" for dims in (1, 2, 3)}
    | _COMPAT
)
