"""Attention: the one field of the recipe that the port has otherwise is named."""

import math

from reprod_align.causes.attention import explain_attention
from reprod_align.causes.functions import softmax
from tests.causes.numbers import X, Y, Z, mismatch

import numpy as np
import pytest

KEEP = np.array([[1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0], [1, 1, 1, 0, 0, 0]])
PADDING = np.where(KEEP == 0, -1e30, 0.0)[:, None, None]
LATER = np.where(np.tri(6, dtype=bool), 0.0, -1e30)


def split(x: np.ndarray, heads: int) -> np.ndarray:
    return x.reshape(3, 6, heads, -1).transpose(0, 2, 1, 3)  # (B, H, L, D / H)


def attend(query=X, key=Y, value=Z, heads=3, scale=None, mask=0.0) -> np.ndarray:  # noqa: ANN001
    q, k, v = (split(it, heads) for it in (query, key, value))
    scale = 1 / math.sqrt(12 // heads) if scale is None else scale
    made = softmax(q @ k.swapaxes(-1, -2) * scale + mask, -1) @ v
    return made.transpose(0, 2, 1, 3).reshape(3, 6, 12)


@pytest.mark.parametrize(("actual", "words"), [
    (attend(heads=2), "the number of heads is 2 in Paddle and 3 in PyTorch"),
    (attend(scale=1), "the scores are scaled by 1 (no scale) in Paddle"),
    (attend(mask=LATER), "the scores have later tokens masked in Paddle and no mask in PyTorch"),
    (attend(key=X), "the key is x in Paddle and y in PyTorch"),
    (attend(key=Z, value=Y), "the key and the value are exchanged"),
])  # fmt: skip
def test_the_field_that_differs_is_named(actual: np.ndarray, words: str) -> None:
    assert words in explain_attention(mismatch(attend(), actual, X, Y, Z))


def test_a_mask_among_the_inputs() -> None:
    given = mismatch(attend(mask=PADDING), attend(), X, Y, Z)
    given.inputs.append(("mask", KEEP))  # type: ignore[attr-defined]
    assert "no mask in Paddle and padding masked in PyTorch" in explain_attention(given)


def test_other_values_are_not_attention() -> None:
    assert explain_attention(mismatch(attend(), attend() + Z, X, Y, Z)) == ""
    assert explain_attention(mismatch(attend(), attend(heads=2), X)) == ""
    assert explain_attention(mismatch(X, attend(), X, Y, Z)) == ""
