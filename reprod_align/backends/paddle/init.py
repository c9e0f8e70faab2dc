"""The initial values of a Paddle model's parameters, or none. `backends.torch.init` is the twin.

A model without memory has parameters with a shape and no values yet: `fill` gives them some, `clear`
takes the memory back.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from reprod_align.backends.paddle import parameters
from reprod_align.backends.paddle.private import (
    STATISTICS,
    clear_data,
    is_initialized,
    share_memory,
)
from reprod_align.backends.paddle.side import set_gradient
from reprod_align.base.blocks import Array
from reprod_align.initialisation.sample import SEEDS, Collector, ParameterSample

import numpy as np
import paddle
from paddle import nn


def sample_parameters(
    build: Callable[[], nn.Layer], seeds: Sequence[int] = SEEDS
) -> dict[str, ParameterSample]:
    """Build the model with each seed and return samples of its initial parameters, by name.

    `build` must draw from Paddle's or numpy's global generator, and load no weights. The
    generators are left as they were found. Raises ReprodError if two seeds give different parameters.
    """
    collected = Collector(seeds)
    for seed in seeds:
        with _seed_generators(seed):
            model = build()
        shapes = {name: tuple(held.shape) for name, held in model.named_parameters()}
        for name, array in parameters(model):
            if name.rpartition(".")[2] not in STATISTICS:
                collected.add(name, array, shapes[name])
    return collected.samples()


@contextmanager
def _seed_generators(seed: int) -> Iterator[None]:
    """Seed the generators that a model may draw from, and restore them afterwards."""
    paddle_state, numpy_state = paddle.get_rng_state(), np.random.get_state()
    try:
        paddle.seed(seed)
        np.random.seed(seed)
        yield
    finally:
        paddle.set_rng_state(paddle_state)
        np.random.set_state(numpy_state)


@contextmanager
def build_unfilled() -> Iterator[None]:
    """Let parameters that are made in the block take no memory; buffers are made with their values.

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
