"""A fault that can be planted, and what a fault is planted in: the user's Paddle model, watched at work.

A kind of fault is a row of a table, FAULTS in `layers`, `inputs` and `training`: its kind, and a function
that looks for its place in a `View`: what the model called, with which arguments, and what its outputs
depend on.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from reprod_align.base.blocks import measure_peak
from reprod_align.base.tree import leaves
from reprod_align.model import Call, Inputs, LocalSide, Projection, Trace
from reprod_align.randomness import KeyedDraws
from reprod_align.report import Unjudged
from reprod_align.selftest.plant import (
    WATCHED,
    Arguments,
    Forward,
    replace_forward,
    replace_function,
    replace_loss,
)

import numpy as np
import paddle
from paddle import nn

NamedLayer = tuple[str, nn.Layer]
Site = tuple[str, str]
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

    def list_sites(self, *names: str) -> list[Site]:
        """Return the calls of these functions by layers."""
        return [(name, path) for name in names for path in self.calls[name]
                if path in self.layers]  # fmt: skip

    def arguments(self, site: Site) -> Arguments:
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

    def pick(self, places: Sequence[NamedLayer], role: str = "weight") -> NamedLayer | None:
        """Return the middle one of those whose parameter `role` counts; if none does, of all."""
        alive = [place for place in places if self.is_alive(place[0], role)]
        chosen: NamedLayer | None = take_middle(alive or places)
        return chosen

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


def take_middle(places: Sequence[Any]) -> Any:
    """Return the middle one, None if there is none."""
    return places[len(places) // 2] if places else None


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


Found = PlantedFault | str | list[PlantedFault]
"""the faults, or why the model has no place for one"""
Finder = Callable[[View], Found]


def find_faults(table: Mapping[str, Finder], view: View) -> list[PlantedFault]:
    """Return the faults of a table, by kind and planted nowhere yet."""
    return [fault for kind, find in table.items() for fault in _name_kind(kind, find(view))]


def _name_kind(kind: str, found: Found) -> list[PlantedFault]:
    if isinstance(found, str):
        return [PlantedFault("", None, found, kind)]
    several = found if isinstance(found, list) else [found]
    return [replace(fault, kind=fault.kind or kind) for fault in several]


def fault_at(
    module: str, make: Callable[[], AbstractContextManager[Any]], hint: str = "", kind: str = ""
) -> PlantedFault:
    """Return a fault in the model that is there while make()'s block lasts."""

    @contextmanager
    def plant(side: LocalSide) -> Iterator[LocalSide]:
        with make():
            yield side

    return PlantedFault(module, plant, hint, kind)
