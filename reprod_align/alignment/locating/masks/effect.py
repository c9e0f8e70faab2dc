"""Whether a mask that one side lacks, or makes otherwise, has an effect: what agrees tells."""

from collections.abc import Iterator

from reprod_align.alignment.locating.counterparts import CallPair, PinnedRun
from reprod_align.alignment.locating.differing import inputs_differ, outputs_agree
from reprod_align.base.difference import RELATIVE_TOLERANCE, magnitude
from reprod_align.model.leaf import carries_mask
from reprod_align.model.trace import Array, Call, Leaf

import numpy as np


def is_equal_in_effect(calls: CallPair, run: PinnedRun) -> bool:
    """Tell whether what uses the masks that two calls were given agrees on the reference's numbers.

    That is every module inside which the reference hands a mask or index, or else another module
    of the same class that lacks the same.
    """
    inside = [one for one in _calls_inside(calls, run) if _takes_mask(one.ours)]
    if inside:
        return all(_agree(one, run) for one in inside)
    return any(_agree(one, run) for one in _siblings(calls, run))


def _takes_mask(call: Call) -> bool:
    return any(carries_mask(leaf.array) for leaf in constants_of(call).values())


def _agree(calls: CallPair, run: PinnedRun) -> bool:
    """Tell whether two calls give the same, and hand the same to every module inside."""
    return outputs_agree(run, calls) and not any(
        inputs_differ(run, one) for one in _calls_inside(calls, run)
    )


def _calls_inside(calls: CallPair, run: PinnedRun) -> Iterator[CallPair]:
    """Yield the calls that happen inside two calls, and return numbers."""
    for one in run.calls:
        within, at = False, one.theirs
        while at.parent is not None and not within:
            at = run.port.calls[at.parent]
            within = at is calls.theirs
        if within and any(leaf.differentiable for leaf in one.ours.outputs.values()):
            yield one


def _siblings(calls: CallPair, run: PinnedRun) -> Iterator[CallPair]:
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
    hides = _rows_that_hide(mask)
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


def _rows_that_hide(mask: Array) -> Array:
    """Return which rows along the last axis hold two different values: the others hide nothing."""
    if not mask.ndim:
        return np.zeros((), bool)
    varied: Array = (mask != mask[..., :1]).any(axis=-1)
    return varied


def constants_of(call: Call) -> dict[str, Leaf]:
    """Return the inputs of a call that carry no gradient: masks and indices."""
    return {at: leaf for at, leaf in call.inputs.items() if not leaf.differentiable}


def lacks_constant(calls: CallPair, run: PinnedRun) -> bool:
    """Tell whether the reference's call was given more masks and indices than the port's."""
    return len(constants_of(calls.ours)) > len(constants_of(calls.theirs))
