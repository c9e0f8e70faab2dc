"""Why two losses differ that were computed from the same outputs."""

from collections.abc import Iterator, Sequence

from reprod_align.api.table import refer_to
from reprod_align.causes.losses import LossSides, explain_by_gradients
from reprod_align.causes.losses.sides import reaches_far
from reprod_align.model.trace import Array

import numpy as np

_CLOSE = 1e-9  # relative: how near a ratio must be to the number that explains it


def explain_loss(
    expected: float, actual: float, outputs: Sequence[Array], sides: Sequence[LossSides] = ()
) -> str:
    """Return what makes the port's loss differ on the same outputs; or "".

    sides: the outputs that take part, with both gradients, from which labels and weights follow.
    Without a cause in them the two numbers are left: a factor, whose name is a possibility.
    """
    known = next((words for side in sides if (words := explain_by_gradients(side))), "")
    return known or _explain_ratio(expected, actual, outputs)


def _explain_ratio(expected: float, actual: float, outputs: Sequence[Array]) -> str:
    if not (np.isfinite(expected) and np.isfinite(actual)) or not expected or not actual:
        return ""
    ratio = actual / expected
    if _is_close(ratio, 1):
        return ""
    if _is_close(ratio, -1):
        return "the loss has the opposite sign in Paddle"
    for number, words in _counts(outputs):
        if _is_close(ratio, number):
            return f"Paddle's loss is PyTorch's times {words}: perhaps reduction='sum' instead of 'mean'"
        if _is_close(ratio, 1 / number):
            rows = "'batchmean' or " if "last axis" in words else ""
            return (f"PyTorch's loss is Paddle's times {words}: perhaps reduction='mean' instead of "
                    f"{rows}'sum'")  # fmt: skip
    if _is_close(ratio, 2) or _is_close(ratio, 0.5):
        return (
            f"Paddle's loss is PyTorch's times {ratio:.6g}: perhaps only one side has a factor 1/2"
        )
    if _is_close(ratio, np.log(2)) or _is_close(ratio, 1 / np.log(2)):
        return "one side takes the natural logarithm, the other the logarithm to base 2"
    if actual < expected and any(reaches_far(output) for output in outputs):
        return (
            "perhaps because some scores are more than 64 below the largest of their row, which "
            f"Paddle's cross_entropy takes as 64 below{refer_to(['softmax-far-below'])}"
        )
    return ""


def _is_close(ratio: float, number: float) -> bool:
    return bool(abs(ratio / number - 1) <= _CLOSE)


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
