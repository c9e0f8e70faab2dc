"""Faults in what goes into a model and comes out of it: inputs and indices that are ignored, outputs that
are no tensors, what is kept between calls, draws of other generators.
"""

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Final

from reprod_align.base import tree
from reprod_align.base.blocks import measure_peak
from reprod_align.selftest.plant import (
    Finder,
    Forward,
    Found,
    PlantedFault,
    View,
    fault_at,
    is_plain,
    replace_forward,
    require,
    take_middle,
)

import numpy as np
import paddle
from paddle import nn
from paddle.nn import functional

_EMBEDDINGS = 4  # each table has indices of its own: words, positions, types, ...
_MASKED = "what index {} looks up reaches no output: give it where no mask hides it"


def change_padding_index(view: View) -> Found:
    """Look a pad row up as any other; or, where there is none, zero what index 0 looks up."""
    tables = view.list_layers(nn.Embedding)
    found = view.pick(tables, "no embedding")
    padded = [place for place in tables if _read_pad_index(place[1]) is not None]
    given_zero = [place for place in tables if (_collect_indices(view, place[0]) == 0).any()]
    largest = max(given_zero, key=lambda place: int(place[1].weight.shape[0]), default=found)
    path, layer = padded[0] if padded else largest  # word tables are the largest

    def look_up(own: Forward, ids: paddle.Tensor, *args: Any, **kwargs: Any) -> Any:
        return functional.embedding(ids, layer.weight)

    def zero(own: Forward, ids: paddle.Tensor, *args: Any, **kwargs: Any) -> Any:
        rows = own(ids, *args, **kwargs)
        return rows * (ids != 0).unsqueeze(-1).astype(rows.dtype)

    hint = _pad_hint(view, path, _read_pad_index(layer) or 0) or view.find_hint(path)
    kind = "padding_idx not given" if padded else "padding_idx=0 given"
    return fault_at(path, partial(replace_forward, layer, look_up if padded else zero), hint, kind)


def _pad_hint(view: View, path: str, index: int) -> str:
    if not (_collect_indices(view, path) == index).any():
        return f"no index is {index}: give a padded batch"
    felt = [
        measure_peak(rows.gradient[ids.array == index])
        for call in view.trace.calls
        for ids, rows in zip(call.inputs.values(), call.outputs.values(), strict=False)
        if call.path == path and rows.gradient is not None
    ]
    return "" if max(felt, default=0.0) > 0 else _MASKED.format(index)


def _read_pad_index(layer: Any) -> int | None:
    index = getattr(layer, "padding_idx", None)
    index = layer._padding_idx if index is None else index
    return None if index is None or index < 0 else int(index)


def _collect_indices(view: View, path: str) -> np.ndarray:
    """Return all indices that the embedding was given, flat."""
    found = [
        leaf.array.reshape(-1)
        for call in view.trace.calls
        if call.path == path
        for leaf in call.inputs.values()
        if leaf.array.dtype.kind in "iu"
    ]
    return np.concatenate(found) if found else np.zeros(0, "int64")


def ignore_indices(view: View) -> Found:
    """Look up the first index everywhere."""
    tables = view.list_layers(nn.Embedding)[:_EMBEDDINGS]
    return require([_ignore_index(view, path, layer) for path, layer in tables], "no embedding")


def _ignore_index(view: View, path: str, layer: nn.Layer) -> PlantedFault:
    def repeat_first(own: Forward, ids: paddle.Tensor, *args: Any, **kwargs: Any) -> Any:
        return own(_repeat_first_element(ids), *args, **kwargs)

    ids = np.unique(_collect_indices(view, path))
    where = "longer sequences" if "pos" in path.lower() else "inputs in which they vary"
    hint = f"its indices all are {ids[0]}: give {where}" if len(ids) == 1 else view.find_hint(path)
    return fault_at(path, partial(replace_forward, layer, repeat_first), hint)


def ignore_inputs(view: View) -> Found:
    """Fill one input with its own first element."""
    faults = []
    for name, array in view.arrays().items():
        if array.size:
            more = "a padded batch" if "mask" in str(name).lower() else "one in which it varies"
            constant = bool((array == array.flat[0]).all())
            hint = f"{name} holds {array.flat[0]} alone: give {more}" if constant else ""
            faults.append(_change_input(view, name, _repeat_first_element, hint))
    return require(faults, "no input holds anything")


