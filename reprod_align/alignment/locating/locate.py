"""Finds where two models part, by giving the port the reference's numbers wherever the two meet.

Every paired module of the port gets the reference's inputs, and hands on the reference's outputs;
in the backward pass the same with gradients. So each call is judged by what it adds itself: a
module's own output, what a composite's own code does between its children, what a backward pass
does to a gradient. No fault hides another, and none is inherited.

A value through which no gradient flows (a mask, position ids) may follow another convention on
each side. Such values are given to the port in one pass and left alone in another: a fault of the
module itself shows in both, one that only shows when they are left alone was made with them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from reprod_align.alignment.locating.pins import ReferencePins
from reprod_align.base.difference import Gap, gap, magnitude
from reprod_align.model.leaf import (
    PASSED_ON,
    LeafPair,
    find_unpaired,
    hide_different_places,
    hide_same_places,
    is_mask,
    sum_gradients,
)
from reprod_align.model.trace import Array, Call, Leaf, Trace

import numpy as np

Stage = Literal["forward", "backward"]
_FLOOR = 1e-13  # of the largest value that the call meets: what rounding leaves where zero is due


@dataclass(frozen=True)
class Fault:
    """A place at which the port, given the reference's numbers, computes others."""

    stage: Stage
    torch_path: str
    paddle_path: str
    gap: Gap
    where: str
    """what differs, in words"""
    tick: int
    """when it showed, on the clock of the port's run"""
    torch_call: Call
    paddle_call: Call
    own_code: bool
    """True: between or after the children of a composite; False: in the module itself"""
    expected: Array | None = None
    """the reference's tensor in the port's layout, or its gradient"""
    actual: Array | None = None
    made_with: bool = False
    """True: a mask or index made there is at fault"""
    stock: bool = False
    """True: in a layer of the framework's own"""
    cut: bool = False
    """True: no gradient flows here on one side alone"""
    kink: bool = False
    """True: only where an activation's slope jumps, which each framework settles its own way"""


def forward_faults(reference: Trace, free: Trace, given: Trace, pins: ReferencePins) -> list[Fault]:
    """Return the faults of the forward pass, in the order in which they show.

    free and given: the port's traces with values that carry no gradient left alone, and given.
    """
    shown = {_id(fault): fault for fault in _forward(reference, free, pins)}
    given_too = {_id(fault) for fault in _forward(reference, given, pins)}
    faults = [fault for key, fault in shown.items() if key in given_too]
    if len(faults) < len(shown):
        makers = _makers(reference, free, pins)
        faults += makers[:1] if makers else [f for k, f in shown.items() if k not in given_too]
    faults = [_traced_up(fault, reference, free, pins) for fault in faults]
    return sorted(faults, key=lambda fault: fault.tick)


def _traced_up(fault: Fault, reference: Trace, trace: Trace, pins: ReferencePins) -> Fault:
    """Return the fault moved up from a module that can't be blamed to the one that can.

    A composite that was never given the mask can't be blamed for not using it: the one above that
    has it can. Nor can the framework's own layer, set as its counterpart is, be blamed for a mask
    of another kind that it was given.
    """
    place = _place(fault, reference, trace)
    if place is None or pins.counterpart(place[1]) is not place[0]:
        return fault
    if place[1].path in pins.altered:  # its own setting is reason enough
        return fault
    if pins.masks_agree or (_before_masks(fault) and not fault.made_with):
        return fault
    if not fault.made_with and place[1].path in pins.layers and _constants_differ(*place, pins):
        return _above_layers(fault, place[1], trace, pins)
    if _given_other_mask(*place, pins):
        return _above_masks(fault, *place, reference, trace, pins)
    other, call = place
    while _missing(other, call):
        above = _paired_above(other, call, reference, trace, pins)
        if above is None:
            return fault
        if not _missing(*above):
            where = f"it has a mask or index that it does not hand to {call.path}"
            return replace(fault, torch_path=above[0].path, paddle_path=above[1].path, where=where)
        other, call = above
    return fault


