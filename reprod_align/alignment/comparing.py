"""Compares what comes out of two sides: their outputs, and the gradients of paired parameters.

Outputs that are no tensors are compared too: numbers as numbers, by the same rules, texts exactly.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

from reprod_align.alignment.noise import WHOLE_ROUNDING as WHOLE_ROUNDING
from reprod_align.alignment.noise import Judge, Noise
from reprod_align.alignment.pairing import Pairing
from reprod_align.alignment.runner import Runner
from reprod_align.base.blocks import Array, magnitude
from reprod_align.base.difference import Gap
from reprod_align.match import TensorPair
from reprod_align.model.trace import PASSED_ON, LeafPair, Trace, find_unpaired

import numpy as np

_AGREE = Gap(0.0, 0.0, 0.0)
_DIFFER = Gap(np.inf, 0.0, 0.0)
_TEXT = "SU"  # kinds of arrays
Value = Array | None


@dataclass(frozen=True)
class ValueGap:
    """Two outputs of which one at least is no tensor, and how far they are apart."""

    torch_name: str
    """its path in PyTorch's output; the next in Paddle's"""
    paddle_name: str
    expected: Value
    actual: Value
    gap: Gap


def find_value(run: Trace, name: str) -> Value:
    """Return an output of a run by its path, tensor or not; None if there is none."""
    leaf = run.outputs.get(name)
    return run.values.get(name) if leaf is None else leaf.array


def compare_values(
    pairing: Pairing, reference: Trace, port: Trace, noise: Noise | None = None
) -> list[ValueGap]:
    """Compare the outputs that are no tensors, each with what stands for it, a number or a tensor."""
    found = []
    for first, second in pair_values(pairing, reference, port):
        ours, theirs = find_value(reference, first), find_value(port, second)
        judge = Judge(noise, partial(find_value, name=first))
        found.append(ValueGap(first, second, ours, theirs, _compare(ours, theirs, judge)))
    return found


def _compare(ours: Value, theirs: Value, judge: Judge) -> Gap:
    if ours is None or theirs is None:
        return _AGREE if ours is theirs else _DIFFER
    if ours.dtype.kind in _TEXT or theirs.dtype.kind in _TEXT:
        same = ours.dtype.kind == theirs.dtype.kind and np.array_equal(ours, theirs)
        return _AGREE if same else _DIFFER
    # True is 1
    first, second = (
        one.astype(np.int64) if one.dtype.kind == "b" else one for one in (ours, theirs)
    )
    if first.size == second.size == 1:  # a tensor of one element stands for a number
        first, second = first.reshape(()), second.reshape(())
    return judge.compare(first, second, 0.0)


def pair_values(pairing: Pairing, reference: Trace, port: Trace) -> Iterator[tuple[str, str]]:
    """Yield the paths of the outputs that stand for each other where one at least is no tensor.

    By name; those that are left in order, if they are as many and of the same kinds.
    """
    ours, theirs = _list_free(pairing, reference, port)
    shared = [name for name in ours if name in theirs]
    yield from ((name, name) for name in shared)
    first, second = ([name for name in free if name not in shared and free[name] is not None]
                     for free in (reference.values, port.values))  # fmt: skip
    kinds = (
        [_find_kind(one[name]) for name in names]
        for one, names in ((reference.values, first), (port.values, second))
    )
    if first and list(next(kinds)) == list(next(kinds)):
        yield from zip(first, second, strict=True)


def list_unpaired(pairing: Pairing, reference: Trace, port: Trace) -> tuple[list[str], list[str]]:
    """Return the outputs of each side, no tensors and not None, without a counterpart."""
    pairs = list(pair_values(pairing, reference, port))
    met = {first for first, _ in pairs}, {second for _, second in pairs}
    sides = zip((reference.values, port.values), met, strict=True)
    left = [[n for n, one in values.items() if one is not None and n not in known]
            for values, known in sides]  # fmt: skip
    return left[0], left[1]


def _list_free(
    pairing: Pairing, reference: Trace, port: Trace
) -> tuple[Mapping[str, Value], Mapping[str, Value]]:
    """Return the values of each side, with the tensors that stand where the other side has a value."""
    pairs: Sequence[tuple[str, str]] = [
        (pair.expected, pair.actual) for pair in pairing.output_pairs(reference, port)
    ]
    taken = {first for first, _ in pairs}, {second for _, second in pairs}
    # a tensor of Paddle's where PyTorch has None is one more than asked for
    wanted = set(port.values), {name for name, one in reference.values.items() if one is not None}
    ours, theirs = (
        run.values | {name: leaf.array for name, leaf in run.outputs.items()
                      if name in names and name not in known}
        for run, known, names in zip((reference, port), taken, wanted, strict=True)
    )  # fmt: skip
    return ours, theirs


def _find_kind(value: Value) -> str:
    kind = "" if value is None else value.dtype.kind
    return "f" if kind in "biu" else kind


LAYER_ROUNDING = 1e-6
"""relative: what float32 constants inside Paddle's float64 kernels leave (docs/tolerances.md)"""
CODE_ROUNDING = 2e-7
"""the same for a composite's own code: one or two such operators"""
FAINT = 1e-12
"""relative: what faithful outputs stay below in float64, as a rule; above it no module goes unseen"""
NOISE = 100.0  # times what a few ulp in the weights do is still noise
CALM = 1e-6  # of the largest gradient: more than this is not noise

