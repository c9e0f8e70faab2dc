"""Rotary embeddings: what differs is read off tables, and off what was rotated."""

from reprod_align.causes.mismatch import Mismatch
from reprod_align.causes.rotary import Rotation, explain_rotary

import numpy as np
import pytest

RANDOM = np.random.default_rng(0)
B, H, L, K = 2, 3, 7, 8
X, Y = RANDOM.standard_normal((2, B, H, L, K))
ANGLES = np.outer(np.arange(L), 1e4 ** -(np.arange(0, K, 2) / K))


def angles(base: float = 1e4, first: float = 0, step: float = 1, size: int = K) -> np.ndarray:
    return np.outer(first + step * np.arange(L), base ** -(np.arange(0, size, 2) / size))


def rotated(x: np.ndarray, turned: np.ndarray, layout: str = "halves") -> np.ndarray:
    cosine, sine = np.cos(turned), np.sin(turned)
    if layout == "halves":
        one, two = np.split(x, 2, -1)
        return np.concatenate([one * cosine - two * sine, two * cosine + one * sine], -1)
    one, two = x[..., ::2], x[..., 1::2]
    return np.stack([one * cosine - two * sine, two * cosine + one * sine], -1).reshape(x.shape)


def table(turned: np.ndarray, layout: str = "halves") -> np.ndarray:
    return np.cos(np.tile(turned, 2) if layout == "halves" else np.repeat(turned, 2, 1))


def explained(expected: np.ndarray, actual: np.ndarray, *inputs: np.ndarray) -> str:
    named = [(f"x{at}", array) for at, array in enumerate(inputs)]
    return explain_rotary(Mismatch(expected, actual, named))


PLANTED = {
    "base": (rotated(X, angles()), rotated(X, angles(5e4)), "of base 50000 in Paddle and 10000"),
    "offset": (rotated(X, angles()), rotated(X, angles(first=2)), "from position 2 in Paddle and 0"),
    "layout": (rotated(X, angles()), rotated(X, angles(), "pairs"), "of pairs in Paddle and of halves"),
    "back": (rotated(X, angles()), rotated(X, -angles()), "turned the other way"),
    "stretched": (rotated(X, angles()), rotated(X, angles(step=0.25)), "by steps of 0.25 in Paddle"),
    "table's base": (table(angles()), table(angles(5e5)), "table is of base 5e+05 in Paddle"),
    "table's layout": (table(angles()), table(angles(), "pairs"), "of pairs in Paddle and of halves"),
    "table's offset": (table(angles(first=1)), table(angles(first=2)), "from position 2 in Paddle and 1"),
    "sine": (table(angles()), np.sin(np.tile(angles(), 2)), "holds the sine in Paddle and the cosine"),
    "kept in float32": (table(angles()).astype("f4").astype("f8"),
                        table(angles(1e3)).astype("f4").astype("f8"), "of base 1000 in Paddle and 10000"),
}  # fmt: skip


@pytest.mark.parametrize("name", PLANTED)
def test_planted(name: str) -> None:
    expected, actual, words = PLANTED[name]
    assert words in explained(expected, actual, Y, X)


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        (rotated(X, ANGLES), rotated(X, ANGLES) * 1.1),
        (rotated(X, ANGLES), rotated(Y, ANGLES)),
        (rotated(X, ANGLES), rotated(X, RANDOM.uniform(0, 1, ANGLES.shape))),
        (table(ANGLES), table(ANGLES) ** 2),
        (X[0], Y[0]),
        (np.cos(X[0, 0]), np.cos(Y[0, 0])),
    ],
)
def test_others_stay_unexplained(expected: np.ndarray, actual: np.ndarray) -> None:
    assert explained(expected, actual, X, Y) == ""


def test_equal_rotations_differ_in_nothing() -> None:
    one = Rotation("halves", 1e4, 0.0)
    assert one.describe(one) == ""
