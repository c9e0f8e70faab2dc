"""Finds who is to blame for a mask or index, and whether it has an effect.

Masks and indices carry no gradient. Each side may follow a convention of its own for them (0 and 1, or 0
and -inf), and a module that was given another mask, or none, can't be blamed for what it makes of it:
the module that gave it can.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from reprod_align.alignment.locating.counterparts import CallPair, PinnedRun, Which, find_code_with
from reprod_align.alignment.locating.fault import (
    Fault,
    compare,
    inputs_differ,
    outputs_agree,
    rounding_of,
)
from reprod_align.base import REFERENCE
from reprod_align.base.blocks import Array, magnitude
from reprod_align.base.difference import RELATIVE_TOLERANCE
from reprod_align.model.trace import (
    HIDDEN,
    Call,
    Leaf,
    carries_mask,
    equal_in_effect,
    hide_different_places,
    hide_same_places,
    is_mask,
)

import numpy as np


def is_equal_in_effect(calls: CallPair, run: PinnedRun) -> bool:
    """Tell whether what uses the masks that two calls were given agrees on the reference's numbers.

    That is every module inside which the reference hands a mask or index, or else another module
    of the same class that lacks the same.
    """
    inside = [one for one in _list_calls_inside(calls, run) if _takes_mask(one.ours)]
    if inside:
        return all(_agree(one, run) for one in inside)
    return any(_agree(one, run) for one in _list_siblings(calls, run))


def _takes_mask(call: Call) -> bool:
    return any(carries_mask(leaf.array) for leaf in constants_of(call).values())


def _agree(calls: CallPair, run: PinnedRun) -> bool:
    """Tell whether two calls give the same, and hand the same to every module inside."""
    return outputs_agree(run, calls) and not any(
        inputs_differ(run, one) for one in _list_calls_inside(calls, run)
    )


def _list_calls_inside(calls: CallPair, run: PinnedRun) -> Iterator[CallPair]:
    """Yield the calls that happen inside two calls, and return numbers."""
    for one in run.calls:
        within, at = False, one.theirs
        while at.parent is not None and not within:
            at = run.port.calls[at.parent]
            within = at is calls.theirs
        if within and any(leaf.differentiable for leaf in one.ours.outputs.values()):
            yield one


def _list_siblings(calls: CallPair, run: PinnedRun) -> Iterator[CallPair]:
    """Yield calls of other modules of the same classes, given masks and missing them in the same way."""
    classes, given = run.counterparts.classes(calls), _counts(calls)
    for one in run.calls:
        other = one.theirs.path != calls.theirs.path
        if other and run.counterparts.classes(one) == classes and _counts(one) == given:
            yield one


def _counts(calls: CallPair) -> tuple[int, int]:
    return len(constants_of(calls.ours)), len(constants_of(calls.theirs))


def may_explain(mask: Array, expected: Array | None, actual: Array | None) -> bool:
    """Tell whether a missing mask can make this difference: nothing differs where it hides nothing.

    mask: (B, ...), or (..., queries, keys); expected, actual: (B, ...), (B, queries, ...). Where the
    axes do not fit, nothing speaks against it. A mask that is one number throughout hides nothing.
    """
    hides = _find_rows_that_hide(mask)
    if not hides.any():
        return False
    if expected is None or actual is None or expected.shape != actual.shape:
        return True
    if expected.dtype.kind != "f" or expected.ndim < 2:
        return True
    apart = ~(np.abs(actual - expected) <= RELATIVE_TOLERANCE * magnitude(expected))
    square = mask.ndim == 2 and mask.shape[0] == mask.shape[1]  # queries and keys, of no example
    if not square and len(hides) == len(expected) > 1:
        free = ~hides.reshape(len(hides), -1).any(axis=1)
        if apart[free].any():
            return False
    if (square or mask.ndim > 2) and expected.ndim == 3 and expected.shape[1] == hides.shape[-1]:
        examples = len(hides) if mask.ndim > 2 and len(hides) == len(expected) else 1
        free = ~hides.reshape(examples, -1, hides.shape[-1]).any(axis=1)  # (B or 1, queries)
        return not (apart.any(axis=2) & free).any()
    return True


def _find_rows_that_hide(mask: Array) -> Array:
    """Return which rows along the last axis hold two different values: the others hide nothing."""
    if not mask.ndim:
        return np.zeros((), bool)
    varied: Array = (mask != mask[..., :1]).any(axis=-1)
    return varied


def constants_of(call: Call) -> dict[str, Leaf]:
    """Return the inputs of a call that carry no gradient: masks and indices."""
    return {at: leaf for at, leaf in call.inputs.items() if not leaf.differentiable}


def lacks_constant(calls: CallPair, run: PinnedRun) -> bool:
    """Tell whether the reference's call was given more masks and indices than the port's.

    Positions that count from 0 do not matter: a module knows its size.
    """
    return _count_telling(calls.ours) > _count_telling(calls.theirs)


def _has_further(calls: CallPair, run: PinnedRun) -> bool:
    """Tell whether the port's call was given more masks and indices than the reference's."""
    return _count_telling(calls.theirs) > _count_telling(calls.ours)


def _count_telling(call: Call) -> int:
    """Return how many masks and indices a call was given, but for positions that count from 0."""
    return sum(not _counts_from_zero(leaf.array) for leaf in constants_of(call).values())


_WHICH: Final[tuple[Which, ...]] = ("inputs", "outputs")


def find_makers(run: PinnedRun) -> list[Fault]:
    """Return the faults of modules that hand on a mask or index of their own making that differs.

    run: with the port's own masks and indices. Those that show the same places come last: they can
    differ in effect only where everything is hidden.
    """
    made = [fault for calls in run.calls for fault in _compare_constants(run, calls)]
    made.sort(key=lambda fault: fault.tick)
    return sorted(made, key=lambda f: equal_in_effect(np.asarray(f.expected), np.asarray(f.actual)))


def _compare_constants(run: PinnedRun, calls: CallPair) -> Iterator[Fault]:
    """Yield a fault of the code that made a mask or index that two calls take, or return, otherwise."""
    call = calls.theirs
    for which in _WHICH if call.parent is not None else ():
        for pair in run.pair_leaves(calls, which):
            ours, theirs = calls.leaves(pair, which)
            found = compare(pair, ours.array, theirs.array, rounding_of(calls.ours))
            if ours.differentiable or found.ok or _differ_by_convention(ours.array, theirs.array):
                continue
            expected = pair.to_port(ours.array)
            handed = "the mask or index" if is_mask(ours.array) else "the value"
            if which == "inputs":
                where = f"{handed} it hands to {call.path}: {found.words}"
                maker = find_code_with(run, calls, ours, theirs, "inputs")
                yield Fault("forward", maker, found, where, call.began, calls, True,
                            expected, theirs.array, "mask")  # fmt: skip
            else:
                where = f"{handed} it returns: {found.words}"
                yield Fault("forward", calls.paths, found, where, call.finished, calls,
                            run.has_children(call), expected, theirs.array, "mask")  # fmt: skip


def blame_giver(fault: Fault, run: PinnedRun) -> Fault:
    """Return the fault moved from a module that was given another mask to the module that gave it.

    A fault stays where it is if the module is set otherwise than its counterpart, which is reason
    enough, or if it shows before the mask is used.
    """
    shown_there = fault.place == fault.calls.paths
    calls = fault.calls if shown_there else run.parents(fault.calls)
    if calls is None or not run.are_counterparts(calls):
        return fault
    if calls.theirs.path in run.counterparts.altered:
        return fault
    if fault.kind != "mask" and _shows_before_mask(fault):
        return fault
    if fault.kind != "mask" and run.is_stock(calls) and _comes_before_mask(fault, run):
        return fault
    if fault.kind != "mask" and run.is_stock(calls) and _constants_differ(calls, run):
        return _blame_user_code(fault, calls, run)
    if fault.kind != "mask" and is_equal_in_effect(calls, run):
        return fault
    if _hide_otherwise(calls, run):
        words = "the mask or index it hands to {} hides other places"
        return (
            _blame_first_without(_hide_otherwise, replace(fault, kind="mask"), calls, run, words)
            or fault
        )
    if fault.kind == "mask" and _is_given_wrong(fault, calls, run):
        words = f"the mask or index it hands to {{}} is not the one that {REFERENCE} makes there"
        return _blame_first_without(_has_further, fault, calls, run, words) or fault
    if lacks_constant(calls, run) and _may_be_lacking(fault, calls, run):
        words = "it has a mask or index that it does not hand to {}"
        return _blame_first_without(lacks_constant, fault, calls, run, words) or fault
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
        if found is not None and not lacks_constant(found, run):
            where = f"the mask or index it hands to {given} is not what that layer takes"
            if lacks:
                where = f"it hands no mask or index to {given}, and {REFERENCE} does"
            return replace(fault, place=found.paths, where=where)
    return fault


def _shows_before_mask(fault: Fault) -> bool:
    """Tell whether the fault is in what goes to a module that has yet to use the mask it is given."""
    call = fault.calls.theirs
    handed = fault.own_code and fault.place[1] != call.path
    return handed and bool(constants_of(call))


def _comes_before_mask(fault: Fault, run: PinnedRun) -> bool:
    """Tell whether a layer of the framework's own hands on the fault before the one that takes its mask."""
    call = fault.calls.theirs
    takers = [one for one in run.port.calls if one.parent == call.parent and constants_of(one)]
    handed = fault.own_code and fault.place[1] != call.path
    return handed and bool(takers) and all(call.began < one.began for one in takers)