ParameterGap = tuple[str, str, Gap]
"""of a gradient: PyTorch's name, Paddle's name, and how far the two are apart"""


@dataclass(frozen=True)
class Pass:
    """One forward and backward pass of both sides, each from its own inputs, and what differs."""

    training: bool
    reference: Trace
    natural: Trace
    """the port's own run"""
    outputs: Sequence[tuple[LeafPair, Gap]]
    noise: Noise
    """of the reference's numbers in this mode"""
    gradients: Sequence[ParameterGap] = ()
    """empty where the reference allows no backward pass"""
    gradient_noise: Mapping[str, float] | None = None
    """by PyTorch's names: see `_measure_noise`; None if it was not measured, since no verdict hangs on it"""
    digests: tuple[str, ...] = ()
    """of both runs' outputs, and of both as a whole"""
    values: Sequence[ValueGap] = ()
    """of the outputs that are no tensors"""
    reached: frozenset[str] = frozenset()
    """Paddle's names of the tensors that one side alone trains and that get a gradient there, zero or not"""

    @property
    def outputs_ok(self) -> bool:
        """Whether every output has a counterpart and agrees with it."""
        misfit = find_unpaired(self.reference.outputs, self.natural.outputs, self.pairs)
        return bool(self.outputs) and misfit is None and all(found.ok for _, found in self.outputs)

    @property
    def gradients_ok(self) -> bool:
        """Whether every parameter's gradient agrees."""
        return all(found.ok for *_, found in self.gradients)

    @property
    def is_deferred(self) -> bool:
        """Whether gradients were not compared, since train mode's tell all that these would."""
        return self.reference.deferred or self.natural.deferred

    @property
    def pairs(self) -> list[LeafPair]:
        """Which output stands for which."""
        return [pair for pair, _ in self.outputs]

    @property
    def outputs_noise(self) -> float:
        """How far the outputs are apart where they agree, relative: gradients can't agree better."""
        return max(
            (found.relative for _, found in self.outputs if found.ok and found.scale), default=0.0
        )

    @cached_property
    def largest_gradient(self) -> float:
        """The largest finite element of all the reference's gradients."""
        return max(map(magnitude, self.reference.gradients.values()), default=0.0)

    @property
    def mode(self) -> str:
        """The mode, in a word."""
        return "train" if self.training else "eval"


def compare_pass(
    runner: Runner,
    reference: Trace,
    training: bool,
    natural: Trace | None = None,
    until_one_differs: bool = False,
) -> Pass:
    """Compare the port as it is with a run of the reference in the same mode.

    Gradients are compared where neither run has deferred its backward pass.
    natural: the port's run, if it was made already. until_one_differs: gradients are compared only
    if the outputs agree.
    """
    natural = natural or runner.run_port(training, "outputs" if training else "values")
    noise = Noise(runner, training, reference)
    outputs = compare_outputs(runner.pairing, reference, natural, noise)
    values = compare_values(runner.pairing, reference, natural, noise)
    done = Pass(training, reference, natural, outputs, noise, values=values)
    skip = (until_one_differs and not done.outputs_ok) or done.is_deferred
    if skip or not (training or runner.eval_backward):
        return done
    reached = frozenset(_find_reached(runner.pairing, reference, natural))
    done = replace(
        done, gradients=compare_gradients(runner.pairing, done, natural), reached=reached
    )
    wrong = [found for *_, found in done.gradients if not found.ok]
    if done.outputs_ok and all(may_be_noise(done, found) for found in wrong):
        done = judge_all_gradients(runner.pairing, done)
    if done.gradients_ok:  # they are as large as the model
        natural.gradients = {}
    return done


def _find_reached(pairing: Pairing, reference: Trace, port: Trace) -> Iterator[str]:
    for ours, theirs in pairing.one_sided:
        first = pairing.torch.find(reference.gradients, ours)
        second = pairing.paddle.find(port.gradients, theirs)
        if first is not None or second is not None:
            yield theirs


def judge_all_gradients(pairing: Pairing, done: Pass) -> Pass:
    """Return the pass with its gradients compared once more, if they differ, with noise allowed for."""
    if done.gradients_ok or done.gradient_noise is not None:
        return done
    done = measure_gradient_noise(pairing, done)
    return replace(done, gradients=compare_gradients(pairing, done, done.natural))


