"""What a difference between two optimizers' settings does to the steps that were taken.

The steps are worked out in numpy, with PyTorch's settings and with one of Paddle's in its place.
This is believed only where PyTorch's own steps come out.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from reprod_align.alignment.audit import OptimizerDifference
from reprod_align.alignment.training.update_rules import NORM_GUARD, clipped, moves
from reprod_align.base.difference import gap
from reprod_align.model.settings import OptimizerSettings, Values
from reprod_align.model.trace import Array

import numpy as np

_BELIEVED = 1e-8  # relative; a wrong rule or an unknown hook is far further off
_PLAIN_SETTINGS = ("kind", "missing")  # what these do needs no working out

Moves = list[dict[str, Array]]


@dataclass(frozen=True)
class Steps:
    """The reference's steps, by PyTorch's parameter names."""

    start: Mapping[str, Array]
    gradients: Sequence[Mapping[str, Array]]
    rates: Sequence[float]
    """of the first parameter group"""
    moved: Sequence[Mapping[str, Array]]
    """what each step added"""


class Effects:
    """Works out the reference's steps under other settings."""

    def __init__(self, steps: Steps, settings: OptimizerSettings, other: OptimizerSettings) -> None:
        """Find out how PyTorch's side clips: its hooks don't tell, its steps do."""
        self._steps, self._settings, self._other = steps, settings, other
        self._clip: Values | None = None
        self._own: Moves | None = None
        for clip in [None] if settings.clip is None else [other.clip, None]:
            made = self._worked_out(settings, clip, NORM_GUARD)
            if made is not None and self._is_own(made):
                self._clip, self._own = clip, made
                break

    @property
    def clips_alike(self) -> bool:
        """Whether PyTorch's side is seen to clip as Paddle's is set to."""
        return self._own is not None and self._clip == self._other.clip

    def as_in_paddle(self) -> Moves | None:
        """Return the steps with PyTorch's settings and Paddle's way of clipping by a norm."""
        return self._worked_out(self._settings, self._clip, 0.0) if self.clips_alike else None

    def of(self, difference: OptimizerDifference, number: int) -> tuple[float, float]:
        """Return what the difference changes in step `number`, and at most in any; inf: not known.

        Both relative to the largest update of the parameter.
        """
        changed = None if self._own is None else self._changed(difference)
        if changed is None or self._own is None:
            return math.inf, math.inf
        apart = [_largest(own, new) for own, new in zip(self._own, changed, strict=True)]
        return apart[number], max(apart)

    def _changed(self, difference: OptimizerDifference) -> Moves | None:
        if difference.setting == "clip":
            return self._worked_out(self._settings, self._other.clip, NORM_GUARD)
        if difference.setting in _PLAIN_SETTINGS:
            return None
        changed = {
            name: {**values, difference.setting: difference.paddle_value}
            if name in difference.torch_names
            else values
            for name, values in self._settings.parameters.items()
        }
        return self._worked_out(replace(self._settings, parameters=changed), self._clip, NORM_GUARD)

    def _worked_out(
        self, settings: OptimizerSettings, clip: Values | None, guard: float
    ) -> Moves | None:
        held = [name for name in settings.parameters if name in self._steps.start]
        used = [
            {name: step[name] for name in held if name in step} for step in self._steps.gradients
        ]
        given = [clipped(clip, step, guard) for step in used]
        made: Moves = [{} for _ in given]
        for name in held:
            own = [step.get(name) for step in given if step is not None]
            gradients = [gradient for gradient in own if gradient is not None]
            if len(gradients) < len(given):
                continue
            values, first = settings.parameters[name], self._steps.rates[0] or 1.0
            rates = [values["lr"] * rate / first for rate in self._steps.rates]
            moved = moves(settings.kind, values, self._steps.start[name], gradients, rates)
            for step, move in zip(made, moved or [], strict=bool(moved)):
                step[name] = move
        return made if all(made) else None

    def _is_own(self, made: Moves) -> bool:
        """Tell whether these are the steps that PyTorch took."""
        return all(
            gap(own[name], move, _BELIEVED, _rounding(self._steps.start[name])).ok
            for own, step in zip(self._steps.moved, made, strict=True)
            for name, move in step.items()
        )


def _rounding(start: Array) -> float:
    """Return what is lost when an update is told from the values before and after."""
    return 16 * float(np.finfo(np.float64).eps) * float(np.abs(start).max(initial=0.0))


def _largest(own: Mapping[str, Array], new: Mapping[str, Array]) -> float:
    """Return the largest relative difference of any parameter's update."""
    return max((gap(own[name], new[name]).relative for name in own), default=0.0)
