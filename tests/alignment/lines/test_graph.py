"""The calls that a value was made by."""

from collections.abc import Sequence

from reprod_align.alignment.lines.graph import find_maker, trace_back
from reprod_align.model.source import RETURN, Operation, SourceLine

import numpy as np

TABLE = np.random.default_rng(0).normal(size=(12, 4))
ONES = np.ones((2, 6), np.int64)
COUNTED = ONES.cumsum(1)


def call(
    name: str, inputs: Sequence[np.ndarray], output: np.ndarray, makers: Sequence[Operation | None]
) -> Operation:
    return Operation(name, SourceLine("x.py", 1), ("", 0), inputs, [output], makers=makers)


def test_the_chain_is_followed_by_tensor_and_by_value() -> None:
    ones = call("ones", [], ONES, [])
    counted = call("cumsum", [ONES], COUNTED, [ones])
    looked_up = call("embedding", [COUNTED], TABLE[COUNTED], [counted])
    end = call(RETURN, looked_up.outputs, looked_up.outputs[0], [looked_up])
    operations = [ones, counted, looked_up, end]
    assert list(trace_back(operations, looked_up.outputs[0], 3)) == [2, 1, 0]
    assert (
        find_maker(operations, COUNTED.copy(), 3) == 1 and find_maker(operations, TABLE, 3) is None
    )
