"""What rounding does to each number of the reference, measured where a verdict hangs on it.

PyTorch's model is run again with its weights and float inputs moved by a few units in the last place,
and once in float32. How far a number moves is its noise. It costs three runs, taken only if some
element is beyond what its own place allows and within what the whole tensor allows.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property

from reprod_align.alignment.runner import SEED, Runner, shake
from reprod_align.base.difference import Gap, gap
from reprod_align.base.local import Allowance, judge
from reprod_align.model.side import Inputs, ModelFailure
from reprod_align.model.trace import Array, Trace

import numpy as np

Lookup = Callable[[Trace], Array | None]
"""finds an array of the reference, as the port lays it out, in any run of the reference"""
Compare = Callable[[Array, Array, float], Gap]
"""compares what is expected with what is there, given what rounding leaves where zero is due"""

_TIMES = 100.0  # the noise measured is still noise
_FLOAT32 = 2.0**-29  # of what float32 does is what float64 does


def compare_locally(expected: Array, actual: Array, floor: float) -> Gap:
    """Compare two arrays, each element by what is allowed at its place; nothing is measured."""
    return judge(expected, actual, Allowance(floor=floor))


class Noise:
    """The noise of one kind of run: in eval or in train mode."""

    def __init__(self, runner: Runner, training: bool) -> None:
        """Measure nothing yet."""
        self._runner, self._training = runner, training

    def compare_with(self, find: Lookup) -> Compare:
        """Return what compares the array that `find` finds in the reference's own run with another.

        Each element is judged by what is allowed at its place, its noise included. Where no moved
        run shows the noise, the largest value of the tensor is the scale.
        """

        def compare(expected: Array, actual: Array, floor: float) -> Gap:
            found = compare_locally(expected, actual, floor)
            if found.ok or not found.local:
                return found
            noise = self._measure(expected, find)
            if noise is None:
                return gap(expected, actual, floor=floor)
            return judge(expected, actual, Allowance(floor=floor, noise=noise))

        return compare

    def _measure(self, expected: Array, find: Lookup) -> Array | None:
        """Return how far each element may be off by rounding; None if no other run shows it."""
        moves = []
        for trace, times in self._moved:
            moved = find(trace)
            if moved is not None and moved.shape == expected.shape:
                with np.errstate(all="ignore"):
                    moves.append(times * np.abs(moved.astype(np.float64) - expected))
        if not moves:
            return None
        noise: Array = np.fmax.reduce(moves)
        if noise.ndim:  # one that happens not to move is as noisy as its row
            noise = np.fmax(noise, np.median(noise, axis=-1, keepdims=True))
        return noise

    @cached_property
    def shaken(self) -> Trace:
        """The reference's run from weights that are moved by a few units in the last place."""
        return self._run_moved(SEED, self._runner.inputs)

    @cached_property
    def _moved(self) -> Sequence[tuple[Trace, float]]:
        """Runs of the reference with other rounding, each with what its moves stand for."""
        runner = self._runner
        inputs = _shake_inputs(runner.inputs, runner.dtype)
        runs = [(self.shaken, _TIMES), (self._run_moved(SEED + 1, inputs), _TIMES)]
        if runner.dtype == "float64":
            with suppress(ModelFailure), runner.reference.working("float32"):
                runs.append((runner.run_reference(self._training), _TIMES * _FLOAT32))
        return runs

    def _run_moved(self, seed: int, inputs: Inputs) -> Trace:
        runner = self._runner
        try:
            for name, moved in shake(runner.weights, _epsilon(runner.dtype), seed):
                runner.reference.load({name: moved})
            return runner.run_reference(self._training, inputs=inputs)
        finally:
            runner.reference.load(runner.weights)


def _shake_inputs(inputs: Inputs, dtype: str) -> Inputs:
    named = inputs if isinstance(inputs, Mapping) else {str(n): a for n, a in enumerate(inputs)}
    wide = {
        name: array.astype(dtype) if array.dtype.kind == "f" else array
        for name, array in named.items()
    }
    moved = {**wide, **dict(shake(wide, _epsilon(dtype), SEED))}
    return moved if isinstance(inputs, Mapping) else tuple(moved.values())


def _epsilon(dtype: str) -> float:
    return float(np.finfo(dtype).eps)
