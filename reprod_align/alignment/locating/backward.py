"""Finds where the port's backward pass, given the reference's gradients, computes others."""

from collections.abc import Iterator

from reprod_align.alignment.locating.counterparts import CallPair, PinnedRun, Which
from reprod_align.alignment.locating.fault import FLOOR, Fault, Kind, compare_gradients
from reprod_align.alignment.locating.passing import find_code_with
from reprod_align.base.difference import Gap, magnitude
from reprod_align.model.leaf import PASSED_ON, LeafPair, sum_gradients
from reprod_align.model.trace import Array, Leaf, Trace

import numpy as np


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
    """Yield the faults that show at two calls: at their outputs, then at their inputs."""
    for which, pair, ours, theirs in pair_gradients(run, calls):
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
        stock = run.is_stock(calls)  # a layer stops no gradient: the code around it does
        place = run.code_around(calls) if stock else calls.paths
        where = f"{cut} at {call.path}" if stock else cut
        yield Fault("backward", place, found, where, call.finished, calls, stock, kind="cut")
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
        return "the gradient is stopped in Paddle (detach or stop_gradient) and not in PyTorch"
    return "the gradient is stopped in PyTorch (detach or no_grad) and not in Paddle"


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
