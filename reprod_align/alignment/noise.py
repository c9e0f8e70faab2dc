"""What rounding does to each number of the reference, measured where a verdict hangs on it.

PyTorch's model is run again with its weights and float inputs moved by a few units in the last place,
and once in float32. How far a number moves is its noise. It costs three runs, taken only if some
element is beyond what its own place allows and within what the whole tensor allows. A run on its own
numbers, with the constants moved that float32 has rounded, shows what rounding of such constants does
to a module; where a model computes in float32 inside, a run in float32 and one in float64 throughout,
both on its own numbers, show what a module rounds by itself. They are taken only if a difference is
larger than one float32 operator makes it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from reprod_align.alignment.runner import SEED, Runner, shake
from reprod_align.base.blocks import Array, magnitude
from reprod_align.base.difference import Gap, divide, gap
from reprod_align.base.local import Allowance, judge, measure_ordinary
from reprod_align.model.side import Inputs, ModelFailure
from reprod_align.model.trace import Call, Leaf, Trace
from reprod_align.model.watch import NO_PINS, Pin, Pins

import numpy as np
from numpy.typing import NDArray

Lookup = Callable[[Trace], Array | None]
"""finds an array of the reference, as the port lays it out, in any run of the reference"""

WHOLE_ROUNDING = 1e-4
"""relative: what float32 inside can grow to on its way to the outputs"""
_TIMES = 100.0  # the noise measured is still noise
_FLOAT32 = 2.0**-29  # of what float32 does is what float64 does
_TIMES32 = (
    30.0  # what float32 does, throughout or in a module, is not far less than another order does
)
_SPREAD32 = 1e-6
_UNITS = 3.0  # float32 may round a constant that often on the way to where it is used


@dataclass(frozen=True)
class Judge:
    """Compares one array of the reference with the port's, each element by what its place allows."""

    noise: "Noise | None" = None
    """of the reference's runs; None: nothing is measured"""
    find: Lookup = lambda run: None

    def compare(self, expected: Array, actual: Array, floor: float, with_mean: bool = False) -> Gap:
        """Compare the two; `floor`: what rounding leaves where zero is due. Noise is allowed.

        Where no moved run shows the noise, the largest value of the tensor is the scale.
        """
        found = judge(expected, actual, Allowance(floor=floor), with_mean)
        if found.ok or not found.local or self.noise is None:
            return found
        moves = self.noise.measure(expected, self.find)
        if moves is None:
            allowed = gap(expected, actual, floor=floor)
        else:
            allowed = judge(expected, actual, Allowance(floor=floor, noise=moves))
        return replace(allowed, mean=found.mean)

    def is_float32(self, expected: Array, actual: Array, limit: float) -> bool:
        """Tell whether all that differs can be float32's: at most `limit` of a row, or its noise.

        Where float32 was not measured, `limit` of the largest value.
        """
        allowance = Allowance(limit, spread=_SPREAD32)
        if judge(expected, actual, allowance).ok:
            return True
        rounded = None if self.noise is None else self.noise.measure_float32(expected, self.find)
        if rounded is None:
            return gap(expected, actual, limit).ok
        return judge(expected, actual, replace(allowance, noise=rounded)).ok

    def is_rounding(
        self, found: Gap, expected: Array, actual: Array, limit: float, whole: bool = False
    ) -> bool:
        """Tell whether a gap is float32's: at most `limit`, or what its constants can make; at each place.

        whole: of the whole model, not of one module.
        """
        if limit < found.relative <= WHOLE_ROUNDING:
            limit = max(limit, self.measure_constants(expected, whole))
        everywhere = self.noise is not None and self.noise.is_float32
        # sums that cancel leave few digits
        if everywhere or limit < found.relative <= WHOLE_ROUNDING:
            limit = max(limit, self.measure_inside(expected, whole))
        return found.relative <= limit and self.is_float32(expected, actual, limit)

    def measure_constants(self, expected: Array, whole: bool = False) -> float:
        """Return how far float32 constants can bring the array, next to its largest ordinary value.

        It is the answer of the module that makes the array, what is upstream has no part in it;
        whole: of the model.
        """
        moved = None if self.noise is None else self.noise.find_moved_by_constants(self.find, whole)
        return _UNITS * _measure_move(expected, moved)

    def measure_inside(self, expected: Array, whole: bool = False) -> float:
        """Return how far float32 inside can bring the array, next to its largest ordinary value.

        It is what the module rounds that makes the array; whole: the model. 0 where no model
        asks for float32.
        """
        if self.noise is None:
            return 0.0
        rounded, wide = (
            None if run is None else self.find(run) for run in self.noise.find_rounded(whole)
        )
        return _TIMES32 * _measure_move(expected if wide is None else wide, rounded)


