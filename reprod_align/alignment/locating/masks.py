"""Finds who is to blame for a mask or index: values that carry no gradient.

Each side may follow a convention of its own for them (0 and 1, or 0 and -inf), and a module that was
given another mask, or none, can't be blamed for what it makes of it: the module that gave it can.
"""

from collections.abc import Callable
from dataclasses import replace

from reprod_align.alignment.locating.counterparts import CallPair, PinnedRun
from reprod_align.alignment.locating.fault import Fault, compare, rounding_of
from reprod_align.alignment.locating.passing import find_code_with
from reprod_align.model.leaf import hide_different_places, hide_same_places, is_mask
from reprod_align.model.trace import Array, Call, Leaf

import numpy as np


def find_makers(run: PinnedRun) -> list[Fault]:
    """Return the faults of modules that hand on a mask or index of their own making that differs.

    run: with the port's own masks and indices.
    """
    faults = []
    for calls in run.calls:
        call = calls.theirs
        for pair in run.pair_leaves(calls, "inputs") if call.parent is not None else ():
            ours, theirs = calls.leaves(pair, "inputs")
            found = compare(pair, ours.array, theirs.array, rounding_of(calls.ours))
            if ours.differentiable or found.ok or _differ_by_convention(ours.array, theirs.array):
                continue
            handed = "the mask or index" if is_mask(ours.array) else "the value"
            where = f"{handed} it hands to {call.path}: {found.words}"
            maker = find_code_with(run, calls, ours, theirs, "inputs")
            faults.append(Fault("forward", maker, found, where, call.began, calls, True,
                                pair.to_port(ours.array), theirs.array, "mask"))  # fmt: skip
    return faults


def blame_giver(fault: Fault, run: PinnedRun) -> Fault:
    """Return the fault moved from a module that was given another mask to the module that gave it.

    A fault stays where it is if the module is set otherwise than its counterpart, which is reason
    enough, or if it shows before the mask is used.
    """
    calls = _calls_at(fault, run)
    if calls is None or not run.are_counterparts(calls):
        return fault
    if calls.theirs.path in run.counterparts.altered:
        return fault
    if fault.kind != "mask" and _shows_before_mask(fault):
        return fault
    if fault.kind != "mask" and run.is_stock(calls) and _constants_differ(calls, run):
        return _blame_user_code(fault, calls, run)
    if _hide_otherwise(calls, run):
        words = "the mask or index it hands to {} hides other places"
        return (
            _blame_first_without(_hide_otherwise, replace(fault, kind="mask"), calls, run, words)
            or fault
        )
    if _lacks_constant(calls, run):
        words = "it has a mask or index that it does not hand to {}"
        return _blame_first_without(_lacks_constant, fault, calls, run, words) or fault
    return fault


def _blame_first_without(
    flaw: Callable[[CallPair, PinnedRun], bool],
    fault: Fault,
    calls: CallPair,
    run: PinnedRun,
    words: str,
) -> Fault | None:
    """Return the fault at the first calls around `calls` that do not have the flaw themselves.

    words: of the fault, with {} for the module that they give the flaw to. None if all have it.
    """
    given = calls.theirs.path
    around = run.counterparts_around(calls)
    while around is not None:
        if not flaw(around, run):
            return replace(fault, place=around.paths, where=words.format(given))
        given = around.theirs.path
        around = run.counterparts_around(around)
    return None


def _blame_user_code(fault: Fault, calls: CallPair, run: PinnedRun) -> Fault:
    """Return the fault at the user's own code that gave the framework's layer its mask."""
    call, given = calls.theirs, calls.theirs.path
    lacks = all(leaf.differentiable for leaf in call.inputs.values())
    while call.parent is not None:
        call = run.port.calls[call.parent]
        if call.path in run.counterparts.stock:
            given = call.path
            continue
        found = run.counterparts.of(call)
        if found is not None and not _lacks_constant(found, run):
            where = f"the mask or index it hands to {given} is not what that layer takes"
            if lacks:
                where = f"it hands no mask or index to {given}, and PyTorch does"
            return replace(fault, place=found.paths, where=where)
    return fault


def _calls_at(fault: Fault, run: PinnedRun) -> CallPair | None:
    """Return the calls of the module at fault: those at which it showed, or those around them."""
    return fault.calls if fault.place == fault.calls.paths else run.parents(fault.calls)


def _shows_before_mask(fault: Fault) -> bool:
    """Tell whether the fault is in what goes to a module that has yet to use the mask it is given."""
    call = fault.calls.theirs
    handed = fault.own_code and fault.place[1] != call.path
    return handed and bool(_constants(call))


def _constants(call: Call) -> dict[str, Leaf]:
    """Return the inputs of a call that carry no gradient: masks and indices."""
    return {at: leaf for at, leaf in call.inputs.items() if not leaf.differentiable}


def _lacks_constant(calls: CallPair, run: PinnedRun) -> bool:
    """Tell whether the reference's call was given more masks and indices than the port's."""
    return len(_constants(calls.ours)) > len(_constants(calls.theirs))


def _constants_differ(calls: CallPair, run: PinnedRun) -> bool:
    """Tell whether two calls were given different masks or indices, or of different kinds."""
    ours, theirs = _constants(calls.ours), _constants(calls.theirs)
    most = max(len(ours), len(theirs))
    pairs = [pair for pair in run.pair_leaves(calls, "inputs") if pair.expected in ours]
    leaves = [(pair, *calls.leaves(pair, "inputs")) for pair in pairs]
    same = all(compare(pair, one.array, two.array, 0.0).ok for pair, one, two in leaves)
    return most > 0 and (len(pairs) < most or not same)


def _hide_otherwise(calls: CallPair, run: PinnedRun) -> bool:
    """Tell whether two calls were given masks that could not be paired and hide different places."""
    pairs = run.pair_leaves(calls, "inputs")
    paired = {pair.expected for pair in pairs}, {pair.actual for pair in pairs}
    ours = [leaf.array for at, leaf in _constants(calls.ours).items() if at not in paired[0]]
    theirs = [leaf.array for at, leaf in _constants(calls.theirs).items() if at not in paired[1]]
    return any(hide_different_places(mask, other) for mask in ours for other in theirs)


def _differ_by_convention(expected: Array, actual: Array) -> bool:
    """Tell whether one mask is of 0 and 1 and the other added, and both hide the same places."""
    ones = [bool(np.isin(mask, (0, 1)).all()) for mask in (expected, actual)]
    return ones[0] != ones[1] and hide_same_places(expected, actual)
