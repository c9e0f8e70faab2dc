"""What a difference between two optimizers' settings does to the steps that were taken.

The steps are worked out in numpy, with PyTorch's settings and with one of Paddle's in its place.
This is believed only where PyTorch's own steps come out.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from reprod_align.alignment.audit import OptimizerDifference
from reprod_align.alignment.training.update_rules import NORM_GUARD, clip_gradients, work_out_moves
from reprod_align.alignment.training.updates import updates_of
from reprod_align.base.difference import gap
from reprod_align.model.settings import OptimizerSettings, Values
from reprod_align.model.side import Step
from reprod_align.model.trace import Array

import numpy as np

_BELIEVED = 1e-8  # relative; a wrong rule or an unknown hook is far further off
_PLAIN_SETTINGS = ("kind", "missing")  # what these do needs no working out

Moves = list[dict[str, Array]]


class Effects:
    """Works out the reference's steps under other settings."""

    def __init__(
        self,
        start: Mapping[str, Array],
        taken: Sequence[Step],
        settings: OptimizerSettings,
        other: OptimizerSettings,
    ) -> None:
        """Find out how PyTorch's side clips gradients: its hooks don't tell, its steps do.

        start: PyTorch's tensors before the first of the steps `taken`. settings: of its optimizer;
        other: of Paddle's.
        """
        self._start, self._taken, self._settings, self._other = start, taken, settings, other
        self._clip: Values | None = None
        self._own: Moves | None = None
        for clip in [None] if settings.clip is None else [other.clip, None]:
            made = self._work_out(settings, clip, NORM_GUARD)
            if made is not None and self._are_taken(made):
                self._clip, self._own = clip, made
                break

    @property
    def optimizer(self) -> str:
        """The class of Paddle's optimizer."""
        return self._other.class_name

    @property
    def clips_alike(self) -> bool:
        """Whether PyTorch's side is seen to clip as Paddle's is set to."""
        return self._own is not None and self._clip == self._other.clip

    def as_in_paddle(self) -> Moves | None:
        """Return the steps with PyTorch's settings and Paddle's way of clipping by a norm."""
        return self._work_out(self._settings, self._clip, 0.0) if self.clips_alike else None

    def of(self, difference: OptimizerDifference, number: int) -> tuple[float, float]:
        """Return what the difference changes in step `number`, and at most in any; inf: not known.

        Both relative to the largest update of the parameter.
        """
        changed = None if self._own is None else self._work_out_with(difference)
        if changed is None or self._own is None:
            return math.inf, math.inf
        apart = [_largest(own, new) for own, new in zip(self._own, changed, strict=True)]
        return apart[number], max(apart)

    def _work_out_with(self, difference: OptimizerDifference) -> Moves | None:
        if difference.setting == "clip":
            return self._work_out(self._settings, self._other.clip, NORM_GUARD)
        if difference.setting in _PLAIN_SETTINGS:
            return None
        changed = {
            name: {**values, difference.setting: difference.paddle_value}
            if name in difference.torch_names
            else values
            for name, values in self._settings.parameters.items()
        }
        return self._work_out(replace(self._settings, parameters=changed), self._clip, NORM_GUARD)

    def _work_out(
        self, settings: OptimizerSettings, clip: Values | None, guard: float
    ) -> Moves | None:
        held = [name for name in settings.parameters if name in self._start]
        gradients = [step.gradients for step in self._taken]
        used = [{name: step[name] for name in held if name in step} for step in gradients]
        given = [clip_gradients(clip, step, guard) for step in used]
        made: Moves = [{} for _ in given]
        for name in held:
            own = [step[name] for step in given if step is not None and name in step]
            if len(own) < len(given):
                continue
            values, first = settings.parameters[name], self._taken[0].rates[0] or 1.0
            rates = [
                values["lr"] * rate / first for rate in (step.rates[0] for step in self._taken)
            ]
            moved = work_out_moves(settings.kind, values, self._start[name], own, rates)
            for step, move in zip(made, moved or [], strict=bool(moved)):
                step[name] = move
        return made if all(made) else None

    def _are_taken(self, made: Moves) -> bool:
        """Tell whether these are the steps that PyTorch took."""
        return all(
            gap(own[name], move, _BELIEVED, _rounding(self._start[name])).ok
            for number, step in enumerate(made)
            for own in [updates_of(self._taken, number, self._start)]
            for name, move in step.items()
        )


def _rounding(start: Array) -> float:
    """Return the rounding of an update that is computed from the values before and after."""
    return 16 * float(np.finfo(np.float64).eps) * float(np.abs(start).max(initial=0.0))


def _largest(own: Mapping[str, Array], new: Mapping[str, Array]) -> float:
    """Return the largest relative difference of any parameter's update."""
    return max((gap(own[name], new[name]).relative for name in own), default=0.0)
