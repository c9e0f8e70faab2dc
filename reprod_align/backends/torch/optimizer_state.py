"""The state that a PyTorch optimizer keeps. `backends.paddle.optimizer_state` is the twin."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

Array = NDArray[np.generic]
State = dict[str, dict[str, Array]]  # kind ("exp_avg") -> parameter's name -> array


def optimizer_state(optimizer: Any, model: nn.Module) -> State:
    """Return a copy of what the optimizer keeps of the model's parameters; {} before the first step."""
    state: State = {}
    for name, parameter in model.named_parameters():
        for kind, value in optimizer.state.get(parameter, {}).items():
            if isinstance(value, torch.Tensor):
                state.setdefault(kind, {})[name] = value.detach().cpu().numpy().copy()
    return state


def set_optimizer_state(optimizer: Any, model: nn.Module, state: Mapping[str, Any]) -> None:
    """Give a new optimizer what `optimizer_state` returned, in the parameters' dtype."""
    for name, parameter in model.named_parameters():
        kept = {kind: held[name] for kind, held in state.items() if name in held}
        if kept:
            optimizer.state[parameter] = {
                kind: _tensor(values, parameter) for kind, values in kept.items()
            }


def betas(optimizer: Any) -> tuple[float, float]:
    """Return the rates of Adam's two averages."""
    first, second = optimizer.defaults["betas"]
    return float(first), float(second)


def _tensor(values: Array, parameter: torch.Tensor) -> torch.Tensor:
    tensor = torch.from_numpy(np.array(values))
    if tensor.shape != parameter.shape or not tensor.is_floating_point() or tensor.ndim == 0:
        return tensor  # a count of steps
    return tensor.to(parameter.device, parameter.dtype)
