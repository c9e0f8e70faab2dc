"""What a call would have given with one thing changed."""

from collections.abc import Sequence
from typing import Any

from reprod_align.alignment.lines.names import name_of
from reprod_align.alignment.lines.variants import vary
from reprod_align.model.source.lines import SourceLine
from reprod_align.model.source.operation import Operation

import numpy as np
import pytest

X = np.random.default_rng(0).normal(size=(3, 4))
KEPT = np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
STEPS = np.arange(5)


def call(
    name: str, inputs: Sequence[np.ndarray], output: Any, constants: Sequence[Any] = ()
) -> Operation:
    return Operation(
        name, SourceLine("", 1), ("", 0), inputs, [np.asarray(output)], constants=constants
    )


@pytest.mark.parametrize(
    ("made", "due", "words"),
    [
        (call("__add__", [X, KEPT.T[:, :1]], X + KEPT.T[:, :1]), X - KEPT.T[:, :1], "`-` in place of `+`"),
        (call("__rsub__", [KEPT], 1 - KEPT, [1.0]), KEPT - 1, "`- 1` in place of `reversed - 1`"),
        (call("__mul__", [KEPT], KEPT * 8, [8]), KEPT * 4, "`* 4` in place of `* 8`"),
        (call("cumsum", [X], X.cumsum(0), [0]), X.cumsum(1),
         "cumsum over axis 1 in place of cumsum over axis 0"),
        (call("mean", [X], X.mean(0), [0]), X.sum(0), "sum over axis 0 in place of mean over axis 0"),
        (call("tile", [X], np.tile(X, (2, 1)), [2, 1]), X.repeat(2, 0),
         "repeat_interleave over axis 0 in place of tile over axis 0"),
        (call("repeat_interleave", [X], X.repeat(3, 1), [3]), np.tile(X, (1, 3)),
         "tile over axis 1 in place of repeat_interleave over axis 1"),
        (call("argmax", [X], X.argmax(1), [1]), X.argmin(1),
         "argmin over axis 1 in place of argmax over axis 1"),
        (call("norm", [X], np.sqrt((X**2).sum(1))), np.sqrt((X**2).sum(0)),
         "norm over axis 0 in place of norm over axis 1"),
        (call("triu", [X], np.triu(X)), np.tril(X), "tril in place of triu"),
        (call("tril", [X], np.tril(X, 1)), np.tril(X), "tril in place of tril of diagonal 1"),
        (call("__eq__", [STEPS], STEPS == 2, [2]), STEPS != 2, "`!=` in place of `==`"),
        (call("zeros", [], np.zeros((2, 2))), np.ones((2, 2)), "1 in place of 0"),
        (call("arange", [], STEPS), STEPS + 1, "1 at first in place of 0 at first"),
        (call("__getitem__", [X], X[:, 0]), X[:, 1], "index 1 of axis 1 in place of index 0 of axis 1"),
        (call("cos", [X], np.cos(X)), np.sin(X), "sin in place of cos"),
        (call("fft2", [X], np.fft.fft2(X)), np.fft.fft(X),
         "fft over axes (1,) in place of fft over axes (0, 1)"),
        (call("exp", [X], np.exp(X)), X, "what it takes in place of what it gives"),
    ],
)  # fmt: skip
def test_a_change_gives_what_is_due(made: Operation, due: np.ndarray, words: str) -> None:
    found = [one.words for one in vary(made)
             if one.value.shape == due.shape and np.allclose(one.value, due)]  # fmt: skip
    assert words in found


def test_a_call_that_is_not_what_it_seems_is_not_varied() -> None:
    other = call("cumsum", [X], X.cumsum(0) ** 2)
    assert not any("in place of cumsum" in one.words for one in vary(other))
    assert list(vary(Operation("split", SourceLine("", 1), ("", 0), [X], [X[0], X[1]]))) == []


def test_one_name_stands_for_both_frameworks() -> None:
    names = [
        name_of(call(name, [X], X)) for name in ("__rsub__", "sub", "subtract", "cat", "concat")
    ]
    assert names == ["subtract"] * 3 + ["concat"] * 2


def test_a_mask_that_a_module_holds_may_be_meant_to_be_another_triangle() -> None:
    ones = np.ones((4, 4), np.int64)
    taken = Operation(
        "__getitem__", SourceLine("", 1), ("", 0), [np.triu(np.ones((6, 6)))], [np.triu(ones)],
        tensors={"self.bias": 0},
    )  # fmt: skip
    held = [*vary(taken)]
    assert any((one.value == np.tril(ones)).all() for one in held)
    assert "the lower triangle of ones" in [one.words for one in held]
