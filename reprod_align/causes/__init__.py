"""Why do two tensors differ? Known porting mistakes, tried on the numbers in float64.

A hypothesis counts if it makes the whole difference vanish; the simplest that does is returned.

A new cause is a function that takes a `Mismatch` and returns a sentence, or "" if it does not apply. It
stands in the module of its subject and has a line in CAUSES. A cause of two losses takes `LossSides` and
has a line in LOSSES.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from reprod_align.base import PORT, REFERENCE
from reprod_align.base.blocks import Array
from reprod_align.causes.cross_entropy import explain_cross_entropy, explain_ctc
from reprod_align.causes.functions import explain_exchanged_function, explain_function
from reprod_align.causes.inputs import explain_pooling, explain_sum
from reprod_align.causes.layout import explain_layout
from reprod_align.causes.losses import (
    LossSides,
    explain_binary,
    explain_distance,
    explain_ratio,
    explain_total,
)
from reprod_align.causes.masks import explain_mask, explain_softmax
from reprod_align.causes.mismatch import Mismatch, as_floats, cite, same
from reprod_align.causes.values import (
    explain_draws,
    explain_dropout,
    explain_factor,
    explain_rounding,
    explain_zeros,
)

import numpy as np

__all__ = [
    "CAUSES",
    "LossSides",
    "explain_draws",
    "explain_forward",
    "explain_gradient",
    "explain_loss",
    "explain_loss_sides",
    "explain_mask",
    "explain_weight",
]

_LARGEST = 4_000_000  # elements
_LARGEST_OUTPUT = 2_000_000  # elements that a loss is of
_FEWEST = 6  # elements that a loss is of: fewer fit many losses

Cause = Callable[[Mismatch], str]

CAUSES_OF_ANY_SHAPE: Final[Sequence[Cause]] = (explain_zeros, explain_layout)
"""tried also where the two shapes differ"""

CAUSES: Final[Sequence[Cause]] = (
    *CAUSES_OF_ANY_SHAPE,
    explain_pooling,
    explain_factor,
    explain_rounding,
    explain_exchanged_function,
    explain_sum,
    explain_function,
    explain_dropout,
    explain_softmax,
)
"""in the order in which they are tried: the simplest first"""

CAUSES_OF_WEIGHTS: Final[Sequence[Cause]] = (explain_layout, explain_rounding)

LOSSES: Final[Sequence[Callable[[LossSides], str]]] = (
    explain_total,
    explain_cross_entropy,
    explain_binary,
    explain_distance,
    explain_ctc,
)


def explain_forward(
    expected: Array,
    actual: Array,
    inputs: Sequence[Array],
    names: Sequence[str] = (),
    kept: Sequence[float] = (),
) -> str:
    """Return what makes the port's tensor differ from the reference's, and how to mend it; or "".

    inputs: what the call, or the code between a composite's children, had at hand, in order;
    names: what they are called. kept: 1 - p of the port's dropouts that scale in eval mode.
    """
    if not (_can_be_explained(expected) and _can_be_explained(actual)):
        return ""
    called = names or [f"input {number}" for number in range(len(inputs))]
    named = list(zip(called, inputs, strict=True))
    mismatch = Mismatch(as_floats(expected), as_floats(actual), named, kept)
    if same(mismatch.expected, mismatch.actual):
        return ""
    causes = CAUSES if expected.shape == actual.shape else CAUSES_OF_ANY_SHAPE
    with np.errstate(all="ignore"):
        return next((words for explain in causes if (words := explain(mismatch))), "")


def explain_weight(expected: Array, actual: Array) -> str:
    """Return what was done to a weight: laid out in another order, or rounded; or "".

    Both may have gone through float32 on their way.
    """
    if expected.shape != actual.shape:
        return ""
    ours, theirs = (as_floats(side.astype(np.float32)) for side in (expected, actual))
    mismatch = Mismatch(ours, theirs)
    with np.errstate(all="ignore"):
        return next((words for explain in CAUSES_OF_WEIGHTS if (words := explain(mismatch))), "")


def _can_be_explained(array: Array) -> bool:
    return array.dtype.kind == "f" and 0 < array.size <= _LARGEST and bool(np.isfinite(array).all())


def explain_gradient(expected: Array | None, actual: Array | None) -> str:
    """Return what makes the port's gradient differ: stopped, scaled, of the other sign; or ""."""
    ours, theirs = (it is not None and bool(it.any()) for it in (expected, actual))
    if ours != theirs:
        side, other = (PORT, REFERENCE) if ours else (REFERENCE, PORT)
        stop = side.choose("no_grad", "stop_gradient")
        words = (
            f"the gradient is zero in {side} and not in {other}: detached, {stop}, or not passed on"
        )
        return cite(words, "stop-gradient-scope")
    if expected is None or actual is None or not ours:
        return ""
    if expected.shape != actual.shape or expected.size < 2:
        return ""
    words = explain_factor(Mismatch(as_floats(expected), as_floats(actual)))
    if "sign" in words:
        return f"the gradient has the opposite sign in {PORT}"
    factor = words.partition(" times ")[2].partition(":")[0]
    return f"{PORT}'s gradient is {REFERENCE}'s times {factor}" if factor else ""


def explain_loss(
    expected: float, actual: float, outputs: Sequence[Array], sides: Sequence[LossSides] = ()
) -> str:
    """Return what makes the port's loss differ on the same outputs; or "".

    sides: the outputs that take part, with both gradients, from which labels and weights follow.
    Without a cause in them the two numbers are left: a factor, whose name is a possibility.
    """
    known = next((words for side in sides if (words := explain_loss_sides(side))), "")
    return known or explain_ratio(expected, actual, outputs)


def explain_loss_sides(sides: LossSides) -> str:
    """Return in which respect the two losses differ, proven on value and gradient; or ""."""
    arrays = (sides.scores, sides.ours, sides.theirs)
    if not sides.scores.ndim or not _FEWEST <= sides.scores.size <= _LARGEST_OUTPUT:
        return ""
    if not all(np.isfinite(array).all() for array in arrays) or not (
        sides.ours.any() or sides.theirs.any()
    ):
        return ""
    values = np.float64(sides.expected), np.float64(sides.actual)  # 1 / 0 is inf for these
    sides = replace(sides, expected=values[0], actual=values[1])
    with np.errstate(all="ignore"):
        return next((words for explain in LOSSES if (words := explain(sides))), "")
