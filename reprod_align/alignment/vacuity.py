"""Says where a comparison that passed shows little: nothing was computed, or nothing could differ."""

from collections.abc import Iterator, Mapping, Sequence

from reprod_align.base.difference import magnitude
from reprod_align.base.text import shorten
from reprod_align.model.leaf import LeafPair
from reprod_align.model.side import Inputs, ModelInfo
from reprod_align.model.trace import Array, Leaf, Trace

import numpy as np

_DEEP = 8
"""called modules with weights above which two frameworks never round alike throughout"""
_NAMED = 6  # names in one remark


def empty_inputs(inputs: Inputs) -> Iterator[str]:
    """Yield a remark for each input that can't reveal what it stands for."""
    named = inputs.items() if isinstance(inputs, Mapping) else enumerate(inputs)
    for name, array in named:
        if array.size < 2 or (array != array.flat[0]).any():
            continue
        value = array.flat[0].item()
        if "mask" not in str(name):
            yield f"every element of the input {name} is {value:g}: most mistakes need input that varies"
        elif value:
            yield f"the input {name} hides nothing (all {value:g}): how the port masks is not tested"
        else:
            yield f"the input {name} hides everything (all 0): nothing is left to compare behind it"


def empty_outputs(outputs: Mapping[str, Leaf], pairs: Sequence[LeafPair]) -> Iterator[str]:
    """Yield a remark for each compared output that is constant."""
    for pair in pairs:
        array = outputs[pair.expected].array
        if array.size > 1 and array.dtype.kind == "f" and not (array != array.flat[0]).any():
            name = pair.expected or "the output"
            yield f"{name} is {array.flat[0]:g} everywhere: that it agrees shows little"


def nothing_finite(outputs: Mapping[str, Leaf], pairs: Sequence[LeafPair]) -> bool:
    """Tell whether no compared output holds a single finite number."""
    floats = [outputs[pair.expected].array for pair in pairs]
    floats = [array for array in floats if array.dtype.kind == "f" and array.size]
    return bool(floats) and not any(np.isfinite(array).any() for array in floats)


def untested_gradients(
    gradients: Mapping[str, Array], info: ModelInfo, differentiable: bool
) -> Iterator[str]:
    """Yield a remark on the reference's parameters whose gradient is zero or missing."""
    names = [name for name, tensor in info.tensors.items() if tensor.is_trainable]
    silent = [name for name in names if not magnitude(gradients.get(name))]
    if not names or not differentiable:
        return
    if len(silent) == len(names):
        yield "no parameter gets a gradient: the backward pass is not tested"
    elif silent:
        yield f"zero gradient on this batch, so not tested: {shorten(silent, _NAMED)}"


def uncalled(trace: Trace, info: ModelInfo) -> Iterator[str]:
    """Yield a remark on modules with parameters of their own that no call passed through."""
    called = {call.path for call in trace.calls}
    owners = dict.fromkeys(t.owner for t in info.tensors.values() if t.is_parameter)
    missed = [owner or "the model" for owner in owners if owner not in called]
    if missed:
        yield f"never called as a module (unused, or used from outside): {shorten(missed, _NAMED)}"


def identical(reference: Trace, port: Trace, pairs: Sequence[LeafPair], info: ModelInfo) -> bool:
    """Tell whether the outputs of a deep model are bit for bit those of another framework's."""
    owners = {t.owner for t in info.tensors.values() if t.is_parameter}
    calls = sum(call.path in owners for call in reference.calls)
    floats = [
        (pair.turned(reference.outputs[pair.expected].array), port.outputs[pair.actual].array)
        for pair in pairs
    ]
    floats = [(a, b) for a, b in floats if a.dtype.kind == "f" and magnitude(a)]
    return calls >= _DEEP and bool(floats) and all(np.array_equal(a, b) for a, b in floats)
