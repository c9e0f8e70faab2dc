"""Why a fault's numbers differ: the known mistakes are tried on what the module had at hand."""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from reprod_align.alignment.locating.fault import Fault
from reprod_align.base import PORT, REFERENCE
from reprod_align.base.blocks import Array
from reprod_align.base.text import last_part, parent
from reprod_align.causes import explain_forward, explain_gradient, explain_mask
from reprod_align.causes.mismatch import cite
from reprod_align.model.settings import ModuleSettings
from reprod_align.model.trace import Call, Trace

import numpy as np


def find_cause(
    fault: Fault,
    reference: Trace,
    weights: Mapping[str, Array],
    port: Mapping[str, ModuleSettings] = MappingProxyType({}),
) -> str:
    """Return the cause of a fault in a sentence, and what to read of it; "" if no known mistake fits.

    weights: PyTorch's. port: the settings of Paddle's modules.
    """
    if fault.expected is None or fault.actual is None:
        return ""
    if fault.stage == "backward":
        return explain_gradient(fault.expected, fault.actual)
    if fault.kind == "mask":
        return explain_mask(fault.expected, fault.actual)
    if words := _explain_boolean_mask(fault):
        return words
    given = [*_own_tensors(fault, weights), *_list_values_at_hand(fault, reference)]
    arrays, names = [array for _, array in given], [name for name, _ in given]
    kept = list(_find_scaling(port.values()))
    return explain_forward(fault.expected, fault.actual, arrays, names, kept)


def _find_scaling(modules: Iterable[ModuleSettings]) -> Iterator[float]:
    """Yield 1 - p of each dropout that multiplies by it in eval mode."""
    for known in modules:
        if known.values.get("mode") == "downscale_in_infer" and known.values.get("p"):
            yield 1 - known.values["p"]


def _explain_boolean_mask(fault: Fault) -> str:
    """Explain one boolean mask on both sides: PyTorch's layers hide where it is True, Paddle's show."""
    if not fault.stock and not fault.where.endswith("is not what that layer takes"):
        return ""
    ours, theirs = (
        [leaf.array.squeeze() for leaf in call.inputs.values() if leaf.array.dtype.kind == "b"]
        for call in (fault.calls.ours, fault.calls.theirs)
    )
    if not any(np.array_equal(one, other) for one in ours for other in theirs):
        return ""
    words = (
        f"the mask is inverted: True hides a place in {REFERENCE}'s layer and shows it in {PORT}'s"
    )
    return cite(words, "attention-boolean-mask")


def _own_tensors(fault: Fault, weights: Mapping[str, Array]) -> Iterator[tuple[str, Array]]:
    """Yield the parameters and buffers of the module itself, which its code has at hand too."""
    for name, array in weights.items():
        if parent(name) == fault.place[0]:
            yield f"its {last_part(name)}", array


def _list_values_at_hand(fault: Fault, reference: Trace) -> Iterator[tuple[str, Array]]:
    """Yield what the reference's code had when it made the value: in words, and the value."""
    call = fault.calls.ours
    whole, tick = call, call.finished
    if fault.place[0] != call.path and call.parent is not None:  # the code around the call made it
        whole, tick = reference.calls[call.parent], call.began
    for path, leaf in whole.inputs.items():
        yield "its input" if len(whole.inputs) == 1 else f"its input {path}", leaf.array
    if fault.own_code:
        yield from _list_outputs_before(whole, tick, reference)


def _list_outputs_before(whole: Call, tick: int, reference: Trace) -> Iterator[tuple[str, Array]]:
    """Yield the outputs of a module's children that had returned by then."""
    for call in reference.calls:
        inside = call.parent is not None and reference.calls[call.parent] is whole
        if inside and 0 <= call.finished < tick:
            name = call.path[len(whole.path) :].lstrip(".")
            for at, leaf in call.outputs.items():
                which = f" {at}" if len(call.outputs) > 1 else ""
                yield f"the output of {name}{which}", leaf.array