def _paired_above(
    other: Call, call: Call, reference: Trace, trace: Trace, pins: ReferencePins
) -> tuple[Call, Call] | None:
    """Return the innermost calls around the two that stand for one another."""
    around = set()
    while other.parent is not None:
        other = reference.calls[other.parent]
        around.add(id(other))
    while call.parent is not None:
        call = trace.calls[call.parent]
        found = pins.counterpart(call)
        if found is not None and id(found) in around:
            return found, call
    return None


def _given_other_mask(other: Call, call: Call, pins: ReferencePins) -> bool:
    """Tell whether the two were given masks that could not be paired and hide different places."""
    pairs = pins.pairs(other, call, "inputs")
    taken = {pair.expected for pair in pairs}, {pair.actual for pair in pairs}
    ours = [leaf.array for at, leaf in other.inputs.items()
            if at not in taken[0] and not leaf.differentiable]  # fmt: skip
    theirs = [leaf.array for at, leaf in call.inputs.items()
              if at not in taken[1] and not leaf.differentiable]  # fmt: skip
    return any(hide_different_places(mask, made) for mask in ours for made in theirs)


def _above_masks(
    fault: Fault, other: Call, call: Call, reference: Trace, trace: Trace, pins: ReferencePins
) -> Fault:
    """Return the fault moved up to the first module that hands on a mask which hides other places."""
    while True:
        given, above = call.path, _paired_above(other, call, reference, trace, pins)
        if above is None:
            return fault
        other, call = above
        if not _given_other_mask(other, call, pins):
            where = f"the mask or index it hands to {given} hides other places"
            return replace(fault, torch_path=other.path, paddle_path=call.path, where=where,
                           made_with=True)  # fmt: skip


def _above_layers(fault: Fault, call: Call, trace: Trace, pins: ReferencePins) -> Fault:
    """Return the fault moved up to the user's own code that gave the framework's layer its mask."""
    given = call.path
    lacks = all(leaf.differentiable for leaf in call.inputs.values())
    while call.parent is not None:
        call = trace.calls[call.parent]
        other = pins.counterpart(call)
        if call.path not in pins.layers and other is not None and not _missing(other, call):
            where = f"the mask or index it hands to {given} is not what that layer takes"
            if lacks:
                where = f"it hands no mask or index to {given}, and PyTorch does"
            return replace(fault, torch_path=other.path, paddle_path=call.path, where=where)
        if call.path in pins.layers:
            given = call.path
    return fault


def _place(fault: Fault, reference: Trace, trace: Trace) -> tuple[Call, Call] | None:
    """Return the calls of the module at fault on both sides."""
    other, call = fault.torch_call, fault.paddle_call
    if fault.paddle_path == call.path and fault.torch_path == other.path:
        return other, call
    if call.parent is None or other.parent is None:
        return None
    return reference.calls[other.parent], trace.calls[call.parent]


def _constants_differ(other: Call, call: Call, pins: ReferencePins) -> bool:
    """Tell whether the two were given different masks or indices, or of different kinds."""
    counts = [sum(not leaf.differentiable for leaf in c.inputs.values()) for c in (other, call)]
    pairs = [pair for pair in pins.pairs(other, call, "inputs")
             if not other.inputs[pair.expected].differentiable]  # fmt: skip
    same = [_gap(pair, other.inputs[pair.expected].array, call.inputs[pair.actual].array, 0.0).ok
            for pair in pairs]  # fmt: skip
    return max(counts) > 0 and (len(pairs) < max(counts) or not all(same))


def _before_masks(fault: Fault) -> bool:
    """Tell whether the fault is in what goes to a module that has yet to use the mask it is given."""
    handed = fault.own_code and fault.paddle_path != fault.paddle_call.path
    return handed and any(not leaf.differentiable for leaf in fault.paddle_call.inputs.values())


def _missing(other: Call, call: Call) -> bool:
    """Tell whether the reference's call was given more values without gradient than the port's."""
    counts = [sum(not leaf.differentiable for leaf in c.inputs.values()) for c in (other, call)]
    return counts[0] > counts[1]


