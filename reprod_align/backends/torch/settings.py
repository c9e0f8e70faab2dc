"""What PyTorch's layers and optimizers are set to. `paddle_settings` holds the same for Paddle."""

from collections.abc import Mapping
from functools import partial
from inspect import unwrap
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

import torch
from torch import nn


def module_settings(module: nn.Module) -> ModuleSettings:
    """Return what the module is set to; the values of a user-written one are its own attributes."""
    kind = next((_KINDS[base] for base in type(module).__mro__ if base in _KINDS), "")
    return ModuleSettings(kind, type(module).__name__, _values(kind, module))


def optimizer_settings(optimizer: torch.optim.Optimizer, model: nn.Module) -> OptimizerSettings:
    """Return what the optimizer does to each parameter of the model that it holds, at this time.

    Raises ReprodError if it is none.
    """
    require_optimizer(optimizer, "torch.optim.Optimizer", ("param_groups", "step"))
    bases = type(optimizer).__mro__
    kind = next((_OPTIMIZERS[base] for base in bases if base in _OPTIMIZERS), "")
    groups = {id(held): group for group in optimizer.param_groups for held in group["params"]}
    settings = {
        name: _parameter_settings(kind, parameter, groups[id(parameter)])
        for name, parameter in model.named_parameters(remove_duplicate=False)
        if id(parameter) in groups
    }
    return OptimizerSettings(kind, type(optimizer).__name__, settings, _clip(optimizer))


def _values(kind: str, layer: nn.Module) -> dict[str, Any]:
    if not kind:
        return own_values(vars(layer), _FRAMEWORK)
    return _READERS[kind](layer) | {"data_format": "channels first"}


def _linear(layer: Any) -> dict[str, Any]:
    return {
        "in_features": layer.in_features,
        "out_features": layer.out_features,
        "bias": layer.bias is not None,
    }


def _bilinear(layer: Any) -> dict[str, Any]:
    return {
        "in1_features": layer.in1_features,
        "in2_features": layer.in2_features,
        "out_features": layer.out_features,
        "bias": layer.bias is not None,
    }


def _conv(layer: Any) -> dict[str, Any]:
    return {
        "in_channels": layer.in_channels,
        "out_channels": layer.out_channels,
        "kernel_size": plain(layer.kernel_size),
        "stride": plain(layer.stride),
        "padding": _padding(layer.padding, layer.kernel_size, layer.dilation),
        "dilation": plain(layer.dilation),
        "groups": layer.groups,
        "padding_mode": layer.padding_mode,
        "bias": layer.bias is not None,
    }


def _conv_transpose(layer: Any) -> dict[str, Any]:
    return _conv(layer) | {"output_padding": plain(layer.output_padding)}


def _padding(padding: Any, kernel: Any, dilation: Any) -> Any:
    if padding == "same":
        return pad_amounts(same_pad(kernel, dilation))
    return (0,) * len(kernel) if padding == "valid" else plain(padding)


def _max_pool(layer: Any, dims: int) -> dict[str, Any]:
    return {
        "kernel_size": per_dimension(layer.kernel_size, dims),
        "stride": per_dimension(layer.stride, dims),
        "padding": per_dimension(layer.padding, dims),
        "dilation": per_dimension(layer.dilation, dims),
        "ceil_mode": layer.ceil_mode,
        "return_indices": layer.return_indices,
    }


def _avg_pool(layer: Any, dims: int) -> dict[str, Any]:
    padding = per_dimension(layer.padding, dims)
    counted = {"count_include_pad": layer.count_include_pad} if any(padding) else {}
    return counted | {
        "kernel_size": per_dimension(layer.kernel_size, dims),
        "stride": per_dimension(layer.stride, dims),
        "padding": padding,
        "ceil_mode": layer.ceil_mode,
        "divisor_override": getattr(layer, "divisor_override", None),
    }


def _adaptive_avg_pool(layer: Any, dims: int) -> dict[str, Any]:
    return {
        "output_size": per_dimension(layer.output_size, dims),
    }


def _adaptive_max_pool(layer: Any, dims: int) -> dict[str, Any]:
    return {
        "output_size": per_dimension(layer.output_size, dims),
        "return_indices": layer.return_indices,
    }


def _max_unpool(layer: Any, dims: int) -> dict[str, Any]:
    return {
        "kernel_size": per_dimension(layer.kernel_size, dims),
        "stride": per_dimension(layer.stride, dims),
        "padding": per_dimension(layer.padding, dims),
    }


