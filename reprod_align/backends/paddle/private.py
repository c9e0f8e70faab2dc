"""Every private name of Paddle that the library reads. `backends.torch.private` is the twin.

A name with a public way beside it costs nothing where it is gone; `NAMES` has a row for each of the others.
A layer's setting that can't be read is not compared; one that stands under its own name with an underscore
is found by `model.settings`.
"""

import re
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from operator import attrgetter
from types import SimpleNamespace
from typing import Any, Final

from reprod_align.backends.versions import PrivateNames, look_up, make_rows

import paddle
from paddle import nn
from paddle.nn.functional import common

_NO_OPERATORS: Final = (
    "random draws are not shared, and neither operators nor requests for float32 are seen"
)
_NO_DRAWS: Final = "its draws are not shared"
_NO_SETTING: Final = "this setting is not compared"
NO_KERNEL: Final = "its layers do not run on CPUs"
_NOTHING: Final = object()
DRAWS: Final = (
    "uniform", "uniform_inplace_", "gaussian", "gaussian_inplace_", "exponential_", "bernoulli",
    "randint", "randperm", "multinomial", "rrelu", "gumbel_softmax", "dropout", "rnn",
)  # fmt: skip
"""the operators that draw, in every version"""
COLLECTIVES: Final = (
    "_c_identity", "_mp_allreduce", "_c_concat", "_c_split", "_c_softmax_with_cross_entropy",
    "_c_lookup_table",
)  # fmt: skip
"""functions of fleet's tensor parallel layers"""
MAKE_GROUP: Final = "_new_process_group_impl"
"""what `paddle.distributed.new_group` calls for the ranks that are in it"""


def _make_adamw() -> Any:
    one = paddle.create_parameter([1], "float32", default_initializer=nn.initializer.Constant(0.0))
    return paddle.optimizer.AdamW(parameters=[one])


def _import_mp_ops() -> Any:
    return import_module("paddle.distributed.fleet.layers.mpu.mp_ops")


def _import_hybrid() -> Any:
    optimizers = "paddle.distributed.fleet.meta_optimizers.dygraph_optimizer"
    return import_module(f"{optimizers}.hybrid_parallel_optimizer")


def _list_made(kind: Any) -> Any:
    """Return a stand-in for an object of a class: it has the attributes that the constructor names."""
    return SimpleNamespace(**dict.fromkeys(kind.__init__.__code__.co_names))


