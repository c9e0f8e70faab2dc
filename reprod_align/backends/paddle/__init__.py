"""The Paddle backend: a model's weights, gradients and initial values. `backends.torch` is the twin.

A model may be built without memory: its parameters have a shape and no values then. `fill` gives them
some, `clear` takes the memory back.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

from reprod_align.backends import TRANSPOSED_LAYERS, check_names_and_shapes, read_state_dict
from reprod_align.backends.paddle import side
from reprod_align.backends.paddle.private import (
    STATISTICS,
    clear_data,
    is_initialized,
    share_memory,
)
from reprod_align.backends.paddle.side import set_gradient
from reprod_align.base.blocks import Array
from reprod_align.base.files import whole_file
from reprod_align.initialisation.sample import SEEDS, Collector, ParameterSample
from reprod_align.traces.recorder import record_outputs

import numpy as np
import paddle
from paddle import nn

_TRANSPOSED = tuple(getattr(nn, kind) for kind in sorted(TRANSPOSED_LAYERS))


def set_precision(dtype: str) -> None:
    """Build every parameter and float tensor from now on as `dtype` ("float32" or "float64")."""
    paddle.set_default_dtype(dtype)


def linear_weights(model: nn.Layer) -> set[str]:
    """Names of the weights that PyTorch keeps as (out, in) and Paddle as (in, out)."""
    layers = model.named_sublayers(include_self=True)
    return {
        f"{name}.weight".lstrip(".") for name, layer in layers if isinstance(layer, _TRANSPOSED)
    }


def read_weights(path: Path) -> dict[str, Array]:
    """Read a state dict from `.safetensors`, or from a `paddle.save` file without running its code.

    Raises MissingInputError if there is no such file, WeightsError if it is damaged, another framework's,
    or holds anything but named dense tensors.
    """
    return read_state_dict(path, "paddle")


def write_weights(path: Path, weights: Mapping[str, Array]) -> None:
    """Save weights in Paddle's layout with `paddle.save`, whole or not at all."""
    buffer = BytesIO()
    paddle.save({name: paddle.to_tensor(array) for name, array in weights.items()}, buffer)
    with whole_file(path) as handle:
        handle.write(buffer.getbuffer())


def weights_of(model: nn.Layer) -> dict[str, Array]:
    """Return the model's state dict as arrays in Paddle's layout; they may share its memory."""
    return {name: tensor.detach().numpy() for name, tensor in model.state_dict().items()}


def load_weights(model: nn.Layer, weights: Mapping[str, Array]) -> None:
    """Give the model these weights in its own dtype; WeightsError unless every name and shape fits."""
    own = model.state_dict()
    check_names_and_shapes({name: tuple(tensor.shape) for name, tensor in own.items()}, weights)
    model.set_state_dict({name: _cast(weights[name], own[name]) for name in own})


def parameters(model: nn.Layer) -> Iterator[tuple[str, Array]]:
    """Yield every parameter's name and value, in definition order and PyTorch's layout.

    The arrays may share the model's memory: use them before the next update. A batch norm's running
    statistics are left out: they are parameters to Paddle and buffers to PyTorch.
    """
    transposed, statistics = linear_weights(model), _list_running_statistics(model)
    for name, parameter in model.named_parameters():
        if name in statistics:
            continue
        yield name, _lay_as_torch(parameter, name in transposed)


def gradients(model: nn.Layer) -> Iterator[tuple[str, Array]]:
    """Yield name and gradient of every parameter that has one, as `parameters` does."""
    transposed = linear_weights(model)
    for name, parameter in model.named_parameters():
        if parameter.grad is not None:
            yield name, _lay_as_torch(parameter.grad, name in transposed)


def layer_outputs(
    model: nn.Layer, names: Sequence[str]
) -> AbstractContextManager[dict[str, Array]]:
    """Collect the (first) output tensor of the named sub-layers, in call order, while in the block.

    Raises ReprodError for a name that the model lacks, and when a block ends without such a call.
    """
    return record_outputs(side, model, names)


_BATCH_NORMS = (nn.BatchNorm, nn.BatchNorm1D, nn.BatchNorm2D, nn.BatchNorm3D, nn.SyncBatchNorm)


def _list_running_statistics(model: nn.Layer) -> set[str]:
    layers = model.named_sublayers(include_self=True)
    norms = [name for name, layer in layers if isinstance(layer, _BATCH_NORMS)]
    return {f"{name}.{last}".lstrip(".") for name in norms for last in STATISTICS}


def _lay_as_torch(tensor: paddle.Tensor, transposed: bool) -> Array:
    array: Array = tensor.detach().numpy()
    return array.T if transposed else array


def _cast(array: Array, like: paddle.Tensor) -> paddle.Tensor:
    return paddle.to_tensor(array).astype(like.dtype)


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