def backward_faults(
    reference: Trace, given: Trace, pins: ReferencePins, noise: float = 0.0
) -> list[Fault]:
    """Return the faults of the backward pass, in the order in which it meets them.

    noise: how far the outputs are apart where they agree, relative; gradients can't agree better.
    Where the code of a module cuts the gradient, layers in it that get none are not at fault.
    """
    faults = list(_backward(reference, given, pins, noise))
    cuts = {fault.paddle_path for fault in faults if fault.cut}
    own = [
        f for f in faults if f.cut or not f.stock or given.parent_path(f.paddle_call) not in cuts
    ]
    return sorted(own, key=lambda fault: -fault.tick)


def _id(fault: Fault) -> tuple[object, ...]:
    return fault.torch_path, fault.paddle_path, fault.paddle_call.key, fault.where.partition(":")[0]


def _met(reference: Trace, trace: Trace, pins: ReferencePins) -> Iterator[tuple[Call, Call]]:
    for call in trace.calls:
        other = pins.counterpart(call)
        if other is not None:
            yield other, call


def _forward(reference: Trace, trace: Trace, pins: ReferencePins) -> Iterator[Fault]:
    blind = all(leaf.gradient is None for leaf in reference.outputs.values())
    for other, call in _met(reference, trace, pins):
        above = reference.parent_path(other), trace.parent_path(call)
        floor = _floor(other)
        for pair in pins.pairs(other, call, "inputs"):
            leaf, actual = other.inputs[pair.expected], call.inputs[pair.actual].array
            if leaf.differentiable and call.parent is not None:
                found = _gap(pair, leaf.array, actual, floor)
                if not found.ok and (blind or _matters(pair, leaf, actual, found.tolerance)):
                    where = f"what it hands to {call.path}: {found.words}"
                    laid = pair.to_port(leaf.array)
                    yield Fault("forward", *above, found, where, call.began, other, call, True,
                                laid, actual)  # fmt: skip
        if call.finished >= 0:
            yield from _output_faults(other, call, floor, trace, pins, blind)


def _output_faults(
    other: Call, call: Call, floor: float, trace: Trace, pins: ReferencePins, blind: bool
) -> Iterator[Fault]:
    has_children = any(c.parent is not None and trace.calls[c.parent] is call for c in trace.calls)
    pairs = pins.pairs(other, call, "outputs")
    misfit = find_unpaired(other.outputs, call.outputs, pairs)
    if misfit is not None and _inputs_fit(other, call, pins) and not pins.of_two_kinds(call):
        shapes = other.outputs[misfit[0]].array.shape, call.outputs[misfit[1]].array.shape
        found = Gap(np.inf, 0.0, 0.0, "")
        where = f"its output: shape {shapes[0]} in PyTorch, {shapes[1]} in Paddle"
        yield Fault("forward", other.path, call.path, found, where,
                    call.finished, other, call, has_children)  # fmt: skip
    stock = call.path in pins.layers
    for pair in pairs:
        leaf = other.outputs[pair.expected]
        actual = call.outputs[pair.actual].array
        found = _gap(pair, leaf.array, actual, floor)
        if not found.ok and (blind or _matters(pair, leaf, actual, found.tolerance)):
            named = f" {pair.expected}" if pair.expected and len(other.outputs) > 1 else ""
            where = f"its output{named}: {found.words}"
            laid = pair.to_port(leaf.array)
            yield Fault("forward", other.path, call.path, found, where, call.finished, other, call,
                        has_children, laid, actual, stock=stock)  # fmt: skip


def _handed_by(
    pair: LeafPair, other: Call, call: Call, reference: Trace, trace: Trace, pins: ReferencePins
) -> tuple[str, str]:
    """Return the modules that made what two calls are given, not those that only hand it on.

    In a pair of modules both must hand it on; one that has no counterpart may do so by itself.
    """
    ours, theirs = other.inputs[pair.expected], call.inputs[pair.actual]
    while other.parent is not None and call.parent is not None:
        first, second = reference.calls[other.parent], trace.calls[call.parent]
        passed = _holds(first, "inputs", ours), _holds(second, "inputs", theirs)
        if not any(passed) or (not all(passed) and pins.counterpart(second) is first):
            break
        other, call = first if passed[0] else other, second if passed[1] else call
    return reference.parent_path(other), trace.parent_path(call)


