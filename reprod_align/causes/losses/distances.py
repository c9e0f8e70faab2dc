"""Losses of a distance to targets: squared, absolute, smooth L1 and Huber.

A squared loss shows its targets by its gradient; what the other side makes of them is tried.
"""

from collections.abc import Iterator

from reprod_align.causes.entries import cite
from reprod_align.causes.losses.sides import LossSides, agree, is_near, name_reductions
from reprod_align.causes.numbers import Floats

import numpy as np

_BETAS = (1.0, 0.5, 0.1, 0.2, 0.25, 2.0, 1 / 9, 0.01, 10.0)


def explain_distance(sides: LossSides) -> str:
    """Explain one loss as squared distances, and the other as another distance to the same targets."""
    if not sides.alone or sides.scores.size < 3:
        return ""
    for given, names in ((sides, ("PyTorch", "Paddle")), (sides.swap(), ("Paddle", "PyTorch"))):
        for half in (1.0, 0.5):
            scale = float((given.ours**2).sum()) / (4 * half * given.expected)
            known = name_reductions(given.scores.shape, given.scores.size, given.scores.size)
            if not any(is_near(scale * half, number * half) for number in known.values()):
                continue
            apart = given.ours / (2 * half * scale)
            ours = "half the squared distances" if half < 1 else "squared distances"
            if words := _name_other(given.swap(), apart):
                told = f"{names[1]} takes {words}, {names[0]} {ours}"
                return cite(told, "smooth-l1") if "smooth" in told else told
    return ""


def _name_other(sides: LossSides, apart: Floats) -> str:
    """Name the distance that gives PyTorch's loss and gradient of these sides; "" if none does."""
    for words, values, slopes in _distances(apart):
        power = float((slopes**2).sum())
        scale = float((slopes * sides.ours).sum()) / power if power else 0.0
        if (
            scale
            and agree(sides.ours, scale * slopes)
            and is_near(scale * values.sum(), sides.expected)
        ):
            return words
    return ""


def _distances(apart: Floats) -> Iterator[tuple[str, Floats, Floats]]:
    """Yield distances in words, their values and their slopes."""
    size = np.abs(apart)
    yield "absolute distances (L1)", size, np.sign(apart)
    for beta in _BETAS:
        if not (size > beta).any():
            continue
        near = size < beta
        values = np.where(near, apart**2 / (2 * beta), size - beta / 2)
        slopes = np.where(near, apart / beta, np.sign(apart))
        yield f"smooth L1 (or Huber) distances with beta {beta:g}", values, slopes
    yield "the logarithm of the hyperbolic cosine", np.log(np.cosh(apart)), np.tanh(apart)
