"""Ways to make a Paddle model wrong while a block lasts.

A changed forward stands in the layer's own attributes: its class, settings and calls look as before.
Parameters are exchanged within a call, for tensors computed from them, so that gradients still reach
them. After a block everything is as it was.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

from reprod_align.backends import replace_attribute
from reprod_align.base.tree import replace
from reprod_align.model import LocalSide

import paddle
from paddle import nn
from paddle.nn import functional

Forward = Callable[..., Any]
Arguments = dict[str, Any]

POOLS = [f"{kind}_pool{dims}d" for kind in ("avg", "max", "adaptive_avg", "adaptive_max")
          for dims in (1, 2, 3)]  # fmt: skip
# Functions that users also call without a layer; Paddle's own layers call them too.
WATCHED = ("relu", "gelu", "softmax", "dropout", "cross_entropy", *POOLS)
_SIGNATURES = {name: inspect.signature(getattr(functional, name)) for name in WATCHED}
_ALIASES = {"input": "x", "dim": "axis"}  # Paddle takes PyTorch's words for these too


@contextmanager
def replace_forward(layer: nn.Layer, forward: Forward) -> Iterator[None]:
    """Let forward(own, *args, **kwargs) run in place of the layer's forward, which is `own`."""
    attributes = vars(layer)
    kept = attributes.get("forward")
    own = kept or (lambda *args, **kwargs: type(layer).forward(layer, *args, **kwargs))
    attributes["forward"] = partial(forward, own)
    try:
        yield
    finally:
        if kept is None:
            del attributes["forward"]
        else:
            attributes["forward"] = kept


def change_tensors(value: Any, change: Callable[[paddle.Tensor], Any]) -> Any:
    """Return what a layer gave with change(tensor) in the place of each tensor."""
    return replace(
        value, lambda part: isinstance(part, paddle.Tensor), lambda _, tensor: change(tensor)
    )


@contextmanager
def replace_function(
    name: str, change: Callable[[Forward, Arguments], Any], holders: Iterable[nn.Layer] = ()
) -> Iterator[None]:
    """Let change(own, arguments) run in place of paddle.nn.functional's `name`, which is `own`.

    holders: layers that may keep the function as an attribute: there it is replaced too.
    """
    own = getattr(functional, name)

    def changed(*args: Any, **kwargs: Any) -> Any:
        return change(own, _name_arguments(name, args, kwargs))

    with ExitStack() as stack:
        for layer in holders:
            held = {key: changed for key, value in vars(layer).items() if value is own}
            stack.enter_context(set_attributes(layer, held))
        stack.enter_context(replace_attribute(functional, name, changed))
        yield


def _name_arguments(name: str, args: Any, kwargs: Mapping[str, Any]) -> Arguments:
    signature = _SIGNATURES[name]
    known = signature.parameters
    named = {key if key in known else _ALIASES.get(key, key): kwargs[key] for key in kwargs}
    return dict(signature.bind(*args, **named).arguments)


@contextmanager
def replace_call(
    layer: nn.Layer, name: str, change: Callable[[Forward, Arguments], Any]
) -> Iterator[None]:
    """Let change(own, arguments) run in place of the function `name` within the layer's forward."""

    def forward(own: Forward, *args: Any, **kwargs: Any) -> Any:
        with replace_function(name, change, [layer]):
            return own(*args, **kwargs)

    with replace_forward(layer, forward):
        yield


@contextmanager
def replace_parameters(layer: nn.Layer, made: Mapping[str, Callable[[], Any]]) -> Iterator[None]:
    """Let the layer compute with made[name]() in place of its parameters of these names."""

    def forward(own: Forward, *args: Any, **kwargs: Any) -> Any:
        kept = dict(layer._parameters)
        layer._parameters.update({name: make() for name, make in made.items()})
        try:
            return own(*args, **kwargs)
        finally:
            layer._parameters.update(kept)

    with replace_forward(layer, forward):
        yield


@contextmanager
def keep_as_buffer(layer: nn.Layer, name: str) -> Iterator[None]:
    """Let the layer hold its parameter `name` as a buffer, which gets no gradient."""
    attributes = vars(layer)
    parameters, buffers = attributes["_parameters"], attributes["_buffers"]
    tensor = parameters[name]
    attributes["_parameters"] = {key: held for key, held in parameters.items() if key != name}
    attributes["_buffers"] = {**buffers, name: tensor}
    try:
        with replace_attribute(tensor, "stop_gradient", True):
            yield
    finally:
        attributes.update(_parameters=parameters, _buffers=buffers)


@contextmanager
def set_attributes(layer: nn.Layer, values: Mapping[str, Any]) -> Iterator[None]:
    """Give the layer other values of attributes that it has."""
    kept = {name: vars(layer)[name] for name in values}
    vars(layer).update(values)
    try:
        yield
    finally:
        vars(layer).update(kept)


@contextmanager
def replace_loss(side: LocalSide, change: Callable[[Any, Any], Any]) -> Iterator[LocalSide]:
    """Yield a side whose loss is change(own, output), if it has one."""
    changed = side.with_model(side.model)
    if side.loss is not None:
        changed.loss = partial(change, side.loss)
    yield changed


@contextmanager
def change_optimizer(side: LocalSide, change: Callable[[Any, Any], None]) -> Iterator[LocalSide]:
    """Yield a side whose optimizers change(optimizer, model) has changed after they were made."""
    make = side.optimizer

    def made(model: Any) -> Any:
        optimizer = make(model) if make is not None else None
        change(optimizer, model)
        return optimizer

    changed = side.with_model(side.model)
    changed.optimizer = made
    yield changed


@contextmanager
def advance_schedule(side: LocalSide) -> Iterator[LocalSide]:
    """Yield a side whose schedule is one step ahead."""
    stepped: list[tuple[Any, dict[str, Any]]] = []

    def step(scheduler: Any) -> Any:
        stepped.append((scheduler, dict(vars(scheduler))))
        scheduler.step()
        return scheduler

    changed = side.with_model(side.model)
    own, make = side.scheduler, side.optimizer
    if own is not None:
        changed.scheduler = lambda optimizer: step(own(optimizer))
    elif make is not None:
        changed.optimizer = lambda model: _step_own_schedule(make(model), step)
    try:
        yield changed
    finally:
        for scheduler, attributes in reversed(stepped):
            vars(scheduler).update(attributes)


def _step_own_schedule(optimizer: Any, step: Callable[[Any], Any]) -> Any:
    step(optimizer._learning_rate)
    return optimizer
