"""Models without memory: parameters that have a shape and no values yet. `backends.torch.unfilled`
holds the same with PyTorch's calls."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from reprod_align.backends.paddle.private import clear_data, is_initialized, share_memory
from reprod_align.backends.paddle.side import set_gradient

import numpy as np
import paddle
from numpy.typing import NDArray
from paddle import nn

Array = NDArray[np.generic]


@contextmanager
def build_unfilled() -> Iterator[None]:
    """Let parameters that are made in the block take no memory; buffers are made as ever.

    A model's own initialisation (PaddleNLP's `apply(_init_weights)`) would fill every parameter: it
    is passed by.
    """
    apply = nn.Layer.apply

    def apply_unless_initialising(layer: nn.Layer, function: Callable[[Any], Any]) -> nn.Layer:
        return layer if "init" in getattr(function, "__name__", "") else apply(layer, function)

    nn.Layer.apply = apply_unless_initialising
    try:
        with paddle.LazyGuard():
            yield
    finally:
        nn.Layer.apply = apply


def prepare_unfilled(model: nn.Layer) -> None:
    """Leave the parameters as they are: a lazy one can be filled."""


def fill(tensor: paddle.Tensor, values: Array) -> None:
    """Give a tensor memory, and these values in their own dtype."""
    source = paddle.to_tensor(np.ascontiguousarray(values))
    share_memory(tensor, source)


def fill_as_made(tensor: paddle.Tensor) -> None:
    """Give a parameter that no file holds memory, and the values that its layer makes."""
    if not is_initialized(tensor):
        tensor.initialize()


def clear(tensor: paddle.Tensor) -> None:
    """Give the tensor's memory back."""
    if not tensor.stop_gradient and tensor.is_leaf:
        set_gradient(tensor, None)
    clear_data(tensor)
