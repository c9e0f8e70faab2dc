"""A training's state between two steps, and how PyTorch's becomes Paddle's."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from reprod_align.base.blocks import Array
from reprod_align.errors import ReprodError
from reprod_align.match import TensorPair

import numpy as np

OptimizerState = Mapping[str, Mapping[str, Array]]  # kind ("exp_avg") -> parameter's name -> array

_SAME: Final = {
    "exp_avg": "moment1",
    "exp_avg_sq": "moment2",
    "max_exp_avg_sq": "moment2_max",
    "momentum_buffer": "velocity",
    "square_avg": "mean_square",
    "grad_avg": "mean_grad",
    "sum": "moment",
}
"""what both keep, PyTorch's name -> Paddle's"""
_POWERS: Final = ("beta1_pow_acc", "beta2_pow_acc")


@dataclass(frozen=True)
class TrainingState:
    """What one side's next step starts from."""

    step: int
    """how many have been taken"""
    weights: Mapping[str, Array]
    """parameters and buffers"""
    kept: OptimizerState
    """by the optimizer"""


def convert_to_paddle(
    kept: OptimizerState,
    pairs: Sequence[TensorPair],
    fresh: OptimizerState,
    betas: tuple[float, float] | None,
) -> dict[str, dict[str, Array]]:
    """Return what Paddle's optimizer keeps where PyTorch's keeps `kept`.

    fresh: what Paddle's keeps before its first step; betas: of Adam, None for other optimizers.
    Raises ReprodError for a kind that is not known to mean the same.
    """
    unknown = [kind for kind in kept if kind not in _SAME and kind != "step"]
    unknown += [kind for kind in fresh if kind not in (*_SAME.values(), *_POWERS)]
    if unknown and kept:
        raise ReprodError(
            f"the optimizers' state ({', '.join(dict.fromkeys(unknown))}) cannot be carried from PyTorch to "
            "Paddle: only a step near the start, which needs no state, can be explained"
        )
    made: dict[str, dict[str, Array]] = {}
    for kind, held in kept.items():
        for pair in pairs:
            if kind in _SAME and all(name in held for name in pair.torch):
                made.setdefault(_SAME[kind], {}).update(pair.to_paddle(held))
    return made | _make_powers(kept.get("step", {}), pairs, fresh, betas)


def _make_powers(
    steps: Mapping[str, Array],
    pairs: Sequence[TensorPair],
    fresh: OptimizerState,
    betas: tuple[float, float] | None,
) -> dict[str, dict[str, Array]]:
    """Return Paddle's powers of the betas, which stand for the number of the next step."""
    if betas is None:
        return {}
    taken = {
        theirs: float(steps[pair.torch[0]])
        for pair in pairs
        if pair.torch[0] in steps
        for theirs in pair.paddle
    }
    return {
        kind: {name: np.full((1,), beta ** (taken[name] + 1)) for name in held if name in taken}
        for kind, beta in zip(_POWERS, betas, strict=True)
        if (held := fresh.get(kind)) is not None
    }
