"""Faults in what is no tensor: outputs, what a layer keeps between calls, draws of other generators."""

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from reprod_align.base import tree
from reprod_align.selftest.fault import Fault, Found, fault_at, plantable
from reprod_align.selftest.plant import Forward, replace_forward
from reprod_align.selftest.view import View, is_plain, middle

import numpy as np
import paddle
from paddle import nn

_OUTPUTS = 4  # each a fault of its own
_RARELY = 1e-9  # the share of draws that change an output: the batch shows none
_STATE = "_kept_by_selftest"
_NOT_COMPARED = "nothing compares outputs of this type"
_NOT_IN_TURN = "no call in eval mode was compared that follows one in train mode"
_NOT_WATCHED = "its draws change no output here, and nothing compares how often a model draws"
_GENERATORS: Mapping[str, Callable[[], float]] = {
    "Python's random": random.random,
    "numpy's random": np.random.random,
}


@plantable("an output that is no tensor")
def change_plain_output(view: View) -> Found:
    """Return another number, another text or another array."""
    faults = [_change_output(view, path, value) for path, value in view.plain.items()]
    return faults[:_OUTPUTS] or "all outputs are tensors"


def _change_output(view: View, path: str, value: Any) -> Fault:
    def forward(own: Forward, *args: Any, **kwargs: Any) -> Any:
        output = own(*args, **kwargs)
        return tree.replace(
            output, is_plain, lambda at, part: _make_other(part) if at == path else part
        )

    name = type(value).__name__
    kind = f"{'an' if name[0] in 'aeiou' else 'a'} {name} among the outputs changed"
    make = partial(replace_forward, view.side.model, forward)
    return fault_at(path, make, _NOT_COMPARED, kind)


def _make_other(value: Any) -> Any:
    """Return another value of the same type."""
    kind = np.asarray(value).dtype.kind
    if kind == "U":
        other = np.char.add(value, "?")
    elif kind == "b":
        other = np.logical_not(value)
    else:
        other = value ^ 1 if kind in "iu" else value + 1 + abs(value)
    return other if isinstance(value, np.ndarray) else type(value)(other)


@plantable("a state kept from train to eval")
def keep_state(view: View) -> Found:
    """Note in train mode how large a layer's output is, and bend it by that in eval mode."""
    path = middle(_single(view))
    if path is None:
        return "no layer returns one tensor"
    return fault_at(path, partial(_remember, view.layers[path]), _NOT_IN_TURN)


@contextmanager
def _remember(layer: nn.Layer) -> Iterator[None]:
    attributes = vars(layer)

    def forward(own: Forward, *args: Any, **kwargs: Any) -> Any:
        output = own(*args, **kwargs)
        if not layer.training:
            kept = attributes.get(_STATE, 0.0)
            return output + kept * output * output  # a norm behind takes a constant or a factor off
        attributes[_STATE] = float(output.detach().abs().mean())
        return output

    try:
        with replace_forward(layer, forward):
            yield
    finally:
        attributes.pop(_STATE, None)


@plantable("a draw of another generator")
def draw_elsewhere(view: View) -> Found:
    """Draw from Python's or numpy's generator in train mode, as for a layer left out now and then."""
    path = middle(_single(view))
    if path is None:
        return "no layer returns one tensor"
    return [_draw_from(name, path, view.layers[path]) for name in _GENERATORS]


def _draw_from(generator: str, path: str, layer: nn.Layer) -> Fault:
    draw = _GENERATORS[generator]

    def forward(own: Forward, *args: Any, **kwargs: Any) -> Any:
        output = own(*args, **kwargs)
        return paddle.zeros_like(output) if layer.training and draw() < _RARELY else output

    make = partial(replace_forward, layer, forward)
    fault = fault_at(path, make, _NOT_WATCHED, f"a draw from {generator}")
    return replace(fault, noted="random numbers")


def _single(view: View) -> list[str]:
    """Return the places with a gradient at which a layer returns one tensor and nothing else."""
    single = {call.path for call in view.trace.calls if list(call.outputs) == [""]}
    return [path for path in view.places_with_gradient() if path in single]
