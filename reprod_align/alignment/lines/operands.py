"""The cause of a difference between two calls, from their own numbers."""

from collections.abc import Iterator, Sequence

from reprod_align.alignment.lines.search import Difference
from reprod_align.alignment.lines.values import HIDDEN, are_equal
from reprod_align.causes import explain_forward
from reprod_align.model.leaf import hide_same_places
from reprod_align.model.source.operation import Operation
from reprod_align.model.trace import Array

import numpy as np

_CLOSE = 1e-9  # relative


def explain_calls(found: Difference) -> str:
    """Return why the results of two calls differ, or the values that they take; "" if nothing fits.

    The calls are those at which the difference arises: what they take is equal, or one value of
    each is not, whose cause is then sought.
    """
    ours, theirs = found.ours, found.theirs
    if ours is None or theirs is None or not found.is_sure:
        return ""
    apart = list(_pair_unequal(ours.inputs, theirs.inputs))
    if len(apart) == 1:
        return _explain(*apart[0], [])
    if apart or len(ours.outputs) != 1 or len(theirs.outputs) != 1:
        return ""
    return _explain(ours.outputs[0], theirs.outputs[0], _name_inputs(ours))


def _pair_unequal(ours: Sequence[Array], theirs: Sequence[Array]) -> Iterator[tuple[Array, Array]]:
    """Yield the inputs of one shape that are left over when equal ones are paired."""
    left = [array for array in ours if array.dtype.kind == "f"]
    rest = []
    for array in (one for one in theirs if one.dtype.kind == "f"):
        equal = next((at for at, other in enumerate(left) if are_equal(other, array, _CLOSE)), None)
        if equal is None:
            rest.append(array)
        else:
            left.pop(equal)
    for array in rest:
        same_shape = [other for other in left if other.shape == array.shape]
        yield (same_shape[0] if len(same_shape) == 1 else np.zeros(0)), array


def _name_inputs(call: Operation) -> list[tuple[str, Array]]:
    return [(f"what {call.name} takes", array) for array in call.inputs]


def _explain(expected: Array, actual: Array, given: Sequence[tuple[str, Array]]) -> str:
    if (
        hide_same_places(expected, actual)
        or min(it.min(initial=0) for it in (expected, actual)) < HIDDEN
    ):
        return ""  # a mask by another convention, or scores under one
    names, arrays = [name for name, _ in given], [array for _, array in given]
    return explain_forward(expected, actual, arrays, names=names)
