"""Two trainings in a Python file, which `curves --explain` reads and runs, and where their data differ.

Between two steps a training is a `TrainingState`; `convert_to_paddle` makes Paddle's of PyTorch's.

The file defines, as for `reprod-align pair`, torch_model() and paddle_model(),
torch_optimizer(model) and paddle_optimizer(model) and, if there is one, torch_scheduler(optimizer)
and paddle_scheduler(optimizer). It also defines

    def batch(step): ...        what step 1, 2, ... trains on: (inputs, targets), arrays; `inputs` as
                                the models take them, `targets` as the losses do (or None)
    def torch_loss(output, targets): ...        the loss, a scalar tensor; also of the output alone
    def paddle_loss(output, targets): ...

or torch_batch(step) and paddle_batch(step) in place of batch(step), where each side reads its own
data. It may also define

    checkpoints = [100, 200]                    steps after which both runs were saved; or a function
    def torch_restore(model, optimizer, step): ...      loads what was saved after that step
    def paddle_restore(model, optimizer, step): ...
    def draws(step): ...        the step's random numbers, such as SharedRandom(seed, epoch, step)
    def logs(reference, other): ...             is called first, with the paths of the two logs
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from reprod_align.backends.recipes import OptimizerState
from reprod_align.base import FRAMEWORKS, Framework
from reprod_align.base.blocks import Array
from reprod_align.base.tree import leaves, replace
from reprod_align.errors import ReprodError, first_line
from reprod_align.match import TensorPair
from reprod_align.model import Inputs, Trace, check_inputs, name_inputs
from reprod_align.pair.file import PairFile
from reprod_align.randomness import Draws, KeyedDraws, SharedRandom

import numpy as np

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


TrainingBatch = tuple[Inputs, Any]
SEED = 0  # of the draws where the file gives none
_NEAR = (1, -1, 2, -2)  # steps off, where the same data may be found


@dataclass(frozen=True)
class Functions:
    """The functions of a file that train one framework's model."""

    loss: Callable[[Any, Any], Any]
    """(output, targets) -> scalar tensor"""
    optimizer: Callable[[Any], Any]
    scheduler: Callable[[Any], Any] | None
    restore: Callable[[Any, Any, int], object] | None
    read: Callable[[int], TrainingBatch]
    draw: Callable[[int], "StepDraws"]


class TrainingSide:
    """One framework's training: its side, and what belongs to a step."""

    def __init__(self, framework: Framework, model: Any, functions: Functions) -> None:
        """Take a model and what trains it."""
        from reprod_align import pair

        self.framework, self.functions = framework, functions
        make_side = pair.torch_side if framework == "torch" else pair.paddle_side
        self.side = make_side(model, self._compute_loss, functions.optimizer, functions.scheduler)
        self.library = import_module(f"reprod_align.backends.{framework}.training")
        self._batches: dict[int, TrainingBatch] = {}
        self._targets: Any = None

    def read_batch(self, step: int) -> TrainingBatch:
        """Return what this side reads for a step, the same object each time."""
        if step not in self._batches:
            self._batches[step] = self.functions.read(step)
        return self._batches[step]

    def give_targets(self, batch: TrainingBatch) -> Inputs:
        """Let the loss be computed with the batch's targets; return its inputs."""
        inputs, self._targets = batch
        return inputs

    def run(self, step: int, batch: TrainingBatch, **how: Any) -> Trace:
        """Run the model forward and backward on a batch, with the random numbers of a step."""
        inputs, draws = self.give_targets(batch), self.functions.draw(step)
        return self.side.run(inputs, True, draws, "ends", **how)

    def make_optimizer(self) -> Any:
        """Return a new optimizer of the model."""
        return self.functions.optimizer(self.side.model)

    def restore(self, step: int) -> OptimizerState:
        """Load what this side saved after `step` into its model; return what its optimizer keeps.

        Raises ReprodError if that does not fit the optimizer.
        """
        model, optimizer = self.side.model, self.make_optimizer()
        if self.functions.restore is not None:
            self.functions.restore(model, optimizer, step)
        try:
            kept: OptimizerState = self.library.optimizer_state(optimizer, model)
        except AssertionError as error:  # Paddle's, of an entry that is not there
            raise ReprodError(
                f"{self.framework}_restore: the optimizer's state does not fit "
                f"({first_line(str(error))}): Paddle names it by the numbers of the layers that a "
                "process makes, so make the model as that run did"
            ) from error
        return kept

    def _compute_loss(self, output: Any) -> Any:
        targets = replace(self._targets, _is_array, self._make_tensor)
        return self.functions.loss(output, targets)

    def _make_tensor(self, _: str, array: Array) -> Any:
        side = self.side
        if array.dtype.kind == "f" and side.dtype is not None:
            array = array.astype(side.dtype)
        return side.fw.place(side.fw.constant(array), side.model)


