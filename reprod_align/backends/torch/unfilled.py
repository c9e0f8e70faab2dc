"""Models without memory: parameters that have a shape and no values yet. `backends.paddle.unfilled`
holds the same with Paddle's calls."""

from collections.abc import Iterator
from contextlib import contextmanager

from reprod_align.backends.torch.private import contents

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

Array = NDArray[np.generic]


@contextmanager
def build_unfilled() -> Iterator[None]:
    """Let parameters that are made in the block take no memory; buffers are made as ever."""
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
