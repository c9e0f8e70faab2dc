"""Modules that only pass a value on are not the ones whose code made it."""

from typing import Any

from reprod_align.alignment.locating.counterparts import (
    CallPair,
    Counterparts,
    PinnedRun,
    find_code_with,
)
from reprod_align.model.trace import Call, Leaf, Trace

import numpy as np

MASK = Leaf(np.array([1, 0, 1]), False)
OTHER = Leaf(np.array([0, 1, 0]), False)


def trace(block: Leaf, layer: Leaf, outputs: Leaf = OTHER) -> Trace:
    """The model calls a block, which calls a layer; each with its input and output."""
    return Trace([
        Call("", 0, None, {"x": OTHER}, {"": OTHER}),
        Call("block", 0, 0, {"x": block}, {"": outputs}),
        Call("block.layer", 0, 1, {"x": layer}, {"": MASK}),
    ])  # fmt: skip


class Known(Counterparts):
    """The modules in `paired` are counterparts; nothing is computed."""

    def __init__(self, reference: Trace, *paired: str) -> None:
        self._by_path = {call.path: call for call in reference.calls if call.path in paired}

    def of(self, call: Call) -> CallPair | None:
        ours = self._by_path.get(call.path)
        return None if ours is None else CallPair(ours, call)


def find(ours: Trace, theirs: Trace, *paired: str, which: Any = "inputs") -> tuple[str, str]:
    run = PinnedRun(ours, theirs, Known(ours, *paired))
    return find_code_with(run, CallPair(ours.calls[2], theirs.calls[2]), MASK, MASK, which)


def test_a_pair_that_both_pass_the_value_into_is_left() -> None:
    given, made = trace(block=MASK, layer=MASK), trace(block=OTHER, layer=MASK)
    assert find(given, given, "block") == ("", "")
    assert find(made, made, "block") == ("block", "block")
    assert find(given, made, "block") == ("block", "block")  # Paddle's block makes it itself


def test_a_module_without_a_counterpart_passes_on_by_itself() -> None:
    given, made = trace(block=MASK, layer=MASK), trace(block=OTHER, layer=MASK)
    assert find(given, made) == ("", "block")
    assert find(made, given) == ("block", "")


def test_what_a_pair_gives_is_used_by_its_own_code() -> None:
    gives = trace(block=OTHER, layer=OTHER, outputs=MASK)
    assert find(gives, gives, "block", which="outputs") == ("block", "block")
    assert find(gives, gives, which="outputs") == ("", "")


def test_a_float_of_the_same_values_is_another_value() -> None:
    floats = trace(block=Leaf(MASK.array, True), layer=MASK)
    assert find(floats, floats, "block") == ("block", "block")
