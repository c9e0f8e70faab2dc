"""Finds where the port, given the reference's numbers, computes others: forward, and backward."""

import math
from collections.abc import Iterator
from dataclasses import replace

from reprod_align.alignment.locating.counterparts import CallPair, PinnedRun, Which, find_code_with
from reprod_align.alignment.locating.fault import (
    FLOOR,
    Fault,
    Kind,
    compare_gradients,
    find_differing,
    find_misfit,
    rounding_of,
)
from reprod_align.alignment.locating.masks import blame_giver, find_makers
from reprod_align.base import PORT, REFERENCE, Role
from reprod_align.base.blocks import Array, magnitude
from reprod_align.base.difference import Gap
from reprod_align.model.trace import PASSED_ON, Leaf, LeafPair, Trace, carries_mask, sum_gradients

import numpy as np

_NO_SHAPE_FITS = Gap(np.inf, 0.0, 0.0, "")


def find_forward_faults(free: PinnedRun, given: PinnedRun, masks_agree: bool) -> list[Fault]:
    """Return the faults of the forward pass, in the order in which they show.

    free and given: runs in which values that carry no gradient (masks, indices) are the port's own,
    and the reference's. A fault of a module itself shows in both; one that shows only in the first
    was made with such a value. A mask or index that a module hands on is at fault by what is made of
    it alone. masks_agree: no mask can be at fault, since all agrees in another mode.
    """
    found = list(list_differences(free))
    faults = {fault.key: fault for fault in found if not _hands_on_mask(fault, free)}
    in_both = {fault.key for fault in (found if given is free else list_differences(given))}
    own = [fault for key, fault in faults.items() if key in in_both]
    if len(own) < len(faults):
        rest = [fault for key, fault in faults.items() if key not in in_both]
        own += [replace(maker, shown=rest[0]) for maker in find_makers(free)[:1]] or rest
    own = own or found
    if not masks_agree:
        own = [replace(blame_giver(one, free), shown=one.shown or one) for one in own]
    return sorted(own, key=lambda fault: fault.tick)


def _hands_on_mask(fault: Fault, run: PinnedRun) -> bool:
    """Tell whether a fault is in a mask or index that a module returns, and the model does not."""
    calls, mask = fault.calls, fault.expected
    if fault.place != calls.paths or mask is None or not carries_mask(mask):
        return False
    leaves = [leaf for leaf in calls.ours.outputs.values() if leaf.array.size == mask.size]
    returned = [leaf.array for leaf in run.reference.outputs.values()]
    return bool(leaves) and not any(
        leaf.differentiable or any(np.array_equal(leaf.array, array) for array in returned)
        for leaf in leaves
    )


def list_differences(run: PinnedRun) -> Iterator[Fault]:
    """Yield what differs in a run on the reference's numbers, call by call, inputs before outputs."""
    for calls in run.calls:
        floor = rounding_of(calls.ours)
        yield from _compare_inputs(run, calls, floor)
        if calls.theirs.finished >= 0:
            yield from _compare_shapes(run, calls)
            yield from _compare_outputs(run, calls, floor)


def _compare_inputs(run: PinnedRun, calls: CallPair, floor: float) -> Iterator[Fault]:
    """Yield a fault of the code around two calls for each input that it computes differently."""
    call = calls.theirs
    if call.parent is None:
        return
    for pair, found, expected, actual in find_differing(run, calls, "inputs", floor):
        ours, theirs = calls.leaves(pair, "inputs")
        if ours.differentiable:
            where = f"the value it hands to {call.path}: {found.words}"
            place = find_code_with(run, calls, ours, theirs, "inputs")
            yield Fault("forward", place, found, where, call.began, calls, True,
                        expected, actual, judge=run.judge_values(calls, pair, "inputs"))  # fmt: skip


def _compare_outputs(run: PinnedRun, calls: CallPair, floor: float) -> Iterator[Fault]:
    """Yield a fault of a module for each output that it computes differently from equal inputs."""
    call = calls.theirs
    for pair, found, expected, actual in find_differing(run, calls, "outputs", floor):
        named = f" {pair.expected}" if pair.expected and len(calls.ours.outputs) > 1 else ""
        yield Fault("forward", calls.paths, found, f"its output{named}: {found.words}", call.finished,
                    calls, run.has_children(call), expected, actual, stock=run.is_stock(calls),
                    judge=run.judge_values(calls, pair, "outputs"))  # fmt: skip


