"""What crosses the border of a section: its inputs and outputs in one call, their gradients."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from types import ModuleType
from typing import Any

from reprod_align.base.tree import leaves
from reprod_align.base.tree import replace as replace_leaves
from reprod_align.model.leaf import LeafPair, pair_leaves
from reprod_align.model.store import keep_copy
from reprod_align.model.trace import Leaf

import numpy as np


@dataclass
class Crossing:
    """One call of a section."""

    inputs: dict[str, Leaf]
    outputs: dict[str, Leaf]
    returned: Any
    """what the section returned, with nothing in its tensors"""


def note_inputs(fw: ModuleType, given: Any) -> Crossing:
    """Return a call that has begun; given: its (args, kwargs)."""
    return Crossing(_keep(fw, given), {}, None)


def note_outputs(fw: ModuleType, call: Crossing, output: Any) -> None:
    """Add what the call returned."""
    call.outputs = _keep(fw, output)
    call.returned = replace_leaves(output, fw.is_tensor, lambda at, _: fw.constant(np.zeros(())))


def _keep(fw: ModuleType, value: Any) -> dict[str, Leaf]:
    return {
        at: Leaf(keep_copy(fw.view(tensor)), bool(fw.carries_gradient(tensor)))
        for at, tensor in leaves(value, fw.is_tensor).items()
    }


def translate_all(ours: Sequence[Crossing], theirs: Sequence[Crossing]) -> list[Crossing]:
    """Return each of the port's crossings as `translate` does; a call of the port alone as it was."""
    pairs = zip_longest(ours, theirs)
    return [translate(first or Crossing({}, {}, None), second) for first, second in pairs if second]


def translate(ours: Crossing, theirs: Crossing) -> Crossing:
    """Return the port's crossing with the reference's values, gradients and all in its layout.

    What has no counterpart keeps the port's own values, and counts as a constant.
    """
    return Crossing(
        _translate(ours.inputs, theirs.inputs),
        _translate(ours.outputs, theirs.outputs),
        theirs.returned,
    )


def _translate(expected: Mapping[str, Leaf], actual: Mapping[str, Leaf]) -> dict[str, Leaf]:
    known = {at: replace(leaf, differentiable=False) for at, leaf in actual.items()}
    for pair in pair_leaves(expected, actual, inside=True):
        leaf = expected[pair.expected]
        if leaf.differentiable:
            known[pair.actual] = _lay(pair, leaf)
    return known


def _lay(pair: LeafPair, leaf: Leaf) -> Leaf:
    array = np.ascontiguousarray(pair.to_port(leaf.array))
    return Leaf(array, leaf.differentiable, pair.to_port(leaf.gradient))
