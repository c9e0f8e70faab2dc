"""Finds the call that makes a mask which hides other places than the reference's.

Masks follow conventions (True and False, 1 and 0, 0 and -10000), so they are compared by the places
that they hide; a call in between may hide the right places by other numbers.
"""

from collections.abc import Sequence

from reprod_align.alignment.lines.chain import trace_back
from reprod_align.model.source.operation import Operation
from reprod_align.model.trace import Array

import numpy as np

HIDING = -100.0  # added to scores: less than e**-100 of a place is left


def find_mask_maker(
    operations: Sequence[Operation], mask: Array, expected: Sequence[Array]
) -> Operation | None:
    """Return the port's first call on the way to `mask` that tells other places apart.

    operations: of the port, in order. expected: the masks of the reference, one of which is due. The
    last call if all tell the right places apart: its numbers hide nothing, or the others.
    """
    chain = list(trace_back(operations, mask, len(operations), _may_tell))
    due = [found for one in expected if (found := find_places(one)) is not None]
    if not chain or not due:
        return None
    for operation in sorted(chain):
        found = find_places(operations[operation].outputs[0])
        if found is not None and not any(tell_the_same(found, one) for one in due):
            return operations[operation]
    return operations[max(chain)]


def _may_tell(value: Array) -> bool:
    return find_places(value) is not None or value.size == 0 or bool(value.min() == value.max())


def find_places(array: Array) -> Array | None:
    """Return which of two kinds of places each is; None if the array tells no two kinds apart."""
    if array.size < 2 or array.dtype.kind not in "biuf":
        return None
    values = array.astype(np.float64)
    low = values <= HIDING
    if not low.any() and np.unique(values).size == 2:
        low = values == values.min()
    return None if low.all() or not low.any() else np.squeeze(low)


def tell_the_same(found: Array, due: Array) -> bool:
    """Tell whether two masks tell the same places apart, whichever of them are the hidden ones."""
    try:
        ours, theirs = np.broadcast_arrays(due, found)
    except ValueError:
        return True  # of another shape: nothing is known
    return bool((ours == theirs).all() or (ours != theirs).all())
