"""Ways to make a Paddle model wrong while a block lasts, and to see what it calls.

A changed forward stands in the layer's own attributes: hooks, and whoever judges the layer, see its
class, its settings and its calls as before. Parameters are exchanged within a call, for tensors
that are computed from them, so that gradients still reach them. Every block leaves all as it was.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from reprod_align.base.keyed_draws import KeyedDraws
from reprod_align.model.local import LocalSide
from reprod_align.model.projection import Projection
from reprod_align.model.side import Inputs
from reprod_align.model.trace import Trace

import paddle
from paddle import nn
from paddle.nn import functional

Forward = Callable[..., Any]
Arguments = dict[str, Any]
Sites = Mapping[str, Mapping[str, list[Arguments]]]

_SEED = 20214
_POOLS = [f"{kind}_pool{dims}d" for kind in ("avg", "max", "adaptive_avg", "adaptive_max")
          for dims in (1, 2, 3)]  # fmt: skip
# Functions that users also call without a layer; Paddle's own layers call them too.
WATCHED = ("relu", "gelu", "softmax", "dropout", "cross_entropy", *_POOLS)
_SIGNATURES = {name: inspect.signature(getattr(functional, name)) for name in WATCHED}
_ALIASES = {"input": "x", "dim": "axis"}  # Paddle takes PyTorch's words for these too


@dataclass(frozen=True)
class Seen:
    """The unbroken model at work."""

    trace: Trace
    """one pass in eval mode: every call's inputs, outputs and gradients (of a projection)"""
    sites: Sites
    """function of paddle.nn.functional -> module that calls it -> the arguments of each call;
    float tensors by their shape, integers as arrays; a loss's calls stand under "" """


def observe(side: LocalSide, inputs: Inputs) -> Seen:
    """Run the side, inside `working`, in both modes; return what it did and called."""
    trace = side.run(inputs, False, KeyedDraws(_SEED, {"": ""}), "all", Projection())
    sites: dict[str, dict[str, list[Arguments]]] = {name: {} for name in WATCHED}
    draws = KeyedDraws(_SEED, {"": ""})
    note = partial(_noted, side.model.sublayers(include_self=True), sites, draws)
    kept = side.values()
    with forward_as(side.model, note), with_loss(side, note) as watched:
        watched.run(inputs, True, draws, "none", None if side.loss else Projection())
    side.load(kept)
    return Seen(trace, sites)