def stop_inputs(view: View) -> Found:
    """Let no gradient reach a float input."""
    floats = [name for name, array in view.arrays().items() if array.dtype.kind == "f"]
    faults = [_change_input(view, name, lambda tensor: tensor.detach()) for name in floats]
    noted = [replace(fault, noted="input gradient") for fault in faults]
    return require(noted, "no input is of floats")


def _change_input(
    view: View, name: str | int, change: Callable[[paddle.Tensor], paddle.Tensor], hint: str = ""
) -> PlantedFault:
    """Return a fault that gives the model change(tensor) for one of its inputs."""

    def forward(own: Forward, *args: Any, **kwargs: Any) -> Any:
        if isinstance(name, str):
            return own(*args, **{**kwargs, name: change(kwargs[name])})
        given = [change(tensor) if n == name else tensor for n, tensor in enumerate(args)]
        return own(*given, **kwargs)

    return fault_at(str(name), partial(replace_forward, view.side.model, forward), hint)


def _repeat_first_element(tensor: paddle.Tensor) -> paddle.Tensor:
    return tensor.reshape([-1])[:1].reshape([1] * tensor.ndim).expand_as(tensor)


def repeat_first_example(view: View) -> Found:
    """Compute the first example in place of every other one."""
    every = [array for array in view.arrays().values() if array.ndim]
    arrays = require(every, "no input has a batch")

    def repeat_first(own: Forward, *args: Any, **kwargs: Any) -> Any:
        given = {name: _repeat_first_row(tensor) for name, tensor in kwargs.items()}
        return own(*map(_repeat_first_row, args), **given)

    hint = ""
    if all((array == array[:1]).all() for array in arrays):
        hint = "all examples of the batch are the same: vary them"
    if all(array.shape[0] == 1 for array in arrays):
        hint = "the batch holds one example: give several"
    return fault_at("", partial(replace_forward, view.side.model, repeat_first), hint)


def _repeat_first_row(tensor: Any) -> Any:
    return tensor[:1].expand_as(tensor) if tensor.ndim else tensor


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


def change_plain_output(view: View) -> Found:
    """Return another number, another text or another array."""
    faults = [_change_output(view, path, value) for path, value in view.plain.items()]
    return require(faults[:_OUTPUTS], "all outputs are tensors")


def _change_output(view: View, path: str, value: Any) -> PlantedFault:
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


def keep_state(view: View) -> Found:
    """Note in train mode how large a layer's output is, and bend it by that in eval mode."""
    path = take_middle(_list_single(view), "no layer returns one tensor")
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


def draw_elsewhere(view: View) -> Found:
    """Draw from Python's or numpy's generator in train mode, as for a layer left out now and then."""
    path = take_middle(_list_single(view), "no layer returns one tensor")
    return [_draw_from(name, path, view.layers[path]) for name in _GENERATORS]


def _draw_from(generator: str, path: str, layer: nn.Layer) -> PlantedFault:
    draw = _GENERATORS[generator]

    def forward(own: Forward, *args: Any, **kwargs: Any) -> Any:
        output = own(*args, **kwargs)
        return paddle.zeros_like(output) if layer.training and draw() < _RARELY else output

    make = partial(replace_forward, layer, forward)
    fault = fault_at(path, make, _NOT_WATCHED, f"a draw from {generator}")
    return replace(fault, noted="random numbers")


def _list_single(view: View) -> list[str]:
    """Return the places with a gradient at which a layer returns one tensor and nothing else."""
    single = {call.path for call in view.trace.calls if list(call.outputs) == [""]}
    return [path for path in view.list_with_gradient() if path in single]


FAULTS: Final[Mapping[str, Finder]] = {
    "padding_idx": change_padding_index,
    "embedding index ignored": ignore_indices,
    "input ignored": ignore_inputs,
    "an input's gradient stopped": stop_inputs,
    "first example used for all": repeat_first_example,
    "an output that is no tensor": change_plain_output,
    "a state kept from train to eval": keep_state,
    "a draw of another generator": draw_elsewhere,
}
"""kind of fault -> what finds its place in a model"""
