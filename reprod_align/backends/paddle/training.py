"""Training by Paddle: a loss, an optimizer, its state, a checkpoint. `backends.torch.training` is the twin.

`loss`, `optimizer`, `save` and `restore` are a training as a recipe says (`backends.recipes`).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from reprod_align.backends.paddle import private, side
from reprod_align.backends.recipes import (
    OptimizerState,
    Recipe,
    choose_outputs,
    draw_labels,
    draw_weights,
)
from reprod_align.base.blocks import Array
from reprod_align.errors import ReprodError

import paddle
from paddle import nn
from paddle.base.framework import default_main_program


def loss(recipe: Recipe, output: Any) -> paddle.Tensor:
    """Return the loss of a model's output, a scalar."""
    outputs = choose_outputs(output, side.is_tensor, lambda one: one.is_floating_point())
    if recipe.loss == "weighted_sum":
        weights = [
            draw_weights(recipe, n, tuple(one.shape)) for n, one in enumerate(outputs.values())
        ]
        return side.weighted_sum(outputs.values(), weights)
    logits = next(iter(outputs.values()))  # (..., C)
    labels = paddle.to_tensor(draw_labels(recipe, tuple(logits.shape[:-1])))
    classes = logits.shape[-1]
    return paddle.nn.functional.cross_entropy(logits.reshape([-1, classes]), labels.reshape([-1]))


def optimizer(recipe: Recipe, model: paddle.nn.Layer) -> Any:
    """Return a new optimizer of the model's parameters."""
    trained = [one for one in model.parameters() if not one.stop_gradient]
    if recipe.optimizer == "sgd":
        return paddle.optimizer.SGD(
            recipe.rate, parameters=trained, weight_decay=recipe.weight_decay or None
        )
    return paddle.optimizer.AdamW(
        recipe.rate, epsilon=1e-8, parameters=trained, weight_decay=recipe.weight_decay
    )


def save(model: paddle.nn.Layer, path: str) -> None:
    """Write the model's state dict as .pdparams."""
    paddle.save(model.state_dict(), path)


def restore(model: paddle.nn.Layer, path: str) -> None:
    """Load a state dict. Raises ReprodError where a name is missing or left over."""
    missing, unexpected = model.set_state_dict(paddle.load(path))
    if missing or unexpected:
        raise ReprodError(f"the checkpoint lacks {missing[:3]}, and has {unexpected[:3]} too many")


def optimizer_state(optimizer: Any, model: nn.Layer) -> OptimizerState:
    """Return a copy of what the optimizer keeps of the model's parameters, before the first step too."""
    _make_accumulators(optimizer, model)
    state: dict[str, dict[str, Array]] = {}
    for name, parameter in model.named_parameters():
        for kind, held in private.read_accumulators(optimizer).items():
            if parameter.name in held:
                state.setdefault(kind, {})[name] = held[parameter.name].numpy().copy()
    return state


def set_optimizer_state(optimizer: Any, model: nn.Layer, state: Mapping[str, Any]) -> None:
    """Give a new optimizer what `optimizer_state` returned, in the parameters' dtype."""
    _make_accumulators(optimizer, model)
    for name, parameter in model.named_parameters():
        for kind, held in private.read_accumulators(optimizer).items():
            if parameter.name in held and name in state.get(kind, {}):
                own = held[parameter.name]
                values = paddle.to_tensor(state[kind][name]).astype(own.dtype)
                own.set_value(values.reshape(own.shape))


def betas(optimizer: Any) -> tuple[float, float]:
    """Return the rates of Adam's two averages."""
    return private.read_betas(optimizer)


def _make_accumulators(optimizer: Any, model: nn.Layer) -> None:
    """Make the optimizer's state now, from a loaded one if there is one: Paddle itself waits for a step."""
    known = {id(parameter) for parameter in _list_parameters(private.list_held(optimizer))}
    held = [p for _, p in model.named_parameters() if id(p) in known and not p.stop_gradient]
    private.make_accumulators(optimizer, default_main_program().global_block(), held)


def _list_parameters(listed: Sequence[Any]) -> Iterator[Any]:
    for one in listed:
        yield from one["params"] if isinstance(one, dict) else [one]
