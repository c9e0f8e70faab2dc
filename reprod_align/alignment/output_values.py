"""Adds findings for outputs that are no tensors, and notes what can't be compared."""

from reprod_align.alignment.comparing import (
    Pass,
    Value,
    ValueGap,
    find_value,
    limit_own_code,
    list_unpaired,
)
from reprod_align.alignment.findings import Findings
from reprod_align.alignment.noise import Judge
from reprod_align.alignment.pairing import Pairing
from reprod_align.alignment.runner import Runner
from reprod_align.base.text import shorten

import numpy as np

_NAMED = 6  # outputs in one sentence
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
            text = f"the gradient through {found.torch_name}: it is no tensor in Paddle"
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
            text = f"{found.torch_name} is another one in each run of the PyTorch model"
            findings.leave_unjudged("output", text)
        elif _is_float32(runner, done, found):
            findings.note_float32(f"the output {found.torch_name}", found.gap.relative)
        else:
            text = _describe(found, done)
            findings.add("forward", "", "", text, found.gap, kind="output-value")


def _find_container(name: str) -> str:
    return name.rpartition("[")[0] if name.endswith("]") else ""


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
        name += f" (Paddle: {found.paddle_name})"
    return f"{name} is {_show(found.actual)} in Paddle and {_show(found.expected)} in PyTorch{mode}"


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
    for framework, left, met in zip(("PyTorch", "Paddle"), sides, names, strict=True):
        held = {_find_container(name) for name in met} - {""}
        torn = [name for name in left if _find_container(name) in held]
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
