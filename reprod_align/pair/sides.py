"""Makes the two sides of a pair. Imports the frameworks, and nothing else does."""

from collections.abc import Callable
from typing import Any

from reprod_align.errors import ReprodError
from reprod_align.model.local import LocalSide

Function = Callable[[Any], Any] | None


def torch_side(
    model: Any, loss: Function = None, optimizer: Function = None, scheduler: Function = None
) -> LocalSide:
    """Return the PyTorch side. Raises ReprodError if `model` is no torch.nn.Module."""
    from reprod_align.backends.torch import settings as torch_settings
    from reprod_align.backends.torch import side as framework
    from reprod_align.backends.torch.random import shared_random

    if not framework.is_module(model):
        raise ReprodError(f"torch_model is a {_class_of(model)}, not a torch.nn.Module")
    _require("torch_model", framework.find_obstacle(model))
    return LocalSide(framework, torch_settings, shared_random, model, loss, optimizer, scheduler)


def paddle_side(
    model: Any, loss: Function = None, optimizer: Function = None, scheduler: Function = None
) -> LocalSide:
    """Return the Paddle side. Raises ReprodError if `model` is no paddle.nn.Layer."""
    from reprod_align.backends.paddle import settings as paddle_settings
    from reprod_align.backends.paddle import side as framework
    from reprod_align.backends.paddle.random import shared_random

    if not framework.is_module(model):
        raise ReprodError(f"paddle_model is a {_class_of(model)}, not a paddle.nn.Layer")
    _require("paddle_model", framework.find_obstacle(model))
    return LocalSide(framework, paddle_settings, shared_random, model, loss, optimizer, scheduler)


def _require(name: str, unfit: str) -> None:
    if unfit:
        raise ReprodError(f"{name} {unfit}")


def _class_of(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__name__}"
