"""Normalisations: which one, with which epsilon, and with which weight and bias."""

from reprod_align.causes.norms import explain_norm
from tests.causes.numbers import X, Y, mismatch

import numpy as np
import pytest

GAIN, BIAS = np.random.default_rng(2).standard_normal((2, 12))
MOVED = X - X.mean(-1, keepdims=True)


def layer_norm(eps: float = 1e-5, ddof: int = 0) -> np.ndarray:
    return MOVED / np.sqrt(X.var(-1, ddof=ddof, keepdims=True) + eps)


def batch_norm(ddof: int) -> np.ndarray:
    mean, variance = X.mean((0, 2), keepdims=True), X.var((0, 2), ddof=ddof, keepdims=True)
    return (X - mean) / np.sqrt(variance + 1e-5)


RMS = X / np.sqrt((X**2).mean(-1, keepdims=True) + 1e-5)
WHOLE = layer_norm() * GAIN + BIAS


@pytest.mark.parametrize(("expected", "actual", "words"), [
    (WHOLE, layer_norm(1e-3) * GAIN + BIAS, "epsilon 0.001 in Paddle and 1e-05 in PyTorch"),
    (WHOLE, layer_norm(ddof=1) * GAIN + BIAS, "unbiased variance"),
    (layer_norm(), RMS, "RMS norm in Paddle, layer norm in PyTorch"),
    (WHOLE, layer_norm() * GAIN, "layer norm without its bias in Paddle"),
    (WHOLE, layer_norm(), "layer norm without its weight and bias in Paddle"),
    (WHOLE, layer_norm() * (GAIN + 1) + BIAS, "Paddle adds 1 to the weight"),
    (WHOLE, X, "layer norm is missing"),
    (X, WHOLE, "layer norm is one too many"),
    (batch_norm(0), batch_norm(1), "batch norm by the unbiased variance in Paddle"),
])  # fmt: skip
def test_a_known_mistake_is_named(expected: np.ndarray, actual: np.ndarray, words: str) -> None:
    assert words in explain_norm(mismatch(expected, actual, X))


def test_other_values_are_not_a_norm() -> None:
    assert explain_norm(mismatch(WHOLE, Y, X)) == ""
    spoilt = layer_norm(1e-3)
    spoilt[0, 0, 0] += 1
    assert explain_norm(mismatch(layer_norm(), spoilt, X)) == ""


def test_a_bias_alone_is_not_a_norm() -> None:
    flat = np.broadcast_to(X[:1, :1], X.shape) + 1e-13 * Y
    assert explain_norm(mismatch(X, flat)) == ""
