"""The PyTorch backend: a model's weights, gradients and initial values. `backends.paddle` is the twin.

A model may be built without memory: its parameters have a shape and no values then. `fill` gives them
some, `clear` takes the memory back.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from io import BytesIO
from pathlib import Path

from reprod_align.backends import TRANSPOSED_LAYERS, check_names_and_shapes, read_state_dict
from reprod_align.backends.torch import side
from reprod_align.backends.torch.private import contents
from reprod_align.base.blocks import Array
from reprod_align.base.files import whole_file
from reprod_align.initialisation.sample import SEEDS, Collector, ParameterSample
from reprod_align.traces.recorder import record_outputs

import numpy as np
import torch
from torch import nn

_TRANSPOSED = tuple(getattr(nn, kind) for kind in sorted(TRANSPOSED_LAYERS))


def set_precision(dtype: str) -> None:
    """Build every parameter and float tensor from now on as `dtype` ("float32" or "float64")."""
    torch.set_default_dtype(getattr(torch, dtype))


def linear_weights(model: nn.Module) -> set[str]:
    """Names of the weights that PyTorch keeps as (out, in) and Paddle as (in, out)."""
    layers = model.named_modules()
    return {
        f"{name}.weight".lstrip(".") for name, layer in layers if isinstance(layer, _TRANSPOSED)
    }


def read_weights(path: Path) -> dict[str, Array]:
    """Read a state dict from `.safetensors`, or from a `torch.save` file without running its code.

    Raises MissingInputError if there is no such file, WeightsError if it is damaged, another framework's,
    or holds anything but named dense tensors.
    """
    return read_state_dict(path, "torch")


def write_weights(path: Path, weights: Mapping[str, Array]) -> None:
    """Save weights in PyTorch's layout with `torch.save`, whole or not at all."""
    buffer = BytesIO()
    torch.save({name: torch.tensor(array) for name, array in weights.items()}, buffer)
    with whole_file(path) as handle:
        handle.write(buffer.getbuffer())


def weights_of(model: nn.Module) -> dict[str, Array]:
    """Return the model's state dict as arrays in PyTorch's layout; they may share its memory."""
    return {name: tensor.detach().numpy() for name, tensor in model.state_dict().items()}


def load_weights(model: nn.Module, weights: Mapping[str, Array]) -> None:
    """Give the model these weights in its own dtype; WeightsError unless every name and shape fits."""
    own = model.state_dict()
    check_names_and_shapes({name: tuple(tensor.shape) for name, tensor in own.items()}, weights)
    model.load_state_dict({name: _cast(weights[name], own[name]) for name in own})


def parameters(model: nn.Module) -> Iterator[tuple[str, Array]]:
    """Yield every parameter's name and value, in definition order and PyTorch's layout.

    The arrays may share the model's memory: use them before the next update.
    """
    for name, parameter in model.named_parameters():
        yield name, parameter.detach().numpy()


def gradients(model: nn.Module) -> Iterator[tuple[str, Array]]:
    """Yield name and gradient of every parameter that has one, as `parameters` does."""
    for name, parameter in model.named_parameters():
        if parameter.grad is not None:
            yield name, parameter.grad.numpy()


def layer_outputs(
    model: nn.Module, names: Sequence[str]
) -> AbstractContextManager[dict[str, Array]]:
    """Collect the (first) output tensor of the named sub-modules, in call order, while in the block.

    Raises ReprodError for a name that the model lacks, and when a block ends without such a call.
    """
    return record_outputs(side, model, names)


def _cast(array: Array, like: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(array).to(like.dtype)


def sample_parameters(
    build: Callable[[], nn.Module], seeds: Sequence[int] = SEEDS
) -> dict[str, ParameterSample]:
    """Build the model with each seed and return samples of its initial parameters, by name.

    `build` must draw from PyTorch's or numpy's global generator, and load no weights. The
    generators are left as they were found. Raises ReprodError if two seeds give different parameters.
    """
    collected = Collector(seeds)
    for seed in seeds:
        with _seed_generators(seed):
            model = build()
        shapes = {name: tuple(held.shape) for name, held in model.named_parameters()}
        for name, array in parameters(model):
            if name.rpartition(".")[2] not in _STATISTICS:
                collected.add(name, array, shapes[name])
    return collected.samples()


@contextmanager
def _seed_generators(seed: int) -> Iterator[None]:
    """Seed the generators that a model may draw from, and restore them afterwards."""
    torch_state, numpy_state = torch.get_rng_state(), np.random.get_state()
    try:
        torch.manual_seed(seed)
        np.random.seed(seed)
        yield
    finally:
        torch.set_rng_state(torch_state)
        np.random.set_state(numpy_state)


_STATISTICS = ()  # PyTorch keeps its norms' statistics as buffers


@contextmanager
def build_unfilled() -> Iterator[None]:
    """Let parameters that are made in the block take no memory; buffers are made with their values."""
    register = nn.Module.register_parameter

    def register_meta(module: nn.Module, name: str, parameter: nn.Parameter | None) -> None:
        if parameter is not None and not parameter.is_meta:
            parameter = nn.Parameter(parameter.detach().to("meta"), parameter.requires_grad)
        register(module, name, parameter)

    nn.Module.register_parameter = register_meta
    try:
        yield
    finally:
        nn.Module.register_parameter = register


def prepare_unfilled(model: nn.Module) -> None:
    """Put a parameter that can be filled in place of each one without memory; ties hold."""
    made: dict[int, nn.Parameter] = {}
    for module in model.modules():
        held, _, _ = contents(module)
        for name, parameter in held.items():
            if parameter is not None and parameter.is_meta:
                if id(parameter) not in made:
                    made[id(parameter)] = _make_fillable(parameter)
                held[name] = made[id(parameter)]


def _make_fillable(parameter: nn.Parameter) -> nn.Parameter:
    return nn.Parameter(_nothing(parameter), parameter.requires_grad)


def _nothing(like: torch.Tensor) -> torch.Tensor:
    """Return a tensor of that shape on the memory of one number."""
    return torch.empty((), dtype=like.dtype).expand(like.shape)


def fill(tensor: torch.Tensor, values: Array) -> None:
    """Give a tensor memory, and these values in their own dtype."""
    tensor.data = torch.from_numpy(np.require(values, requirements=["C", "W"]))


def fill_as_made(tensor: torch.Tensor) -> None:
    """Give a parameter that no file holds memory, and zeros: PyTorch has lost how it was made."""
    fill(tensor, np.zeros(tensor.shape, np.float32))


def clear(tensor: torch.Tensor) -> None:
    """Give the tensor's memory back."""
    tensor.grad = None
    tensor.data = _nothing(tensor)