def _pad(mode: str, layer: Any) -> dict[str, Any]:
    value = {"value": layer.value} if mode == "constant" else {}
    return value | {"padding": plain(layer.padding)}


def _batch_norm(layer: Any) -> dict[str, Any]:
    tracked = {"momentum": layer.momentum} if layer.track_running_stats else {}
    return tracked | {
        "num_features": layer.num_features,
        "eps": layer.eps,
        "affine": layer.weight is not None,
        "bias": layer.bias is not None,
        "track_running_stats": layer.track_running_stats,
        "use_global_stats": False,
        "act": None,
    }


def _instance_norm(layer: Any) -> dict[str, Any]:
    return {
        "num_features": layer.num_features,
        "eps": layer.eps,
        "affine": layer.weight is not None,
        "bias": layer.bias is not None,
        "track_running_stats": layer.track_running_stats,
    }


def _layer_norm(layer: Any) -> dict[str, Any]:
    return {
        "normalized_shape": plain(layer.normalized_shape),
        "eps": layer.eps,
        "elementwise_affine": layer.weight is not None,
        "bias": layer.bias is not None,
    }


def _rms_norm(layer: Any) -> dict[str, Any]:
    return {
        "normalized_shape": plain(layer.normalized_shape),
        "eps": layer.eps,
        "elementwise_affine": layer.weight is not None,
    }


def _group_norm(layer: Any) -> dict[str, Any]:
    return {
        "num_groups": layer.num_groups,
        "num_channels": layer.num_channels,
        "eps": layer.eps,
        "affine": layer.weight is not None,
        "bias": layer.bias is not None,
    }


def _dropout(layer: Any) -> dict[str, Any]:
    return {"p": layer.p} | ({"mode": "upscale_in_train", "axis": None} if layer.p else {})


def _embedding(layer: Any) -> dict[str, Any]:
    normed = {"norm_type": layer.norm_type} if layer.max_norm is not None else {}
    return normed | {
        "num_embeddings": layer.num_embeddings,
        "embedding_dim": layer.embedding_dim,
        "padding_idx": layer.padding_idx,
        "max_norm": layer.max_norm,
        "scale_grad_by_freq": layer.scale_grad_by_freq,
    }


def _rnn(layer: Any) -> dict[str, Any]:
    dropout = {"dropout": layer.dropout} if layer.num_layers > 1 else {}
    return dropout | {
        "input_size": layer.input_size,
        "hidden_size": layer.hidden_size,
        "num_layers": layer.num_layers,
        "bidirectional": layer.bidirectional,
        "batch_first": layer.batch_first,
        "bias": layer.bias,
        "proj_size": layer.proj_size,
        "nonlinearity": getattr(layer, "nonlinearity", "tanh"),
    }


def _rnn_cell(layer: Any) -> dict[str, Any]:
    return {
        "input_size": layer.input_size,
        "hidden_size": layer.hidden_size,
        "bias": layer.bias,
        "nonlinearity": getattr(layer, "nonlinearity", "tanh"),
    }


def _attention(layer: Any) -> dict[str, Any]:
    return {
        "embed_dim": layer.embed_dim,
        "num_heads": layer.num_heads,
        "dropout": layer.dropout,
        "kdim": layer.kdim,
        "vdim": layer.vdim,
        "bias": layer.in_proj_bias is not None,
        "add_bias_kv": layer.bias_k is not None,
        "add_zero_attn": layer.add_zero_attn,
        "batch_first": layer.batch_first,
    }


def _transformer_layer(layer: Any) -> dict[str, Any]:
    return {
        "d_model": layer.self_attn.embed_dim,
        "nhead": layer.self_attn.num_heads,
        "dim_feedforward": layer.linear1.out_features,
        "dropout": layer.dropout1.p,
        "attn_dropout": layer.self_attn.dropout,
        "act_dropout": layer.dropout.p,
        "activation": _function_name(layer.activation),
        "norm_first": layer.norm_first,
        "layer_norm_eps": layer.norm1.eps,
        "bias": layer.linear1.bias is not None,
        "batch_first": layer.self_attn.batch_first,
    }


def _transformer_stack(layer: Any) -> dict[str, Any]:
    return {"num_layers": layer.num_layers, "norm": layer.norm is not None}


def _transformer(layer: Any) -> dict[str, Any]:
    return {"d_model": layer.d_model, "nhead": layer.nhead, "batch_first": layer.batch_first}


def _upsample(layer: Any) -> dict[str, Any]:
    return {
        "size": one_if_equal(layer.size),
        "scale_factor": one_if_equal(layer.scale_factor),
        "mode": layer.mode,
        "align_corners": bool(layer.align_corners),
        "align_mode": 0,
        "recompute_scale_factor": bool(layer.recompute_scale_factor),
    }


