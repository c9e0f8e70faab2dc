"""Plants a fault in the user's Paddle model, which is watched at work first, while a block lasts.

A kind of fault is a row of a table, FAULTS in `layers`, `inputs` and `training`: its name, and a function
that looks for its place in a `View`: what the model called, with which arguments, and what its outputs
depend on.

A changed forward stands in the layer's own attributes: its class, settings and calls look as before.
Parameters are exchanged within a call, for tensors computed from them, so that gradients still reach
them. After a block everything is as it was.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from reprod_align.backends import replace_attribute
from reprod_align.base.blocks import measure_peak
from reprod_align.base.tree import leaves
from reprod_align.base.tree import replace as replace_leaves
from reprod_align.model import Call, Inputs, LocalSide, Projection, Trace
from reprod_align.randomness import KeyedDraws
from reprod_align.report import Unjudged

import numpy as np
import paddle
from paddle import nn
from paddle.nn import functional

Forward = Callable[..., Any]
Arguments = dict[str, Any]
T = TypeVar("T")

POOLS = [f"{kind}_pool{dims}d" for kind in ("avg", "max", "adaptive_avg", "adaptive_max")
          for dims in (1, 2, 3)]  # fmt: skip
# Functions that users also call without a layer; Paddle's own layers call them too.
WATCHED = ("relu", "gelu", "softmax", "dropout", "cross_entropy", *POOLS)
_SIGNATURES = {name: inspect.signature(getattr(functional, name)) for name in WATCHED}
_ALIASES = {"input": "x", "dim": "axis"}  # Paddle takes PyTorch's words for these too


class NoPlace(Exception):
    """Why a model has no place for a fault."""


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
    return replace_leaves(
        value, lambda part: isinstance(part, paddle.Tensor), lambda _, tensor: change(tensor)
    )


@contextmanager
def replace_function(
    name: str, change: Callable[[Forward, Arguments], Any], holders: Iterable[nn.Layer] = ()
) -> Iterator[None]:
    """Let change(own, arguments) run in place of paddle.nn.functional's `name`, which is `own`.

    holders: layers that may keep the function as an attribute: there it is replaced too.
    """
    own, signature = getattr(functional, name), _SIGNATURES[name]

    def changed(*args: Any, **kwargs: Any) -> Any:
        known = signature.parameters
        named = {key if key in known else _ALIASES.get(key, key): kwargs[key] for key in kwargs}
        return change(own, dict(signature.bind(*args, **named).arguments))

    with ExitStack() as stack:
        for layer in holders:
            held = {key: changed for key, value in vars(layer).items() if value is own}
            stack.enter_context(set_attributes(layer, held))
        stack.enter_context(replace_attribute(functional, name, changed))
        yield


def replace_call(
    layer: nn.Layer, name: str, change: Callable[[Forward, Arguments], Any]
) -> AbstractContextManager[None]:
    """Let change(own, arguments) run in place of the function `name` within the layer's forward."""

    def forward(own: Forward, *args: Any, **kwargs: Any) -> Any:
        with replace_function(name, change, [layer]):
            return own(*args, **kwargs)

    return replace_forward(layer, forward)


def replace_parameters(
    layer: nn.Layer, made: Mapping[str, Callable[[], Any]]
) -> AbstractContextManager[None]:
    """Let the layer compute with made[name]() in place of its parameters of these names."""

    def forward(own: Forward, *args: Any, **kwargs: Any) -> Any:
        kept = dict(layer._parameters)
        layer._parameters.update({name: make() for name, make in made.items()})
        try:
            return own(*args, **kwargs)
        finally:
            layer._parameters.update(kept)

    return replace_forward(layer, forward)


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


def replace_loss(
    side: LocalSide, change: Callable[[Any, Any], Any]
) -> AbstractContextManager[LocalSide]:
    """Return a block with a side whose loss is change(own, output), if it has one."""
    changed = side.with_model(side.model)
    if side.loss is not None:
        changed.loss = partial(change, side.loss)
    return nullcontext(changed)


def change_optimizer(
    side: LocalSide, change: Callable[[Any, Any], None]
) -> AbstractContextManager[LocalSide]:
    """Return a block with a side: change(optimizer, model) has changed its optimizers once they were made."""
    make = side.optimizer

    def made(model: Any) -> Any:
        optimizer = make(model) if make is not None else None
        change(optimizer, model)
        return optimizer

    changed = side.with_model(side.model)
    changed.optimizer = made
    return nullcontext(changed)