NAMES: Final = PrivateNames(
    "Paddle",
    paddle.__version__,
    (
        *make_rows(_NO_OPERATORS, lambda: paddle, "paddle._C_ops"),
        *make_rows(_NO_DRAWS, lambda: OPERATORS, *(f"paddle._C_ops.{name}" for name in DRAWS)),
        *make_rows(
            "which of equal values it takes is left to chance",
            lambda: OPERATORS,
            "paddle._C_ops.topk",
        ),
        *make_rows(
            "alpha dropout draws its mask in float32",
            lambda: common,
            "nn.functional.common._feature_alpha_dropout_impl",
            since=(3, 0),
        ),
        *make_rows(
            "sections keep the memory of tensors", lambda: paddle.Tensor, "Tensor._clear_data"
        ),
        *make_rows(
            "sections keep their memory, and buffers that a run adds stay in the model",
            nn.Layer,
            "Layer._parameters",
            "Layer._buffers",
            "Layer._sub_layers",
        ),
        *make_rows(
            "the settings of optimizers are not compared",
            _make_adamw,
            "Optimizer._param_groups",
            "Optimizer._grad_clip",
            "Optimizer._default_dict",
            "AdamW._apply_decay_param_fun",
            "AdamW._lr_ratio",
        ),
        *make_rows(
            "the settings of optimizers are not compared",
            lambda: paddle.regularizer.L2Decay(0.1),
            "L2Decay._coeff",
        ),
        *make_rows(
            "an optimizer's state cannot be read",
            _make_adamw,
            "Optimizer._accumulators",
            "Optimizer._create_accumulators",
            "Optimizer._parameter_list",
            "Adam._beta1",
            "Adam._beta2",
        ),
        *make_rows(
            "a scheduler that an optimizer holds is not stepped",
            _make_adamw,
            "Optimizer._learning_rate",
        ),
        *make_rows(
            "several groups of ranks on CPUs may not start",
            lambda: import_module("paddle.distributed.collective"),
            f"collective.{MAKE_GROUP}",
        ),
        *make_rows(NO_KERNEL, _import_mp_ops, *(f"mp_ops.{name}" for name in COLLECTIVES)),
        *make_rows(
            "float64 gradients are not clipped on several ranks",
            lambda: _import_hybrid().HybridParallelClipGrad,
            "HybridParallelClipGrad._dygraph_clip",
            "HybridParallelClipGrad._global_norm",
        ),
        *make_rows(
            "whether an optimizer averages gradients is not known",
            lambda: _list_made(_import_hybrid().HybridParallelOptimizer),
            "HybridParallelOptimizer._dp_enable",
        ),
        *make_rows(
            "sparse embeddings are not refused", lambda: nn.Embedding(2, 2), "Embedding._sparse"
        ),
        *make_rows(
            _NO_SETTING,
            lambda: nn.Conv2D(1, 1, 1),
            "Conv2D._kernel_size",
            "Conv2D._stride",
            "Conv2D._padding",
            "Conv2D._data_format",
            public=True,
        ),
        *make_rows(_NO_SETTING, lambda: nn.Conv2D(1, 1, 1), "Conv2D._dilation"),
        *make_rows(
            _NO_SETTING,
            lambda: nn.BatchNorm2D(1),
            "BatchNorm2D._momentum",
            "BatchNorm2D._mean",
            "BatchNorm2D._use_global_stats",
        ),
        *make_rows(_NO_SETTING, lambda: nn.LayerNorm(1), "LayerNorm._epsilon", public=True),
        *make_rows(
            _NO_SETTING,
            lambda: nn.Embedding(2, 2),
            "Embedding._padding_idx",
            "Embedding._num_embeddings",
        ),
        *make_rows(_NO_SETTING, nn.GELU, "GELU._approximate"),
        *make_rows(_NO_SETTING, nn.Softshrink, "Softshrink._threshold"),
        *make_rows(_NO_SETTING, nn.Hardtanh, "Hardtanh._min", "Hardtanh._max"),
        *make_rows(_NO_SETTING, nn.Softmax, "Softmax._axis", public=True),
        *make_rows(_NO_SETTING, nn.NLLLoss, "NLLLoss._weight", public=True),
        *make_rows(
            _NO_SETTING,
            lambda: nn.AdaptiveMaxPool2D(1),
            "AdaptiveMaxPool2D._output_size",
            "AdaptiveMaxPool2D._return_mask",
            public=True,
        ),
    ),
)
"""those without a public way"""

# ---------------------------------------------------------------------- operators

OPERATORS: Final[Any] = look_up(paddle, "_C_ops", SimpleNamespace())
"""the module of operators that every function of Paddle's calls in the end"""
if NAMES.rows["paddle._C_ops"].is_missing:
    NAMES.miss("paddle._C_ops")
elif NAMES.rows["paddle._C_ops.topk"].is_missing:
    NAMES.miss("paddle._C_ops.topk")
MISSING_DRAWS: Final = (
    ("paddle._C_ops",)
    if NAMES.rows["paddle._C_ops"].is_missing
    else tuple(f"paddle._C_ops.{name}" for name in DRAWS if look_up(OPERATORS, name) is None)
)
"""what this version lacks, where draws cannot be shared"""
ALPHA_DROPOUT: Final = (common, "_feature_alpha_dropout_impl")
"""what both alpha dropouts call: a module, and the name there"""

# ---------------------------------------------------------------------- tensors


def _has_place(tensor: paddle.Tensor) -> bool:
    return "undefined" not in str(tensor.place)


def _set_data(tensor: paddle.Tensor, data: paddle.Tensor) -> None:
    tensor.data = data


def _share_memory(tensor: paddle.Tensor, data: paddle.Tensor) -> None:
    tensor.value().get_tensor()._share_data_with(data.value().get_tensor())


def _keep_memory(tensor: paddle.Tensor) -> None:
    NAMES.miss("Tensor._clear_data")


