"""Compares what the two sides make of further batches, which are made from the one that is given.

One batch does not show what a port does with one example, another length, a second call, other values,
integers of another dtype, or without gradients. Only the outputs of forward passes in eval mode are
compared; where they differ on a batch, a full pass finds the module.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from operator import is_

from reprod_align.alignment.batches.derive import (
    FEW,
    ONE_EXAMPLE,
    Batch,
    derive_batches,
    sort_as_given,
)
from reprod_align.alignment.comparing import (
    WHOLE_ROUNDING,
    Pass,
    compare_outputs,
    compare_pass,
    compare_values,
)
from reprod_align.alignment.ends import judge_values
from reprod_align.alignment.findings import NOT_COMPARABLE, Findings, give_lines
from reprod_align.alignment.locating.blame import locate
from reprod_align.alignment.loss_stage import describe_effects
from reprod_align.alignment.noise import Noise
from reprod_align.alignment.runner import Runner
from reprod_align.base import PORT, REFERENCE
from reprod_align.base.blocks import Array, magnitude
from reprod_align.base.difference import RELATIVE_TOLERANCE, Gap
from reprod_align.base.text import shorten
from reprod_align.model.side import Inputs, ModelFailure
from reprod_align.model.trace import Trace
from reprod_align.model.watch import Keep
from reprod_align.report import Finding
from reprod_align.report.finding import FindingKind

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

    @property
    def inputs(self) -> Inputs:
        """The batch as given."""
        return self._given.inputs

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


_NAMED = 2  # batches in one message
_SLOW = 2**31
"""parameters times elements of an example: above it a run of the model takes a tenth of a second"""
_MORE_ROUNDING = 100.0
"""float32 inside may round so many times as much on another batch as on the given one"""
_DTYPE = re.compile(r"kernel|data ?type|dtype|promotion|u?int(8|16|32|64)", re.IGNORECASE)
"""Paddle's words where an operator takes no integers of a dtype"""

Shown = tuple[Batch, Finding]
"""a fault, and the batch that shows it"""


def compare_batches(
    runner: Runner, findings: Findings, done: Pass, slow: bool = False
) -> tuple[Runner, Pass] | None:
    """Derive further batches, compare the outputs, and add a finding for each place at fault.

    done: the pass on the given batch in eval mode. If its outputs differ, nothing is compared.
    slow: one example does in most batches, see `takes_time`; then the pass on the smallest batch, with
    every module's outputs, is returned with its runner, if it agrees.
    """
    if findings.at_stage("forward") or not (done.outputs_ok or findings.float32_inside):
        return None
    trials, judged = Trials(runner, done, keep_first=slow), list[tuple[float, list[Shown]]]()
    for batch in derive_batches(runner.inputs, trials.accepts, 1 if slow else FEW):
        judged.append(_judge(trials, batch, done, findings))
    found = [shown for _, several in judged for shown in several]
    if judged:
        what = f"outputs, {len(judged)} further batches"
        findings.check("forward", what, max(apart for apart, _ in judged), not found)
    if f"with {ONE_EXAMPLE}" in trials.refused:
        findings.remark(
            f"not compared with {ONE_EXAMPLE}: the {REFERENCE} model does not run on it"
        )
    findings.report.findings += _merge(found)
    return trials.first


def takes_time(runner: Runner) -> bool:
    """Tell whether a run is slow: most further batches then hold one example.

    Then the batch as given is the one that shows what several examples do to each other.
    """
    tensors = runner.pairing.torch.tensors.values()
    parameters = sum(math.prod(tensor.shape) for tensor in tensors if tensor.is_parameter)
    given = runner.inputs
    arrays = list(given.values() if isinstance(given, Mapping) else given)
    counts = [len(array) for array in arrays if array.ndim]
    elements = sum(array.size for array in arrays) / max([1, *counts])
    return parameters * elements >= _SLOW


def _merge(found: Sequence[Shown]) -> Iterator[Finding]:
    """Yield one finding for each place, which says which batches show it."""
    places: dict[object, list[Shown]] = {}
    for batch, finding in found:
        places.setdefault((finding.torch_name, finding.paddle_name), []).append((batch, finding))
    for several in places.values():
        batches, first = [batch for batch, _ in several], several[0][1]
        yield replace(first, batches=_name(batches))


