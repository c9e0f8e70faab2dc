"""Compares what the two sides make of further batches: outputs in eval mode, forward passes only.

One fixed batch does not show what a port does with one example, another length, a second call,
other values, integers of another dtype, or without gradients.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from reprod_align.alignment.batches.derive import FEW, ONE_EXAMPLE, Batch, derive_batches
from reprod_align.alignment.batches.trials import Trials
from reprod_align.alignment.comparing import WHOLE_ROUNDING, Pass
from reprod_align.alignment.consequence import describe_effects
from reprod_align.alignment.findings import NOT_COMPARABLE, Findings, give_lines
from reprod_align.alignment.runner import Runner
from reprod_align.base.difference import RELATIVE_TOLERANCE, Gap
from reprod_align.base.text import shorten
from reprod_align.model.side import ModelFailure
from reprod_align.report import Finding
from reprod_align.report.codes import Kind

_NAMED = 2  # batches in one message
_SLOW = 2**31
"""parameters times elements of an example: above it a run of the model takes a tenth of a second"""
_MORE_ROUNDING = 100.0
"""times the rounding of float32 inside on the given batch: what it may be on another one"""
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
        findings.remark(f"not compared with {ONE_EXAMPLE}: the PyTorch model does not run on it")
    findings.report.findings += _merge(found)
    return trials.first


def takes_time(runner: Runner) -> bool:
    """Tell whether a run takes its time, so that one example does in most further batches.

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
        return _judge_parts(trials, batch, given, findings) or _judge_failure(
            trials, batch, error, findings
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
        kind: Kind = "outputs" if gaps else "not-comparable"
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


def _judge_failure(
    trials: Trials, batch: Batch, error: ModelFailure, findings: Findings
) -> tuple[float, list[Shown]]:
    """Return a finding for a port that raises where the reference runs, or remark on it."""
    if error.is_unshared or error.lacks_kernel:
        return 0.0, []
    if batch.other_dtype and _DTYPE.search(error.text):
        findings.remark(f"{batch.words} the Paddle model does not run: {error.text}")
        return 0.0, []
    ours = trials.pairing.find_around(error.path)
    text = f"the Paddle {error.what} raises {error.text}"
    finding = Finding("forward", ours, error.path, text, math.inf, 0.0, kind="port-raises")
    return math.inf, [(batch, give_lines(finding, None, error.source))]


def _is_known_rounding(given: Pass, gaps: Sequence[Gap]) -> bool:
    """Tell whether a difference is about as small as the one that float32 made of the given batch."""
    known = max((found.relative for _, found in given.outputs), default=0.0)
    limit = min(_MORE_ROUNDING * known, WHOLE_ROUNDING)
    return not given.outputs_ok and bool(gaps) and all(gap.relative <= limit for gap in gaps)