def _bind(owner: Any, name: str, otherwise: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a method, of which the first argument is its object."""
    found: Callable[[Any], Any] = look_up(owner, name, otherwise)
    return found


_DENSE: Final = look_up(paddle.base.core, "DenseTensor", look_up(paddle.base.core, "Tensor"))
share_memory: Final = _set_data if look_up(_DENSE, "_share_data_with") is None else _share_memory
"""let a tensor stand on another's memory"""
is_initialized: Final = _bind(paddle.Tensor, "_is_initialized", _has_place)
"""whether a tensor has memory"""
clear_data: Final = _bind(paddle.Tensor, "_clear_data", _keep_memory)
"""give a tensor's memory back"""
find_gradient: Final = _bind(paddle.Tensor, "_grad_ivar", attrgetter("grad"))
"""a tensor's gradient, an emptied one too"""

# ---------------------------------------------------------------------- layers

STATISTICS: Final = ("_mean", "_variance")
"""what Paddle calls a norm's running statistics, which it keeps among the parameters"""
_CONTENTS: Final = ("_parameters", "_buffers", "_sub_layers")
_WITHOUT_CONTENTS: Final = [name for name in _CONTENTS if look_up(nn.Layer(), name) is None]


def _copy_contents(layer: nn.Layer) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    NAMES.miss(f"Layer.{_WITHOUT_CONTENTS[0]}")
    return (
        dict(layer.named_parameters(include_sublayers=False)),
        dict(layer.named_buffers(include_sublayers=False)),
        dict(layer.named_children()),
    )


contents: Final = _copy_contents if _WITHOUT_CONTENTS else attrgetter(*_CONTENTS)
"""a layer's own dicts of its parameters, its buffers and its children"""


def is_persistent(layer: nn.Layer, name: str) -> bool:
    """Tell whether the layer's tensor `name` stands in its state dict."""
    apart = look_up(layer, "_non_persistable_buffer_names_set")
    return name in layer.state_dict(include_sublayers=False) if apart is None else name not in apart


def is_sparse(embedding: nn.Embedding) -> bool:
    """Tell whether an embedding's gradient is sparse."""
    return bool(NAMES.read_or_miss(embedding, "Embedding._sparse", False))


def unwrap(wrapper: nn.Layer) -> nn.Layer:
    """Return the layer that DataParallel or an engine wraps."""
    return look_up(wrapper, "_layers") or next(iter(wrapper.children()))


def read_first(*names: str) -> Callable[[Any], Any]:
    """Return a reader of the attribute that a layer has under one of these names."""

    def read(layer: Any) -> Any:
        for name in names:
            found = look_up(layer, name, _NOTHING)
            if found is not _NOTHING:
                return found
        NAMES.miss(f"{type(layer).__name__}.{names[-1]}", _NO_SETTING)
        raise AttributeError(names[-1])

    return read


read_approximate: Final = read_first("_approximate")
read_axis: Final = read_first("axis", "_axis")
read_class_weights: Final = read_first("weight", "_weight")
read_dilation: Final = read_first("_dilation")
read_epsilon: Final = read_first("epsilon", "_eps", "_epsilon")
read_kernel_size: Final = read_first("ksize", "kernel_size", "_kernel_size")
read_momentum: Final = read_first("_momentum")
read_output_size: Final = read_first("output_size", "output_sizes", "_output_size")
read_padding: Final = read_first("padding", "_padding")
read_padding_index: Final = read_first("_padding_idx")
read_return_mask: Final = read_first("return_mask", "_return_mask")
read_rows: Final = read_first("_num_embeddings")
read_running_mean: Final = read_first("_mean")
read_stride: Final = read_first("stride", "_stride")
read_threshold: Final = read_first("_threshold")
read_use_global_stats: Final = read_first("_use_global_stats")


def read_norm_epsilon(layer: Any) -> Any:
    """Return the epsilon of the norms of a Transformer layer."""
    return read_epsilon(layer.norm1)


def read_activation(layer: Any) -> Any:
    """Return the activation that is built into a norm, None without one."""
    return look_up(layer, "_act")


def read_least(layer: Any) -> Any:
    """Return where Hardtanh begins; ReLU6 begins at 0."""
    return read_first("_min")(layer) if isinstance(layer, nn.Hardtanh) else 0.0


def read_largest(layer: Any) -> Any:
    """Return where Hardtanh ends; ReLU6 ends at 6."""
    return read_first("_max")(layer) if isinstance(layer, nn.Hardtanh) else 6.0


def read_data_format(layer: Any) -> list[str]:
    """Return what a layer says of the order of its axes."""
    names = ("data_format", "_data_format", "_data_layout")  # one at most; None is unset
    return [str(vars(layer).get(name)) for name in names]


def read_pad_mode(layer: Any) -> str:
    """Return how a layer pads: "constant", "reflect", ..."""
    said = re.search(r"mode=(\w+)", layer.extra_repr())  # it is written there too
    return str(look_up(layer, "_mode") or (said and said[1]))


# ---------------------------------------------------------------------- optimizers


def read_groups(optimizer: Any) -> list[dict[str, Any]]:
    """Return an optimizer's parameter groups, each with the settings that it shares with the others."""
    groups = NAMES.read(optimizer, "Optimizer._param_groups")
    if not groups or not isinstance(groups[0], dict):
        groups = [{"params": groups, "grad_clip": NAMES.read(optimizer, "Optimizer._grad_clip")}]
    own = {"amsgrad": "_amsgrad", "etas": "_etas", "learning_rate_range": "_learning_rate_range"}
    shared = {name: look_up(optimizer, hidden) for name, hidden in own.items()}
    return [shared | NAMES.read(optimizer, "Optimizer._default_dict") | group for group in groups]


def read_rate_ratio(optimizer: Any) -> Callable[[Any], float] | None:
    """Return the function that gives a parameter's share of the rate, None without one."""
    if not isinstance(optimizer, paddle.optimizer.AdamW):
        return None
    ratio: Callable[[Any], float] | None = NAMES.read(optimizer, "AdamW._lr_ratio")
    return ratio


def read_decay_choice(adamw: Any) -> Callable[[str], bool] | None:
    """Return the function that chooses by name which parameters decay, None without one."""
    chosen: Callable[[str], bool] | None = NAMES.read(adamw, "AdamW._apply_decay_param_fun")
    return chosen


def read_coefficient(regularizer: Any) -> float:
    """Return the factor of L1 or L2 decay."""
    return float(NAMES.read(regularizer, "L2Decay._coeff"))


def find_rate(optimizer: Any) -> Any:
    """Return an optimizer's rate: a number or a scheduler; a wrapper of an optimizer has neither."""
    if not isinstance(optimizer, paddle.optimizer.Optimizer):
        return look_up(optimizer, "_learning_rate")
    return NAMES.read_or_miss(optimizer, "Optimizer._learning_rate", None)


def read_accumulators(optimizer: Any) -> Mapping[str, Mapping[str, Any]]:
    """Return an optimizer's state: kind ("moment1") -> parameter's name -> tensor."""
    found: Mapping[str, Mapping[str, Any]] = NAMES.read(optimizer, "Optimizer._accumulators")
    return found


def make_accumulators(optimizer: Any, block: Any, held: list[Any]) -> None:
    """Let an optimizer make its state of these parameters."""
    NAMES.read(optimizer, "Optimizer._create_accumulators")(block, held)


def list_held(optimizer: Any) -> list[Any]:
    """Return the parameters, or the groups of them, that an optimizer was given."""
    return NAMES.read(optimizer, "Optimizer._parameter_list") or []


def read_betas(optimizer: Any) -> tuple[float, float]:
    """Return the rates of Adam's two averages."""
    first, second = (NAMES.read(optimizer, f"Adam._beta{number}") for number in (1, 2))
    return float(first), float(second)


# ---------------------------------------------------------------------- the parallel engine


def reduces_at_step(optimizer: Any) -> bool:
    """Tell whether an optimizer averages gradients over the replicas when it steps."""
    path = "HybridParallelOptimizer._dp_enable"
    if type(optimizer).__name__ != path.partition(".")[0]:
        return bool(look_up(optimizer, "_dp_enable", False))
    return bool(NAMES.read_or_miss(optimizer, path, False))


def stop_reducing(optimizer: Any) -> None:
    """Let an optimizer step without averaging gradients over the replicas."""
    optimizer._dp_enable = False


def find_inner(optimizer: Any) -> Any:
    """Return the optimizer that fleet's wraps, None if it wraps none."""
    return look_up(optimizer, "_inner_opt")


def add_up_norm(clip: Any, distributed: Any, whole: Any) -> None:
    """Add the squares of the ranks up, in place."""
    NAMES.read(clip, "HybridParallelClipGrad._global_norm")(distributed, whole)


# ---------------------------------------------------------------------- `paddle.enable_compat`


def is_torch_replaced() -> bool:
    """Tell whether `import torch` gives Paddle's stand-in."""
    return any(
        type(finder).__name__ == "TorchProxyMetaFinder"
        and look_up(finder, "_globally_enabled", True)
        for finder in sys.meta_path
    )
