"""What a layer or an optimizer is set to, in one vocabulary: PyTorch's.

`backends.*.settings` read it off a model, `alignment.training.audit` compares it. How the two
frameworks write a setting stands in the entries of `api`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