def _measure_move(expected: Array, moved: Array | None) -> float:
    """Return the largest difference, next to the largest ordinary value; 0 where it cannot be told."""
    if moved is None or moved.shape != expected.shape:
        return 0.0
    with np.errstate(all="ignore"):
        answer = divide(magnitude(moved - expected), measure_ordinary(expected))
    return answer if np.isfinite(answer) else 0.0


class Noise:
    """The noise of one kind of run: in eval or in train mode."""

    def __init__(
        self, runner: Runner, training: bool, reference: Trace | None = None, loss: bool = False
    ) -> None:
        """Measure nothing yet; reference: PyTorch's run, if answers to constants are to be measured.

        loss: of runs with the user's loss in place of a projection.
        """
        self._runner, self._training, self._reference = runner, training, reference
        self._loss = loss

    def find_moved_by_constants(self, find: Lookup, whole: bool) -> Array | None:
        """Return the array that `find` finds where the reference's float32 constants are moved.

        whole: each module takes what that makes of its inputs; else, what it takes as a rule.
        """
        answer = self._answer_of_the_whole if whole else self._answers
        return None if answer is None else find(answer)

    def find_rounded(self, whole: bool) -> tuple[Trace | None, Trace | None]:
        """Return the reference's runs in float32 and in float64 throughout; none if neither is mixed in.

        The run as it is shows nothing of its own float32: the one in float32 rounds alike there.
        whole: each module takes what that makes of its inputs; else, what it takes as a rule.
        """
        if self.is_float32:
            return self._reference, self._wide if whole else self._wide_apart
        if not self._runner.keeps_float32:
            return None, None
        if whole:
            return self._rounded, self._wide
        return self._rounded_apart, self._wide_apart

    @property
    def is_float32(self) -> bool:
        """Whether the pair is judged in float32, so that every operator rounds."""
        return self._runner.dtype == "float32"

    @property
    def is_measured(self) -> bool:
        """Whether the reference was run again for it."""
        return not vars(self).keys().isdisjoint(("shaken", "_rounded", "_wide", "_wide_apart"))

    def measure(self, expected: Array, find: Lookup) -> Array | None:
        """Return how far each element may be off by rounding; None if no other run shows it.

        expected: what `find` finds in the reference's own run.
        """
        runs = [(run, _TIMES) for run in self._moved]
        if self._rounded is not None:
            runs.append((self._rounded, _TIMES * _FLOAT32))
        return _measure_moves(expected, find, runs)

    def measure_float32(self, expected: Array, find: Lookup) -> Array | None:
        """Return how far each element may be off where float32 is at work; None if no run shows it.

        Where the reference does not run in the other precision, its noise in this one stands for it.
        """
        other = self._wide if self.is_float32 else self._rounded
        if other is not None:
            return _measure_moves(expected, find, [(other, _TIMES32)])
        times = _TIMES32 if self.is_float32 else _TIMES32 / _FLOAT32
        return _measure_moves(expected, find, [(run, times) for run in self._moved])

    @cached_property
    def shaken(self) -> Trace:
        """The reference's run from weights that are moved by a few units in the last place."""
        return self._run_moved(SEED, self._runner.inputs)

    def run_for_inputs(self) -> Trace:
        """Return such a run with the gradients of the inputs."""
        moved = shake(self._runner.weights, _find_epsilon(self._runner.dtype), SEED)
        return self._run_with(moved, of_inputs=True)

    @cached_property
    def _moved(self) -> Sequence[Trace]:
        """Runs with other rounding, by weights and by inputs; none where the reference refuses them."""
        with suppress(ModelFailure):
            inputs = _shake_inputs(self._runner.inputs, self._runner.dtype)
            return self.shaken, self._run_moved(SEED + 1, inputs)
        return ()

    @cached_property
    def _rounded(self) -> Trace | None:
        """The reference's run in float32; None if there is none."""
        return self._run_in("float32", NO_PINS)

    @cached_property
    def _wide(self) -> Trace | None:
        return self._run_in("float64", NO_PINS)

    @cached_property
    def _rounded_apart(self) -> Trace | None:
        """The same on its own numbers: each module adds its own rounding alone."""
        return self._run_in("float32", self._own_pins)

    @cached_property
    def _wide_apart(self) -> Trace | None:
        return self._run_in("float64", self._own_pins)

    @property
    def _own_pins(self) -> Pins:
        return NO_PINS if self._reference is None else _OwnPins(self._reference.by_key())

    def _run_in(self, dtype: str, pins: Pins) -> Trace | None:
        """Run the reference in another precision than it has now; None if it does not run there."""
        runner = self._runner
        wide = dtype == "float64"
        if runner.dtype == dtype and not (wide and runner.reference.keeps_float32):
            return None
        runner.put_back(runner.reference)
        with suppress(ModelFailure), runner.reference.working(dtype, throughout=wide):
            return runner.run_reference(self._training, self._loss, pins=pins)
        return None

    @cached_property
    def _answers(self) -> Trace | None:
        """The reference's run on its own numbers, with constants moved by float32's unit; None if none is."""
        return None if self._reference is None else self._move_constants(self._own_pins)

    @cached_property
    def _answer_of_the_whole(self) -> Trace | None:
        return self._move_constants(NO_PINS)

    def _move_constants(self, pins: Pins) -> Trace | None:
        constants = dict(_move_constants(self._runner))
        if constants and self._runner.dtype == "float64":
            with suppress(ModelFailure):
                return self._run_with(constants.items(), pins=pins)
        return None

    def _run_moved(self, seed: int, inputs: Inputs) -> Trace:
        runner = self._runner
        moved = shake(runner.weights, _find_epsilon(runner.dtype), seed)
        return self._run_with(moved, inputs=inputs)

    def _run_with(self, tensors: Iterable[tuple[str, Array]], **options: Any) -> Trace:
        """Run the reference with these tensors in place of its own."""
        runner = self._runner
        runner.put_back(runner.reference)
        try:
            for name, moved in tensors:
                runner.reference.load({name: moved})
            return runner.run_reference(self._training, self._loss, **options)
        finally:
            runner.moved.add(runner.reference.name)
            runner.put_back(runner.reference)


