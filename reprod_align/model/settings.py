"""What a layer or an optimizer is set to, in one vocabulary: PyTorch's, by one table for both frameworks.

`backends.*.settings` read it off a model, `alignment.audit` compares it. A setting is the attribute of its
name, with or without a leading underscore; a backend has a reader where it is not. A new kind of layer is a
row of LAYERS, and a reader for each such setting on each side. How the two frameworks write a setting stands
in the entries of `api`.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final

from reprod_align.errors import ReprodError

Values = Mapping[str, Any]


@dataclass(frozen=True)
class ModuleSettings:
    """One layer: the PyTorch class that computes the same, its own class, and its settings.

    `kind` is "" for a class that is no framework layer; `values` are then its own attributes.
    A setting without effect (the momentum of a layer that tracks nothing) is left out. `convention`
    is "PyTorch" for a layer of `paddle.compat`, which keeps its weights as PyTorch does; "": as usual.
    """

    kind: str
    class_name: str
    values: Values
    convention: str = ""


@dataclass(frozen=True)
class OptimizerSettings:
    """One optimizer: its kind, its own class, each parameter's settings, and its gradient clipping.

    `kind` is "" for an unknown class. `parameters` holds the model's parameters that the optimizer
    holds, by every name in the state dict; "frozen" is True where no step changes the parameter.
    `clip` is None, or a "kind" in words and its numbers.
    """

    kind: str
    class_name: str
    parameters: Mapping[str, Values]
    clip: Values | None


BATCH_NORMS: Final = ("BatchNorm", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm")

# Kinds that compute the same for some inputs and settings.
MAY_COINCIDE: Final[Sequence[frozenset[str]]] = (
    frozenset(BATCH_NORMS),
    frozenset({"Dropout", "Dropout1d"}),
    *(frozenset({"Linear", f"Conv{n}d"}) for n in (1, 2, 3)),
    frozenset({"Softmax", "Softmax2d"}),
    frozenset({"LayerNorm", "GroupNorm"}),
    frozenset({"CrossEntropyLoss", "NLLLoss"}),
    frozenset({"BCELoss", "BCEWithLogitsLoss"}),
    *(frozenset({f"AvgPool{n}d", f"AdaptiveAvgPool{n}d"}) for n in (1, 2, 3)),
    *(frozenset({f"MaxPool{n}d", f"AdaptiveMaxPool{n}d"}) for n in (1, 2, 3)),
    *(frozenset({f"InstanceNorm{n}d", "GroupNorm"}) for n in (1, 2, 3)),
)

# Names that user-written layers give one thing; "eps" and the like are also framework settings.
SYNONYMS: Final[Mapping[str, frozenset[str]]] = {
    "eps": frozenset({"eps", "epsilon", "variance_epsilon", "layer_norm_eps", "layer_norm_epsilon",
                      "rms_norm_eps", "norm_eps"}),
    "p": frozenset({"p", "dropout", "dropout_p", "dropout_prob", "dropout_rate", "drop_prob",
                    "drop_rate", "drop_p"}),
    "attn_dropout": frozenset({"attn_dropout", "attention_dropout", "attn_drop", "dropout_attn",
                               "attention_probs_dropout_prob"}),
    "num_heads": frozenset({"num_heads", "n_heads", "nhead", "n_head", "num_attention_heads",
                            "heads"}),
    "head_dim": frozenset({"head_dim", "head_size", "attention_head_size", "d_head", "dim_head"}),
    "num_layers": frozenset({"num_layers", "n_layers", "n_layer", "num_hidden_layers"}),
    "momentum": frozenset({"momentum"}),
    "negative_slope": frozenset({"negative_slope", "slope", "leaky_slope"}),
    "scale": frozenset({"scale", "scaling", "softmax_scale"}),
    "norm_first": frozenset({"norm_first", "normalize_before", "pre_norm"}),
    "stride": frozenset({"stride", "strides"}),
    "padding": frozenset({"padding", "paddings"}),
    "dilation": frozenset({"dilation", "dilations"}),
}  # fmt: skip

OPTIMIZER_WORDS: Final[Mapping[tuple[str, Any], str]] = {
    ("decoupled", True): "the decay is taken off the weights (AdamW)",
    ("decoupled", False): "the decay is added to the gradient (L2)",
    ("eps_place", "inside the root"): "inside the square root",
    ("eps_place", "outside the root"): "outside the square root",
    ("eps_place", "gradient"): "added to the gradient's size",
    ("eps_place", "norm"): "added to the decayed norm",
}

# What no argument of either optimizer changes: only the steps tell whether it matters.
FIXED_SETTINGS: Final = frozenset({"eps_place"})

# What is another number where one layer does the work of several.
FUSED_SIZES: Final = frozenset({"in_features", "out_features", "in_channels", "out_channels"})

_NO_SETTINGS: Final = frozenset(
    {"training", "name", "device", "dtype", "name_or_path", "is_hf_initialized", "is_initialized",
     "gradient_checkpointing", "enable_recompute", "is_parallelizable", "model_parallel"}
)  # fmt: skip


def require_optimizer(value: object, class_name: str, wanted: Sequence[str]) -> None:
    """Raise ReprodError unless the value has the attributes of an optimizer: a wrapper of one has them."""
    if not all(hasattr(value, name) for name in wanted):
        framework = class_name.partition(".")[0]
        kind = f"{type(value).__module__}.{type(value).__name__}".removeprefix("builtins.")
        raise ReprodError(
            f"{framework}_optimizer must be a function that returns a {class_name}, not a {kind}"
        )


def own_values(own: Values, framework: Sequence[str]) -> dict[str, Any]:
    """Return a user-written layer's simple attributes, without a leading underscore.

    Left out are the framework's own, private ones (two underscores) and those that set nothing.
    """
    simple = {
        name.removeprefix("_"): plain(value)
        for name, value in own.items()
        if name not in framework and not name.startswith("__") and is_simple(value)
    }
    return {name: value for name, value in simple.items() if name not in _NO_SETTINGS}


def is_simple(value: Any, depth: int = 8) -> bool:
    """Say whether the value is a number, a string, a truth value, None, or a sequence of these.

    One that is nested deeper than `depth` (it may hold itself) is not simple.
    """
    if isinstance(value, list | tuple):
        return depth > 0 and all(is_simple(item, depth - 1) for item in value)
    return value is None or isinstance(value, bool | int | float | str)


def plain(value: Any) -> Any:
    """Return lists as tuples, also inside each other; anything else as it is."""
    return tuple(plain(item) for item in value) if isinstance(value, list | tuple) else value


def per_dimension(value: Any, dims: int) -> tuple[Any, ...]:
    """Return one value a dimension: 3 in two dimensions is (3, 3)."""
    values: tuple[Any, ...] = tuple(value) if isinstance(value, list | tuple) else (value,)
    return values * dims if len(values) == 1 else values


def one_if_equal(value: Any) -> Any:
    """Return 2 for (2, 2) and [2], and other values as `plain` does."""
    values = plain(value)
    return values[0] if isinstance(values, tuple) and len(set(values)) == 1 else values


def pad_amounts(pairs: Sequence[tuple[int, int]]) -> tuple[Any, ...]:
    """Return (before, after) pairs as one amount a dimension, or as they are if some differ."""
    if all(before == after for before, after in pairs):
        return tuple(before for before, _ in pairs)
    return tuple(pairs)


def same_pad(kernel: Sequence[int], dilation: Sequence[int]) -> list[tuple[int, int]]:
    """Return the (before, after) pairs that "same" stands for where the stride is 1."""
    totals = [step * (size - 1) for size, step in zip(kernel, dilation, strict=True)]
    return [(total // 2, total - total // 2) for total in totals]


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
