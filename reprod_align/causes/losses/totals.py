"""One loss as a function of the other's value: its root, a constant more, a further term."""

import math
from collections.abc import Callable, Mapping
from typing import Final

from reprod_align.causes.losses.sides import LossSides, agree, is_near, reaches_far

import numpy as np

_FUNCTIONS: Final[Mapping[str, tuple[Callable[[float], float], Callable[[float], float]]]] = {
    "the square root": (lambda x: math.sqrt(x), lambda x: 0.5 / math.sqrt(x)),
    "the logarithm": (lambda x: math.log(x), lambda x: 1 / x),
}
"""in words: value and slope; all of positive losses"""


def explain_total(sides: LossSides) -> str:
    """Explain one loss as the other plus a constant or a further term, or as a function of it."""
    if agree(sides.ours, sides.theirs):
        apart = sides.actual - sides.expected
        cut = apart < 0 and reaches_far(sides.scores)  # Paddle's softmax is the reason then
        if not sides.alone or cut or is_near(sides.actual, sides.expected):
            return ""
        return f"the gradients agree: Paddle's loss is PyTorch's plus the constant {apart:.6g}"
    return _explain_function(sides) or _explain_term(sides)


def _explain_function(sides: LossSides) -> str:
    if not sides.alone or sides.expected <= 0 or sides.actual <= 0:
        return ""
    for given, names in ((sides, ("Paddle", "PyTorch")), (sides.swap(), ("PyTorch", "Paddle"))):
        for words, (value, slope) in _FUNCTIONS.items():
            if is_near(value(given.expected), given.actual):
                if agree(given.theirs, slope(given.expected) * given.ours):
                    return f"{names[0]}'s loss is {words} of {names[1]}'s"
    return ""


def _explain_term(sides: LossSides) -> str:
    """Explain the difference as a multiple of the sum of the squares, or magnitudes, of the output."""
    apart, z = sides.theirs - sides.ours, sides.scores
    for words, values, slopes in (
        ("squares", z**2, 2 * z),
        ("magnitudes", np.abs(z), np.sign(z)),
    ):
        power = float((slopes**2).sum())
        factor = float((slopes * apart).sum()) / power if power else 0.0
        made = factor * float(values.sum())
        if (
            factor
            and agree(apart, factor * slopes)
            and is_near(sides.actual, sides.expected + made)
        ):
            side = "Paddle" if factor > 0 else "PyTorch"
            return (f"{side} adds {abs(factor):.6g} times the sum of the {words} of the output, or that "
                    "much more than the other side")  # fmt: skip
    return ""
