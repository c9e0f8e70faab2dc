"""What crosses the border of a section in one call, and what returns it again in the section's place.

A crossing is the inputs and outputs of one call, with their gradients. A stand-in computes in a section's
place what the section has computed before.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from types import ModuleType
from typing import Any

from reprod_align.base.text import count
from reprod_align.base.tree import leaves
from reprod_align.base.tree import replace as replace_leaves
from reprod_align.model import Leaf, LocalSide, ModuleSettings, keep_copy, pair_leaves

import numpy as np


@dataclass
class Crossing:
    """One call of a section."""

    inputs: dict[str, Leaf]
    outputs: dict[str, Leaf]
    returned: Any
    """what the section returned, with nothing in its tensors"""


Crossings = Mapping[str, Sequence[Crossing]]
"""section -> its calls, in the order in which the sections are first called"""


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
    """Return the port's crossing filled with the reference's values and gradients, in the port's layout.

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
            array = np.ascontiguousarray(pair.to_port(leaf.array))
            known[pair.actual] = Leaf(array, True, pair.to_port(leaf.gradient))
    return known


class ShownSettings:
    """A backend's `settings` for a model with stand-ins, which have none."""

    def __init__(self, settings: ModuleType) -> None:
        """Take the backend's module."""
        self._settings = settings
        self.optimizer_settings = settings.optimizer_settings

    def module_settings(self, module: Any) -> ModuleSettings:
        """Return a module's settings."""
        if isinstance(getattr(vars(module).get("forward"), "__self__", None), StandIn):
            return ModuleSettings("", "StandIn", {})
        known: ModuleSettings = self._settings.module_settings(module)
        return known


class StandIn:
    """Returns what a section returned, moved as its inputs are moved: a difference is passed on.

    In the backward pass its inputs get the gradients that the section gave them. `answer` takes the
    place of the section's forward: a method, since what an object there holds would count as the model's.
    """

    def __init__(self, side: LocalSide, crossings: Sequence[Crossing]) -> None:
        """Take the section's calls in order."""
        self._side, self._fw = side, side.fw
        self._crossings, self._calls = crossings, 0

    def begin(self) -> None:
        """Expect the first call again."""
        self._calls = 0

    def answer(self, *args: Any, **kwargs: Any) -> Any:
        """Return the section's output."""
        if self._calls == len(self._crossings):
            raise RuntimeError(
                f"called more often than in the first run: {count(self._calls, 'time')}"
            )
        crossing = self._crossings[self._calls]
        self._calls += 1
        given = leaves((args, kwargs), self._fw.is_tensor)
        moves = [
            self._measure_move(given[at], leaf)
            for at, leaf in crossing.inputs.items()
            if leaf.differentiable and at in given
        ]
        return replace_leaves(
            crossing.returned,
            self._fw.is_tensor,
            lambda at, nothing: self._give(crossing.outputs[at], moves),
        )

    def _give(self, leaf: Leaf, moves: Sequence[Any]) -> Any:
        """Return an output, moved as the inputs are; of another shape, by the largest of their moves."""
        narrow = self._side.dtype == "float32" and leaf.array.dtype == np.float64
        tensor = self._fw.constant(leaf.array.astype(np.float32 if narrow else leaf.array.dtype))
        if not leaf.differentiable:
            return tensor
        tensor = self._fw.make_differentiable(tensor)
        for move in moves:
            if tuple(move.shape) != leaf.array.shape:
                flat = move.reshape([-1])  # Paddle's own `max` takes hours in the backward pass
                move = flat[int(flat.detach().abs().argmax())]
            tensor = tensor + move
        return tensor

    def _measure_move(self, tensor: Any, leaf: Leaf) -> Any:
        """Return how far an input is from what the section got: a tensor that takes its gradient."""
        tensor, gradient = tensor.clone(), leaf.gradient
        if gradient is not None and self._fw.carries_gradient(tensor):
            self._fw.on_gradient(tensor, lambda own: self._fw.constant(np.array(gradient), own))
        return tensor - self._fw.constant(np.array(leaf.array), tensor)
