"""The initial values of a PyTorch model's parameters, or none. `backends.paddle.init` is the twin.

A model without memory has parameters with a shape and no values yet: `fill` gives them some, `clear`
takes the memory back.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from reprod_align.backends.torch import parameters
from reprod_align.backends.torch.private import contents
from reprod_align.base.blocks import Array
from reprod_align.initialisation.sample import SEEDS, Collector, ParameterSample

import numpy as np
import torch
from torch import nn


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
