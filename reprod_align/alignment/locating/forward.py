"""Finds where the port's forward pass, given the reference's numbers, computes others."""

from collections.abc import Iterator
from dataclasses import replace

from reprod_align.alignment.locating.counterparts import CallPair, PinnedRun
from reprod_align.alignment.locating.differing import find_differing, find_misfit
from reprod_align.alignment.locating.fault import Fault, rounding_of
from reprod_align.alignment.locating.masks.givers import blame_giver, find_makers
from reprod_align.base.difference import Gap
from reprod_align.model.leaf import carries_mask

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
    in_both = {fault.key for fault in list_differences(given)}
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
        if calls.ours.inputs[pair.expected].differentiable:
            where = f"the value it hands to {call.path}: {found.words}"
            yield Fault("forward", run.code_around(calls), found, where, call.began, calls, True,
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
    misfit = find_misfit(run, calls)
    inputs_fit = len(run.pair_leaves(calls, "inputs")) == len(ours.inputs) == len(theirs.inputs)
    if misfit is not None and inputs_fit and not run.counterparts.is_other_layer(theirs):
        shapes = ours.outputs[misfit[0]].array.shape, theirs.outputs[misfit[1]].array.shape
        where = f"its output: shape {shapes[0]} in PyTorch, {shapes[1]} in Paddle"
        yield Fault("forward", calls.paths, _NO_SHAPE_FITS, where, theirs.finished, calls,
                    run.has_children(theirs))  # fmt: skip
