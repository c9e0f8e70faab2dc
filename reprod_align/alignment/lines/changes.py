"""Which single change of a call that makes a mask or an index could make a wrong value right.

Masks and indices are made by chains of small calls, in another way on each side, so they can't be
paired call by call. What one change would give is tried in the run instead.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from reprod_align.alignment.lines.chain import trace_back
from reprod_align.alignment.lines.composites import write_out
from reprod_align.alignment.lines.masks import HIDING, find_places, tell_the_same
from reprod_align.alignment.lines.values import KnownValues
from reprod_align.alignment.lines.variants import Variant, vary
from reprod_align.model.leaf import carries_mask
from reprod_align.model.source.operation import RETURN, CallKey, Operation
from reprod_align.model.trace import Array

import numpy as np

_MOST = 48  # changes that are tried
_RELATIVE = 1e-9


@dataclass(frozen=True, eq=False)
class Change:
    """Another result of one recorded call."""

    number: int
    """of the call among all that were recorded"""
    operation: Operation
    variant: Variant
    end: int
    """the number of the call that makes the mask or index itself"""
    value: Array
    """that mask or index, unchanged"""
    is_right: Callable[[Array], bool]
    """tells whether the reference has such a mask or index too"""
    hides: bool
    """whether that is a mask or an index, and no other number that no gradient flows through"""
    taker: Operation | None = None
    """the call that takes what another call should have changed"""
    position: int = 0
    """of that among its inputs"""


def list_changes(
    ours: Sequence[Operation],
    theirs: Sequence[Operation],
    consumer: int,
    wrong: Array,
    skipped: Collection[str],
) -> list[Change]:
    """Return changes that could make the wrong value right, the likeliest first.

    ours, theirs: all recorded calls. consumer: the number of the port's call that takes `wrong`.
    skipped: modules of the framework's own.
    """
    scope = theirs[consumer].call
    chain = list(trace_back(theirs, wrong, consumer, accepts=lambda one: _is_part(one, scope)))
    constants = [at for at in chain if _is_constant(theirs[at])]
    written = write_out([one for one in ours if one.name != RETURN])
    known = KnownValues(
        (value for one in written for value in (*one.inputs, *one.outputs)), _RELATIVE
    )
    ends = list(_find_ends(theirs, [*chain, consumer], constants))
    found: dict[tuple[int, int], tuple[tuple[bool, int, int, int], Change]] = {}
    for end in ends:
        value = theirs[end].outputs[0]
        if _is_right(known, value):
            continue
        plain = bool(value.size == 0 or value.min() == value.max())
        for at in [end, *trace_back(theirs, value, end + 1, accepts=_is_constant)]:
            for number, (rank, variant) in enumerate(_rank(theirs[at], known)):
                if theirs[at].call[0] not in skipped:
                    change = _make_change(theirs, at, variant, end, known)
                    found.setdefault((at, number), ((plain, rank, number, -at), change))
    return [change for _, change in sorted(found.values(), key=lambda one: one[0])][:_MOST]


def takes_constant(operation: Operation) -> bool:
    """Tell whether a call takes a mask or an index, which no gradient flows through."""
    makers = [maker for maker in operation.makers if maker is not None]
    whole = any(value.dtype.kind in "biu" for value in operation.inputs)
    return whole or any(map(_is_constant, makers))


def _is_part(operation: Operation, scope: CallKey) -> bool:
    """Tell whether a call belongs to the scope, or makes a mask or index for it."""
    return operation.call == scope or _is_constant(operation)


def _is_constant(operation: Operation) -> bool:
    return operation.child is None and not operation.differentiable and len(operation.outputs) == 1


def _find_ends(
    operations: Sequence[Operation], takers: Sequence[int], constants: Sequence[int]
) -> Iterator[int]:
    """Yield the constants that a call takes that makes something else."""
    others = [at for at in takers if at not in constants]
    for at in sorted(constants):
        made = operations[at].outputs[0]
        if any(_takes(operations[other], made) for other in others):
            yield at


def _takes(operation: Operation, value: Array) -> bool:
    return any(_is_same(one, value) for one in operation.inputs)


def _is_same(one: Array, other: Array) -> bool:
    return one.shape == other.shape and bool(np.array_equal(one, other))


def _make_change(
    operations: Sequence[Operation], at: int, variant: Variant, end: int, known: KnownValues
) -> Change:
    operation, made = operations[at], operations[at].outputs[0]
    value, is_right = operations[end].outputs[0], partial(_is_right, known)
    change = Change(at, operation, variant, end, value, is_right, carries_mask(value))
    if variant.operand is not None:
        return replace(change, taker=operation, position=variant.operand)
    takers = [(one, position) for one in operations[at + 1 :]
              for position, taken in enumerate(one.inputs) if _is_same(taken, made)]  # fmt: skip
    return replace(change, taker=takers[0][0], position=takers[0][1]) if takers else change


def _is_right(known: KnownValues, value: Array) -> bool:
    """Tell whether the reference has this mask or index too, by whatever convention."""
    if value.size < 2 or value.dtype.kind not in "biuf":
        return True
    if value.min() != value.max() and known.knows_order(value):
        return True
    if value.dtype.kind != "f" or not (value <= HIDING).any():
        return False
    places = find_places(value)
    dues = [find_places(one) for one in known.arrays] if places is not None else []
    return any(due is not None and due.size == places.size and tell_the_same(places.ravel(), due.ravel())
               for due in dues if places is not None)  # fmt: skip


def _rank(operation: Operation, known: KnownValues) -> Iterator[tuple[int, Variant]]:
    """Yield the changes of a call, each with its rank: 0 what the reference has, 2 a missing call."""
    seen: set[bytes] = {operation.outputs[0].tobytes()}
    for variant in vary(operation):
        value = np.asarray(variant.value)
        key = value.astype(operation.outputs[0].dtype).tobytes()
        if value.shape != operation.outputs[0].shape or key in seen:
            continue
        seen.add(key)
        telling = value.size > 1 and value.min() != value.max() and known.knows(value)
        yield (2 if variant.lacking else 0 if telling else 1), variant
