"""Says where a comparison that passed shows little: nothing was computed, or nothing could differ."""

from collections.abc import Iterator, Mapping

from reprod_align.alignment.comparing import Pass
from reprod_align.base.blocks import magnitude
from reprod_align.base.text import shorten
from reprod_align.model.side import Inputs, ModelInfo

import numpy as np

_DEEP = 8
"""called modules with weights above which two frameworks never round alike throughout"""
_NAMED = 6  # names in one remark


def doubts(done: Pass, inputs: Inputs, info: ModelInfo) -> Iterator[str]:
    """Yield a remark for everything that makes the agreement in a pass mean less than it seems.

    info: of the PyTorch model.
    """
    if _is_identical(done, info):
        yield (
            "the outputs are bit for bit the same, which is rare for two frameworks: "
            "check that both models really compute"
        )
    yield from _constant_inputs(inputs)
    yield from _constant_outputs(done)
    yield from _nan_outputs(done)
    yield from _uncalled(done, info)


def nothing_finite(done: Pass) -> bool:
    """Tell whether no compared output holds a single finite number."""
    floats = [done.reference.outputs[pair.expected].array for pair in done.pairs]
    floats = [array for array in floats if array.dtype.kind == "f" and array.size]
    return bool(floats) and not any(np.isfinite(array).any() for array in floats)


def _is_identical(done: Pass, info: ModelInfo) -> bool:
    """Tell whether the outputs of a deep model are bit for bit those of another framework's."""
    owners = {tensor.owner for tensor in info.tensors.values() if tensor.is_parameter}
    if sum(call.path in owners for call in done.reference.calls) < _DEEP:
        return False
    ours, theirs = done.reference.outputs, done.natural.outputs
    floats = [
        np.array_equal(pair.to_port(ours[pair.expected].array), theirs[pair.actual].array)
        for pair in done.pairs
        if magnitude(ours[pair.expected].array)
    ]
    return bool(floats) and all(floats)


def _constant_inputs(inputs: Inputs) -> Iterator[str]:
    """Yield a remark for each input that is one number throughout."""
    named = inputs.items() if isinstance(inputs, Mapping) else enumerate(inputs)
    for name, array in named:
        if array.size < 2 or (array != array.flat[0]).any():
            continue
        value = array.flat[0].item()
        if "mask" not in str(name):
            yield f"every element of the input {name} is {value:g}: most mistakes need input that varies"
        elif value:
            yield (
                f"the input {name} hides nothing (all {value:g}): the port's masking is tested on a "
                "derived batch at most, without gradients"
            )
        else:
            yield f"the input {name} hides everything (all 0): nothing is left to compare behind it"


def _constant_outputs(done: Pass) -> Iterator[str]:
    """Yield a remark for each compared output that is one number throughout."""
    for pair in done.pairs:
        array = done.reference.outputs[pair.expected].array
        if array.size > 1 and array.dtype.kind == "f" and not (array != array.flat[0]).any():
            name = pair.expected or "the output"
            yield f"{name} is {array.flat[0]:g} everywhere: its agreement shows little"


def _nan_outputs(done: Pass) -> Iterator[str]:
    """Yield a remark for each compared output that is NaN in places: on both sides, since they agree."""
    for pair in done.pairs:
        array = done.reference.outputs[pair.expected].array
        count = int(np.isnan(array).sum()) if array.dtype.kind in "fc" else 0
        if count:
            name = pair.expected or "the output"
            yield f"{name} is NaN on both sides in {count} of {array.size} places: they show nothing"


def doubt_gradients(done: Pass, info: ModelInfo) -> Iterator[str]:
    """Yield a remark on the reference's parameters whose gradient is zero or missing."""
    names = [name for name, t in info.tensors.items() if t.is_trainable and t.tie == name]
    silent = [name for name in names if not magnitude(info.find(done.reference.gradients, name))]
    if not any(leaf.differentiable for leaf in done.reference.outputs.values()):
        return
    if names and len(silent) == len(names):
        yield "no parameter gets a gradient: the backward pass is not tested"
    elif silent:
        yield f"zero gradient on this batch, so not tested: {shorten(silent, _NAMED)}"


def _uncalled(done: Pass, info: ModelInfo) -> Iterator[str]:
    """Yield a remark on modules with parameters of their own that no call passed through."""
    called = {call.path for call in done.reference.calls}
    owners = dict.fromkeys(t.owner for t in info.tensors.values() if t.is_parameter)
    missed = [owner or "the model" for owner in owners if owner not in called]
    if missed:
        yield f"never called as a module (unused, or used from outside): {shorten(missed, _NAMED)}"
