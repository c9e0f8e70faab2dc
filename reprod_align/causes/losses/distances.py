"""Losses of a distance to targets: squared, absolute, smooth L1 and Huber.

A squared loss shows its targets by its gradient; what the other side makes of them is tried.
"""

from collections.abc import Iterator

from reprod_align.causes.entries import cite
from reprod_align.causes.losses.sides import (
    LossSides,
    agree,
    are_constant,
    is_near,
    name_reductions,
)
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
    return _explain_targets(sides) or _explain_turn(sides)


def _explain_targets(sides: LossSides) -> str:
    """Explain two losses of squared distances to different targets."""
    known = name_reductions(sides.scores.shape, sides.scores.size, sides.scores.size)
    scales = [
        float((gradient**2).sum()) / (4 * value)
        for gradient, value in ((sides.ours, sides.expected), (sides.theirs, sides.actual))
    ]
    if any(are_constant(np.abs(gradient)) for gradient in (sides.ours, sides.theirs)):
        return ""
    natural = all(any(is_near(scale, number) for number in known.values()) for scale in scales)
    if not natural or not is_near(*scales):
        return ""
    count = int((np.abs(sides.ours - sides.theirs) > 1e-7 * np.abs(sides.ours).max()).sum())
    if not count:
        return ""
    return f"both sides take squared distances, to other targets in {count} of {sides.ours.size} places"


def _explain_turn(sides: LossSides) -> str:
    """Explain two smooth L1 (Huber) losses: where they turn, and by what Paddle's is multiplied."""
    ours, theirs = np.abs(sides.ours), np.abs(sides.theirs)
    first, second = float(ours.max()), float(theirs.max())
    if not first or not second:
        return ""
    far = [size >= most * (1 - 1e-9) for size, most in ((ours, first), (theirs, second))]
    near = ~far[0] & ~far[1] & (ours > 0)
    factor = second / first
    scaled = agree(sides.theirs, factor * sides.ours)
    if min(it.sum() for it in far) < 2 or far[0].all() or (near.sum() < 3 and not scaled):
        return ""
    ratio = (ours[near] / first) / np.maximum(theirs[near] / second, 1e-300)
    signs = np.sign(sides.ours) == np.sign(sides.theirs)
    if not are_constant(ratio) or not signs.all():
        return ""
    turn = 1.0 if scaled else float(ratio.mean())
    if abs(turn - 1) > 1e-6:
        words = (
            f"smooth L1 (Huber) losses whose beta (delta) in Paddle is {turn:.6g} times PyTorch's"
        )
        return cite(words, "smooth-l1")
    known = name_reductions(sides.scores.shape, ours.size, ours.size).values()
    if any(is_near(second, number) for number in known):
        return ""
    words = f"Paddle's smooth L1 loss is PyTorch's times {factor:.6g}: its smooth_l1_loss multiplies by delta"
    return cite(words, "smooth-l1")


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
