"""How the families build their pairs, and how a fault gets into the Paddle side alone."""

from collections.abc import Callable
from functools import partial
from typing import Any

from tests.pairs.case import Case, Inputs, Pair, case
from tests.pairs.proof import copy_weights

import paddle
import torch

Change = Callable[[paddle.nn.Layer], None]


def port(
    torch_class: Callable[[], Any],
    paddle_class: Callable[[], Any],
    inputs: Inputs,
    change: Change | None = None,
    damage: Change | None = None,
    fresh: bool = False,
    **options: Any,
) -> Pair:
    """Build the pair; `change` is made to the Paddle model, `damage` to its converted weights.

    fresh: the torch model keeps its initial values; otherwise it looks trained.
    """
    torch.manual_seed(3)
    paddle.seed(3)
    torch_model, paddle_model = torch_class(), paddle_class()
    if not fresh:
        look_trained(torch_model)
    if change is not None:
        change(paddle_model)
    if damage is not None:
        copy_weights(torch_model, paddle_model, options.get("name_map"))
        damage(paddle_model)
        options["copy_weights"] = False
    return Pair(torch_model, paddle_model, inputs, options)


@torch.no_grad()
def look_trained(model: torch.nn.Module) -> None:
    """Move what starts at one value, running statistics too, away from there."""
    for name, tensor in model.state_dict().items():
        if tensor.is_floating_point() and (tensor.ndim <= 1 or tensor.min() == tensor.max()):
            tensor.add_(torch.rand_like(tensor) * 0.4 + (0.05 if name.endswith("var") else -0.2))


def planter(torch_class: Callable[[], Any], paddle_class: Callable[[], Any], inputs: Inputs):
    """Return `bug(name, change, *culprits, ...)`, which makes a case of this pair of models."""

    def bug(
        name: str, change: Change, *culprits: str, stages=(), words=(), fresh=False, **options
    ) -> Case:
        build = partial(
            port, torch_class, paddle_class, inputs, change=change, fresh=fresh, **options
        )
        return case(name, build, *culprits, stages=stages, words=words)

    return bug


def misconverter(torch_class: Callable[[], Any], paddle_class: Callable[[], Any], inputs: Inputs):
    """Return `bug(name, damage, *culprits)`: the case of a conversion gone wrong."""

    def bug(name: str, damage: Change, *culprits: str) -> Case:
        build = partial(port, torch_class, paddle_class, inputs, damage=damage)
        return case(name, build, *culprits, stages=("weights",))

    return bug


def layer_at(model: Any, name: str) -> Any:
    """Return the layer of that dotted name, or the model itself for ""."""
    for part in name.split(".") if name else ():
        model = getattr(model, part)
    return model


def put(name: str, make: Callable[[], Any]) -> Change:
    """Replace the layer `name` by `make()`."""
    path, _, leaf = name.rpartition(".")
    return lambda model: setattr(layer_at(model, path), leaf, make())


def forward(name: str, function: Callable[..., Any]) -> Change:
    """Give the layer `name` this forward, under its class's own name."""

    def change(model: Any) -> None:
        layer = layer_at(model, name)
        kind = type(layer)
        layer.__class__ = type(kind.__name__, (kind,), {"forward": function})

    return change


def freeze(*names: str) -> Change:
    """Stop the gradient of these parameters."""

    def change(model: Any) -> None:
        for name in names:
            layer_at(model, name).stop_gradient = True

    return change


def tensor(name: str, new_value: Callable[[paddle.Tensor], paddle.Tensor]) -> Change:
    """Replace the value of the tensor `name` by `new_value(value)`."""

    def change(model: Any) -> None:
        kept = model.state_dict()[name]
        kept.set_value(new_value(kept.detach().clone()).astype(kept.dtype))

    return change


def swap(first: str, second: str) -> Change:
    """Exchange the values of two tensors of one shape."""

    def change(model: Any) -> None:
        state = model.state_dict()
        kept = state[first].detach().clone()
        state[first].set_value(state[second].detach().clone())
        state[second].set_value(kept)

    return change


def both(*changes: Change) -> Change:
    """Make these changes in their order."""

    def change(model: Any) -> None:
        for one in changes:
            one(model)

    return change