class StepDraws(KeyedDraws):
    """A step's own stream, in the order of the calls, as the runs drew from it."""

    def __init__(self, draws: Draws) -> None:
        """Take the stream: it answers in place of the keyed one."""
        super().__init__(SEED, {"": ""})
        for name in ("uniform", "normal", "integers", "permutation"):
            setattr(self, name, getattr(draws, name))


class TrainingFile(PairFile):
    """A user's file with two trainings. A mistake in it is a ReprodError that names the file."""

    def begin(self, reference: Path, other: Path) -> None:
        """Give the file the paths of the logs, if it asks for them."""
        function = self.find_function("logs", 2)
        if function is not None:
            function(reference, other)

    def make_training(self, framework: Framework) -> TrainingSide:
        """Return one side's training, its model made."""
        optimizer = "(model) that returns the optimizer"
        draws = self.find_function("draws", 1) or partial(SharedRandom, SEED, 0)
        functions = Functions(
            self._find_loss(f"{framework}_loss"),
            self._require(f"{framework}_optimizer", 1, optimizer),
            self.find_function(f"{framework}_scheduler", 1),
            self.find_function(f"{framework}_restore", 3),
            self._find_batch(framework),
            lambda step: StepDraws(draws(step)),
        )
        about = f"() that returns {FRAMEWORKS[framework]}'s model"
        model = self._require(f"{framework}_model", 0, about)()
        try:
            return TrainingSide(framework, model, functions)
        except ReprodError as error:
            raise ReprodError(f"{self.path}: {error}") from error

    def list_checkpoints(self) -> list[int]:
        """Return the steps after which both runs were saved, rising; [] if the file names none."""
        found = getattr(self._module, "checkpoints", None)
        found = found() if callable(found) else found
        if found is None:
            return []
        for framework in FRAMEWORKS:
            self._require(
                f"{framework}_restore", 3, "(model, optimizer, step), as it has checkpoints"
            )
        steps = list(found)
        if not all(isinstance(step, (int, np.integer)) and step >= 0 for step in steps):
            raise ReprodError(f"{self.path}: checkpoints must be steps from 0, got {steps!r:.100}")
        return sorted({int(step) for step in steps})

    def _find_batch(self, framework: Framework) -> Callable[[int], TrainingBatch]:
        own = self.find_function(f"{framework}_batch", 1)
        found = own or self.find_function("batch", 1)
        if found is None:
            raise ReprodError(
                f"{self.path} defines no function batch(step), which returns (inputs, targets), and no "
                f"{framework}_batch(step): --explain needs what the steps trained on"
            )
        return partial(self._read, f"{framework}_batch" if own else "batch", found)

    def _read(self, name: str, function: Callable[[int], Any], step: int) -> TrainingBatch:
        made = function(step)  # what it raises comes as it is
        if not isinstance(made, tuple) or len(made) != 2:
            raise ReprodError(f"{self.path}: {name}({step}) must return (inputs, targets)")
        try:
            check_inputs(made[0])
        except ReprodError as error:
            raise ReprodError(f"{self.path}: {name}({step}): {error}") from error
        return made

    def _find_loss(self, name: str) -> Callable[[Any, Any], Any]:
        """Return the loss as a function of the output and the targets; it may take the output alone."""
        about = "(output, targets) that returns the loss"
        try:
            return self._require(name, 2, about)
        except ReprodError:
            alone = self._require(name, 1, about)
        return lambda output, _: alone(output)

    def _require(self, name: str, arguments: int, about: str) -> Callable[..., Any]:
        return self.require_function(name, f"{about}: --explain needs it", arguments)


