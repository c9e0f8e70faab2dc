"""Paddle's layers that follow PyTorch's conventions: those of `paddle.compat`.

Their weights lie as PyTorch's do, and their settings have PyTorch's names.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from reprod_align.backends.vocabulary import Readers, is_given

import paddle
from paddle import nn

_LAYERS: Final = getattr(getattr(paddle, "compat", None), "nn", None)  # an older Paddle has none


def compat_classes(kinds: Iterable[str]) -> dict[type, str]:
    """Return the classes of `paddle.compat.nn` that are of these kinds, each with its kind."""
    names = {name: kind for kind in kinds for name in (kind, f"{kind[:-1]}D")}
    own = [name for name in getattr(_LAYERS, "__all__", ()) if name in names]
    return {getattr(_LAYERS, name): names[name] for name in own}


def follows_torch(base: type) -> bool:
    """Tell whether a class of the framework's is one of `paddle.compat`."""
    return base.__module__.startswith("paddle.compat.")


def _has_bias(layer: nn.Layer) -> bool:
    return any(getattr(layer, name) is not None for name in ("in_proj_bias", "q_proj_bias"))


READERS: Final[Readers] = {
    "bias": is_given("bias"),
    "divisor_override": lambda layer: getattr(layer, "divisor_override", None),
}
OWN: Final[Mapping[str, Readers]] = {
    "MultiheadAttention": {"bias": _has_bias},
    "Unfold": {
        "kernel_size": "kernel_sizes",
        "dilation": "dilations",
        "padding": "paddings",
        "stride": "strides",
    },
}
"""how their settings are read, as in `settings`"""