def _constants_differ(calls: CallPair, run: PinnedRun) -> bool:
    """Tell whether two calls were given different masks or indices, or of different kinds."""
    ours, theirs = constants_of(calls.ours), constants_of(calls.theirs)
    most = max(len(ours), len(theirs))
    pairs = [pair for pair in run.pair_leaves(calls, "inputs") if pair.expected in ours]
    leaves = [(pair, *calls.leaves(pair, "inputs")) for pair in pairs]
    same = all(compare(pair, one.array, two.array, 0.0).ok for pair, one, two in leaves)
    return most > 0 and (len(pairs) < most or not same)


def _may_be_lacking(fault: Fault, calls: CallPair, run: PinnedRun) -> bool:
    """Tell whether a mask or index that the port's call lacks can make this difference.

    One that is the same number throughout, or that counts from 0, makes none. What a mask hides nothing
    of, an example or a query, must agree.
    """
    unpaired, further = _list_unpaired(calls, run)
    lacking = [
        array
        for array in unpaired
        if not _counts_from_zero(array)
        and not any(hide_same_places(array, one) for one in further)  # given in another form
    ]
    if fault.kind == "mask":
        return any(array.size < 2 or array.min() < array.max() for array in lacking)
    masks = [mask for mask in lacking if len(np.unique(mask)) == 2 or (mask <= -HIDDEN).any()]
    return any(may_explain(mask, fault.expected, fault.actual) for mask in masks)


