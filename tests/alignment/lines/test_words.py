"""The cause of a difference between two calls, from what they take and give."""

from reprod_align.alignment.lines.divergence import Difference
from reprod_align.alignment.lines.words import are_exchanged, explain_calls
from reprod_align.model.source.lines import SourceLine
from reprod_align.model.source.operation import Operation

import numpy as np

X, W = np.random.default_rng(0).standard_normal((2, 3, 12, 12))
KEPT = np.random.default_rng(1).random(X.shape)


def call(name: str, inputs: list[np.ndarray], *outputs: np.ndarray) -> Operation:
    return Operation(name, SourceLine("", 1, ""), ("", 0), inputs, outputs)


def dropped(p: float) -> np.ndarray:
    return np.where(KEPT < p, 0.0, X / (1 - p))


def explained(ours: Operation | None, theirs: Operation | None) -> str:
    return explain_calls(Difference("call", ours, theirs, is_sure=True))


def test_results_of_equal_values_are_explained() -> None:
    words = explained(call("std", [X], X.std(1, ddof=1)), call("std", [X], X.std(1)))
    assert "PyTorch takes the unbiased standard deviation over axis 1 of what std takes" in words


def test_one_value_that_differs_is_explained() -> None:
    ours, theirs = (call("matmul", [dropped(p), W], dropped(p) @ W) for p in (0.1, 0.3))
    assert "dropout with p = 0.3 in Paddle and p = 0.1 in PyTorch" in explained(ours, theirs)


def test_calls_that_share_nothing_explain_nothing() -> None:
    ours, theirs = call("matmul", [X, W], X @ W), call("matmul", [W + 1, X + 1], X)
    assert explained(ours, theirs) == explained(ours, None) == explained(None, theirs) == ""
    assert explained(call("split", [X], X[0], X[1]), call("split", [X], X[1], X[0])) == ""


def test_calls_that_may_not_stand_for_each_other_explain_nothing() -> None:
    ours, theirs = call("std", [X], X.std(1, ddof=1)), call("std", [X], X.std(1))
    assert explain_calls(Difference("call", ours, theirs)) == ""


def test_masks_by_other_conventions_explain_nothing() -> None:
    hidden = np.broadcast_to(np.arange(12) > 8, (3, 12, 12))
    masks = [np.where(hidden, value, 0.0) for value in (-1e4, -1e30)]
    ours, theirs = (call("add", [X, mask], X + mask) for mask in masks)
    assert explained(ours, theirs) == ""


def test_exchanged_operands_are_named_but_for_factors() -> None:
    ours = call("matmul", [X, W], X @ W)
    theirs = call("matmul", [W / 2, X.swapaxes(1, 2)], W @ X / 2)
    assert are_exchanged(ours, theirs) and not are_exchanged(ours, ours)
    assert "the two operands are exchanged" in explained(ours, theirs)


def test_another_one_of_the_values_that_a_call_returns_is_named() -> None:
    pooled = X[:, 0]
    made = call("encoder", [W], X, pooled)
    used = call("dropout", [X], X)
    due = call("dropout", [pooled], pooled)
    found = Difference("value", due, used, True, used, made)
    assert explain_calls(found) == "Paddle takes index 0 of what encoder returns, PyTorch index 1"
    assert explain_calls(Difference("value", used, used, True, used, made)) == ""