def _window(layer: Any) -> dict[str, Any]:
    return {
        "kernel_size": one_if_equal(layer.kernel_size),
        "dilation": one_if_equal(layer.dilation),
        "padding": one_if_equal(layer.padding),
        "stride": one_if_equal(layer.stride),
    }


def _fold(layer: Any) -> dict[str, Any]:
    return _window(layer) | {"output_size": one_if_equal(layer.output_size)}


def _cross_entropy(layer: Any) -> dict[str, Any]:
    return {
        "weight": _numbers(layer.weight),
        "ignore_index": layer.ignore_index,
        "reduction": layer.reduction,
        "label_smoothing": layer.label_smoothing,
        "use_softmax": True,
        "dim": 1,
    }


def _nll(layer: Any) -> dict[str, Any]:
    return {
        "weight": _numbers(layer.weight),
        "ignore_index": layer.ignore_index,
        "reduction": layer.reduction,
    }


def _weighted(layer: Any) -> dict[str, Any]:
    return {"weight": _numbers(layer.weight), "reduction": layer.reduction}


def _bce_with_logits(layer: Any) -> dict[str, Any]:
    return _weighted(layer) | {"pos_weight": _numbers(layer.pos_weight)}


def _multi_margin(layer: Any) -> dict[str, Any]:
    return _weighted(layer) | {"p": layer.p, "margin": layer.margin}


def _smooth_l1(layer: Any) -> dict[str, Any]:
    huber = isinstance(layer, nn.HuberLoss)
    beta = layer.delta if huber else layer.beta
    scaled = {} if beta == 1 else {"huber": huber}  # the two are one loss where beta is 1
    return scaled | {"beta": beta, "reduction": layer.reduction}


def _adaptive_log_softmax(layer: Any) -> dict[str, Any]:
    return {
        "in_features": layer.in_features,
        "n_classes": layer.n_classes,
        "cutoffs": plain(layer.cutoffs),
        "div_value": layer.div_value,
        "head_bias": layer.head_bias,
    }


def _nothing(layer: Any) -> dict[str, Any]:
    return {}


def _numbers(tensor: Any) -> Any:
    return None if tensor is None else tuple(tensor.detach().cpu().double().flatten().tolist())


def _function_name(function: Any) -> str:
    name: str = getattr(function, "__name__", type(function).__name__)
    return name.strip("_").lower()


_DIMS: Final = (1, 2, 3)
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
    **{f"BatchNorm{dims}d": _batch_norm for dims in _DIMS},
    "SyncBatchNorm": _batch_norm,
    **{f"InstanceNorm{dims}d": _instance_norm for dims in _DIMS},
    "LayerNorm": _layer_norm,
    "RMSNorm": _rms_norm,
    "GroupNorm": _group_norm,
    "LocalResponseNorm": attributes(size="size", alpha="alpha", beta="beta", k="k"),
    "Dropout": _dropout,
    "Dropout1d": attributes(p="p"),
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
    "GELU": attributes(approximate="approximate"),
    "LeakyReLU": attributes(negative_slope="negative_slope"),
    "PReLU": attributes(num_parameters="num_parameters"),
    "RReLU": attributes(lower="lower", upper="upper"),
    "ELU": attributes(alpha="alpha"),
    "CELU": attributes(alpha="alpha"),
    "GLU": attributes(dim="dim"),
    "Softmax": attributes(dim="dim"),
    "LogSoftmax": attributes(dim="dim"),
    "Softmin": attributes(dim="dim"),
    "Softplus": attributes(beta="beta", threshold="threshold"),
    "Softshrink": attributes(lambd="lambd"),
    "Hardshrink": attributes(lambd="lambd"),
    "Hardtanh": attributes(min_val="min_val", max_val="max_val"),
    "Threshold": attributes(threshold="threshold", value="value"),
    "Upsample": _upsample,
    "PixelShuffle": attributes(upscale_factor="upscale_factor"),
    "PixelUnshuffle": attributes(downscale_factor="downscale_factor"),
    "ChannelShuffle": attributes(groups="groups"),
    "Unfold": _window,
    "Fold": _fold,
    "Flatten": attributes(start_dim="start_dim", end_dim="end_dim"),
    "Unflatten": attributes(dim="dim", unflattened_size="unflattened_size"),
    "CosineSimilarity": attributes(dim="dim", eps="eps"),
    "PairwiseDistance": attributes(p="norm", eps="eps", keepdim="keepdim"),
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
        reduction="reduction", margin="margin", p="p", eps="eps", swap="swap"
    ),
    "TripletMarginWithDistanceLoss": attributes(
        reduction="reduction", margin="margin", swap="swap"
    ),
    "GaussianNLLLoss": attributes(reduction="reduction", full="full", eps="eps"),
    "PoissonNLLLoss": attributes(
        reduction="reduction", log_input="log_input", full="full", eps="eps"
    ),
    "CTCLoss": attributes(reduction="reduction", blank="blank", zero_infinity="zero_infinity"),
    "AdaptiveLogSoftmaxWithLoss": _adaptive_log_softmax,
}

