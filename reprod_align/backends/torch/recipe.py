"""A training by PyTorch, as a recipe says. `backends.paddle.recipe` has the same lines."""

from typing import Any

from reprod_align.backends.recipes import Recipe, choose_outputs, draw_labels, draw_weights
from reprod_align.backends.torch import side
from reprod_align.errors import ReprodError

import torch


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
