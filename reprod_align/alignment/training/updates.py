"""What training steps add to the parameters, and how far the two sides' updates are apart.

An update is judged relative to itself, not to the parameter that it moves: a decay of 1e-4 times a
small weight is invisible next to the weight. Where a gradient is zero but for rounding, an adaptive
optimizer makes a large step of it; how large, the reference's own run from weights moved by a few
units in the last place tells.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from reprod_align.alignment.runner import Runner, shake
from reprod_align.base.blocks import Array, magnitude
from reprod_align.base.difference import Gap, gap
from reprod_align.model.side import TrainingStep
from reprod_align.model.store import keep_copy

import numpy as np

NOISE = 100.0
"""times the noise measured is still noise"""
_SEED = 77
_CALM = 1e-4  # noise above this share of the largest update tells nothing: the run is chaotic
_ROUNDED = 500  # units of the last place of the largest gradient: a smaller one is but rounding

UpdateGaps = dict[str, tuple[str, Gap]]
"""of one step: Paddle's name -> PyTorch's name, and how far the two updates are apart"""


@dataclass(frozen=True)
class _Updates(Mapping[str, Array]):
    """What one step added to each float tensor, subtracted when asked for: all would not fit memory."""

    before: Mapping[str, Array]
    after: Mapping[str, Array]

    def __getitem__(self, name: str) -> Array:
        if name not in self:
            raise KeyError(name)
        moved: Array = self.after[name] - self.before[name]
        return moved

    def __contains__(self, name: object) -> bool:
        known = name in self.before and name in self.after
        return known and self.after[str(name)].dtype.kind == "f"

    def __iter__(self) -> Iterator[str]:
        return (name for name in self.after if name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def updates_of(
    steps: Sequence[TrainingStep], number: int, start: Mapping[str, Array]
) -> Mapping[str, Array]:
    """Return what step `number` added; `start`: the tensors before the first step."""
    return _Updates(steps[number - 1].tensors if number else start, steps[number].tensors)


@dataclass(frozen=True)
class UpdateComparer:
    """Compares Paddle's updates with those of PyTorch's steps."""

    runner: Runner
    taken: Sequence[TrainingStep]
    """PyTorch's"""

    @cached_property
    def noise(self) -> Sequence[Mapping[str, float]]:
        """By step and PyTorch's name: how far updates move when weights move by a few ulp; "": losses."""
        runner = self.runner
        moved = {
            name: keep_copy(array) for name, array in shake(runner.weights, self._epsilon, _SEED)
        }
        start = {**runner.weights, **moved}
        shaken = runner.train_reference(len(self.taken), start)
        noise = []
        for number, (step, other) in enumerate(zip(self.taken, shaken, strict=True)):
            ours = updates_of(self.taken, number, runner.weights)
            theirs = updates_of(shaken, number, start)
            largest = max((magnitude(move) for move in ours.values()), default=0.0)
            found = {name: magnitude(theirs[name] - ours[name]) for name in ours}
            calm = {n: size if size <= _CALM * largest else 0.0 for n, size in found.items()}
            noise.append({**calm, "": abs(step.loss - other.loss)})
        return noise

    @property
    def _epsilon(self) -> float:
        return float(np.finfo(self.runner.dtype).eps)

    @cached_property
    def port_start(self) -> Mapping[str, Array]:
        """Paddle's tensors before the first step."""
        return self.runner.port_start()

    def compare(self, other: Sequence[TrainingStep]) -> list[UpdateGaps]:
        """Compare each step's update of every paired parameter."""
        return [self._compare_step(other, number) for number in range(len(self.taken))]

    def _compare_step(self, other: Sequence[TrainingStep], number: int) -> UpdateGaps:
        pairing, noise = self.runner.pairing, self.noise[number]
        ours = updates_of(self.taken, number, self.runner.weights)
        theirs = updates_of(other, number, self.port_start)
        found: UpdateGaps = {}
        for pair in pairing.distinct:
            if not all(pairing.torch.tensors[name].is_parameter for name in pair.torch):
                continue
            floor = NOISE * max(noise.get(name, 0.0) for name in pair.torch)
            for name, expected in pair.to_paddle(ours).items():
                if pairing.paddle.tensors[name].is_parameter:
                    rounding = 8 * self._epsilon * magnitude(self.port_start[name])
                    apart = gap(expected, theirs[name], floor=floor + rounding)
                    found[name] = pair.torch[0], apart
        return found

    def leave_out_rounded(
        self, gaps: Sequence[UpdateGaps], natural: Sequence[TrainingStep]
    ) -> list[UpdateGaps]:
        """Return `gaps` without the elements whose gradient is mere rounding on both sides.

        Some optimizers take a whole step by the sign of such a gradient. This is right only where
        Paddle's steps with PyTorch's gradients agree: they judge the optimizer at these elements.
        """
        rounded: dict[str, Array] = {}
        known: list[UpdateGaps] = []
        for number, step in enumerate(gaps):
            self._add_rounded(rounded, self.taken[number], natural[number])
            theirs = updates_of(natural, number, self.port_start)
            ours = self.runner.pairing.convert(updates_of(self.taken, number, self.runner.weights))
            known.append({})
            for name, (torch_name, found) in step.items():
                if not found.ok and name in rounded:
                    sure = ~rounded[name]
                    found = gap(ours[name] * sure, theirs[name] * sure, floor=found.tolerance)
                known[-1][name] = torch_name, found
        return known

    def _add_rounded(
        self, rounded: dict[str, Array], taken: TrainingStep, natural: TrainingStep
    ) -> None:
        """Add, by Paddle's name, the elements at which both gradients of this step are mere rounding."""
        largest = max((magnitude(gradient) for gradient in taken.gradients.values()), default=0.0)
        floor = _ROUNDED * self._epsilon * largest
        for name, ours in self.runner.pairing.convert(taken.gradients).items():
            theirs = self.runner.pairing.paddle.find(natural.gradients, name)
            if theirs is not None and theirs.shape == ours.shape:
                size = np.maximum(np.abs(ours), np.abs(theirs))
                rounded[name] = rounded.get(name, False) | ((size > 0) & (size <= floor))


def all_agree(gaps: Sequence[UpdateGaps], rounding: float = 0.0) -> bool:
    """Tell whether every update of every step agrees, or differs by no more than rounding, relative."""
    every = (found for step in gaps for _, found in step.values())
    return all(found.ok or found.relative <= rounding for found in every)