def describe_difference(
    ours: Callable[[int], TrainingBatch],
    theirs: Callable[[int], TrainingBatch],
    steps: Sequence[int],
) -> str:
    """Return the first of `steps` whose data differ, and how; "" if all agree."""
    for step in steps:
        mine, other = _collect_arrays(ours(step)), _collect_arrays(theirs(step))
        if not _are_same(mine, other):
            return f"step {step}: {_describe(mine, other, ours, step)}"
    return ""


def _collect_arrays(batch: TrainingBatch) -> dict[str, Array]:
    inputs, targets = batch
    found = {f"input {name}": array for name, array in name_inputs(inputs).items()}
    return found | leaves({"targets": targets}, _is_array)


def _is_array(value: object) -> bool:
    return isinstance(value, np.ndarray)


def _are_same(ours: Mapping[str, Array], theirs: Mapping[str, Array]) -> bool:
    return ours.keys() == theirs.keys() and all(
        _are_equal(ours[name], theirs[name]) for name in ours
    )


def _are_equal(ours: Array, theirs: Array) -> bool:
    return np.array_equal(ours, theirs, equal_nan=ours.dtype.kind == "f" == theirs.dtype.kind)


def _describe(
    ours: Mapping[str, Array],
    theirs: Mapping[str, Array],
    source: Callable[[int], TrainingBatch],
    step: int,
) -> str:
    if ours.keys() != theirs.keys():
        return f"PyTorch reads {', '.join(ours)}, Paddle {', '.join(theirs)}"
    for by in _NEAR:
        # beyond the end of the training a source raises
        with suppress(IndexError, KeyError, ValueError, StopIteration):
            if step + by > 0 and _are_same(_collect_arrays(source(step + by)), theirs):
                return f"Paddle reads what PyTorch reads at step {step + by}"
    apart = [name for name in ours if not _are_equal(ours[name], theirs[name])]
    if _is_reordered(ours, theirs):
        return "the same examples in another order within the batch"
    return f"{apart[0]} differs: {_describe_arrays(ours[apart[0]], theirs[apart[0]])}"


def _is_reordered(ours: Mapping[str, Array], theirs: Mapping[str, Array]) -> bool:
    """Tell whether the rows of all arrays together are the same, but for their order."""
    if any(ours[name].shape != theirs[name].shape or not ours[name].ndim for name in ours):
        return False
    if len({len(array) for array in ours.values()}) != 1:
        return False
    rows = [_join_rows(arrays) for arrays in (ours, theirs)]
    return sorted(rows[0]) == sorted(rows[1])


def _join_rows(arrays: Mapping[str, Array]) -> list[bytes]:
    parts = [np.ascontiguousarray(array) for array in arrays.values()]
    return [b"".join(part[row].tobytes() for part in parts) for row in range(len(parts[0]))]


def _describe_arrays(ours: Array, theirs: Array) -> str:
    if ours.shape != theirs.shape:
        return f"shape {ours.shape} in PyTorch, {theirs.shape} in Paddle"
    if ours.dtype.kind != theirs.dtype.kind:
        return f"{ours.dtype} in PyTorch, {theirs.dtype} in Paddle"
    count = int(np.count_nonzero(~((ours == theirs) | ((ours != ours) & (theirs != theirs)))))
    return f"{count} of {ours.size} elements"