@dataclass(frozen=True)
class _OwnPins:
    """Gives each call of the reference what it had in an earlier run; constants stay as they come.

    A dataclass: it may be sent to the process in which PyTorch is.
    """

    calls: Mapping[tuple[str, int], Call]

    def inputs(self, call: Call) -> dict[str, Pin]:
        known = self.calls.get(call.key)
        return {} if known is None else _pin(known.inputs)

    def outputs(self, call: Call) -> dict[str, Pin]:
        known = self.calls.get(call.key)
        return {} if known is None else _pin(known.outputs)


def _pin(leaves: Mapping[str, Leaf]) -> dict[str, Pin]:
    return {
        at: Pin(leaf.array, leaf.gradient, True)
        for at, leaf in leaves.items()
        if leaf.differentiable
    }


def _move_constants(runner: Runner) -> Iterator[tuple[str, Array]]:
    """Yield the buffers that each side has made itself and float32 has rounded, moved by a unit."""
    torch, source = runner.pairing.torch, np.random.default_rng(SEED)
    stored = {other for pair in runner.pairing.loaded for name in pair.torch
              for other in torch.other_names(name) if torch.tensors[other].is_persistent}  # fmt: skip
    for name, tensor in torch.tensors.items():
        if tensor.is_float and not tensor.is_parameter and name not in stored:
            array = runner.weights[name]
            narrow = array.astype(np.float32)
            if array.dtype == np.float64 and (narrow == array).all():
                signs = source.choice((-1.0, 1.0), array.shape)
                yield name, array + signs * np.where(_is_rounded(narrow), np.spacing(narrow), 0.0)


def _is_rounded(values: NDArray[np.float32]) -> Array:
    """Tell which numbers are fractions with more than half of float32's digits: others count as exact."""
    rounded: Array = ((values.view(np.uint32) & 0xFFF) != 0) & (values != np.rint(values))
    return rounded


def _measure_moves(
    expected: Array, find: Lookup, runs: Sequence[tuple[Trace, float]]
) -> Array | None:
    """Return the largest move of each element, each run's times what is given; None if none shows it."""
    moves = []
    for run, times in runs:
        moved = find(run)
        if moved is not None and moved.shape == expected.shape:
            with np.errstate(all="ignore"):
                moves.append(times * np.abs(moved.astype(np.float64) - expected))
    if not moves:
        return None
    noise: Array = np.fmax.reduce(moves)
    return np.fmax(noise, _find_usual(noise))


def _find_usual(noise: Array) -> Array:
    """Return the usual noise around each element, which one that happens not to move has too.

    It is the median of its row, or of its channel if that is smaller.
    """
    if noise.ndim < 2:
        return np.asarray(np.median(noise) if noise.size else 0.0)
    row = np.median(noise, axis=-1, keepdims=True)
    channel = np.median(noise, axis=tuple(range(noise.ndim - 1)), keepdims=True)
    return np.asarray(np.minimum(row, channel))


def _shake_inputs(inputs: Inputs, dtype: str) -> Inputs:
    named = inputs if isinstance(inputs, Mapping) else {str(n): a for n, a in enumerate(inputs)}
    wide = {
        name: array.astype(dtype) if array.dtype.kind == "f" else array
        for name, array in named.items()
    }
    moved = {**wide, **dict(shake(wide, _find_epsilon(dtype), SEED))}
    return moved if isinstance(inputs, Mapping) else tuple(moved.values())


def _find_epsilon(dtype: str) -> float:
    return float(np.finfo(dtype).eps)