def _compare_shapes(run: PinnedRun, calls: CallPair) -> Iterator[Fault]:
    """Yield a fault of a module that makes an output of another shape from inputs that fit."""
    ours, theirs = calls.ours, calls.theirs
    misfit = _find_misshapen(run, calls)
    if misfit is not None and not _is_handed_on(run, calls, misfit[1]):
        shapes = ours.outputs[misfit[0]].array.shape, theirs.outputs[misfit[1]].array.shape
        where = f"its output: shape {shapes[0]} in {REFERENCE}, {shapes[1]} in {PORT}"
        yield Fault("forward", calls.paths, _NO_SHAPE_FITS, where, theirs.finished, calls,
                    run.has_children(theirs))  # fmt: skip


def _find_misshapen(run: PinnedRun, calls: CallPair) -> tuple[str, str] | None:
    """Return an output of each side, of two shapes, that the call answers for; None where there is none.

    Where its inputs have another shape, or it is another layer, the module around it answers for it.
    """
    pairs = run.pair_leaves(calls, "inputs")
    inputs_fit = len(pairs) == len(calls.ours.inputs) == len(calls.theirs.inputs)
    if not inputs_fit or run.counterparts.is_other_layer(calls.theirs):
        return None
    return find_misfit(run, calls)


def _is_handed_on(run: PinnedRun, calls: CallPair, at: str) -> bool:
    """Tell whether a module inside answers for an output that fits none of the reference's."""
    call = calls.theirs
    for one in run.calls:
        inside = call.began < one.theirs.began and one.theirs.finished < call.finished
        misfit = _find_misshapen(run, one) if inside else None
        if misfit is not None:
            if np.array_equal(one.theirs.outputs[misfit[1]].array, call.outputs[at].array):
                return True
    return False


def find_resized_input(fault: Fault, run: PinnedRun) -> Fault | None:
    """Return a fault as it shows first: where a module's own code hands on a tensor of another size.

    Nothing after it can be compared until the sizes meet again: an image that was not pooled, averaged at
    the end. None where every tensor that the code hands on before has the size of PyTorch's.
    """
    if not fault.own_code or fault.stage != "forward" or fault.kind != "number":
        return None
    for calls in run.calls:
        call = calls.theirs
        around = None if run.has_children(call) else run.counterparts_around(calls)
        while around is not None and around.theirs.path not in run.modules:  # nothing compares it
            around = run.counterparts_around(around)
        if around is None or around.paths != fault.place or call.began >= fault.tick:
            continue
        sides = calls.ours.inputs, call.inputs
        ours, theirs = ([leaf for leaf in side.values() if leaf.differentiable] for side in sides)
        shapes = [leaf.array.shape for leaf in (*ours, *theirs)]
        if len(ours) != 1 or len(theirs) != 1 or shapes[0][:1] != shapes[1][:1]:
            continue  # each side may deal out the rows of a batch in its own way, as to experts
        if math.prod(shapes[0]) != math.prod(shapes[1]):
            words = f"shape {shapes[0]} in {REFERENCE}, {shapes[1]} in {PORT}"
            where = f"the value it hands to {call.path}: {words}"
            return replace(fault, gap=_NO_SHAPE_FITS, where=where, tick=call.began, calls=calls,
                           expected=ours[0].array, actual=theirs[0].array)  # fmt: skip
    return None


def find_backward_faults(run: PinnedRun, noise: float = 0.0) -> list[Fault]:
    """Return the faults of the backward pass, in the order in which it meets them.

    noise: how far the outputs are apart where they agree, relative; gradients can't agree better.
    Where the code of a module cuts the gradient, layers in it that get none are not at fault.
    """
    floor = max(FLOOR, PASSED_ON * noise) * find_largest_gradient(run.reference)
    faults = [fault for calls in run.calls for fault in _find_at(run, calls, floor)]
    cuts = {fault.place[1] for fault in faults if fault.kind == "cut"}
    own = [
        fault
        for fault in faults
        if fault.kind == "cut" or not fault.stock or run.code_around(fault.calls)[1] not in cuts
    ]
    return sorted(own, key=lambda fault: -fault.tick)


def _find_at(run: PinnedRun, calls: CallPair, floor: float) -> Iterator[Fault]:
    """Yield the faults that show at two calls: at their outputs, then at their inputs.

    Of calls that one side alone makes under `no_grad` the outermost says so; the rest follows from it.
    """
    silenced, around = run.is_silenced(calls), run.counterparts_around(calls)
    if silenced and around is not None and run.is_silenced(around):
        return
    for which, pair, ours, theirs in pair_gradients(run, calls):
        if silenced and (which == "inputs" or not _describe_cut(ours, theirs)):
            continue
        compare = _compare_output if which == "outputs" else _compare_input
        yield from compare(run, calls, pair, ours, theirs, floor)


