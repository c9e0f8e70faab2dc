"""Why do two tensors differ? Known porting mistakes, tried on the numbers in float64.

A hypothesis counts if it makes the whole difference vanish; the simplest that does is returned.

A new cause is a function that takes a `Mismatch` and returns a sentence, or "" if it does not apply. It
stands in the module of its subject and has a line in CAUSES.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from reprod_align.causes.attention import explain_attention
from reprod_align.causes.dropout import explain_dropout
from reprod_align.causes.entries import cite
from reprod_align.causes.factors import (
    explain_clipping,
    explain_factor,
    explain_rounding,
    explain_sameness,
    explain_zeros,
)
from reprod_align.causes.functions import explain_exchanged_function, explain_function
from reprod_align.causes.layout import explain_layout
from reprod_align.causes.losses.value import explain_loss
from reprod_align.causes.masks import explain_mask, explain_scores
from reprod_align.causes.mismatch import Mismatch
from reprod_align.causes.norms import explain_norm
from reprod_align.causes.numbers import as_floats, same
from reprod_align.causes.places import explain_padding_row, explain_places
from reprod_align.causes.reductions import explain_pooling, explain_softmax
from reprod_align.causes.rotary import explain_rotary
from reprod_align.causes.sums import explain_bias_or_gain, explain_gate, explain_sum
from reprod_align.model.trace import Array

import numpy as np

__all__ = [
    "CAUSES",
    "explain_forward",
    "explain_gradient",
    "explain_loss",
    "explain_mask",
    "explain_scores",
]

_LARGEST = 4_000_000  # elements

Cause = Callable[[Mismatch], str]

CAUSES_OF_ANY_SHAPE: Final[Sequence[Cause]] = (explain_zeros, explain_layout)
"""tried also where the two shapes differ"""

_OF_ONE_SHAPE: Final[Sequence[Cause]] = (
    explain_padding_row,
    explain_pooling,
    explain_factor,
    explain_rounding,
    explain_exchanged_function,
    explain_sum,
    explain_function,
    explain_rotary,
    explain_clipping,
    explain_dropout,
    explain_softmax,
    explain_norm,
    explain_sameness,
)
CAUSES: Final[Sequence[Cause]] = (
    *CAUSES_OF_ANY_SHAPE,
    *_OF_ONE_SHAPE,
    partial(explain_places, causes=_OF_ONE_SHAPE),
    explain_bias_or_gain,
    explain_gate,
    explain_attention,
)
"""in the order in which they are tried: the simplest first"""


def explain_forward(
    expected: Array,
    actual: Array,
    inputs: Sequence[Array],
    kind: str = "",
    settings: Mapping[str, Any] | None = None,
    names: Sequence[str] = (),
    kept: Sequence[float] = (),
) -> str:
    """Return what makes the port's tensor differ from the reference's, and how to mend it; or "".

    inputs: what the call, or the code between a composite's children, had at hand, in order;
    names: what they are called. kind: the PyTorch class that computes it, "" if unknown; settings:
    the reference's, by PyTorch's names. kept: 1 - p of the port's dropouts that scale in eval mode.
    """
    if not (_can_be_explained(expected) and _can_be_explained(actual)):
        return ""
    called = names or [f"input {number}" for number in range(len(inputs))]
    named = list(zip(called, inputs, strict=True))
    mismatch = Mismatch(as_floats(expected), as_floats(actual), named, kind, settings or {}, kept)
    if same(mismatch.expected, mismatch.actual):
        return ""
    causes = CAUSES if expected.shape == actual.shape else CAUSES_OF_ANY_SHAPE
    with np.errstate(all="ignore"):
        return next((words for explain in causes if (words := explain(mismatch))), "")


def _can_be_explained(array: Array) -> bool:
    return array.dtype.kind == "f" and 0 < array.size <= _LARGEST and bool(np.isfinite(array).all())


def explain_gradient(expected: Array | None, actual: Array | None) -> str:
    """Return what makes the port's gradient differ: stopped, scaled, of the other sign; or ""."""
    if expected is None or not expected.any():
        if actual is not None and actual.any():
            words = "the gradient is zero in PyTorch and not in Paddle: detached, no_grad, or not passed on"
            return cite(words, "stop-gradient-scope")
        return ""
    if actual is None or not actual.any():
        words = "the gradient is zero in Paddle and not in PyTorch: detached, stop_gradient, or not passed on"
        return cite(words, "stop-gradient-scope")
    if expected.shape != actual.shape or expected.size < 2:
        return ""
    words = explain_factor(Mismatch(as_floats(expected), as_floats(actual)))
    if "sign" in words:
        return "the gradient has the opposite sign in Paddle"
    factor = words.partition(" times ")[2].partition(":")[0]
    return f"Paddle's gradient is PyTorch's times {factor}" if factor else ""
