"""Compares the gradients of the float inputs: a port that stops one of them agrees in all else."""

from collections.abc import Mapping

from reprod_align.alignment.comparing import (
    CALM,
    LAYER_ROUNDING,
    NOISE,
    WHOLE_ROUNDING,
    Pass,
    find_floor,
)
from reprod_align.alignment.findings import Findings
from reprod_align.alignment.runner import Runner
from reprod_align.base.blocks import Array, magnitude
from reprod_align.base.difference import Gap, gap
from reprod_align.base.local import Allowance, judge
from reprod_align.base.text import shorten
from reprod_align.model.side import has_few_values, may_have_gradient, name_inputs

import numpy as np

_NAMED = 6  # inputs in one sentence
_USUAL = 1e-2
"""of the usual element: what float32 inside may do to it (docs/tolerances.md)"""

Gradients = Mapping[str, Array | None]


def judge_input_gradients(runner: Runner, findings: Findings, done: Pass) -> None:
    """Add a finding for each float input whose gradient differs in a pass where all else agrees."""
    given = name_inputs(runner.inputs)
    ours, theirs = done.reference.input_gradients, done.natural.input_gradients
    if not any(map(may_have_gradient, given.values())):
        return
    if ours is None or theirs is None:
        side = "PyTorch" if ours is None else "Paddle"
        text = f"the gradients of the inputs: the {side} model raises if they require one"
        findings.leave_unjudged("input gradient", text)
        return
    if findings.at_stage("weights", "forward", "backward"):  # what differs there differs here
        return
    gaps = {name: _compare(findings, done, name, ours, theirs, given[name]) for name in ours}
    masks = [name for name, found in gaps.items() if not found.ok and has_few_values(given[name])]
    if masks:
        named = shorten(masks, _NAMED)
        text = f"the gradients of inputs of few values differ, as those of masks may: {named}"
        findings.leave_unjudged("input gradient", text)
    judged = {name: found for name, found in gaps.items() if name not in masks}
    if not judged:
        return
    findings.check_gaps("backward", "gradients of the inputs", list(judged.values()))
    for name, found in judged.items():
        if not found.ok:
            _judge(runner, findings, name, found, ours, theirs)


def _compare(
    findings: Findings, done: Pass, name: str, ours: Gradients, theirs: Gradients, given: Array
) -> Gap:
    """Compare one; one that never arrived is zero. Noise is measured where they differ."""
    expected, actual = (_fill(one[name], given) for one in (ours, theirs))
    largest = max(done.largest_gradient, *(magnitude(one) for one in ours.values()))
    floor = find_floor(done) * largest
    found = judge(expected, actual, Allowance(floor=floor))
    if found.ok or ours[name] is None or theirs[name] is None:
        return found
    at_kink = (given == 0) & (np.abs(actual - expected) > found.tolerance)
    if at_kink.any():
        text = f"the gradient of the input {name} where it is 0: each framework has its own slope there"
        findings.leave_unjudged("input gradient", text)
    expected, actual = (np.where(at_kink, 0.0, one) for one in (expected, actual))
    shaken = (done.noise.run_for_inputs().input_gradients or {}).get(name)
    if shaken is None:
        return judge(expected, actual, Allowance(floor=floor))
    moved: Array = np.where(at_kink, 0.0, np.abs(shaken - expected))
    if magnitude(moved) <= CALM * largest:
        floor += NOISE * magnitude(moved)
    found = judge(expected, actual, Allowance(floor=floor, noise=NOISE * moved))
    return gap(expected, actual, floor=floor) if found.local else found


def _fill(gradient: Array | None, given: Array) -> Array:
    return np.zeros(given.shape) if gradient is None else gradient


def _differs_throughout(expected: Array | None, actual: Array | None) -> bool:
    """Tell whether the usual element differs: float32 that brings a kink to its other side moves few far."""
    if expected is None or actual is None:
        return True
    usual = float(np.median(np.abs(actual - expected)))
    return not usual <= _USUAL * float(np.median(np.abs(expected)))


def _judge(
    runner: Runner,
    findings: Findings,
    name: str,
    found: Gap,
    ours: Gradients,
    theirs: Gradients,
) -> None:
    """Add a finding for a gradient that differs, unless float32 inside explains it."""
    mixed = findings.float32_inside or runner.dtype == "float32" or runner.keeps_float32
    if found.relative <= (WHOLE_ROUNDING if mixed else LAYER_ROUNDING):
        findings.note_float32(f"the gradient of the input {name}", found.relative)
        return
    if mixed and not _differs_throughout(ours[name], theirs[name]):
        text = (
            f"the gradient of the input {name}: in float32, places differ by {found.relative:.1e}"
        )
        findings.leave_unjudged("input gradient", text)
        return
    text = f"differs, although all else agrees; {found.words}"
    if theirs[name] is None:
        text = "is stopped in Paddle (detach or stop_gradient) and not in PyTorch"
    elif ours[name] is None:
        text = "is stopped in PyTorch (detach or no_grad) and not in Paddle"
    text = f"the gradient of the input {name} {text}"
    findings.add("backward", "", "", text, found, kind="input-gradient")