def compare_outputs(
    pairing: Pairing, reference: Trace, port: Trace, noise: Noise | None = None
) -> list[tuple[LeafPair, Gap]]:
    """Compare the models' own outputs; `noise`: where a verdict hangs on it, rounding is measured."""
    found = []
    for pair in pairing.output_pairs(reference, port):
        find = partial(_find_output, pair)
        expected, actual = find(reference), port.outputs[pair.actual].array
        found.append((pair, Judge(noise, find).compare(expected, actual, 0.0)))
    return found


def _find_output(pair: LeafPair, run: Trace) -> Array:
    return pair.to_port(run.outputs[pair.expected].array)


def measure_gradient_noise(pairing: Pairing, done: Pass) -> Pass:
    """Return the pass with what it knows of noise in gradients: it costs a run of the reference."""
    return replace(done, gradient_noise=pairing.torch.spread(_measure_noise(done)))


def may_be_noise(done: Pass, found: Gap) -> bool:
    """Tell whether a gradient is no further off than any noise that is allowed for."""
    most = NOISE * CALM * done.largest_gradient
    return found.difference <= found.tolerance + most


def compare_gradients(pairing: Pairing, done: Pass, port: Trace) -> list[ParameterGap]:
    """Compare the gradients of all paired parameters in a run of the port, in Paddle's layout.

    A gradient that never arrived is zero. What the pass knows of noise is allowed for.
    """
    noise = done.gradient_noise or {}
    least = find_floor(done) * done.largest_gradient
    gaps = []
    for pair in pairing.distinct:
        floor = least + NOISE * max(noise.get(name, 0.0) for name in pair.torch)
        for other in pair.paddle:
            if pairing.may_train(pair, other):
                find = partial(find_gradient, pairing, pair, other)
                expected, actual = find(done.reference), pairing.paddle.find(port.gradients, other)
                actual = np.zeros(expected.shape) if actual is None else actual
                apart = Judge(done.noise, find).compare(expected, actual, floor, with_mean=True)
                gaps.append((pair.torch[0], other, apart))
    return gaps


def find_floor(done: Pass) -> float:
    """Return what rounding leaves of a gradient where zero is due, relative to the largest one."""
    return max(1e-13, PASSED_ON * done.outputs_noise)


def limit_own_code(dtype: str) -> float:
    """Return how far a composite's own code may be off by float32, relative: one operator or two.

    Where a pair is judged in float32, every operator rounds.
    """
    return CODE_ROUNDING if dtype == "float64" else LAYER_ROUNDING


def outputs_are_float32(done: Pass, limit: float) -> bool:
    """Tell whether what differs in the outputs can be float32's, each element at its own place."""
    return all(found.ok or _is_float32_output(done, pair, found, limit)
               for pair, found in done.outputs)  # fmt: skip


def _is_float32_output(done: Pass, pair: LeafPair, found: Gap, limit: float) -> bool:
    find = partial(_find_output, pair)
    expected, actual = find(done.reference), done.natural.outputs[pair.actual].array
    return Judge(done.noise, find).is_rounding(found, expected, actual, limit, whole=True)


def is_float32_gradient(
    pairing: Pairing,
    done: Pass,
    port: Trace,
    apart: ParameterGap,
    limit: float,
    whole: bool = False,
) -> bool:
    """Tell whether what differs in a gradient in a run of the port can be float32's.

    whole: that of the whole model, not of the parameter's module alone.
    """
    _, other, found = apart
    pair = next(pair for pair in pairing.distinct if other in pair.paddle)
    find = partial(find_gradient, pairing, pair, other)
    expected, actual = find(done.reference), pairing.paddle.find(port.gradients, other)
    if actual is None:
        return False
    return Judge(done.noise, find).is_rounding(found, expected, actual, limit, whole)


def find_gradient(pairing: Pairing, pair: TensorPair, other: str, run: Trace) -> Array:
    """Return the gradient of Paddle's parameter `other` in a run of the reference; zeros if none came."""
    known: dict[str, Array] = {}
    for name in pair.torch:
        found = pairing.torch.find(run.gradients, name)
        known[name] = np.zeros(pairing.torch.tensors[name].shape) if found is None else found
    return pair.to_paddle(known)[other]


def _measure_noise(done: Pass) -> dict[str, float]:
    """Return how far the reference's gradients move when its weights move by a few ulp."""
    gradients, shaken = done.reference.gradients, done.noise.shaken.gradients
    moves = {name: magnitude(shaken[name] - gradient)
             for name, gradient in gradients.items() if name in shaken}  # fmt: skip
    return {name: move for name, move in moves.items() if move <= CALM * done.largest_gradient}