_FRAMEWORK: Final = tuple(vars(nn.Module()))
_KINDS: Final[Mapping[type, str]] = {
    getattr(nn, kind): kind
    for kind in _READERS
    if hasattr(nn, kind)  # an older PyTorch lacks some
} | {nn.HuberLoss: "SmoothL1Loss"}


def _parameter_settings(kind: str, parameter: Any, group: Values) -> dict[str, Any]:
    settings = {"frozen": not parameter.requires_grad, "lr": float(group["lr"])}
    settings |= _decay(kind, group)
    read = _GROUP_READERS.get(kind)
    return settings | read(group) if read else settings


def _decay(kind: str, group: Values) -> dict[str, Any]:
    if not kind or kind == "Rprop":
        return {}
    decay = float(group["weight_decay"])
    decoupled = kind == "AdamW" or bool(group.get("decoupled_weight_decay", False))
    coupled = {"l1_decay": 0.0} | ({"l2_decay": 0.0} if kind == "AdamW" else {})
    return {"weight_decay": decay} | coupled | ({"decoupled": decoupled} if decay else {})


def _sgd(group: Values) -> dict[str, Any]:
    momentum = float(group["momentum"])
    used = {"nesterov": group["nesterov"], "dampening": float(group["dampening"])}
    return {"momentum": momentum, "maximize": group["maximize"]} | (used if momentum else {})


def _adam(group: Values) -> dict[str, Any]:
    return _betas(group) | {"amsgrad": group["amsgrad"], "maximize": group["maximize"]}


def _betas(group: Values) -> dict[str, Any]:
    return {"betas": tuple(float(beta) for beta in group["betas"]), "eps": float(group["eps"])}


def _adagrad(group: Values) -> dict[str, Any]:
    return {
        "eps": float(group["eps"]),
        "initial_accumulator_value": float(group["initial_accumulator_value"]),
        "lr_decay": float(group["lr_decay"]),
        "maximize": group["maximize"],
    }


def _rmsprop(group: Values) -> dict[str, Any]:
    return {
        "alpha": float(group["alpha"]),
        "eps": float(group["eps"]),
        "eps_place": "outside the root",
        "momentum": float(group["momentum"]),
        "centered": group["centered"],
        "maximize": group["maximize"],
    }


def _adamax(group: Values) -> dict[str, Any]:
    place = {"eps_place": "gradient"}
    return _betas(group) | place | {"maximize": group["maximize"]}


def _adadelta(group: Values) -> dict[str, Any]:
    return {
        "rho": float(group["rho"]),
        "eps": float(group["eps"]),
        "maximize": group["maximize"],
    }


def _nadam(group: Values) -> dict[str, Any]:
    decay = {"momentum_decay": float(group["momentum_decay"])}
    return _betas(group) | decay | {"maximize": group["maximize"]}


def _radam(group: Values) -> dict[str, Any]:
    return _betas(group) | {"maximize": group["maximize"]}


def _rprop(group: Values) -> dict[str, Any]:
    return {
        "etas": plain(group["etas"]),
        "step_sizes": plain(group["step_sizes"]),
        "maximize": group["maximize"],
    }


def _clip(optimizer: torch.optim.Optimizer) -> Values | None:
    # A hook or a step() of the user's own may clip, or do anything else: nothing tells what.
    if getattr(optimizer, "_optimizer_step_pre_hooks", None):
        return {"kind": "step pre-hook"}
    stock: Any = next((base for base in type(optimizer).__mro__ if base in _OPTIMIZERS), None)
    step = unwrap(optimizer.step)  # of a subclass, or set on the optimizer itself
    own = stock is not None and getattr(step, "__func__", step) is not unwrap(stock.step)
    return {"kind": "step() of its own"} if own else None


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
_OPTIMIZERS: Final[Mapping[type, str]] = {
    getattr(torch.optim, kind): kind for kind in _GROUP_READERS
}
