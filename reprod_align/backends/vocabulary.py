"""The settings of each kind of layer and optimizer, in PyTorch's words: one table for both frameworks.

A setting is the attribute of its name, with or without a leading underscore; `torch.settings` and
`paddle.settings` have a reader where it is not. A new kind of layer is a row of LAYERS, and a reader
for each such setting on each side.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import Any, Final

from reprod_align.model.settings import Values, one_if_equal, per_dimension, plain

Readers = Mapping[str, str | Callable[[Any], Any]]
"""Setting -> the (dotted) attribute that holds it, or a function of the layer that returns it."""

_CONVOLUTION: Final = (
    "in_channels out_channels kernel_size stride padding dilation groups padding_mode bias"
)
_BATCH_NORM: Final = (
    "momentum num_features eps affine bias track_running_stats use_global_stats act"
)
_RECURRENT: Final = (
    "dropout input_size hidden_size num_layers bidirectional batch_first bias proj_size "
    "nonlinearity"
)
_CELL: Final = "input_size hidden_size bias nonlinearity"
_TRANSFORMER_LAYER: Final = (
    "d_model nhead dim_feedforward dropout attn_dropout act_dropout activation norm_first "
    "layer_norm_eps bias batch_first"
)
_WINDOW: Final = "kernel_size dilation padding stride"
_PLAIN: Final = ("ReLU", "SiLU", "Mish", "SELU", "Sigmoid", "LogSigmoid", "Tanh", "Tanhshrink",
                 "Softsign", "Softmax2d", "Hardswish", "Hardsigmoid", "Identity")  # fmt: skip

LAYERS: Final[Mapping[str, str]] = {
    "Linear": "in_features out_features bias",
    "Bilinear": "in1_features in2_features out_features bias",
    "Conv#d": _CONVOLUTION,
    "ConvTranspose#d": f"{_CONVOLUTION} output_padding",
    "MaxPool#d": "kernel_size stride padding dilation ceil_mode return_indices",
    "AvgPool#d": "count_include_pad kernel_size stride padding ceil_mode divisor_override",
    "AdaptiveAvgPool#d": "output_size",
    "AdaptiveMaxPool#d": "output_size return_indices",
    "MaxUnpool#d": "kernel_size stride padding",
    "ConstantPad#d": "value padding",
    "ReflectionPad#d": "padding",
    "ReplicationPad#d": "padding",
    "CircularPad#d": "padding",
    "BatchNorm": _BATCH_NORM,
    "BatchNorm#d": _BATCH_NORM,
    "SyncBatchNorm": _BATCH_NORM,
    "InstanceNorm#d": "num_features eps affine bias track_running_stats",
    "LayerNorm": "normalized_shape eps elementwise_affine bias",
    "RMSNorm": "normalized_shape eps elementwise_affine",
    "GroupNorm": "num_groups num_channels eps affine bias",
    "LocalResponseNorm": "size alpha beta k",
    "Dropout": "p mode axis",
    "Dropout#d": "p",
    "AlphaDropout": "p",
    "FeatureAlphaDropout": "p",
    "Embedding": "norm_type num_embeddings embedding_dim padding_idx max_norm scale_grad_by_freq",
    "LSTM": _RECURRENT,
    "GRU": _RECURRENT,
    "RNN": _RECURRENT,
    "LSTMCell": _CELL,
    "GRUCell": _CELL,
    "RNNCell": _CELL,
    "MultiheadAttention": "embed_dim num_heads dropout kdim vdim bias add_bias_kv add_zero_attn "
    "batch_first",
    "TransformerEncoderLayer": _TRANSFORMER_LAYER,
    "TransformerDecoderLayer": _TRANSFORMER_LAYER,
    "TransformerEncoder": "num_layers norm",
    "TransformerDecoder": "num_layers norm",
    "Transformer": "d_model nhead batch_first",
    **dict.fromkeys(_PLAIN, ""),
    "GELU": "approximate",
    "LeakyReLU": "negative_slope",
    "PReLU": "num_parameters",
    "RReLU": "lower upper",
    "ELU": "alpha",
    "CELU": "alpha",
    "GLU": "dim",
    "Softmax": "dim",
    "LogSoftmax": "dim",
    "Softmin": "dim",
    "Softplus": "beta threshold",
    "Softshrink": "lambd",
    "Hardshrink": "lambd",
    "Hardtanh": "min_val max_val",
    "Threshold": "threshold value",
    "Upsample": "size scale_factor mode align_corners align_mode recompute_scale_factor",
    "PixelShuffle": "upscale_factor",
    "PixelUnshuffle": "downscale_factor",
    "ChannelShuffle": "groups",
    "Unfold": _WINDOW,
    "Fold": f"{_WINDOW} output_size",
    "Flatten": "start_dim end_dim",
    "Unflatten": "dim unflattened_size",
    "CosineSimilarity": "dim eps",
    "PairwiseDistance": "p eps keepdim",
    "CrossEntropyLoss": "weight ignore_index reduction label_smoothing use_softmax dim",
    "NLLLoss": "weight ignore_index reduction",
    "BCELoss": "weight reduction",
    "BCEWithLogitsLoss": "weight reduction pos_weight",
    "MultiLabelSoftMarginLoss": "weight reduction",
    "MultiMarginLoss": "weight reduction p margin",
    "SmoothL1Loss": "huber beta reduction",
    "MSELoss": "reduction",
    "L1Loss": "reduction",
    "SoftMarginLoss": "reduction",
    "MultiLabelMarginLoss": "reduction",
    "KLDivLoss": "reduction log_target",
    "MarginRankingLoss": "reduction margin",
    "HingeEmbeddingLoss": "reduction margin",
    "CosineEmbeddingLoss": "reduction margin",
    "TripletMarginLoss": "reduction margin p eps swap",
    "TripletMarginWithDistanceLoss": "reduction margin swap",
    "GaussianNLLLoss": "reduction full eps",
    "PoissonNLLLoss": "reduction log_input full eps",
    "CTCLoss": "reduction blank zero_infinity",
    "AdaptiveLogSoftmaxWithLoss": "in_features n_classes cutoffs div_value head_bias",
}
"""Kind of layer (# stands for 1, 2 and 3) -> its settings, separated by blanks."""

OPTIMIZERS: Final[Mapping[str, str]] = {
    "SGD": "momentum maximize nesterov dampening",
    "Adam": "betas eps amsgrad maximize",
    "AdamW": "betas eps amsgrad maximize",
    "Adagrad": "eps initial_accumulator_value lr_decay maximize",
    "RMSprop": "alpha eps eps_place momentum centered maximize",
    "Adamax": "betas eps eps_place maximize",
    "Adadelta": "rho eps maximize",
    "NAdam": "betas eps momentum_decay maximize",
    "RAdam": "betas eps maximize",
    "Rprop": "etas step_sizes maximize",
}
"""Kind of optimizer -> the settings of a parameter group, beside its rate and decay."""

# (kind, setting) -> whether it has no effect beside the other settings
_IDLE: Final[Mapping[tuple[str, str], Callable[[Values], bool]]] = {
    ("AvgPool#d", "count_include_pad"): lambda values: set(values["padding"]) == {0},
    ("BatchNorm#d", "momentum"): lambda values: not values["track_running_stats"],
    ("SyncBatchNorm", "momentum"): lambda values: not values["track_running_stats"],
    ("Dropout", "mode"): lambda values: not values["p"],
    ("Dropout", "axis"): lambda values: not values["p"],
    ("Embedding", "norm_type"): lambda values: values["max_norm"] is None,
    ("LSTM", "dropout"): lambda values: values["num_layers"] == 1,
    ("GRU", "dropout"): lambda values: values["num_layers"] == 1,
    ("RNN", "dropout"): lambda values: values["num_layers"] == 1,
    ("SmoothL1Loss", "huber"): lambda values: values["beta"] == 1,  # both are one loss then
    ("SGD", "nesterov"): lambda values: not values["momentum"],
    ("SGD", "dampening"): lambda values: not values["momentum"],
}
_WINDOWED: Final = re.compile("Conv|Pool|Unpool")  # their sizes are one number per dimension
_SIZES: Final = {"kernel_size", "stride", "padding", "dilation", "output_size", "output_padding"}
_ONE_SIZE: Final = {"Unfold", "Fold", "Upsample"}  # theirs may be one number for all dimensions


def layer_kinds() -> Iterable[str]:
    """Yield every kind of layer: Conv1d, Conv2d and Conv3d for Conv#d."""
    for row in LAYERS:
        yield from [row.replace("#", str(dims)) for dims in (1, 2, 3)] if "#" in row else [row]


def read_layer(kind: str, layer: Any, usual: Readers, own: Mapping[str, Readers]) -> dict[str, Any]:
    """Return the settings of a layer, those without effect left out.

    usual: readers for every kind. own: kind -> readers that take precedence for it.
    """
    row = kind if kind in LAYERS else re.sub("[123]", "#", kind)
    readers = {**usual, **own.get(row, {})}
    values = {}
    for setting in LAYERS[row].split():
        read = readers.get(setting) or _find_name(layer, setting)
        try:
            value = read(layer) if callable(read) else attrgetter(read)(layer)
        except AttributeError:  # an older version's layer has no such setting: it is not compared
            continue
        values[setting] = _unify(kind, setting, plain(value))
    return _without_idle(row, values)


def read_group(
    kind: str, group: Values, usual: Readers, own: Mapping[str, Readers]
) -> dict[str, Any]:
    """Return the settings of a parameter group as `read_layer` does; numbers as float."""
    readers = {**usual, **own.get(kind, {})}
    values = {}
    for setting in OPTIMIZERS.get(kind, "").split():
        read = readers.get(setting, setting)
        values[setting] = _as_float(read(group) if callable(read) else group[read])
    return _without_idle(kind, values)


def always(value: Any) -> Callable[[Any], Any]:
    """Return a reader for a setting that a framework cannot change."""
    return lambda layer: value


def is_given(name: str) -> Callable[[Any], bool]:
    """Return a reader that says whether the attribute is there: "bias" is a tensor, True or False."""
    read = attrgetter(name)
    return lambda layer: read(layer) is not None and read(layer) is not False


def function_name(function: Any) -> str:
    """Return the name of an activation, given as a function or as a layer, in lower case."""
    name: str = getattr(function, "__name__", type(function).__name__)
    return name.strip("_").lower()


def _find_name(layer: Any, setting: str) -> str:
    """Return the attribute's name: a method may have the plain one (Paddle's Layer.full)."""
    hidden = f"_{setting}"
    return hidden if setting not in vars(layer) and hidden in vars(layer) else setting


def _unify(kind: str, setting: str, value: Any) -> Any:
    if setting in _SIZES and _WINDOWED.search(kind) and not isinstance(value, str):
        return per_dimension(value, int(kind[-2]))
    return one_if_equal(value) if kind in _ONE_SIZE else value


def _without_idle(row: str, values: dict[str, Any]) -> dict[str, Any]:
    idle = [name for name in values if (row, name) in _IDLE and _IDLE[row, name](values)]
    return {name: value for name, value in values.items() if name not in idle}


def _as_float(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return tuple(_as_float(item) for item in value)
    return value if value is None or isinstance(value, bool | str) else float(value)
