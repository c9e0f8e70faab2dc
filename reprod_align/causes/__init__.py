"""Why do two tensors differ? Known porting mistakes, tried on the numbers in float64.

A hypothesis counts if it makes the whole difference vanish; the simplest that does is returned.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from reprod_align.api.table import reference
from reprod_align.causes.attention import attention_cause
from reprod_align.causes.dropout import dropout_cause
from reprod_align.causes.functions import (
    clipping_cause,
    exchanged_function_cause,
    factor_cause,
    function_cause,
    rounding_cause,
)
from reprod_align.causes.layout import layout_cause
from reprod_align.causes.masks import mask_cause
from reprod_align.causes.norms import norm_cause
from reprod_align.causes.numbers import Floats, as_floats, same
from reprod_align.causes.reductions import pooling_cause, probability_cause
from reprod_align.causes.sums import (
    gate_cause,
    halves,
    per_feature_cause,
    sources,
    sum_cause,
)
from reprod_align.model.settings import SYNONYMS
from reprod_align.model.trace import Array

import numpy as np

__all__ = ["forward_cause", "gradient_cause", "loss_cause", "mask_cause"]

_LARGEST = 4_000_000  # elements
_CUT = 64.0  # below the largest score of a row: where Paddle's softmax stops


def forward_cause(
    expected: Array,
    actual: Array,
    inputs: Sequence[Array],
    kind: str = "",
    settings: Mapping[str, Any] | None = None,
    names: Sequence[str] = (),
) -> str:
    """Return what makes the port's tensor differ from the reference's, and how to mend it; or "".

    inputs: what the call, or the code between a composite's children, had at hand, in order;
    names: what they are called. kind: the PyTorch class that computes it, "" if unknown; settings:
    the reference's, by PyTorch's names.
    """
    if not (_can_be_told(expected) and _can_be_told(actual)):
        return ""
    ours, theirs = as_floats(expected), as_floats(actual)
    if same(ours, theirs):
        return ""
    if not theirs.any() and ours.any():
        return "Paddle's values are all zero"
    called = list(names) or [f"input {number}" for number in range(len(inputs))]
    with np.errstate(all="ignore"):
        tries = _hypotheses(ours, theirs, inputs, called, kind, settings or {})
        return next((words for words in (cause() for cause in tries) if words), "")


def _can_be_told(array: Array) -> bool:
    return array.dtype.kind == "f" and 0 < array.size <= _LARGEST and bool(np.isfinite(array).all())


def _hypotheses(
    ours: Floats,
    theirs: Floats,
    inputs: Sequence[Array],
    names: Sequence[str],
    kind: str,
    settings: Mapping[str, Any],
) -> Iterator[Callable[[], str]]:
    """Yield what is tried, the simplest first."""
    yield lambda: layout_cause(ours, theirs)
    yield lambda: pooling_cause(ours, theirs, inputs, names) if ours.shape == theirs.shape else ""
    if ours.shape != theirs.shape:
        return
    given = sources(inputs, names, ours)
    known = [settings.get(name) for name in sorted(SYNONYMS["eps"])]
    epsilons = [value for value in known if isinstance(value, float)]
    dims = sorted({size for array in inputs for size in array.shape[-1:]})
    yield lambda: factor_cause(ours, theirs, dims)
    yield lambda: rounding_cause(ours, theirs)
    yield lambda: exchanged_function_cause(ours, theirs, inputs)
    yield lambda: sum_cause(ours, theirs, given)
    yield lambda: function_cause(ours, theirs)
    yield lambda: clipping_cause(ours, theirs)
    yield lambda: dropout_cause(ours, theirs, given)
    yield lambda: probability_cause(ours, theirs, dims)
    yield lambda: norm_cause(ours, theirs, given, epsilons)
    yield lambda: per_feature_cause(ours, theirs)
    yield lambda: gate_cause(ours, theirs, [*given, *halves(inputs, names, ours)])
    yield lambda: attention_cause(ours, theirs, inputs, names) if not kind else ""


def gradient_cause(expected: Array | None, actual: Array | None) -> str:
    """Return what makes the port's gradient differ: stopped, scaled, of the other sign; or ""."""
    if expected is None or not expected.any():
        if actual is not None and actual.any():
            return "the gradient is zero in PyTorch and not in Paddle: detached, no_grad, or not passed on"
        return ""
    if actual is None or not actual.any():
        return "the gradient is zero in Paddle and not in PyTorch: detached, stop_gradient, or not passed on"
    if expected.shape != actual.shape or expected.size < 2:
        return ""
    words = factor_cause(as_floats(expected), as_floats(actual))
    if "sign" in words:
        return "the gradient has the opposite sign in Paddle"
    factor = words.partition(" times ")[2].partition(":")[0]
    return f"Paddle's gradient is PyTorch's times {factor}" if factor else ""


def loss_cause(expected: float, actual: float, outputs: Sequence[Array]) -> str:
    """Return what makes the port's loss differ on the same outputs: a factor with a name; or "".

    Of one number a factor alone can be known, so the reduction is named as a possibility.
    """
    if not (np.isfinite(expected) and np.isfinite(actual)) or not expected or not actual:
        return ""
    ratio = actual / expected
    if abs(ratio - 1) <= 1e-9:
        return ""
    if abs(ratio + 1) <= 1e-9:
        return "the loss has the opposite sign in Paddle"
    for number, words in _counts(outputs):
        if abs(ratio / number - 1) <= 1e-9:
            return f"Paddle's loss is PyTorch's times {words}: perhaps reduction='sum' for 'mean'"
        if abs(ratio * number - 1) <= 1e-9:
            return f"PyTorch's loss is Paddle's times {words}: perhaps reduction='mean' for 'sum'"
    if abs(ratio - 2) <= 1e-9 or abs(ratio - 0.5) <= 1e-9:
        return (
            f"Paddle's loss is PyTorch's times {ratio:.6g}: perhaps a factor 1/2 on one side alone"
        )
    if abs(ratio * np.log(2) - 1) <= 1e-9 or abs(ratio / np.log(2) - 1) <= 1e-9:
        return "one side takes the natural logarithm, the other the one of base 2"
    if actual < expected and any(_reaches_far(output) for output in outputs):
        return (
            "perhaps because some scores are more than 64 below the largest of their row, which "
            f"Paddle's cross_entropy takes as 64 below{reference(['softmax-far-below'])}"
        )
    return ""


def _reaches_far(scores: Array) -> bool:
    """Tell whether a row of scores holds one that Paddle's softmax cuts off."""
    if scores.ndim < 2 or not scores.size or scores.dtype.kind != "f":
        return False
    return bool((scores.max(-1) - scores.min(-1) > _CUT).any())


def _counts(outputs: Sequence[Array]) -> Iterator[tuple[int, str]]:
    """Yield by how much a sum over the outputs exceeds a mean."""
    for output in outputs:
        if output.ndim and len(output) > 1:
            yield len(output), f"{len(output)} (the batch size)"
        if output.ndim > 1 and output.size > 1:
            rows = output.size // output.shape[-1]
            yield output.size, f"{output.size} (the number of elements)"
            yield rows, f"{rows} (the number of rows)"
            yield output.shape[-1], f"{output.shape[-1]} (the size of the last axis)"
