"""The changes that could make a wrong mask or index right, in the order in which they are tried."""

from collections.abc import Sequence

from reprod_align.alignment.lines.chain import find_maker, trace_back
from reprod_align.alignment.lines.changes import list_changes, takes_constant
from reprod_align.alignment.lines.origin import find_change_line
from reprod_align.alignment.lines.words import describe_change
from reprod_align.model.source.lines import SourceLine
from reprod_align.model.source.operation import RETURN, Operation

import numpy as np

TABLE = np.random.default_rng(0).normal(size=(12, 4))
ONES = np.ones((2, 6), np.int64)
COUNTED = ONES.cumsum(1)


def call(
    name: str, inputs: Sequence[np.ndarray], output: np.ndarray, makers: Sequence[Operation | None],
    flows: bool = False, line: int = 1,
) -> Operation:  # fmt: skip
    source = SourceLine("x.py", line, f"{name}()")
    return Operation(name, source, ("", 0), inputs, [output], flows, makers=makers)


def chain(axis: int) -> list[Operation]:
    ones = call("ones", [], ONES, [], line=1)
    counted = call("cumsum", [ONES], ONES.cumsum(axis), [ones], line=2)
    looked_up = call("embedding", [ONES.cumsum(axis)], TABLE[ONES.cumsum(axis)], [counted], True, 3)
    end = call(RETURN, looked_up.outputs, looked_up.outputs[0], [looked_up], True, 4)
    return [ones, counted, looked_up, end]


def test_the_chain_is_followed_by_tensor_and_by_value() -> None:
    operations = chain(1)
    assert list(trace_back(operations, operations[2].outputs[0], 3)) == [2, 1, 0]
    assert find_maker(operations, COUNTED.copy(), 3) == 1 and find_maker(operations, TABLE, 3) == -1
    assert [takes_constant(one) for one in operations] == [False, True, True, False]


def test_the_axis_that_the_reference_counts_along_comes_first() -> None:
    wrong = chain(0)
    changes = list_changes(chain(1), wrong, 3, wrong[2].outputs[0], ())
    first = changes[0]
    assert first.operation is wrong[1] and (first.variant.value == COUNTED).all()
    assert first.is_right(COUNTED) and not first.is_right(first.value)
    assert find_change_line(first).line == 2
    assert describe_change(first) == (
        "the index comes from `cumsum()`: "
        "cumsum over axis 1 in place of cumsum over axis 0 gives PyTorch's numbers"
    )


def test_nothing_is_changed_where_the_reference_has_the_same_or_a_layer_makes_it() -> None:
    right, wrong = chain(1), chain(0)
    assert list_changes(right, right, 3, right[2].outputs[0], ()) == []
    assert list_changes(right, wrong, 3, wrong[2].outputs[0], {""}) == []
