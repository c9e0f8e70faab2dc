"""Two trainings in a Python file: what `curves --explain` takes of it, and how it is run.

The file defines, as for `reprod-align pair`, torch_model() and paddle_model(),
torch_optimizer(model) and paddle_optimizer(model) and, if there is one, torch_scheduler(optimizer)
and paddle_scheduler(optimizer); and

    def batch(step): ...        what step 1, 2, ... trains on: (inputs, targets), arrays; `inputs` as
                                the models take them, `targets` as the losses do (or None)
    def torch_loss(output, targets): ...        the loss, a scalar tensor; also of the output alone
    def paddle_loss(output, targets): ...

torch_batch(step) and paddle_batch(step) in place of batch(step), where each side reads its own data.
If it likes, it defines also

    checkpoints = [100, 200]                    steps after which both runs were saved; or a function
    def torch_restore(model, optimizer, step): ...      loads what was saved after that step
    def paddle_restore(model, optimizer, step): ...
    def draws(step): ...        the step's random numbers, such as SharedRandom(seed, epoch, step)
    def logs(reference, other): ...             is called first, with the paths of the two logs
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from reprod_align.base.keyed_draws import KeyedDraws, Shape
from reprod_align.base.tree import replace
from reprod_align.errors import ReprodError
from reprod_align.model.inputs import check_inputs
from reprod_align.model.local import LocalSide
from reprod_align.model.side import Inputs
from reprod_align.model.trace import Array
from reprod_align.pair.file import FRAMEWORKS, Framework, PairFile
from reprod_align.randomness import Draws, SharedRandom

import numpy as np

Batch = tuple[Inputs, Any]
SEED = 0  # of the draws where the file gives none


@dataclass
class Training:
    """One framework's training: its side, and what belongs to a step."""

    side: LocalSide
    batch: Callable[[int], Batch]
    restore: Callable[[Any, Any, int], object] | None
    targets: "Targets"
    batches: dict[int, Batch] = field(default_factory=dict)

    def data(self, step: int) -> Batch:
        """Return what this side reads for a step, the same object each time."""
        if step not in self.batches:
            self.batches[step] = self.batch(step)
        return self.batches[step]


class Targets:
    """What the loss is given beside the output: arrays, set anew for each step."""

    def __init__(self) -> None:
        """Begin with none."""
        self.arrays: Any = None
        self.side: LocalSide | None = None

    def tensors(self) -> Any:
        """Return the arrays as tensors of the side, floats in the dtype it works in."""
        return replace(self.arrays, lambda value: isinstance(value, np.ndarray), self._tensor)

    def _tensor(self, _: str, array: Array) -> Any:
        side = self.side
        if side is None:
            raise ReprodError("the loss was called before there was a side")
        if array.dtype.kind == "f" and side.dtype is not None:
            array = array.astype(side.dtype)
        return side.fw.place(side.fw.constant(array), side.model)


class StepDraws(KeyedDraws):
    """A step's own stream, in the order of the calls, as the runs drew from it."""

    def __init__(self, draws: Draws) -> None:
        """Take the stream."""
        super().__init__(SEED, {"": ""})
        self._own = draws

    def uniform(self, shape: Shape) -> Any:
        """Return the stream's next numbers in [0, 1)."""
        return self._own.uniform(shape)

    def normal(self, shape: Shape) -> Any:
        """Return the stream's next standard normal numbers."""
        return self._own.normal(shape)

    def integers(self, low: int, high: int, shape: Shape) -> Any:
        """Return the stream's next integers."""
        return self._own.integers(low, high, shape)

    def permutation(self, n: int) -> Any:
        """Return the stream's next order."""
        return self._own.permutation(n)


class TrainingFile(PairFile):
    """A user's file with two trainings. What is wrong with it is a ReprodError that names the file."""

    def begin(self, reference: Path, other: Path) -> None:
        """Tell the file which runs it is about, if it asks."""
        function = self._function("logs", 2)
        if function is not None:
            function(reference, other)

    def training(self, framework: Framework) -> Training:
        """Return one side's training, its model made."""
        batch = self._batch(framework)
        targets, name = Targets(), f"{framework}_loss"
        arguments = self._arguments(name)
        loss = self._needed(name, arguments, "(output, targets) that returns the loss")
        maker = self._needed(f"{framework}_optimizer", 1, "(model) that returns the optimizer")
        model = self._needed(
            f"{framework}_model", 0, f"() that returns {FRAMEWORKS[framework]}'s"
        )()
        scheduler = self._function(f"{framework}_scheduler", 1)
        side = self._side(
            framework, model, partial(_judged, loss, arguments, targets), maker, scheduler
        )
        targets.side = side
        restore = self._function(f"{framework}_restore", 3)
        return Training(side, batch, restore, targets)

    def checkpoints(self) -> list[int]:
        """Return the steps after which both runs were saved, rising; [] if the file says none."""
        found = getattr(self._module, "checkpoints", None)
        found = found() if callable(found) else found
        if found is None:
            return []
        for framework in FRAMEWORKS:
            self._needed(
                f"{framework}_restore", 3, "(model, optimizer, step), since checkpoints do"
            )
        steps = list(found)
        if not all(isinstance(step, (int, np.integer)) and step >= 0 for step in steps):
            raise ReprodError(f"{self.path}: checkpoints must be steps from 0, not {steps!r:.100}")
        return sorted({int(step) for step in steps})

    def draws(self, step: int) -> StepDraws:
        """Return the random numbers of a step, from their beginning."""
        function = self._function("draws", 1)
        return StepDraws(SharedRandom(SEED, 0, step) if function is None else function(step))

    def name_map(self) -> Mapping[str, str] | None:
        """Return which names go together, None if the file does not say."""
        return self.settings().get("name_map")

    def _batch(self, framework: Framework) -> Callable[[int], Batch]:
        own = self._function(f"{framework}_batch", 1)
        found = own or self._function("batch", 1)
        if found is None:
            raise ReprodError(
                f"{self.path} defines no function batch(step), which returns (inputs, targets), and no "
                f"{framework}_batch(step): --explain needs what the steps trained on"
            )
        return partial(self._checked, f"{framework}_batch" if own else "batch", found)

    def _checked(self, name: str, function: Callable[[int], Any], step: int) -> Batch:
        made = function(step)  # what it raises comes as it is
        if not isinstance(made, tuple) or len(made) != 2:
            raise ReprodError(f"{self.path}: {name}({step}) must return (inputs, targets)")
        try:
            check_inputs(made[0])
        except ReprodError as error:
            raise ReprodError(f"{self.path}: {name}({step}): {error}") from error
        return made

    def _arguments(self, name: str) -> int:
        """Return 2, or 1 for a loss that takes the output alone."""
        try:
            self._function(name, 2)
        except ReprodError:
            return 1
        return 2

    def _needed(self, name: str, arguments: int, about: str) -> Callable[..., Any]:
        function = self._function(name, arguments)
        if function is None:
            raise ReprodError(f"{self.path} defines no function {name}{about}: --explain needs it")
        return function

    def _side(self, framework: Framework, *made: Any) -> LocalSide:
        from reprod_align.pair import sides as pair

        maker = pair.torch_side if framework == "torch" else pair.paddle_side
        try:
            return maker(*made)
        except ReprodError as error:
            raise ReprodError(f"{self.path}: {error}") from error


def _judged(loss: Callable[..., Any], arguments: int, targets: Targets, output: Any) -> Any:
    return loss(output, targets.tensors()) if arguments == 2 else loss(output)
