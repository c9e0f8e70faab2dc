"""The reference's numbers, to be put in place of the port's own as it runs."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace

from reprod_align.alignment.locating.counterparts import CallPair, Counterparts, Which
from reprod_align.model.leaf import LeafPair, carries_mask, pair_leaves, sum_gradients
from reprod_align.model.trace import Call, Leaf, Trace
from reprod_align.model.watch import Pin, Pins

import numpy as np


class ReferencePins:
    """Gives the port the reference's values and gradients, call by call."""

    def __init__(self, counterparts: Counterparts, reference: Trace, constants: bool) -> None:
        """Take the reference's run; constants: masks and indices are given as well."""
        self._counterparts = counterparts
        trained = any(leaf.differentiable for leaf in reference.outputs.values())
        self._constants = constants or not trained

    def inputs(self, call: Call) -> dict[str, Pin]:
        """Return pins for the leaves of call.inputs."""
        return self._pin_all(call, "inputs")

    def outputs(self, call: Call) -> dict[str, Pin]:
        """Return pins for the leaves of call.outputs."""
        return self._pin_all(call, "outputs")

    def _pin_all(self, call: Call, which: Which) -> dict[str, Pin]:
        calls = self._counterparts.of(call)
        if calls is None:
            return {}
        pairs = self._counterparts.pair_leaves(calls, which)
        pins = self._pin(calls, pairs, which, self._constants)
        return {**pins, **_pin_copies(getattr(call, which), pairs, pins)}

    def _pin(
        self, calls: CallPair, pairs: Sequence[LeafPair], which: Which, constants: bool
    ) -> dict[str, Pin]:
        leaves = getattr(calls.ours, which)
        gradients = sum_gradients(leaves, pairs)
        pins = {}
        for pair in pairs:
            leaf = leaves[pair.expected]
            if (
                leaf.differentiable
                or constants
                or not (which == "inputs" or carries_mask(leaf.array))
            ):
                gradient = pair.to_port(gradients[pair.expected])
                pins[pair.actual] = Pin(pair.to_port(leaf.array), gradient, leaf.differentiable)
        return pins


class ChosenPins(ReferencePins):
    """Gives the port what the reference's calls of a few modules gave: outputs, and gradients of inputs."""

    def __init__(
        self, counterparts: Counterparts, reference: Trace, chosen: Container[tuple[str, int]]
    ) -> None:
        """Take the reference's run, and the keys of the port's calls."""
        super().__init__(counterparts, reference, constants=False)
        self._chosen = chosen

    def inputs(self, call: Call) -> dict[str, Pin]:
        """Return pins of the gradients; the values stay as they are."""
        pins = super().inputs(call) if call.key in self._chosen else {}
        return {at: Pin(None, pin.gradient) for at, pin in pins.items()}

    def outputs(self, call: Call) -> dict[str, Pin]:
        """Return pins of the values; the gradients stay as they are."""
        pins = super().outputs(call) if call.key in self._chosen else {}
        return {at: Pin(pin.array, None, pin.differentiable) for at, pin in pins.items()}


def differ_in_effect(call: Call, first: Pins, second: Pins) -> bool:
    """Tell whether pins change what a call of a run with the first pins took or gave in another way.

    They do not where the second pin more values, and each is what the call has there anyway.
    """
    for which in ("inputs", "outputs"):
        leaves = getattr(call, which)
        known, more = getattr(first, which)(call), getattr(second, which)(call)
        for at in more.keys() - known.keys():
            given, leaf = more[at].array, leaves[at]
            if leaf.differentiable or given is None or not np.array_equal(given, leaf.array):
                return True
    return False


def _pin_copies(
    leaves: Mapping[str, Leaf], pairs: Sequence[LeafPair], pins: Mapping[str, Pin]
) -> dict[str, Pin]:
    """Return pins for tensors that repeat a pinned one, whose gradient must count once."""
    copies = {}
    for at, leaf in leaves.items():
        if at in pins or not leaf.differentiable:
            continue
        for pair in pairs:
            pin = pins.get(pair.actual)
            if pin is not None and np.array_equal(leaves[pair.actual].array, leaf.array):
                copies[at] = replace(pin, gradient=np.zeros(leaf.array.shape))
                break
    return copies


class EndPins:
    """Gives the port the reference's outputs alone: they are what the loss is judged on."""

    def __init__(self, reference: Trace, ends: bool = False) -> None:
        """Take the reference's run; ends: no gradient goes back into the model."""
        self._outputs, self._ends = reference.outputs, ends

    def inputs(self, call: Call) -> dict[str, Pin]:
        """Return nothing: inputs stay as they are."""
        return {}

    def outputs(self, call: Call) -> dict[str, Pin]:
        """Return pins for the model's own outputs."""
        if call.parent is not None:
            return {}
        pairs = pair_leaves(self._outputs, call.outputs)
        return {
            p.actual: Pin(p.to_port(self._outputs[p.expected].array), None, ends=self._ends)
            for p in pairs
        }


class NoWayBack:
    """Lets the loss's gradient go as far as the model's own outputs, which keep their values."""

    def inputs(self, call: Call) -> dict[str, Pin]:
        """Return nothing: inputs stay as they are."""
        return {}

    def outputs(self, call: Call) -> dict[str, Pin]:
        """Return pins for the model's own outputs."""
        ends = {} if call.parent is not None else call.outputs
        return {at: Pin(None, None, ends=True) for at in ends}
