"""Training by PyTorch: a loss, an optimizer, its state, a checkpoint. `backends.paddle.training` is the twin.

`loss`, `optimizer`, `save` and `restore` are a training as a recipe says (`backends.recipes`).
"""

from collections.abc import Mapping
from typing import Any

from reprod_align.backends.recipes import (
    OptimizerState,
    Recipe,
    choose_outputs,
    draw_labels,
    draw_weights,
)
from reprod_align.backends.torch import side
from reprod_align.base.blocks import Array
from reprod_align.errors import ReprodError

import numpy as np
import torch
from torch import nn


def loss(recipe: Recipe, output: Any) -> torch.Tensor:
    """Return the loss of a model's output, a scalar."""
    outputs = choose_outputs(output, side.is_tensor, lambda one: one.is_floating_point())
    if recipe.loss == "weighted_sum":
        weights = [
            draw_weights(recipe, n, tuple(one.shape)) for n, one in enumerate(outputs.values())
        ]
        return side.weighted_sum(outputs.values(), weights)
    logits = next(iter(outputs.values()))  # (..., C)
    labels = torch.as_tensor(draw_labels(recipe, tuple(logits.shape[:-1])), device=logits.device)
    classes = logits.shape[-1]
    return torch.nn.functional.cross_entropy(logits.reshape(-1, classes), labels.reshape(-1))


def optimizer(recipe: Recipe, model: torch.nn.Module) -> Any:
    """Return a new optimizer of the model's parameters."""
    trained = [one for one in model.parameters() if one.requires_grad]
    if recipe.optimizer == "sgd":
        return torch.optim.SGD(trained, lr=recipe.rate, weight_decay=recipe.weight_decay)
    return torch.optim.AdamW(trained, lr=recipe.rate, eps=1e-8, weight_decay=recipe.weight_decay)


def save(model: torch.nn.Module, path: str) -> None:
    """Write the model's state dict."""
    torch.save(model.state_dict(), path)


def restore(model: torch.nn.Module, path: str) -> None:
    """Load a state dict. Raises ReprodError where a name is missing or left over."""
    try:
        model.load_state_dict(torch.load(path, weights_only=True))
    except RuntimeError as error:
        raise ReprodError(f"the checkpoint does not fit: {error}") from error


def optimizer_state(optimizer: Any, model: nn.Module) -> OptimizerState:
    """Return a copy of what the optimizer keeps of the model's parameters; {} before the first step."""
    state: dict[str, dict[str, Array]] = {}
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
                kind: _make_tensor(values, parameter) for kind, values in kept.items()
            }


def betas(optimizer: Any) -> tuple[float, float]:
    """Return the rates of Adam's two averages."""
    first, second = optimizer.defaults["betas"]
    return float(first), float(second)


def _make_tensor(values: Array, parameter: torch.Tensor) -> torch.Tensor:
    tensor = torch.from_numpy(np.array(values))
    if tensor.shape != parameter.shape or not tensor.is_floating_point() or tensor.ndim == 0:
        return tensor  # a count of steps
    return tensor.to(parameter.device, parameter.dtype)