def _noted(
    layers: list[nn.Layer],
    sites: dict[str, dict[str, list[Arguments]]],
    draws: KeyedDraws,
    function: Forward,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Call the function, and note in `sites` what it calls, from which module."""
    with ExitStack() as stack:
        for name in WATCHED:

            def call(own: Forward, arguments: Arguments, name: str = name) -> Any:
                place = draws.place()
                path = place[-1][0] if place else ""
                plain = {key: _plain(value) for key, value in arguments.items()}
                sites[name].setdefault(path, []).append(plain)
                return own(**arguments)

            stack.enter_context(function_as(name, call, layers))
        return function(*args, **kwargs)


def _plain(value: Any) -> Any:
    if not isinstance(value, paddle.Tensor):
        return value
    return tuple(value.shape) if value.is_floating_point() else value.numpy()


@contextmanager
def forward_as(layer: nn.Layer, forward: Forward) -> Iterator[None]:
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


@contextmanager
def function_as(
    name: str, change: Callable[[Forward, Arguments], Any], holders: Iterable[nn.Layer] = ()
) -> Iterator[None]:
    """Let change(own, arguments) run in place of paddle.nn.functional's `name`, which is `own`.

    holders: layers that may keep the function as an attribute: there it is replaced too.
    """
    own = getattr(functional, name)

    def changed(*args: Any, **kwargs: Any) -> Any:
        return change(own, _arguments(name, args, kwargs))

    with ExitStack() as stack:
        for layer in holders:
            held = {key: changed for key, value in vars(layer).items() if value is own}
            stack.enter_context(attributes_as(layer, held))
        setattr(functional, name, changed)
        stack.callback(setattr, functional, name, own)
        yield


def _arguments(name: str, args: Any, kwargs: Mapping[str, Any]) -> Arguments:
    signature = _SIGNATURES[name]
    known = signature.parameters
    named = {key if key in known else _ALIASES.get(key, key): kwargs[key] for key in kwargs}
    return dict(signature.bind(*args, **named).arguments)


@contextmanager
def calling_as(
    layer: nn.Layer, name: str, change: Callable[[Forward, Arguments], Any]
) -> Iterator[None]:
    """Let change(own, arguments) run in place of the function `name` within the layer's forward."""

    def forward(own: Forward, *args: Any, **kwargs: Any) -> Any:
        with function_as(name, change, [layer]):
            return own(*args, **kwargs)

    with forward_as(layer, forward):
        yield


@contextmanager
def parameters_as(layer: nn.Layer, made: Mapping[str, Callable[[], Any]]) -> Iterator[None]:
    """Let the layer compute with made[name]() in place of its parameters of these names."""

    def forward(own: Forward, *args: Any, **kwargs: Any) -> Any:
        kept = dict(layer._parameters)
        layer._parameters.update({name: make() for name, make in made.items()})
        try:
            return own(*args, **kwargs)
        finally:
            layer._parameters.update(kept)

    with forward_as(layer, forward):
        yield


@contextmanager
def attributes_as(layer: nn.Layer, values: Mapping[str, Any]) -> Iterator[None]:
    """Give the layer other values of attributes that it has."""
    kept = {name: vars(layer)[name] for name in values}
    vars(layer).update(values)
    try:
        yield
    finally:
        vars(layer).update(kept)


@contextmanager
def frozen(parameter: paddle.Tensor) -> Iterator[None]:
    """Leave the parameter untrained."""
    kept = parameter.stop_gradient
    parameter.stop_gradient = True
    try:
        yield
    finally:
        parameter.stop_gradient = kept


@contextmanager
def with_loss(side: LocalSide, change: Callable[[Any, Any], Any]) -> Iterator[LocalSide]:
    """Yield a side whose loss is change(own, output), if it has one."""
    changed = _copy(side)
    if side.loss is not None:
        changed.loss = partial(change, side.loss)
    yield changed


@contextmanager
def with_optimizer(side: LocalSide, change: Callable[[Any, Any], None]) -> Iterator[LocalSide]:
    """Yield a side whose optimizers change(optimizer, model) has changed after they were made."""
    make = side.optimizer

    def made(model: Any) -> Any:
        optimizer = make(model) if make is not None else None
        change(optimizer, model)
        return optimizer

    changed = _copy(side)
    changed.optimizer = made
    yield changed


@contextmanager
def ahead(side: LocalSide) -> Iterator[LocalSide]:
    """Yield a side whose schedule is one step ahead."""
    stepped: list[tuple[Any, dict[str, Any]]] = []

    def step(scheduler: Any) -> Any:
        stepped.append((scheduler, dict(vars(scheduler))))
        scheduler.step()
        return scheduler

    changed = _copy(side)
    own, make = side.scheduler, side.optimizer
    if own is not None:
        changed.scheduler = lambda optimizer: step(own(optimizer))
    elif make is not None:
        changed.optimizer = lambda model: _each_own_schedule(make(model), step)
    try:
        yield changed
    finally:
        for scheduler, attributes in reversed(stepped):
            vars(scheduler).update(attributes)


def _each_own_schedule(optimizer: Any, step: Callable[[Any], Any]) -> Any:
    step(optimizer._learning_rate)
    return optimizer


def _copy(side: LocalSide) -> LocalSide:
    """Return the side anew, on the same model."""
    return LocalSide(side.fw, side.settings, side.shared_random, side.model,
                side.loss, side.optimizer, side.scheduler)  # fmt: skip
