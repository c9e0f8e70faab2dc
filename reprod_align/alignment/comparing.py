"""Compares what comes out of two sides: their outputs, and the gradients of paired parameters."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reprod_align.alignment.bench import SEED, Bench
from reprod_align.base.difference import Gap, gap, magnitude
from reprod_align.model.leaf import PASSED_ON, LeafPair, unpaired
from reprod_align.model.trace import Array, Trace

import numpy as np

_NOISE = 100.0  # times what a few ulp in the weights do is still noise


@dataclass(frozen=True)
class Pass:
    """One forward and backward pass of both sides, each from its own inputs, and what differs."""

    training: bool
    reference: Trace
    natural: Trace
    """the port's own run"""
    gaps: list[tuple[LeafPair, Gap]]
    """of the models' own outputs"""
    gradients: list[tuple[str, str, Gap]]
    """of the parameters: PyTorch's name, Paddle's, and how far the gradients are apart"""

    @property
    def outputs_ok(self) -> bool:
        """Whether every output has a counterpart and agrees with it."""
        misfit = unpaired(self.reference.outputs, self.natural.outputs, self.pairs)
        return bool(self.gaps) and misfit is None and all(found.ok for _, found in self.gaps)

    @property
    def gradients_ok(self) -> bool:
        """Whether every parameter's gradient agrees."""
        return all(found.ok for *_, found in self.gradients)

    @property
    def pairs(self) -> list[LeafPair]:
        """Which output stands for which."""
        return [pair for pair, _ in self.gaps]

    @property
    def noise(self) -> float:
        """How far the outputs are apart where they agree, relative."""
        return outputs_noise(self.gaps)

    @property
    def mode(self) -> str:
        """The mode, in a word."""
        return "train" if self.training else "eval"


def outputs_noise(gaps: Sequence[tuple[LeafPair, Gap]]) -> float:
    """Return the largest relative difference of outputs that agree."""
    return max((found.relative for _, found in gaps if found.ok and found.scale), default=0.0)


def compared(bench: Bench, reference: Trace, training: bool) -> Pass:
    """Run the port as it is, and compare."""
    natural = bench.run_port(training, "outputs", None)
    gaps = output_gaps(bench, reference, natural)
    if not (training or bench.eval_backward):
        return Pass(training, reference, natural, gaps, [])
    noise = outputs_noise(gaps)
    gradients = gradient_gaps(bench, reference, natural, training, noise)
    return Pass(training, reference, natural, gaps, gradients)


def output_gaps(bench: Bench, reference: Trace, trace: Trace) -> list[tuple[LeafPair, Gap]]:
    """Compare the models' own outputs."""
    gaps = []
    for pair in bench.output_pairs(reference, trace):
        expected = pair.laid(reference.outputs[pair.expected].array)
        actual = trace.outputs[pair.actual].array
        gaps.append((pair, gap(actual if expected is None else expected, actual)))
    return gaps


def gradient_gaps(
    bench: Bench, reference: Trace, trace: Trace, training: bool, outputs: float = 0.0
) -> list[tuple[str, str, Gap]]:
    """Compare the gradients of all paired parameters, in Paddle's layout; none means zero.

    outputs: how far the outputs are apart, relative; gradients can't agree better.
    """
    gaps = _measured_gradients(bench, reference, trace, {}, outputs)
    if all(found.ok for *_, found in gaps):
        return gaps
    if training not in bench.noise:
        bench.noise[training] = _gradient_noise(bench, reference, training)
    return _measured_gradients(bench, reference, trace, bench.noise[training], outputs)


def _gradient_noise(bench: Bench, reference: Trace, training: bool) -> dict[str, float]:
    """Return how far the reference's gradients move when its weights move by a few ulp."""
    values, source = bench.torch_values, np.random.default_rng(SEED)
    ulps = 4 * float(np.finfo(np.float64 if bench.dtype == "float64" else np.float32).eps)
    for name, array in values.items():
        if array.dtype.kind == "f":
            moved = array * (1 + ulps * source.uniform(-1, 1, array.shape))
            bench.reference.load({name: moved})
    shaken = bench.run_reference(training).gradients
    bench.reference.load(values)
    largest = max((magnitude(gradient) for gradient in reference.gradients.values()), default=0.0)
    moves = {name: magnitude(shaken[name] - gradient)
             for name, gradient in reference.gradients.items() if name in shaken}  # fmt: skip
    return {name: move for name, move in moves.items() if move <= 1e-6 * largest}


def _measured_gradients(
    bench: Bench, reference: Trace, trace: Trace, noise: Mapping[str, float], outputs: float
) -> list[tuple[str, str, Gap]]:
    """Compare the gradients, allowing for noise by PyTorch's names."""
    largest = max((magnitude(g) for g in reference.gradients.values()), default=0.0)
    share = max(1e-13, PASSED_ON * outputs)
    gaps = []
    for pair in bench.match.pairs:
        known = {**_torch_zeros(bench, pair.torch), **reference.gradients}
        for other, expected in pair.to_paddle(known).items():
            if not bench.paddle_info.tensors[other].is_parameter:
                continue
            actual = trace.gradients.get(other, np.zeros(expected.shape))
            floor = share * largest + _NOISE * max(noise.get(name, 0.0) for name in pair.torch)
            found = gap(expected, actual, floor=floor)
            gaps.append((pair.torch[0], other, found))
    return gaps


def _torch_zeros(bench: Bench, names: tuple[str, ...]) -> dict[str, Array]:
    """Return zero gradients for the named tensors."""
    return {name: np.zeros(bench.torch_values[name].shape) for name in names}