@contextmanager
def advance_schedule(side: LocalSide) -> Iterator[LocalSide]:
    """Yield a side whose schedule is one step ahead."""
    stepped: list[tuple[Any, dict[str, Any]]] = []

    def step(scheduler: Any) -> Any:
        stepped.append((scheduler, dict(vars(scheduler))))
        scheduler.step()
        return scheduler

    def step_own_schedule(optimizer: Any) -> Any:
        step(optimizer._learning_rate)
        return optimizer

    changed = side.with_model(side.model)
    own, make = side.scheduler, side.optimizer
    if own is not None:
        changed.scheduler = lambda optimizer: step(own(optimizer))
    elif make is not None:
        changed.optimizer = lambda model: step_own_schedule(make(model))
    try:
        yield changed
    finally:
        for scheduler, attributes in reversed(stepped):
            vars(scheduler).update(attributes)


NamedLayer = tuple[str, nn.Layer]
FunctionUse = tuple[str, str]
"""a function's name and the layer that calls it"""

DEAD = "no output depends on it here (its gradient is 0): give longer or more varied inputs"
_NOISE = 1e-9  # a gradient below this part of the largest counts as none
_SEED = 20214


@dataclass(frozen=True)
class View:
    """The unbroken model, run on the converted weights."""

    side: LocalSide
    inputs: Inputs
    steps: int
    """optimizer steps that a comparison takes"""
    optimizer: Any
    """one that the side made, None if it has none"""
    layers: Mapping[str, nn.Layer]
    """the layers that were called, by name, in the order of their first calls"""
    trace: Trace
    """one pass in eval mode: every call's inputs, outputs and gradients (of a projection)"""
    calls: Mapping[str, Mapping[str, list[Arguments]]]
    """function of paddle.nn.functional -> module that calls it -> the arguments of each call;
    float tensors by their shape, integers as arrays; a loss's calls stand under "" """
    plain: Mapping[str, Any]
    """the numbers, texts and arrays among the model's outputs, by their places"""

    def arrays(self) -> dict[str | int, np.ndarray]:
        """Return the inputs by name, or by position."""
        named = self.inputs.items() if isinstance(self.inputs, Mapping) else enumerate(self.inputs)
        return {name: np.asarray(array) for name, array in named}

    def list_layers(self, *kinds: type) -> list[NamedLayer]:
        """Return the called layers of these classes."""
        return [place for place in self.layers.items() if isinstance(place[1], kinds)]

    def list_sites(self, *names: str) -> list[FunctionUse]:
        """Return the calls of these functions by layers."""
        return [(name, path) for name in names for path in self.calls[name]
                if path in self.layers]  # fmt: skip

    def arguments(self, site: FunctionUse) -> Arguments:
        """Return what the layer passed to the function at first."""
        name, path = site
        return self.calls[name][path][0]

    def is_alive(self, path: str, role: str = "weight") -> bool:
        """Tell whether the outputs depend on the layer's parameter `role`."""
        gradients = self.trace.gradients
        largest = max((measure_peak(gradient) for gradient in gradients.values()), default=0.0)
        own = gradients.get(f"{path}.{role}" if path else role)
        return own is not None and measure_peak(own) > _NOISE * largest

    def list_with_gradient(self) -> list[str]:
        """Return the calls of layers without layers in them whose output carries a gradient."""
        return [call.path for call in self.trace.calls
                if call.path and find_largest_gradient(call) > 0
                and not list(self.layers[call.path].children())]  # fmt: skip

    def pick(self, places: Sequence[NamedLayer], lacks: str, role: str = "weight") -> NamedLayer:
        """Return the middle one of those whose parameter `role` counts; if none does, of all.

        Raises NoPlace, with the text `lacks`, where there are none.
        """
        alive = [place for place in places if self.is_alive(place[0], role)]
        return take_middle(alive or places, lacks)

    def find_hint(self, path: str, role: str = "weight") -> str:
        """Return why a change of this parameter may stay hidden."""
        return "" if self.is_alive(path, role) else DEAD


