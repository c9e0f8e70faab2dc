"""Weights that were converted before: what was done to them."""

from reprod_align.alignment.findings import Findings
from reprod_align.alignment.leftovers import add_differing_weights
from reprod_align.match import Match, TensorPair

import numpy as np
import pytest

W = np.random.default_rng(0).normal(size=(6, 6))
OTHER = np.random.default_rng(1).normal(size=(6, 6))


def transpose(array: np.ndarray) -> np.ndarray:
    return array.T


PAIRS = [TensorPair(("w",), ("w",), (transpose,)), TensorPair(("v",), ("v",), (transpose,))]


@pytest.mark.parametrize(
    ("held", "words"),
    [
        (W.T, ""),
        (W.T.astype(np.float32).astype(np.float64), ""),
        (W, "not transposed"),
        (-W.T, "the sign is wrong"),
        (W.T[::-1], "the rows are in reverse order"),
        (np.roll(W.T, 1, 0), "shifted by 1 along the first axis"),
        (
            np.concatenate([W.T[3:], W.T[:3]]),
            "its 2 blocks (gates, or q k v) are in the order (1, 0)",
        ),
        (W.T * 0, "all zeros in Paddle"),
        (W.T * 3, "the weight is 3 times PyTorch's"),
        (OTHER.T, "the weight differs; at"),
        (W.T[:3], "the weight differs; shape (6, 6) expected, got (3, 6)"),
    ],
)
def test_what_was_done_to_a_weight_is_named(held: np.ndarray, words: str) -> None:
    findings = Findings()
    torch = {"w": W, "v": OTHER + 1}
    add_differing_weights(Match(PAIRS), torch, {"w": held, "v": (OTHER + 1).T}, findings)
    assert [words in f.message for f in findings.report.findings] == [True] * bool(words)
    assert findings.report.checks[0].passed == (not words)


def test_weights_that_were_exchanged() -> None:
    findings = Findings()
    add_differing_weights(Match(PAIRS), {"w": W, "v": OTHER}, {"w": OTHER.T, "v": W.T}, findings)
    assert "the values that belong here are in v" in findings.report.findings[0].message
