"""Pairing modules by what came out of them."""

from reprod_align.match.modules import pair_by_value
from reprod_align.model.trace import Call, Leaf, Trace
from tests.match.made import Module, linear, make_both

import numpy as np

A, B = np.array([1.0, 2.0]), np.array([3.0, -4.0])
RELU: Module = ("ReLU", {})


def trace(**outputs: np.ndarray) -> Trace:
    """Return one call of each module, in this order; `__` stands for a dot."""
    return Trace(
        [
            Call(path.replace("__", "."), 0, None, outputs={"": Leaf(array, True)})
            for path, array in outputs.items()
        ]
    )


def correct(
    pairs: dict[str, str],
    ours: dict[str, Module],
    theirs: dict[str, Module],
    expected: Trace,
    actual: Trace,
) -> dict[str, str]:
    """Return the pairs after correction."""
    corrected = dict(pairs)
    pair_by_value(corrected, *make_both(ours, theirs), expected, actual)
    return corrected


def test_layers_with_equal_outputs_are_the_same_in_whatever_order() -> None:
    ours, theirs = {"one": RELU, "two": RELU}, {"x": RELU, "y": RELU}
    wrong = {"": "", "one": "x", "two": "y"}
    pairs = correct(wrong, ours, theirs, trace(one=A, two=B), trace(x=B, y=A))
    assert pairs == {"": "", "one": "y", "two": "x"}


def test_outputs_that_fit_two_layers_or_another_kind_decide_nothing() -> None:
    before = {"": ""}
    two = {"x": RELU, "y": RELU}
    assert correct(before, {"one": RELU}, two, trace(one=A), trace(x=A, y=A)) == before
    both = {"one": RELU, "two": RELU}
    assert correct(before, both, {"x": RELU}, trace(one=A, two=A), trace(x=A)) == before
    other = {"x": ("Dropout", {})}
    assert correct(before, {"one": RELU}, other, trace(one=A), trace(x=A)) == before
    assert correct(before, {"one": RELU}, {"x": RELU}, trace(one=A), trace(x=B)) == before
    assert correct(before, {"one": RELU}, {"x": RELU}, trace(one=A), trace(x=A))["one"] == "x"


def test_of_nested_modules_the_one_with_equal_outputs_is_taken() -> None:
    ours, theirs = {"outer.inner.fc": linear(2, 2)}, {"block.fc": linear(2, 2)}
    wrong = {"": "", "outer": "block", "outer.inner.fc": "block.fc"}
    expected = trace(outer=A + B, outer__inner=A, outer__inner__fc=A)
    pairs = correct(wrong, ours, theirs, expected, trace(block=A, block__fc=A))
    assert pairs == {"": "", "outer.inner": "block", "outer.inner.fc": "block.fc"}
    faulty = correct(wrong, ours, theirs, expected, trace(block=B, block__fc=A))
    assert faulty == wrong  # a fault in the block: nothing else is its counterpart
