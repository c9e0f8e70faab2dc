"""How the data of a step differ, in words."""

from typing import Any

from reprod_align.curves.training import describe_difference

import numpy as np
import pytest

DRAW = np.random.default_rng(0)
X, Y = DRAW.standard_normal((6, 8, 5)), DRAW.integers(0, 3, (6, 8))


def read(step: int) -> Any:
    return (X[step - 1],), Y[step - 1]


def changed(step: int) -> Any:
    inputs = X[step - 1].copy()
    inputs[0, 0] += step == 3
    return (inputs,), Y[step - 1]


def reordered(step: int) -> Any:
    order = np.roll(np.arange(8), 1)
    return (X[step - 1][order],), Y[step - 1][order]


@pytest.mark.parametrize(
    ("theirs", "words"),
    [
        (read, ""),
        (changed, "step 3: input 0 differs: 1 of 40 elements"),
        (lambda step: read(step + 1), "step 1: Paddle reads what PyTorch reads at step 2"),
        (reordered, "step 1: the same examples in another order within the batch"),
        (lambda step: ((X[step - 1][:4],), Y[step - 1]), "step 1: input 0 differs: shape (8, 5)"),
        (
            lambda step: (read(step)[0], Y[step - 1] + 1.0),
            "targets differs: int64 in PyTorch, float64",
        ),
        (
            lambda step: ({"x": X[step - 1]}, Y[step - 1]),
            "PyTorch reads input 0, targets, Paddle input x",
        ),
        (lambda step: (read(step)[0], {"y": Y[step - 1]}), "Paddle input 0, targets[y]"),
    ],
)
def test_the_difference_is_described(theirs: Any, words: str) -> None:
    found = describe_difference(read, theirs, range(1, 5))
    assert words in found and bool(words) == bool(found)
