"""What Paddle's layers and optimizers are set to, in PyTorch's words. `torch_settings` is the twin."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from reprod_align.model.settings import (
    ModuleSettings,
    OptimizerSettings,
    Reader,
    Values,
    attributes,
    one_if_equal,
    own_values,
    pad_amounts,
    per_dimension,
    plain,
    require_optimizer,
    same_pad,
)

import paddle
from paddle import nn


def module_settings(module: nn.Layer) -> ModuleSettings:
    """Return what the module is set to; the values of a user-written one are its own attributes."""
    kind = _kind(module)
    return ModuleSettings(kind, type(module).__name__, _values(kind, module))


def optimizer_settings(optimizer: paddle.optimizer.Optimizer, model: nn.Layer) -> OptimizerSettings:
    """Return what the optimizer does to each parameter of the model that it holds, at this time.

    Raises ReprodError if it is none.
    """
    wanted = ("_param_groups", "step", "get_lr")
    require_optimizer(optimizer, "paddle.optimizer.Optimizer", wanted)
    bases = type(optimizer).__mro__
    kind = next((_OPTIMIZERS[base] for base in bases if base in _OPTIMIZERS), "")
    groups = {id(held): group for group in _groups(optimizer) for held in group["params"]}
    settings = {
        name: _parameter_settings(kind, optimizer, parameter, groups[id(parameter)])
        for name, parameter in _named_parameters(model)
        if id(parameter) in groups
    }
    return OptimizerSettings(kind, type(optimizer).__name__, settings, _clip(optimizer))


def _kind(layer: nn.Layer) -> str:
    kind = next((_KINDS[base] for base in type(layer).__mro__ if base in _KINDS), "")
    return _PADS[layer._mode] + kind if kind.startswith("Pad") else kind


def _values(kind: str, layer: nn.Layer) -> dict[str, Any]:
    if not kind:
        return own_values(vars(layer), _FRAMEWORK)
    return _READERS[kind](layer) | {"data_format": _data_format(layer)}


def _linear(layer: Any) -> dict[str, Any]:
    return {
        "in_features": layer.weight.shape[0],
        "out_features": layer.weight.shape[1],
        "bias": layer.bias is not None,
    }


def _bilinear(layer: Any) -> dict[str, Any]:
    return {
        "in1_features": layer._in1_features,
        "in2_features": layer._in2_features,
        "out_features": layer._out_features,
        "bias": layer.bias is not None,
    }


def _conv(layer: Any) -> dict[str, Any]:
    dilation = _dilation(layer._padding, layer._dilation)
    return {
        "in_channels": layer._in_channels,
        "out_channels": layer._out_channels,
        "kernel_size": plain(layer._kernel_size),
        "stride": plain(layer._stride),
        "padding": _padding(layer, layer._padding, layer._kernel_size, layer._stride),
        "dilation": dilation,
        "groups": layer._groups,
        "padding_mode": layer._padding_mode,
        "bias": layer.bias is not None,
    }


def _conv_transpose(layer: Any) -> dict[str, Any]:
    dims = len(layer._kernel_size)
    return _conv(layer) | {"output_padding": per_dimension(layer.output_padding, dims)}


def _dilation(padding: Any, dilation: Any) -> tuple[int, ...]:
    same = isinstance(padding, str) and padding.upper() == "SAME"
    return (1,) * len(dilation) if same else plain(dilation)  # "SAME" makes Paddle forget it


def _padding(layer: Any, padding: Any, kernel: Any, stride: Any) -> Any:
    dims, amounts = len(kernel), plain(padding)
    if isinstance(amounts, str):
        return _named_padding(amounts.upper(), kernel, stride)
    if isinstance(amounts, tuple) and isinstance(amounts[0], tuple):  # batch and channel too
        last = _data_format(layer) == "channels last"
        return pad_amounts(amounts[-dims - 1 : -1] if last else amounts[-dims:])
    if isinstance(amounts, tuple) and len(amounts) == 2 * dims:
        return pad_amounts(list(zip(amounts[::2], amounts[1::2], strict=True)))
    return per_dimension(amounts, dims)


def _named_padding(name: str, kernel: Any, stride: Any) -> Any:
    if name == "VALID":
        return (0,) * len(kernel)
    if set(stride) == {1}:
        return pad_amounts(same_pad(kernel, (1,) * len(kernel)))
    return "same"  # depends on the input's size


def _max_pool(layer: Any, dims: int) -> dict[str, Any]:
    kernel = per_dimension(_kernel(layer), dims)
    stride = kernel if layer.stride is None else per_dimension(layer.stride, dims)
    return {
        "kernel_size": kernel,
        "stride": stride,
        "padding": _padding(layer, layer.padding, kernel, stride),
        "dilation": (1,) * dims,
        "ceil_mode": layer.ceil_mode,
        "return_indices": layer.return_mask,
    }


def _avg_pool(layer: Any, dims: int) -> dict[str, Any]:
    kernel = per_dimension(_kernel(layer), dims)
    stride = kernel if layer.stride is None else per_dimension(layer.stride, dims)
    padding = _padding(layer, layer.padding, kernel, stride)
    counted = {"count_include_pad": not layer.exclusive} if padding != (0,) * dims else {}
    return counted | {
        "kernel_size": kernel,
        "stride": stride,
        "padding": padding,
        "ceil_mode": layer.ceil_mode,
        "divisor_override": getattr(layer, "divisor", None),
    }


def _adaptive_avg_pool(layer: Any, dims: int) -> dict[str, Any]:
    return {
        "output_size": per_dimension(_output_size(layer), dims),
    }


def _adaptive_max_pool(layer: Any, dims: int) -> dict[str, Any]:
    return_mask = layer.return_mask if dims == 1 else layer._return_mask
    return {
        "output_size": per_dimension(_output_size(layer), dims),
        "return_indices": return_mask,
    }


def _max_unpool(layer: Any, dims: int) -> dict[str, Any]:
    kernel = per_dimension(_kernel(layer), dims)
    return {
        "kernel_size": kernel,
        "stride": kernel if layer.stride is None else per_dimension(layer.stride, dims),
        "padding": per_dimension(layer.padding, dims),
    }


def _kernel(layer: Any) -> Any:
    return vars(layer).get("ksize", vars(layer).get("kernel_size"))


def _output_size(layer: Any) -> Any:
    return vars(layer).get("_output_size", vars(layer).get("output_size"))


def _pad(mode: str, layer: Any) -> dict[str, Any]:
    value = {"value": layer.value} if mode == "constant" else {}
    return value | {"padding": plain(layer.padding)}


def _batch_norm(layer: Any) -> dict[str, Any]:
    return {
        "momentum": 1 - layer._momentum,
        "num_features": layer._mean.shape[0],
        "eps": layer._epsilon,
        "affine": layer.weight is not None,
        "bias": layer.bias is not None,
        "track_running_stats": True,
        "use_global_stats": bool(layer._use_global_stats),
        "act": getattr(layer, "_act", None),
    }


def _instance_norm(layer: Any) -> dict[str, Any]:
    return {
        "num_features": layer._num_features,
        "eps": layer._epsilon,
        "affine": layer.scale is not None,
        "bias": layer.bias is not None,
        "track_running_stats": False,
    }


def _layer_norm(layer: Any) -> dict[str, Any]:
    return {
        "normalized_shape": plain(layer._normalized_shape),
        "eps": layer._epsilon,
        "elementwise_affine": layer.weight is not None,
        "bias": layer.bias is not None,
    }


def _group_norm(layer: Any) -> dict[str, Any]:
    return {
        "num_groups": layer._num_groups,
        "num_channels": layer._num_channels,
        "eps": layer._epsilon,
        "affine": layer.weight is not None,
        "bias": layer.bias is not None,
    }


def _dropout(layer: Any) -> dict[str, Any]:
    return {"p": layer.p} | ({"mode": layer.mode, "axis": plain(layer.axis)} if layer.p else {})


def _embedding(layer: Any) -> dict[str, Any]:
    normed = {"norm_type": layer._norm_type} if layer._max_norm is not None else {}
    index, rows = layer._padding_idx, layer._num_embeddings
    return normed | {
        "num_embeddings": rows,
        "embedding_dim": layer._embedding_dim,
        "padding_idx": index if index is None or index >= 0 else rows + index,
        "max_norm": layer._max_norm,
        "scale_grad_by_freq": layer._scale_grad_by_freq,
    }


def _rnn(layer: Any) -> dict[str, Any]:
    dropout = {"dropout": layer.dropout} if layer.num_layers > 1 else {}
    return dropout | {
        "input_size": layer.input_size,
        "hidden_size": layer.hidden_size,
        "num_layers": layer.num_layers,
        "bidirectional": layer.num_directions == 2,
        "batch_first": not layer.time_major,
        "bias": _has_bias(layer),
        "proj_size": getattr(layer, "proj_size", 0),
        "nonlinearity": getattr(layer, "activation", "tanh"),
    }


def _rnn_cell(layer: Any) -> dict[str, Any]:
    return {
        "input_size": layer.input_size,
        "hidden_size": layer.hidden_size,
        "bias": _has_bias(layer),
        "nonlinearity": getattr(layer, "activation", "tanh"),
    }


def _has_bias(layer: nn.Layer) -> bool:
    # Without a bias Paddle's cells keep one that is zero and never trained.
    biases = [value for name, value in layer.named_parameters() if "bias" in name]
    return any(not bias.stop_gradient or bool(bias.any()) for bias in biases)


def _attention(layer: Any) -> dict[str, Any]:
    return {
        "embed_dim": layer.embed_dim,
        "num_heads": layer.num_heads,
        "dropout": layer.dropout,
        "kdim": layer.kdim,
        "vdim": layer.vdim,
        "bias": layer.q_proj.bias is not None,
        "add_bias_kv": False,
        "add_zero_attn": False,
        "batch_first": True,
    }


def _transformer_layer(layer: Any) -> dict[str, Any]:
    return {
        "d_model": layer.self_attn.embed_dim,
        "nhead": layer.self_attn.num_heads,
        "dim_feedforward": layer.linear1.weight.shape[1],
        "dropout": layer.dropout1.p,
        "attn_dropout": layer.self_attn.dropout,
        "act_dropout": layer.dropout.p,
        "activation": _function_name(layer.activation),
        "norm_first": layer.normalize_before,
        "layer_norm_eps": layer.norm1._epsilon,
        "bias": layer.linear1.bias is not None,
        "batch_first": True,
    }


def _transformer_stack(layer: Any) -> dict[str, Any]:
    return {"num_layers": layer.num_layers, "norm": layer.norm is not None}


def _transformer(layer: Any) -> dict[str, Any]:
    return {"d_model": layer.d_model, "nhead": layer.nhead, "batch_first": True}


def _upsample(layer: Any) -> dict[str, Any]:
    mode = _UPSAMPLINGS.get(type(layer).__name__) or layer.mode
    align_corners = bool(getattr(layer, "align_corners", mode == "bilinear"))
    shifted = mode.endswith("linear") and not align_corners
    return {
        "size": one_if_equal(layer.size),
        "scale_factor": one_if_equal(layer.scale_factor),
        "mode": mode,
        "align_corners": align_corners,
        "align_mode": layer.align_mode if shifted else 0,
        "recompute_scale_factor": bool(getattr(layer, "recompute_scale_factor", False)),
    }


def _window(layer: Any) -> dict[str, Any]:
    return {
        "kernel_size": one_if_equal(layer.kernel_sizes),
        "dilation": one_if_equal(layer.dilations),
        "padding": one_if_equal(layer.paddings),
        "stride": one_if_equal(layer.strides),
    }


def _fold(layer: Any) -> dict[str, Any]:
    return _window(layer) | {"output_size": one_if_equal(layer.output_sizes)}


def _cross_entropy(layer: Any) -> dict[str, Any]:
    dim = {"dim": layer.axis} if layer.axis not in (-1, 1) else {}  # the last is the second of two
    return dim | {
        "weight": _numbers(layer.weight),
        "ignore_index": layer.ignore_index,
        "reduction": layer.reduction,
        "label_smoothing": layer.label_smoothing,
        "use_softmax": layer.use_softmax,
    }


def _nll(layer: Any) -> dict[str, Any]:
    return {
        "weight": _numbers(layer._weight),
        "ignore_index": layer._ignore_index,
        "reduction": layer._reduction,
    }


def _weighted(layer: Any) -> dict[str, Any]:
    return {"weight": _numbers(layer.weight), "reduction": layer.reduction}


def _bce_with_logits(layer: Any) -> dict[str, Any]:
    return _weighted(layer) | {"pos_weight": _numbers(layer.pos_weight)}


def _multi_margin(layer: Any) -> dict[str, Any]:
    return _weighted(layer) | {"p": layer.p, "margin": layer.margin}


def _smooth_l1(layer: Any) -> dict[str, Any]:
    beta, huber = layer.delta, getattr(layer, "is_huber", True)
    scaled = {} if beta == 1 else {"huber": huber}  # the two are one loss where beta is 1
    return scaled | {"beta": beta, "reduction": layer.reduction}


def _adaptive_log_softmax(layer: Any) -> dict[str, Any]:
    return {
        "in_features": layer.in_features,
        "n_classes": layer.n_classes,
        "cutoffs": plain(layer.cutoffs),
        "div_value": layer.div_value,
        "head_bias": layer.is_head_bias,
    }


def _gelu(layer: Any) -> dict[str, Any]:
    return {"approximate": "tanh" if layer._approximate in (True, "tanh") else "none"}


def _hardtanh(layer: Any) -> dict[str, Any]:
    own = vars(layer)  # ReLU6 has neither
    return {"min_val": own.get("_min", 0.0), "max_val": own.get("_max", 6.0)}


def _nothing(layer: Any) -> dict[str, Any]:
    return {}


def _numbers(tensor: Any) -> Any:
    return None if tensor is None else tuple(tensor.astype("float64").flatten().tolist())


def _function_name(function: Any) -> str:
    name: str = getattr(function, "__name__", type(function).__name__)
    return name.strip("_").lower()


def _data_format(layer: Any) -> str:
    names = ("data_format", "_data_format", "_data_layout")  # one at most; None is unset
    last = any(str(vars(layer).get(name)) in _CHANNELS_LAST for name in names)
    return "channels last" if last else "channels first"


_DIMS: Final = (1, 2, 3)
_CHANNELS_LAST: Final = {"NLC", "NWC", "NHWC", "NDHWC"}
_PLAIN: Final = ("ReLU", "SiLU", "Mish", "SELU", "Sigmoid", "LogSigmoid", "Tanh", "Tanhshrink",
                 "Softsign", "Softmax2d", "Hardswish", "Hardsigmoid", "Identity")  # fmt: skip

_READERS: Final[Mapping[str, Reader]] = {
    "Linear": _linear,
    "Bilinear": _bilinear,
    **{f"Conv{dims}d": _conv for dims in _DIMS},
    **{f"ConvTranspose{dims}d": _conv_transpose for dims in _DIMS},
    **{f"MaxPool{dims}d": partial(_max_pool, dims=dims) for dims in _DIMS},
    **{f"AvgPool{dims}d": partial(_avg_pool, dims=dims) for dims in _DIMS},
    **{f"AdaptiveAvgPool{dims}d": partial(_adaptive_avg_pool, dims=dims) for dims in _DIMS},
    **{f"AdaptiveMaxPool{dims}d": partial(_adaptive_max_pool, dims=dims) for dims in _DIMS},
    **{f"MaxUnpool{dims}d": partial(_max_unpool, dims=dims) for dims in _DIMS},
    **{f"ConstantPad{dims}d": partial(_pad, "constant") for dims in _DIMS},
    **{f"ReflectionPad{dims}d": partial(_pad, "reflect") for dims in _DIMS},
    **{f"ReplicationPad{dims}d": partial(_pad, "replicate") for dims in _DIMS},
    **{f"CircularPad{dims}d": partial(_pad, "circular") for dims in _DIMS},
    "BatchNorm": _batch_norm,
    **{f"BatchNorm{dims}d": _batch_norm for dims in _DIMS},
    "SyncBatchNorm": _batch_norm,
    **{f"InstanceNorm{dims}d": _instance_norm for dims in _DIMS},
    "LayerNorm": _layer_norm,
    "GroupNorm": _group_norm,
    "LocalResponseNorm": attributes(size="size", alpha="alpha", beta="beta", k="k"),
    "Dropout": _dropout,
    "Dropout2d": attributes(p="p"),
    "Dropout3d": attributes(p="p"),
    "AlphaDropout": attributes(p="p"),
    "FeatureAlphaDropout": attributes(p="p"),
    "Embedding": _embedding,
    "LSTM": _rnn,
    "GRU": _rnn,
    "RNN": _rnn,
    "LSTMCell": _rnn_cell,
    "GRUCell": _rnn_cell,
    "RNNCell": _rnn_cell,
    "MultiheadAttention": _attention,
    "TransformerEncoderLayer": _transformer_layer,
    "TransformerDecoderLayer": _transformer_layer,
    "TransformerEncoder": _transformer_stack,
    "TransformerDecoder": _transformer_stack,
    "Transformer": _transformer,
    **dict.fromkeys(_PLAIN, _nothing),
    "GELU": _gelu,
    "LeakyReLU": attributes(negative_slope="_negative_slope"),
    "PReLU": attributes(num_parameters="_num_parameters"),
    "RReLU": attributes(lower="_lower", upper="_upper"),
    "ELU": attributes(alpha="_alpha"),
    "CELU": attributes(alpha="_alpha"),
    "GLU": attributes(dim="_axis"),
    "Softmax": attributes(dim="_axis"),
    "LogSoftmax": attributes(dim="_axis"),
    "Softplus": attributes(beta="_beta", threshold="_threshold"),
    "Softshrink": attributes(lambd="_threshold"),
    "Hardshrink": attributes(lambd="_threshold"),
    "Hardtanh": _hardtanh,
    "Threshold": attributes(threshold="_threshold", value="_value"),
    "Upsample": _upsample,
    "PixelShuffle": attributes(upscale_factor="_upscale_factor"),
    "PixelUnshuffle": attributes(downscale_factor="_downscale_factor"),
    "ChannelShuffle": attributes(groups="_groups"),
    "Unfold": _window,
    "Fold": _fold,
    "Flatten": attributes(start_dim="start_axis", end_dim="stop_axis"),
    "Unflatten": attributes(dim="axis", unflattened_size="shape"),
    "CosineSimilarity": attributes(dim="_axis", eps="_eps"),
    "PairwiseDistance": attributes(p="p", eps="epsilon", keepdim="keepdim"),
    "CrossEntropyLoss": _cross_entropy,
    "NLLLoss": _nll,
    "BCELoss": _weighted,
    "BCEWithLogitsLoss": _bce_with_logits,
    "MultiLabelSoftMarginLoss": _weighted,
    "MultiMarginLoss": _multi_margin,
    "SmoothL1Loss": _smooth_l1,
    "MSELoss": attributes(reduction="reduction"),
    "L1Loss": attributes(reduction="reduction"),
    "SoftMarginLoss": attributes(reduction="reduction"),
    "MultiLabelMarginLoss": attributes(reduction="reduction"),
    "KLDivLoss": attributes(reduction="reduction", log_target="log_target"),
    "MarginRankingLoss": attributes(reduction="reduction", margin="margin"),
    "HingeEmbeddingLoss": attributes(reduction="reduction", margin="margin"),
    "CosineEmbeddingLoss": attributes(reduction="reduction", margin="margin"),
    "TripletMarginLoss": attributes(
        reduction="reduction", margin="margin", p="p", eps="epsilon", swap="swap"
    ),
    "TripletMarginWithDistanceLoss": attributes(
        reduction="reduction", margin="margin", swap="swap"
    ),
    "GaussianNLLLoss": attributes(reduction="reduction", full="full", eps="epsilon"),
    "PoissonNLLLoss": attributes(
        reduction="_reduction", log_input="_log_input", full="_full", eps="_epsilon"
    ),
    "CTCLoss": attributes(reduction="reduction", blank="blank", zero_infinity="zero_infinity"),
    "AdaptiveLogSoftmaxWithLoss": _adaptive_log_softmax,
}

# Paddle's classes whose names are not PyTorch's with a capital D.
_OTHER_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    **{f"ConvTranspose{dims}d": (f"Conv{dims}DTranspose",) for dims in _DIMS},
    **{f"MaxUnpool{dims}d": (f"MaxUnPool{dims}D",) for dims in _DIMS},
    **{f"ConstantPad{dims}d": (f"ConstantPad{dims}D", f"ZeroPad{dims}D") for dims in _DIMS},
    "RNN": ("SimpleRNN",),
    "RNNCell": ("SimpleRNNCell",),
    "MultiheadAttention": ("MultiHeadAttention",),
    "SiLU": ("Silu", "Swish"),
    "Threshold": ("ThresholdedReLU",),
    "Hardtanh": ("Hardtanh", "ReLU6"),
    "Upsample": ("Upsample", "UpsamplingNearest2D", "UpsamplingBilinear2D"),
}
_UPSAMPLINGS: Final = {"UpsamplingNearest2D": "nearest", "UpsamplingBilinear2D": "bilinear"}
_PADS: Final = {
    "constant": "Constant",
    "reflect": "Reflection",
    "replicate": "Replication",
    "circular": "Circular",
}  # before Pad1d, Pad2d, Pad3d


def _class_names(kind: str) -> tuple[str, ...]:
    return _OTHER_NAMES.get(kind, (f"{kind[:-1]}D" if kind[-2:] in ("1d", "2d", "3d") else kind,))


_FRAMEWORK: Final = tuple(vars(nn.Layer()))
_KINDS: Final[Mapping[type, str]] = {
    getattr(nn, name): kind
    for kind in _READERS
    for name in _class_names(kind)
    if hasattr(nn, name)  # an older Paddle lacks some
} | {getattr(nn, f"Pad{dims}D"): f"Pad{dims}d" for dims in _DIMS}


def _groups(optimizer: paddle.optimizer.Optimizer) -> list[dict[str, Any]]:
    groups = optimizer._param_groups
    if not groups or not isinstance(groups[0], dict):
        groups = [{"params": groups, "grad_clip": optimizer._grad_clip}]
    names = ("amsgrad", "etas", "learning_rate_range")
    shared = {name: getattr(optimizer, f"_{name}", None) for name in names}
    return [shared | optimizer._default_dict | group for group in groups]


def _named_parameters(model: nn.Layer) -> list[tuple[str, Any]]:
    # Unlike named_parameters(), the state dict has every name of a shared parameter.
    return list(model.state_dict().items())


def _parameter_settings(
    kind: str, optimizer: paddle.optimizer.Optimizer, parameter: Any, group: Values
) -> dict[str, Any]:
    settings = {"frozen": parameter.stop_gradient, "lr": _learning_rate(optimizer, parameter)}
    settings |= _decay(kind, optimizer, parameter, group)
    read = _GROUP_READERS.get(kind)
    return settings | read(group) if read else settings


def _learning_rate(optimizer: paddle.optimizer.Optimizer, parameter: Any) -> float:
    # A group's learning_rate is kept on its parameters: it multiplies the optimizer's.
    own = float(parameter.optimize_attr.get("learning_rate", 1.0))
    ratio = getattr(optimizer, "_lr_ratio", None)
    return float(optimizer.get_lr()) * own * (float(ratio(parameter)) if ratio else 1.0)


def _decay(
    kind: str, optimizer: paddle.optimizer.Optimizer, parameter: Any, group: Values
) -> dict[str, Any]:
    if not kind or kind == "Rprop":
        return {}
    l1_decay, l2_decay = _regularization(optimizer, parameter, group)
    if kind != "AdamW":
        decoupled = {"decoupled": False} if l2_decay else {}
        return {"weight_decay": l2_decay, "l1_decay": l1_decay} | decoupled
    decays = optimizer._apply_decay_param_fun
    skipped = decays is not None and not decays(parameter.name)
    decay = 0.0 if skipped else float(group["weight_decay"])
    coupled = {"l1_decay": l1_decay, "l2_decay": l2_decay}
    return {"weight_decay": decay} | coupled | ({"decoupled": True} if decay else {})


def _regularization(
    optimizer: paddle.optimizer.Optimizer, parameter: Any, group: Values
) -> tuple[float, float]:
    regularizer = getattr(parameter, "regularizer", None) or optimizer.regularization
    if isinstance(regularizer, paddle.regularizer.L1Decay):
        return float(regularizer._coeff), 0.0
    if regularizer is None:  # Momentum keeps the coefficient itself
        return 0.0, float(group.get("regularization_coeff", 0.0))
    return 0.0, float(regularizer._coeff)


def _sgd(group: Values) -> dict[str, Any]:
    momentum = float(group.get("momentum", 0.0))
    used = {"nesterov": bool(group.get("use_nesterov")), "dampening": 0.0}
    return {"momentum": momentum, "maximize": False} | (used if momentum else {})


def _adam(group: Values) -> dict[str, Any]:
    return _betas(group) | {"amsgrad": bool(group["amsgrad"]), "maximize": False}


def _betas(group: Values) -> dict[str, Any]:
    betas = (float(group["beta1"]), float(group["beta2"]))
    return {"betas": betas, "eps": float(group["epsilon"])}


def _adagrad(group: Values) -> dict[str, Any]:
    return {
        "eps": float(group["epsilon"]),
        "initial_accumulator_value": float(group["initial_accumulator_value"]),
        "lr_decay": 0.0,
        "maximize": False,
    }


def _rmsprop(group: Values) -> dict[str, Any]:
    return {
        "alpha": float(group["rho"]),
        "eps": float(group["epsilon"]),
        "eps_place": "inside the root",
        "momentum": float(group["momentum"]),
        "centered": group["centered"],
        "maximize": False,
    }


def _adamax(group: Values) -> dict[str, Any]:
    place = {"eps_place": "norm"}
    return _betas(group) | place | {"maximize": False}


def _adadelta(group: Values) -> dict[str, Any]:
    return {
        "rho": float(group["rho"]),
        "eps": float(group["epsilon"]),
        "maximize": False,
    }


def _nadam(group: Values) -> dict[str, Any]:
    decay = {"momentum_decay": float(group["momentum_decay"])}
    return _betas(group) | decay | {"maximize": False}


def _radam(group: Values) -> dict[str, Any]:
    return _betas(group) | {"maximize": False}


def _rprop(group: Values) -> dict[str, Any]:
    return {
        "etas": _pair(group["etas"]),
        "step_sizes": _pair(group["learning_rate_range"]),
        "maximize": False,
    }


def _pair(values: Any) -> tuple[float, ...]:
    # A list of one pair, and from the first step on a tensor of it.
    return tuple(float(value) for value in paddle.to_tensor(values, "float64").flatten().tolist())


def _clip(optimizer: paddle.optimizer.Optimizer) -> Values | None:
    clips = [_one_clip(group["grad_clip"]) for group in _groups(optimizer)]
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


_GROUP_READERS: Final[Mapping[str, Reader]] = {
    "SGD": _sgd,
    "Adam": _adam,
    "AdamW": _adam,
    "Adagrad": _adagrad,
    "RMSprop": _rmsprop,
    "Adamax": _adamax,
    "Adadelta": _adadelta,
    "NAdam": _nadam,
    "RAdam": _radam,
    "Rprop": _rprop,
}
_OTHER_OPTIMIZERS: Final = {"SGD": ("SGD", "Momentum"), "RMSprop": ("RMSProp",)}
_OPTIMIZERS: Final[Mapping[type, str]] = {
    getattr(paddle.optimizer, name): kind
    for kind in _GROUP_READERS
    for name in _OTHER_OPTIMIZERS.get(kind, (kind,))
    if hasattr(paddle.optimizer, name)  # an older Paddle lacks some
}