def pair_gradients(run: PinnedRun, calls: CallPair) -> Iterator[tuple[Which, LeafPair, Leaf, Leaf]]:
    """Yield the tensors of two calls that stand for each other, with their gradients: outputs first.

    The gradient of a tensor is that of all inputs, or all outputs, of the same value: a cell of
    Paddle gives its state twice.
    """
    sides: tuple[Which, Which] = ("outputs", "inputs")
    for which in sides:
        pairs = run.pair_leaves(calls, which)
        reverse = [LeafPair(pair.actual, pair.expected, None) for pair in pairs]
        expected = sum_gradients(getattr(calls.ours, which), pairs)
        actual = sum_gradients(getattr(calls.theirs, which), reverse)
        for pair in pairs:
            ours, theirs = calls.leaves(pair, which)
            ours = Leaf(ours.array, ours.differentiable, expected[pair.expected])
            theirs = Leaf(theirs.array, theirs.differentiable, actual[pair.actual])
            yield which, pair, ours, theirs


def _compare_output(
    run: PinnedRun, calls: CallPair, pair: LeafPair, ours: Leaf, theirs: Leaf, floor: float
) -> Iterator[Fault]:
    """Yield a fault if the gradient that arrives at an output differs: by the code that uses it."""
    call, cut = calls.theirs, _describe_cut(ours, theirs)
    judge = run.judge_gradients(calls, pair, "outputs")
    found = compare_gradients(pair, ours.gradient, theirs.gradient, floor, judge)
    if cut:
        # a layer stops no gradient, nor does a module by being called under no_grad: the code around does
        outside = run.is_stock(calls) or run.is_silenced(calls)
        place = run.code_around(calls) if outside else calls.paths
        where = f"{cut} at {call.path}" if outside else cut
        yield Fault("backward", place, found, where, call.finished, calls, outside, kind="cut")
    elif call.parent is not None and ours.differentiable and not found.ok:
        place = find_code_with(run, calls, ours, theirs, "outputs")
        where = f"the gradient it gives back to {call.path}: {found.words}"
        yield Fault("backward", place, found, where, call.finished, calls, True,
                    pair.to_port(ours.gradient), theirs.gradient, judge=judge)  # fmt: skip


def _compare_input(
    run: PinnedRun, calls: CallPair, pair: LeafPair, ours: Leaf, theirs: Leaf, floor: float
) -> Iterator[Fault]:
    """Yield a fault if the gradient that a module computes of an input differs."""
    call, cut = calls.theirs, _describe_cut(ours, theirs)
    judge = run.judge_gradients(calls, pair, "inputs")
    found = compare_gradients(pair, ours.gradient, theirs.gradient, floor, judge)
    if cut:
        place = find_code_with(run, calls, ours, theirs, "inputs")
        where = f"{cut} before {call.path}"
        yield Fault("backward", place, found, where, call.began, calls, True, kind="cut")
    elif ours.differentiable and not found.ok:
        stock = run.is_stock(calls)
        at_kinks = stock and _differ_at_kinks(pair, ours, theirs.gradient, found)
        kind: Kind = "kink" if at_kinks else "number"
        where = f"the gradient of its input: {found.words}"
        yield Fault("backward", calls.paths, found, where, call.began, calls, False,
                    pair.to_port(ours.gradient), theirs.gradient, kind, stock, judge)  # fmt: skip


def _describe_cut(ours: Leaf, theirs: Leaf) -> str:
    """Return on which side alone a gradient is stopped; "" if on none, or if there is none."""
    if ours.differentiable == theirs.differentiable:
        return ""
    if magnitude(ours.gradient) + magnitude(theirs.gradient) == 0:
        return ""
    if ours.differentiable:
        return f"the gradient {describe_stop(PORT, REFERENCE)}"
    return f"the gradient {describe_stop(REFERENCE, PORT)}"


def describe_stop(stopped: Role, other: Role) -> str:
    """Say that a gradient is stopped on one side alone, and by what that framework stops gradients."""
    means = stopped.choose("no_grad", "stop_gradient")
    return f"is stopped in {stopped} (detach or {means}) and not in {other}"


def _differ_at_kinks(pair: LeafPair, ours: Leaf, actual: Array | None, found: Gap) -> bool:
    """Tell whether the gradients differ only where the input is zero."""
    expected, values = pair.to_port(ours.gradient), pair.to_port(ours.array)
    if expected is None or actual is None:
        return False
    apart = np.abs(actual - expected) > found.tolerance
    return bool((np.abs(values[apart]) <= 1e-15 * magnitude(values)).all())


def find_largest_gradient(trace: Trace) -> float:
    """Return the largest element of the gradients of all that the modules take and give."""
    leaves = (
        leaf for call in trace.calls for leaf in (*call.inputs.values(), *call.outputs.values())
    )
    return max((magnitude(leaf.gradient) for leaf in leaves), default=0.0)
