"""The reference's numbers, to be put in place of the port's own as it runs."""

from collections.abc import Mapping, Set
from dataclasses import replace

from reprod_align.model.leaf import LeafPair, pair_leaves, sum_gradients
from reprod_align.model.trace import Call, Trace
from reprod_align.model.watch import Pin

import numpy as np


class ReferencePins:
    """Gives the port the reference's values and gradients, call by call."""

    def __init__(
        self,
        reference: Trace,
        natural: Trace,
        names: Mapping[str, str],
        layers: Set[str],
        same_kind: Set[str],
        altered: Set[str],
        constants: bool,
        masks_agree: bool = False,
    ) -> None:
        """Take the reference's trace and the port's own; `names`: port's module -> reference's.

        layers: the port's modules that are the framework's own layers. same_kind: those of them
        whose counterpart is of the same kind. altered: those set otherwise than their counterpart.
        constants: whether values that carry no gradient are given as well. masks_agree: whether a
        mask can't be at fault, since all agrees in another mode.
        """
        self.layers, self.altered, self._same_kind = layers, altered, same_kind
        self.masks_agree = masks_agree
        self._calls, self._names, self._constants = reference.by_key(), names, constants
        ours, theirs = reference.counts(), natural.counts()
        self._alike = {path for path, name in names.items() if theirs[path] == ours[name]}
        self._pairs: dict[tuple[int, int, str], tuple[Call, Call, list[LeafPair]]] = {}
        self._all = not any(leaf.differentiable for leaf in reference.outputs.values())

    def counterpart(self, call: Call) -> Call | None:
        """Return the reference's call that stands for the port's, if there is one."""
        if call.path not in self._alike:
            return None
        return self._calls.get((self._names[call.path], call.index))

    def of_two_kinds(self, call: Call) -> bool:
        """Tell whether the port has a layer of the framework's own where the reference has another."""
        return call.path in self.layers and call.path not in self._same_kind

    def pairs(self, other: Call, call: Call, which: str) -> list[LeafPair]:
        """Return which leaves of the two calls, inputs or outputs, stand for one another."""
        key = id(other), id(call), which
        known = self._pairs.get(key)
        if known is None or known[0] is not other or known[1] is not call:
            ours, theirs = getattr(other, which), getattr(call, which)
            alike = call.path in self._same_kind and len(ours) == len(theirs)
            inside = call.parent is not None
            known = self._pairs[key] = other, call, pair_leaves(ours, theirs, alike, inside)
        return known[2]

    def inputs(self, call: Call) -> dict[str, Pin]:
        """Return pins for the leaves of call.inputs."""
        return self._pins(call, "inputs")

    def outputs(self, call: Call) -> dict[str, Pin]:
        """Return pins for the leaves of call.outputs."""
        return self._pins(call, "outputs")

    def _pins(self, call: Call, which: str) -> dict[str, Pin]:
        other = self.counterpart(call)
        if other is None:
            return {}
        pairs = self.pairs(other, call, which)
        leaves, gradients = getattr(other, which), sum_gradients(getattr(other, which), pairs)
        pins = {}
        for pair in pairs:
            leaf = leaves[pair.expected]
            if which == "outputs" or self._wanted(leaf.differentiable):
                gradient = pair.to_port(gradients[pair.expected])
                pins[pair.actual] = Pin(pair.to_port(leaf.array), gradient, leaf.differentiable)
        if which == "inputs":
            pins.update(self._copies(call, pairs, pins))
        return pins

    def _copies(self, call: Call, pairs: list[LeafPair], pins: Mapping[str, Pin]) -> dict[str, Pin]:
        """Return pins for inputs that are a pinned one again: its gradient counts once."""
        again = {}
        for at, leaf in call.inputs.items():
            for pair in pairs if at not in pins and leaf.differentiable else ():
                pin = pins.get(pair.actual)
                if pin is not None and np.array_equal(call.inputs[pair.actual].array, leaf.array):
                    again[at] = replace(pin, gradient=np.zeros(leaf.array.shape))
                    break
        return again

    def _wanted(self, differentiable: bool) -> bool:
        return differentiable or self._constants or self._all


class EndPins:
    """Gives the port the reference's outputs alone: what the loss is judged on."""

    def __init__(self, reference: Trace) -> None:
        """Take the reference's trace."""
        self._outputs = reference.outputs

    def inputs(self, call: Call) -> dict[str, Pin]:
        """Return nothing: inputs stay as they are."""
        return {}

    def outputs(self, call: Call) -> dict[str, Pin]:
        """Return pins for the model's own outputs."""
        if call.parent is not None:
            return {}
        pairs = pair_leaves(self._outputs, call.outputs)
        return {p.actual: Pin(p.to_port(self._outputs[p.expected].array), None) for p in pairs}
