"""Judges what enters and leaves a model beside the tensors that it returns.

The gradients of float inputs: a port that stops one of them agrees in all else. The outputs that are not
tensors: numbers, texts, arrays; and those that cannot be compared at all.
"""

from collections.abc import Mapping

from reprod_align.alignment.comparing import (
    CALM,
    LAYER_ROUNDING,
    NOISE,
    WHOLE_ROUNDING,
    Pass,
    Value,
    ValueGap,
    find_floor,
    find_value,
    limit_own_code,
    list_unpaired,
)
from reprod_align.alignment.findings import Findings
from reprod_align.alignment.locating.faults import describe_stop
from reprod_align.alignment.noise import Judge
from reprod_align.alignment.pairing import Pairing
from reprod_align.alignment.runner import Runner
from reprod_align.base import PORT, REFERENCE
from reprod_align.base.blocks import Array, magnitude
from reprod_align.base.difference import Gap, gap
from reprod_align.base.local import Allowance, judge
from reprod_align.base.text import shorten
from reprod_align.model.side import has_few_values, may_have_gradient, name_inputs
from reprod_align.model.trace import find_container

import numpy as np

_NAMED = 6  # inputs in one sentence
_USUAL = 1e-2
"""of the usual element: what float32 inside may do to it (docs/tolerances.md)"""

InputGradients = Mapping[str, Array | None]


def judge_input_gradients(runner: Runner, findings: Findings, done: Pass) -> None:
    """Add a finding for each float input whose gradient differs in a pass where all else agrees."""
    given = name_inputs(runner.inputs)
    ours, theirs = done.reference.input_gradients, done.natural.input_gradients
    if not any(map(may_have_gradient, given.values())):
        return
    if ours is None or theirs is None:
        side = str(REFERENCE) if ours is None else str(PORT)
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
    grown = not (done.outputs_ok and done.gradients_ok)  # by rounding: a fault has a finding above
    for name, found in judged.items():
        if not found.ok:
            _judge(runner, findings, name, found, ours, theirs, grown)


def _compare(
    findings: Findings,
    done: Pass,
    name: str,
    ours: InputGradients,
    theirs: InputGradients,
    given: Array,
) -> Gap:
    """Compare one input's gradients; one that never arrived is zero. Noise is measured where they differ."""
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
    ours: InputGradients,
    theirs: InputGradients,
    grown: bool,
) -> None:
    """Add a finding for a gradient that differs, unless float32 inside explains it.

    grown: whether what float32 rounds has grown beyond tolerance in the outputs already.
    """
    mixed = findings.float32_inside or runner.dtype == "float32" or runner.keeps_float32
    if found.relative <= (WHOLE_ROUNDING if mixed else LAYER_ROUNDING):
        findings.note_float32(f"the gradient of the input {name}", found.relative)
        return
    arrives = ours[name] is not None and theirs[name] is not None
    if mixed and arrives and (grown or not _differs_throughout(ours[name], theirs[name])):
        text = (
            f"the gradient of the input {name}: in float32, places differ by {found.relative:.1e}"
        )
        findings.leave_unjudged("input gradient", text)
        return
    text = f"differs, although all else agrees; {found.words}"
    if theirs[name] is None:
        text = describe_stop(PORT, REFERENCE)
    elif ours[name] is None:
        text = describe_stop(REFERENCE, PORT)
    text = f"the gradient of the input {name} {text}"
    findings.add("backward", "", "", text, found, kind="input-gradient")


_SHOWN = 60  # characters of a value
_FEW = 8  # elements of an array that are shown


