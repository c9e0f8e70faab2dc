"""The calls that a value was made by, back to where nothing recorded made it."""

from collections.abc import Callable, Iterator, Sequence

from reprod_align.model.source.operation import RETURN, Operation
from reprod_align.model.trace import Array

import numpy as np


def trace_back(
    operations: Sequence[Operation],
    value: Array,
    before: int,
    passes: Callable[[Array], bool] = lambda array: True,
    accepts: Callable[[Operation], bool] = lambda operation: operation.child is None,
) -> Iterator[int]:
    """Yield the numbers of the calls before `before` that `value` was made by, the last one first.

    passes: which inputs are followed. accepts: at which calls, if they made a value, it goes on.
    """
    numbers = {operation: at for at, operation in enumerate(operations)}
    waiting, seen = [find_maker(operations, value, before)], set[int]()
    while waiting:
        at = waiting.pop()
        if at < 0 or at in seen or not accepts(operations[at]):
            continue
        seen.add(at)
        yield at
        taken = operations[at].inputs
        makers = operations[at].makers or [None] * len(taken)
        for maker, one in zip(makers, taken, strict=True):
            if passes(one):
                waiting.append(numbers.get(maker, -1) if maker is not None
                               else find_maker(operations, one, at))  # fmt: skip


def find_maker(operations: Sequence[Operation], value: Array, before: int) -> int:
    """Return the number of the last call before `before` that gave this value; -1 if none did."""
    return next((at for at in range(before - 1, -1, -1) if _gives(operations[at], value)), -1)


def _gives(operation: Operation, value: Array) -> bool:
    return operation.name != RETURN and any(
        made is value or (made.shape == value.shape and np.array_equal(made, value))
        for made in operation.outputs
    )