def _taken_by(
    pair: LeafPair, other: Call, call: Call, reference: Trace, trace: Trace, pins: ReferencePins
) -> tuple[str, str]:
    """Return the modules that compute with what two calls give, not those that only hand it out."""
    ours, theirs = other.outputs[pair.expected], call.outputs[pair.actual]
    while other.parent is not None and call.parent is not None:
        first, second = reference.calls[other.parent], trace.calls[call.parent]
        passed = _holds(first, "outputs", ours), _holds(second, "outputs", theirs)
        if not any(passed) or pins.counterpart(second) is first:
            break
        other, call = first if passed[0] else other, second if passed[1] else call
    return reference.parent_path(other), trace.parent_path(call)


def _holds(call: Call, which: Literal["inputs", "outputs"], leaf: Leaf) -> bool:
    """Tell whether a call, not the model's own, has this value among its inputs or outputs."""
    values = call.inputs if which == "inputs" else call.outputs
    return call.parent is not None and any(
        value.differentiable == leaf.differentiable and np.array_equal(value.array, leaf.array)
        for value in values.values()
    )


def _inputs_fit(other: Call, call: Call, pins: ReferencePins) -> bool:
    """Tell whether every input of the one call has a counterpart of its shape among the other's."""
    pairs = pins.pairs(other, call, "inputs")
    return len(pairs) == len(other.inputs) == len(call.inputs)


def _makers(reference: Trace, trace: Trace, pins: ReferencePins) -> list[Fault]:
    """Return where a value that carries no gradient is first handed on differently."""
    faults = []
    for other, call in _met(reference, trace, pins):
        if call.parent is None:
            continue
        for pair in pins.pairs(other, call, "inputs"):
            leaf, actual = other.inputs[pair.expected], call.inputs[pair.actual]
            found = _gap(pair, leaf.array, actual.array, _floor(other))
            convention = _is_convention(leaf.array, actual.array)
            if not leaf.differentiable and not found.ok and not convention:
                above = _handed_by(pair, other, call, reference, trace, pins)
                handed = "the mask or index" if is_mask(leaf.array) else "what"
                where = f"{handed} it hands to {call.path}: {found.words}"
                laid = pair.to_port(leaf.array)
                faults.append(
                    Fault("forward", *above, found, where, call.began, other, call, True,
                          laid, actual.array, made_with=True)
                )  # fmt: skip
    return faults


def _is_convention(expected: Array, actual: Array) -> bool:
    """Tell whether one mask is of 0 and 1 and the other added, and both hide the same places."""
    ones = [bool(np.isin(mask, (0, 1)).all()) for mask in (expected, actual)]
    return ones[0] != ones[1] and hide_same_places(expected, actual)