def judge_values(runner: Runner, findings: Findings, done: Pass) -> None:
    """Add a finding for each output of a pass that is no tensor and differs.

    Where tensors differ as well, what is made of them follows. What differs from run to run on
    PyTorch's own side, such as a time, can't be judged.
    """
    if not done.values:
        return
    gaps = [found.gap for found in done.values]
    wrong = [found for found in done.values if not found.gap.ok]
    findings.check_gaps("forward", f"outputs that are no tensors, {done.mode} mode", gaps)
    for found in done.values:
        leaf = done.reference.outputs.get(found.torch_name)
        if leaf is not None and leaf.differentiable:
            text = f"the gradient through {found.torch_name}: it is no tensor in {PORT}"
            findings.leave_unjudged("gradient", text)
    if not wrong:
        return
    if done.outputs_ok and findings.at_stage("forward"):
        return
    if not done.outputs_ok:
        named = shorten([found.torch_name or "the output" for found in wrong], _NAMED)
        text = f"outputs that are no tensors differ beside tensors that do, and may follow: {named}"
        findings.leave_unjudged("output", text)
        return
    again = runner.run_reference(done.training, keep="ends", backward=False)
    for found in wrong:
        if not _is_same(find_value(again, found.torch_name), found.expected):
            text = f"{found.torch_name} is another one in each run of the {REFERENCE} model"
            findings.leave_unjudged("output", text)
        elif _is_float32(runner, done, found):
            findings.note_float32(f"the output {found.torch_name}", found.gap.relative)
        else:
            text = _describe(found, done)
            findings.add("forward", "", "", text, found.gap, kind="output-value")


def _is_same(first: Value, second: Value) -> bool:
    if first is None or second is None:
        return first is second
    return np.array_equal(first, second, equal_nan=first.dtype.kind in "fc")


def _is_float32(runner: Runner, done: Pass, found: ValueGap) -> bool:
    ours, theirs = found.expected, found.actual
    if ours is None or theirs is None or ours.dtype.kind != "f" or theirs.dtype.kind != "f":
        return False
    judge = Judge(done.noise, lambda run: find_value(run, found.torch_name))
    first, second = ours.reshape(-1), theirs.reshape(-1)
    limit = limit_own_code(runner.dtype)
    return first.shape == second.shape and judge.is_rounding(found.gap, first, second, limit, True)


def _describe(found: ValueGap, done: Pass) -> str:
    mode = " in train mode" if done.training else ""
    name = f"the output {found.torch_name}"
    if found.paddle_name != found.torch_name:
        name += f" ({PORT}: {found.paddle_name})"
    return f"{name} is {_show(found.actual)} in {PORT} and {_show(found.expected)} in {REFERENCE}{mode}"


def _show(value: Value) -> str:
    if value is None:
        return "None"
    if value.size != 1:
        few = f" {value.tolist()!r}"[:_SHOWN] if value.size <= _FEW else ""
        return f"an array of shape {value.shape}{few}"
    return repr(value.reshape(-1)[0].item())[:_SHOWN]


def note_left(pairing: Pairing, findings: Findings, done: Pass) -> None:
    """Note the outputs, beside tensors, that were not compared: objects, and values without a counterpart.

    A list that lost some of its values is a finding.
    """
    sides = list_unpaired(pairing, done.reference, done.natural)
    names = (
        {found.torch_name for found in done.values},
        {found.paddle_name for found in done.values},
    )
    for framework, left, met in zip((str(REFERENCE), str(PORT)), sides, names, strict=True):
        held = {find_container(name) for name in met} - {""}
        torn = [name for name in left if find_container(name) in held]
        if torn and not findings.at_stage("forward"):
            text = f"outputs that the {framework} model alone has: {shorten(torn, _NAMED)}"
            findings.add("forward", "", "", text, kind="output-missing")
        elif left:
            text = (
                f"outputs of the {framework} model without a counterpart: {shorten(left, _NAMED)}"
            )
            findings.leave_unjudged("output", text)
    every = {**done.natural.objects, **done.reference.objects}
    if every:
        named = [f"{name or 'the output'} ({kind})" for name, kind in every.items()]
        text = f"outputs that are neither tensors nor plain values: {shorten(named, _NAMED)}"
        findings.leave_unjudged("output", text)
