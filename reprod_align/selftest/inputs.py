"""Faults that inputs reveal: indices and inputs that are not looked at, padding, one example for all."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from reprod_align.selftest.fault import Fault, Found, fault_at, plantable
from reprod_align.selftest.plant import Forward, replace_forward
from reprod_align.selftest.view import Place, View, size

import numpy as np
import paddle
from paddle import nn
from paddle.nn import functional

_EMBEDDINGS = 4  # each table has indices of its own: words, positions, types, ...
_MASKED = "what index {} looks up reaches no output: give it where no mask hides it"


@plantable("padding_idx")
def change_padding_index(view: View) -> Found:
    """Look a pad row up as any other; or, where there is none, zero what index 0 looks up."""
    tables = view.of(nn.Embedding)
    found = view.pick(tables)
    if found is None:
        return "no embedding"
    padded = [place for place in tables if _pad_index(place[1]) is not None]
    path, layer = padded[0] if padded else _largest_given_zero(view) or found

    def look_up(own: Forward, ids: paddle.Tensor, *args: Any, **kwargs: Any) -> Any:
        return functional.embedding(ids, layer.weight)

    def zero(own: Forward, ids: paddle.Tensor, *args: Any, **kwargs: Any) -> Any:
        rows = own(ids, *args, **kwargs)
        return rows * (ids != 0).unsqueeze(-1).astype(rows.dtype)

    hint = _pad_hint(view, path, _pad_index(layer) or 0) or view.hint(path)
    kind = "padding_idx not given" if padded else "padding_idx=0 given"
    return fault_at(path, partial(replace_forward, layer, look_up if padded else zero), hint, kind)


def _pad_hint(view: View, path: str, index: int) -> str:
    if not (_indices(view, path) == index).any():
        return f"no index is {index}: give a padded batch"
    felt = [
        size(rows.gradient[ids.array == index])
        for call in view.trace.calls
        for ids, rows in zip(call.inputs.values(), call.outputs.values(), strict=False)
        if call.path == path and rows.gradient is not None
    ]
    return "" if max(felt, default=0.0) > 0 else _MASKED.format(index)


def _pad_index(layer: Any) -> int | None:
    index = getattr(layer, "padding_idx", None)
    index = layer._padding_idx if index is None else index
    return None if index is None or index < 0 else int(index)


def _largest_given_zero(view: View) -> Place | None:
    """Return the largest embedding that is given the index 0: word tables first."""
    tables = [p for p in view.of(nn.Embedding) if (_indices(view, p[0]) == 0).any()]
    return max(tables, key=lambda place: int(place[1].weight.shape[0]), default=None)


def _indices(view: View, path: str) -> np.ndarray:
    """Return all indices that the embedding was given, flat."""
    found = [
        leaf.array.reshape(-1)
        for call in view.trace.calls
        if call.path == path
        for leaf in call.inputs.values()
        if leaf.array.dtype.kind in "iu"
    ]
    return np.concatenate(found) if found else np.zeros(0, "int64")


@plantable("embedding index ignored")
def ignore_indices(view: View) -> Found:
    """Look up the first index everywhere."""
    tables = view.of(nn.Embedding)[:_EMBEDDINGS]
    return [_ignore_index(view, path, layer) for path, layer in tables] or "no embedding"


def _ignore_index(view: View, path: str, layer: nn.Layer) -> Fault:
    def repeat_first(own: Forward, ids: paddle.Tensor, *args: Any, **kwargs: Any) -> Any:
        return own(_repeat_first_element(ids), *args, **kwargs)

    ids = np.unique(_indices(view, path))
    where = "longer sequences" if "pos" in path.lower() else "inputs in which they vary"
    hint = f"its indices all are {ids[0]}: give {where}" if len(ids) == 1 else view.hint(path)
    return fault_at(path, partial(replace_forward, layer, repeat_first), hint)


@plantable("input ignored")
def ignore_inputs(view: View) -> Found:
    """Fill one input with its own first element."""
    arrays = view.arrays().items()
    faults = [_ignore_input(view, name, array) for name, array in arrays if array.size]
    return faults or "no input holds anything"


def _ignore_input(view: View, name: str | int, array: np.ndarray) -> Fault:
    more = "a padded batch" if "mask" in str(name).lower() else "one in which it varies"
    constant = bool((array == array.flat[0]).all())
    hint = f"{name} holds {array.flat[0]} alone: give {more}" if constant else ""
    return _change_input(view, name, _repeat_first_element, hint)


@plantable("an input's gradient stopped")
def stop_inputs(view: View) -> Found:
    """Let no gradient reach a float input."""
    floats = [name for name, array in view.arrays().items() if array.dtype.kind == "f"]
    faults = [_change_input(view, name, lambda tensor: tensor.detach()) for name in floats]
    return [replace(fault, noted="input gradient") for fault in faults] or "no input is of floats"


def _change_input(
    view: View, name: str | int, change: Callable[[paddle.Tensor], paddle.Tensor], hint: str = ""
) -> Fault:
    """Return a fault that gives the model change(tensor) for one of its inputs."""

    def forward(own: Forward, *args: Any, **kwargs: Any) -> Any:
        if isinstance(name, str):
            return own(*args, **{**kwargs, name: change(kwargs[name])})
        given = [change(tensor) if n == name else tensor for n, tensor in enumerate(args)]
        return own(*given, **kwargs)

    return fault_at(str(name), partial(replace_forward, view.side.model, forward), hint)


def _repeat_first_element(tensor: paddle.Tensor) -> paddle.Tensor:
    return tensor.reshape([-1])[:1].reshape([1] * tensor.ndim).expand_as(tensor)


@plantable("first example used for all")
def repeat_first_example(view: View) -> Found:
    """Compute the first example in place of every other one."""
    arrays = [array for array in view.arrays().values() if array.ndim]
    if not arrays:
        return "no input has a batch"

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