def observe(side: LocalSide, inputs: Inputs, steps: int) -> View:
    """Run the side, inside `working`, in both modes; return what it did and called."""
    trace = side.run(inputs, False, KeyedDraws(_SEED, {"": ""}), "all", Projection())
    calls: dict[str, dict[str, list[Arguments]]] = {name: {} for name in WATCHED}
    draws = KeyedDraws(_SEED, {"": ""})
    note = partial(_note_calls, side.model.sublayers(include_self=True), calls, draws)
    kept = side.values()
    outputs: list[Any] = []

    def keep(own: Forward, *args: Any, **kwargs: Any) -> Any:
        outputs.append(own(*args, **kwargs))
        return outputs[-1]

    with replace_forward(side.model, note), replace_forward(side.model, keep):
        with replace_loss(side, note) as watched:
            watched.run(inputs, True, draws, "none", None if side.loss else Projection())
    side.load(kept)
    layers = dict(side.fw.modules(side.model))
    called = {call.path: layers[call.path] for call in trace.calls}
    optimizer = side.optimizer(side.model) if side.optimizer else None
    plain = leaves(outputs[0], is_plain)
    return View(side, inputs, steps, optimizer, called, trace, calls, plain)


def is_plain(value: object) -> bool:
    """Tell whether a value is a number or a text, or an array of those."""
    plain = isinstance(value, (bool, int, float, complex, str, np.generic, np.ndarray))
    return plain and np.asarray(value).dtype.kind in "biufcU"


def find_largest_gradient(call: Call) -> float:
    """Return the largest gradient that arrived at a call's outputs, 0 if none did."""
    arrived = [leaf.gradient for leaf in call.outputs.values() if leaf.differentiable]
    return max(
        (measure_peak(gradient) for gradient in arrived if gradient is not None), default=0.0
    )


def require(found: list[T], lacks: str) -> list[T]:
    """Return what was found. Raises NoPlace, with the text `lacks`, if that is nothing."""
    if not found:
        raise NoPlace(lacks)
    return found


def take_middle(places: Sequence[T], lacks: str) -> T:
    """Return the middle one. Raises NoPlace, with the text `lacks`, where there is none."""
    return require([*places], lacks)[len(places) // 2]


def read(tensor: paddle.Tensor) -> np.ndarray:
    """Return the values of a tensor, float64."""
    return np.asarray(tensor.detach().astype("float64").numpy())


def _note_calls(
    layers: list[nn.Layer],
    calls: dict[str, dict[str, list[Arguments]]],
    draws: KeyedDraws,
    function: Forward,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Call the function, and note in `calls` what it calls, from which module."""
    with ExitStack() as stack:
        for name in WATCHED:

            def call(own: Forward, arguments: Arguments, name: str = name) -> Any:
                place = draws.place()
                path = place[-1][0] if place else ""
                plain = {key: _make_plain(value) for key, value in arguments.items()}
                calls[name].setdefault(path, []).append(plain)
                return own(**arguments)

            stack.enter_context(replace_function(name, call, layers))
        return function(*args, **kwargs)


def _make_plain(value: Any) -> Any:
    if not isinstance(value, paddle.Tensor):
        return value
    return tuple(value.shape) if value.is_floating_point() else value.numpy()


Plant = Callable[[LocalSide], AbstractContextManager[LocalSide]]


@dataclass(frozen=True)
class PlantedFault:
    """One way in which a port goes wrong, at one place of the user's model."""

    module: str
    """Paddle's dotted name of the module, parameter or input; "" for the model or its training"""
    plant: Plant | None
    """returns a block in which the side has the fault; None: the model has no place for it"""
    hint: str = ""
    """why it may stay hidden and what would show it, as far as can be told beforehand"""
    kind: str = ""
    """the row of the table that it comes from; `find_faults` fills it in where it is "" """
    in_steps: bool = False
    """only optimizer steps can show it"""
    noted: Unjudged | None = None
    """what a report may name as not judged, and reveals the fault by that"""


Found = PlantedFault | list[PlantedFault]
Finder = Callable[[View], Found]
"""finds a kind of fault in a model; raises NoPlace where the model has no place for it"""


def find_faults(table: Mapping[str, Finder], view: View) -> list[PlantedFault]:
    """Return the faults of a table, by kind and planted nowhere yet."""
    faults: list[PlantedFault] = []
    for kind, find in table.items():
        try:
            found = find(view)
        except NoPlace as reason:
            found = PlantedFault("", None, str(reason))
        several = found if isinstance(found, list) else [found]
        faults += [replace(fault, kind=fault.kind or kind) for fault in several]
    return faults


def fault_at(
    module: str, make: Callable[[], AbstractContextManager[Any]], hint: str = "", kind: str = ""
) -> PlantedFault:
    """Return a fault in the model that is there while make()'s block lasts."""

    @contextmanager
    def plant(side: LocalSide) -> Iterator[LocalSide]:
        with make():
            yield side

    return PlantedFault(module, plant, hint, kind)