def _is_given_wrong(fault: Fault, calls: CallPair, run: PinnedRun) -> bool:
    """Tell whether the port's call alone was given a mask, and every one of its size hides other places.

    If one hides the places that are due, the module itself uses it wrongly.
    """
    unpaired, further = _list_unpaired(calls, run)
    due = fault.expected
    if unpaired or due is None or not _has_further(calls, run):
        return False
    given = [mask for mask in further if mask.size == due.size]
    return bool(given) and not any(hide_same_places(due, mask) for mask in given)


def _counts_from_zero(array: Array) -> bool:
    """Tell whether an array is of positions 0, 1, 2, ... along its last axis; 0 and 1 may be a mask."""
    if array.ndim == 0 or array.shape[-1] < 3:
        return False
    return array.dtype.kind in "iu" and bool((array == np.arange(array.shape[-1])).all())


def _hide_otherwise(calls: CallPair, run: PinnedRun) -> bool:
    """Tell whether two calls were given masks that could not be paired and hide different places."""
    ours, theirs = _list_unpaired(calls, run)
    return any(hide_different_places(mask, other) for mask in ours for other in theirs)


def _list_unpaired(calls: CallPair, run: PinnedRun) -> tuple[list[Array], list[Array]]:
    """Return the masks and indices of two calls that no shape or name pairs: PyTorch's and Paddle's."""
    pairs = run.pair_leaves(calls, "inputs")
    ours, theirs = {pair.expected for pair in pairs}, {pair.actual for pair in pairs}
    return (
        [leaf.array for at, leaf in constants_of(calls.ours).items() if at not in ours],
        [leaf.array for at, leaf in constants_of(calls.theirs).items() if at not in theirs],
    )


def _differ_by_convention(expected: Array, actual: Array) -> bool:
    """Tell whether one mask is of 0 and 1 and the other added, and both hide the same places."""
    ones = [bool(np.isin(mask, (0, 1)).all()) for mask in (expected, actual)]
    return ones[0] != ones[1] and hide_same_places(expected, actual)