def _backward(reference: Trace, trace: Trace, pins: ReferencePins, noise: float) -> Iterator[Fault]:
    largest = max((_gradient_scale(call) for call in reference.calls), default=0.0)
    floor = max(_FLOOR, PASSED_ON * noise) * largest
    for other, call in _met(reference, trace, pins):
        own = (other.path, call.path)
        above = reference.parent_path(other), trace.parent_path(call)
        for pair in pins.pairs(other, call, "outputs"):
            ours, theirs = other.outputs[pair.expected], call.outputs[pair.actual]
            cut = _cut(ours.differentiable, theirs.differentiable)
            if cut and magnitude(ours.gradient) + magnitude(theirs.gradient) > 0:
                found = _gradient_gap(pair, ours.gradient, theirs.gradient, floor)
                layer = call.path in pins.layers  # stops no gradient: the code around it does
                at = above if layer else own
                where = f"{cut} at {call.path}" if layer else cut
                yield Fault("backward", *at, found, where, call.finished, other, call, layer,
                            cut=True)  # fmt: skip
            elif call.parent is not None and ours.differentiable:
                found = _gradient_gap(pair, ours.gradient, theirs.gradient, floor)
                if not found.ok:
                    where = f"the gradient it gives back to {call.path}: {found.words}"
                    by = _taken_by(pair, other, call, reference, trace, pins)
                    yield Fault("backward", *by, found, where, call.finished, other, call, True,
                                pair.to_port(ours.gradient), theirs.gradient)  # fmt: skip
        pairs = pins.pairs(other, call, "inputs")
        turned = [LeafPair(pair.actual, pair.expected, None) for pair in pairs]
        expected, actual = sum_gradients(other.inputs, pairs), sum_gradients(call.inputs, turned)
        for pair in pairs:
            ours = replace(other.inputs[pair.expected], gradient=expected[pair.expected])
            theirs = replace(call.inputs[pair.actual], gradient=actual[pair.actual])
            cut = _cut(ours.differentiable, theirs.differentiable)
            if cut and magnitude(ours.gradient) + magnitude(theirs.gradient) > 0:
                found = _gradient_gap(pair, ours.gradient, theirs.gradient, floor)
                where = f"{cut} before {call.path}"
                by = _handed_by(pair, other, call, reference, trace, pins)
                yield Fault("backward", *by, found, where, call.began, other, call, True,
                            cut=True)  # fmt: skip
            elif ours.differentiable:
                found = _gradient_gap(pair, ours.gradient, theirs.gradient, floor)
                if not found.ok:
                    where = f"the gradient of its input: {found.words}"
                    stock = call.path in pins.layers
                    kink = stock and _at_kinks(pair, ours, theirs, found)
                    yield Fault("backward", *own, found, where, call.began, other, call, False,
                                pair.to_port(ours.gradient), theirs.gradient,
                                stock=stock, kink=kink)  # fmt: skip


def _at_kinks(pair: LeafPair, ours: Leaf, theirs: Leaf, found: Gap) -> bool:
    """Tell whether the gradients differ only where the input is zero."""
    expected, values = pair.to_port(ours.gradient), pair.to_port(ours.array)
    if expected is None or values is None or theirs.gradient is None:
        return False
    apart = np.abs(theirs.gradient - expected) > found.tolerance
    return bool((np.abs(values[apart]) <= 1e-15 * magnitude(values)).all())


def _cut(expected: bool, actual: bool) -> str:
    if expected == actual:
        return ""
    if expected:
        return "the gradient is stopped in Paddle (detach or stop_gradient) and not in PyTorch"
    return "the gradient is stopped in PyTorch (detach or no_grad) and not in Paddle"


def _gap(pair: LeafPair, expected: Array, actual: Array, floor: float) -> Gap:
    laid = pair.to_port(expected)
    return gap(expected if laid is None else laid, actual, floor=floor)


def _gradient_gap(
    pair: LeafPair, expected: Array | None, actual: Array | None, floor: float
) -> Gap:
    """Compare two gradients; one that never arrived is zero."""
    laid = pair.to_port(expected)
    like = laid if laid is not None else actual
    if like is None:
        return gap(np.zeros(1), np.zeros(1))
    zeros = np.zeros(like.shape)
    return gap(zeros if laid is None else laid, zeros if actual is None else actual, floor=floor)


def _floor(call: Call) -> float:
    leaves = [*call.inputs.values(), *call.outputs.values()]
    return _FLOOR * max(
        (magnitude(leaf.array) for leaf in leaves if leaf.differentiable), default=0.0
    )


def _gradient_scale(call: Call) -> float:
    leaves = [*call.inputs.values(), *call.outputs.values()]
    return max((magnitude(leaf.gradient) for leaf in leaves), default=0.0)


def _matters(pair: LeafPair, leaf: Leaf, actual: Array, tolerance: float) -> bool:
    """Tell whether the difference lies where the outputs depend on it: not in padding, say."""
    if not leaf.differentiable:
        return True
    gradient, expected = pair.to_port(leaf.gradient), pair.to_port(leaf.array)
    if gradient is None or expected is None:
        return False
    if expected.shape != actual.shape:
        return True
    with np.errstate(all="ignore"):
        distance = np.abs(actual.astype(np.float64) - expected.astype(np.float64))
    apart = ~(distance <= tolerance) & (actual != expected)
    felt = np.abs(gradient) > 1e-12 * magnitude(gradient)
    return bool((apart & felt).any())