def _name(batches: Sequence[Batch]) -> str:
    """Return what is different in the batches that show a fault, in words."""
    separator = " and " if len(batches) == _NAMED else ", "
    return shorten([one.words for one in batches], _NAMED, separator) + batches[0].note


def _judge(
    trials: Trials, batch: Batch, given: Pass, findings: Findings
) -> tuple[float, list[Shown]]:
    """Return how far the outputs on a batch are apart, and a finding for each place at fault."""
    try:
        done = trials.compare(batch)
    except ModelFailure as error:
        return (
            _judge_parts(trials, batch, given, findings)
            or _judge_in_order(trials, batch, given, findings)
            or _judge_failure(trials, batch, error, findings)
        )
    gaps = [found for _, found in done.outputs]
    apart = max((found.exceed * RELATIVE_TOLERANCE for found in gaps), default=math.inf)
    if done.outputs_ok:
        return apart, [(batch, found) for found in trials.judge_values(batch, done).report.findings]
    if _is_known_rounding(given, gaps):
        return apart, []
    if batch.parts and (parts := _judge_parts(trials, batch, given, findings)):
        return parts
    located = trials.locate(batch)
    found = [finding for finding in located.report.findings if finding.stage == "forward"]
    if not found and not located.float32_inside:
        worst = max(gaps, key=lambda one: one.relative, default=NOT_COMPARABLE)
        text = f"the outputs differ: {worst.words}" if gaps else "no output can be compared"
        kind: FindingKind = "outputs" if gaps else "not-comparable"
        found = [Finding("forward", "", "", text, worst.difference, worst.tolerance, kind=kind)]
    if found and not findings.report.shares:
        findings.report.shares = located.report.shares
        effects = describe_effects(done.reference.outputs, done.natural.outputs, done.pairs)
        findings.report.consequences += [f"{_name([batch])}: {effect}" for effect in effects]
    return apart, [(batch, finding) for finding in found]


def _judge_parts(
    trials: Trials, batch: Batch, given: Pass, findings: Findings
) -> tuple[float, list[Shown]] | None:
    """Judge what a batch combines, each alone; None if that shows nothing."""
    remarks = len(findings.report.remarks)
    done = [_judge(trials, part, given, findings) for part in batch.parts if trials.accepts(part)]
    found = [shown for _, several in done for shown in several]
    if not found and len(findings.report.remarks) == remarks:
        return None
    return max(apart for apart, _ in done), found


def _judge_in_order(
    trials: Trials, batch: Batch, given: Pass, findings: Findings
) -> tuple[float, list[Shown]] | None:
    """Put a batch on which the port raises in the order of the given one, and judge it; None if it is."""
    found = sort_as_given(batch, trials.inputs)
    if found is None or not trials.accepts(found[0]):
        return None
    apart, shown = _judge(trials, found[0], given, findings)
    if not shown:
        named = " and ".join(found[1])
        findings.remark(f"the {PORT} model raises unless {named} ascends, as in the given batch")
    return apart, shown


def _judge_failure(
    trials: Trials, batch: Batch, error: ModelFailure, findings: Findings
) -> tuple[float, list[Shown]]:
    """Return a finding for a port that raises where the reference runs, or remark on it."""
    if error.is_unshared or error.lacks_kernel:
        return 0.0, []
    if batch.other_dtype and _DTYPE.search(error.text):
        findings.remark(f"{batch.words} the {PORT} model does not run: {error.text}")
        return 0.0, []
    ours = trials.pairing.find_around(error.path)
    text = f"the {PORT} {error.what} raises {error.text}"
    finding = Finding("forward", ours, error.path, text, math.inf, 0.0, kind="port-raises")
    return math.inf, [(batch, give_lines(finding, None, error.source))]


def _is_known_rounding(given: Pass, gaps: Sequence[Gap]) -> bool:
    """Tell whether a difference is about as small as the one that float32 made of the given batch."""
    known = max((found.relative for _, found in given.outputs), default=0.0)
    limit = min(_MORE_ROUNDING * known, WHOLE_ROUNDING)
    return not given.outputs_ok and bool(gaps) and all(gap.relative <= limit for gap in gaps)
