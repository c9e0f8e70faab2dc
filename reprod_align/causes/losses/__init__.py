"""Why two losses of the same output differ: what their gradients show of labels, weights and axes."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from reprod_align.causes.losses.binary import explain_binary
from reprod_align.causes.losses.cross_entropies import explain_cross_entropy
from reprod_align.causes.losses.ctc import explain_ctc
from reprod_align.causes.losses.distances import explain_distance
from reprod_align.causes.losses.sides import LossSides
from reprod_align.causes.losses.totals import explain_total

import numpy as np

__all__ = ["LossSides", "explain_by_gradients"]

_LARGEST = 2_000_000  # elements
_FEWEST = 6  # elements: fewer fit many losses
CAUSES: Final[Sequence[Callable[[LossSides], str]]] = (
    explain_total,
    explain_cross_entropy,
    explain_binary,
    explain_distance,
    explain_ctc,
)


def explain_by_gradients(sides: LossSides) -> str:
    """Return in which respect the two losses differ, proven on value and gradient; or ""."""
    arrays = (sides.scores, sides.ours, sides.theirs)
    if not sides.scores.ndim or not _FEWEST <= sides.scores.size <= _LARGEST:
        return ""
    if not all(np.isfinite(array).all() for array in arrays) or not (
        sides.ours.any() or sides.theirs.any()
    ):
        return ""
    values = np.float64(sides.expected), np.float64(sides.actual)  # 1 / 0 is inf for these
    sides = replace(sides, expected=values[0], actual=values[1])
    with np.errstate(all="ignore"):
        return next((words for explain in CAUSES if (words := explain(sides))), "")
