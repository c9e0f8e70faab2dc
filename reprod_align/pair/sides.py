"""Makes the two sides of a pair; each function imports its framework when it is called."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

from reprod_align.errors import ReprodError
from reprod_align.model.local import LocalSide

Function = Callable[[Any], Any] | None


def torch_side(
    model: Any, loss: Function = None, optimizer: Function = None, scheduler: Function = None
) -> LocalSide:
    """Return the PyTorch side. Raises ReprodError if `model` cannot be compared."""
    from reprod_align.backends.torch import settings, side
    from reprod_align.backends.torch.random import shared_random

    _check("torch_model", model, side, "torch.nn.Module")
    return LocalSide(side, settings, shared_random, model, loss, optimizer, scheduler)


def paddle_side(
    model: Any, loss: Function = None, optimizer: Function = None, scheduler: Function = None
) -> LocalSide:
    """Return the Paddle side. Raises ReprodError if `model` cannot be compared."""
    from reprod_align.backends.paddle import settings, side
    from reprod_align.backends.paddle.random import shared_random

    _check("paddle_model", model, side, "paddle.nn.Layer")
    return LocalSide(side, settings, shared_random, model, loss, optimizer, scheduler)


def _check(name: str, model: Any, framework: ModuleType, wanted: str) -> None:
    """Raise ReprodError unless the model is one of the framework's, and can be compared."""
    if not framework.is_module(model):
        given = f"{type(model).__module__}.{type(model).__name__}"
        raise ReprodError(f"{name} is a {given}, not a {wanted}")
    obstacle = framework.find_obstacle(model)
    if obstacle:
        raise ReprodError(f"{name} {obstacle}")
