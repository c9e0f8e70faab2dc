"""Runs both sides on further batches: forward passes to compare, and a full one where they differ."""

from contextlib import suppress
from dataclasses import replace
from operator import is_

from reprod_align.alignment.batches.derive import Batch
from reprod_align.alignment.comparing import Pass, compare_outputs, compare_pass
from reprod_align.alignment.findings import Findings
from reprod_align.alignment.locating.blame import locate
from reprod_align.alignment.noise import Noise
from reprod_align.alignment.output_values import judge_values
from reprod_align.alignment.runner import Runner
from reprod_align.alignment.values import compare_values
from reprod_align.base.difference import magnitude
from reprod_align.model.side import Inputs, ModelFailure
from reprod_align.model.trace import Array, Trace
from reprod_align.model.watch import Keep

import numpy as np

_LARGE = 60.0  # Paddle's log-probabilities end at -64
_GROWN = 2.0  # times the given batch's largest number: large numbers may be usual in an output


class Trials:
    """Runs further batches on both sides."""

    def __init__(self, runner: Runner, done: Pass, keep_first: bool = False) -> None:
        """Take the pass on the given batch; keep_first: every module's outputs on the first one."""
        self._given, self._done = runner, done
        self._keep: Keep = "outputs" if keep_first else "ends"
        self.first: tuple[Runner, Pass] | None = None
        """the pass on the first batch and what ran it, if that was wanted and its outputs agree"""
        self.pairing = runner.pairing
        self._runners: dict[int, Runner] = {}
        self._made: dict[str, tuple[Inputs, ...]] = {}
        """side -> what it was called with since it has forgotten every other call"""
        self.refused: list[str] = []

    def accepts(self, batch: Batch) -> bool:
        """Run the reference on a batch; tell whether it gives numbers that can be compared."""
        runner = replace(
            self._given,
            inputs=batch.inputs,
            before=batch.before,
            graded=batch.graded,
            eval_backward=False,
            _drawn={},
        )
        try:
            expected = self._follow(runner, "reference").run_reference(False, keep=self._keep)
        except ModelFailure:
            expected = Trace()
            self._made.clear()
        if not _is_like(expected, self._done):
            self.refused.append(batch.words)
            return False
        self._runners[id(batch)] = replace(runner, expected=expected)
        return True

    def compare(self, batch: Batch) -> Pass:
        """Run the port on a batch that is accepted. Raises ModelFailure if it does."""
        runner = self._runners[id(batch)]
        natural = self._follow(runner, "port").run_port(False, self._keep, backward=False)
        noise = Noise(runner, training=False)
        outputs = compare_outputs(runner.pairing, runner.expected, natural, noise)
        if noise.is_measured:
            self._made.clear()
        values = compare_values(runner.pairing, runner.expected, natural, noise)
        done = Pass(False, runner.expected, natural, outputs, noise, values=values)
        if self._keep == "outputs" and done.outputs_ok and batch.graded:
            self.first = runner, done
        self._keep = "ends"
        return done

    def _follow(self, runner: Runner, side: str) -> Runner:
        """Return the runner; it repeats no calls that its side has just made."""
        made = self._made.get(side, ())
        done = 0 < len(runner.before) == len(made)
        done = done and all(map(is_, runner.before, made))
        self._made[side] = (*runner.before, runner.inputs) if runner.graded else ()
        return replace(runner, called=done)

    def judge_values(self, batch: Batch, done: Pass) -> Findings:
        """Return the findings on the outputs of a batch that are no tensors."""
        findings = Findings()
        if not all(found.gap.ok for found in done.values):
            judge_values(self._runners[id(batch)], findings, done)
            self._made.clear()
        return findings

    def locate(self, batch: Batch) -> Findings:
        """Return the findings of a full pass on a batch; none if the outputs agree there."""
        backward = self._given.eval_backward and batch.graded
        runner = replace(self._runners[id(batch)], eval_backward=backward)
        findings = Findings()
        self._made.clear()
        with suppress(ModelFailure):
            runner = replace(runner, expected=runner.run_reference(False))
            done = compare_pass(runner, runner.expected, False)
            if not done.outputs_ok:
                locate(runner, findings, done)
        return findings


def _is_like(expected: Trace, done: Pass) -> bool:
    """Tell whether a run of the reference gives what the pass on the given batch gave, and numbers."""
    for pair in done.pairs:
        leaf, known = expected.outputs.get(pair.expected), done.reference.outputs[pair.expected]
        if leaf is None or leaf.array.ndim != known.array.ndim and pair.axes is not None:
            return False
        if not _is_as_ordinary(leaf.array, known.array):
            return False
    return bool(done.pairs)


def _is_as_ordinary(array: Array, known: Array) -> bool:
    """Tell whether an output holds no NaN, infinity or large number if that of the given batch has none."""
    if array.dtype.kind != "f" or not np.isfinite(known).all():
        return True
    largest = max(_LARGE, _GROWN * magnitude(known))
    return bool((np.abs(array) <= largest).all())
