"""The state that a Paddle optimizer keeps. `backends.torch.optimizer_state` is the twin."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from reprod_align.backends.paddle import private

import numpy as np
import paddle
from numpy.typing import NDArray
from paddle import nn
from paddle.base.framework import default_main_program

Array = NDArray[np.generic]
State = dict[str, dict[str, Array]]  # kind ("moment1") -> parameter's name -> array


def optimizer_state(optimizer: Any, model: nn.Layer) -> State:
    """Return a copy of what the optimizer keeps of the model's parameters, before the first step too."""
    _make_accumulators(optimizer, model)
    state: State = {}
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
    """Let them be made now, from a state that was loaded if there is one; Paddle waits for a step."""
    known = {id(parameter) for parameter in _list_parameters(private.list_held(optimizer))}
    held = [p for _, p in model.named_parameters() if id(p) in known and not p.stop_gradient]
    private.make_accumulators(optimizer, default_main_program().global_block(), held)


def _list_parameters(listed: Sequence[Any]) -> Iterator[Any]:
    for one in listed:
        yield from one["params"] if isinstance(one, dict) else [one]
