"""Finds where the port's forward pass, given the reference's numbers, computes others."""

from collections.abc import Iterator

from reprod_align.alignment.locating.counterparts import CallPair, PinnedRun, Which
from reprod_align.alignment.locating.fault import Fault, compare, rounding_of
from reprod_align.alignment.locating.masks import blame_giver, find_makers
from reprod_align.base.difference import Gap, magnitude
from reprod_align.model.leaf import LeafPair, find_unpaired
from reprod_align.model.trace import Array, Leaf

import numpy as np

_NO_SHAPE_FITS = Gap(np.inf, 0.0, 0.0, "")


def find_forward_faults(free: PinnedRun, given: PinnedRun, masks_agree: bool) -> list[Fault]:
    """Return the faults of the forward pass, in the order in which they show.

    free and given: runs in which values that carry no gradient (masks, indices) are the port's own,
    and the reference's. A fault of a module itself shows in both; one that shows only in the first
    was made with such a value. masks_agree: no mask can be at fault, since all agrees in another mode.
    """
    faults = {_key(fault): fault for fault in _find_differences(free)}
    in_both = {_key(fault) for fault in _find_differences(given)}
    own = [fault for key, fault in faults.items() if key in in_both]
    if len(own) < len(faults):
        rest = [fault for key, fault in faults.items() if key not in in_both]
        own += find_makers(free)[:1] or rest
    if not masks_agree:
        own = [blame_giver(fault, free) for fault in own]
    return sorted(own, key=lambda fault: fault.tick)


def _key(fault: Fault) -> tuple[object, ...]:
    return fault.place, fault.calls.theirs.key, fault.where.partition(":")[0]


def _find_differences(run: PinnedRun) -> Iterator[Fault]:
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
    for pair, found, expected, actual in _differing(run, calls, "inputs", floor):
        if calls.ours.inputs[pair.expected].differentiable:
            where = f"the value it hands to {call.path}: {found.words}"
            yield Fault("forward", run.code_around(calls), found, where, call.began, calls, True,
                        expected, actual, judge=run.judge_values(calls, pair, "inputs"))  # fmt: skip


def _compare_outputs(run: PinnedRun, calls: CallPair, floor: float) -> Iterator[Fault]:
    """Yield a fault of a module for each output that it computes differently from equal inputs."""
    call = calls.theirs
    for pair, found, expected, actual in _differing(run, calls, "outputs", floor):
        named = f" {pair.expected}" if pair.expected and len(calls.ours.outputs) > 1 else ""
        yield Fault("forward", calls.paths, found, f"its output{named}: {found.words}", call.finished,
                    calls, run.has_children(call), expected, actual, stock=run.is_stock(calls),
                    judge=run.judge_values(calls, pair, "outputs"))  # fmt: skip


def _compare_shapes(run: PinnedRun, calls: CallPair) -> Iterator[Fault]:
    """Yield a fault of a module that makes an output of another shape from inputs that fit."""
    ours, theirs = calls.ours, calls.theirs
    misfit = find_unpaired(ours.outputs, theirs.outputs, run.pair_leaves(calls, "outputs"))
    inputs_fit = len(run.pair_leaves(calls, "inputs")) == len(ours.inputs) == len(theirs.inputs)
    if misfit is not None and inputs_fit and not run.counterparts.is_other_layer(theirs):
        shapes = ours.outputs[misfit[0]].array.shape, theirs.outputs[misfit[1]].array.shape
        where = f"its output: shape {shapes[0]} in PyTorch, {shapes[1]} in Paddle"
        yield Fault("forward", calls.paths, _NO_SHAPE_FITS, where, theirs.finished, calls,
                    run.has_children(theirs))  # fmt: skip


def _differing(
    run: PinnedRun, calls: CallPair, which: Which, floor: float
) -> Iterator[tuple[LeafPair, Gap, Array, Array]]:
    """Yield the pairs of tensors that differ where it matters, with both, in the port's layout."""
    no_gradients = all(leaf.gradient is None for leaf in run.reference.outputs.values())
    for pair in run.pair_leaves(calls, which):
        ours, theirs = calls.leaves(pair, which)
        judge = run.judge_values(calls, pair, which)
        found = compare(pair, ours.array, theirs.array, floor, judge)
        if not found.ok and (no_gradients or _matters(pair, ours, theirs.array, found.tolerance)):
            yield pair, found, pair.to_port(ours.array), theirs.array


def _matters(pair: LeafPair, leaf: Leaf, actual: Array, tolerance: float) -> bool:
    """Tell whether the difference lies where the outputs depend on it: not in padding, say."""
    if not leaf.differentiable:
        return True
    gradient, expected = pair.to_port(leaf.gradient), pair.to_port(leaf.array)
    if gradient is None:
        return False
    if expected.shape != actual.shape:
        return True
    with np.errstate(all="ignore"):
        distance = np.abs(actual.astype(np.float64) - expected.astype(np.float64))
    apart = ~(distance <= tolerance) & (actual != expected)
    felt = np.abs(gradient) > 1e-12 * magnitude(gradient)
    return bool((apart & felt).any())
