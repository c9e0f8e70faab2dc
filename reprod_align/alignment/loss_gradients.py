"""Compares the parameters' gradients of the user's own loss, beside those of a projection.

A backward pass may depend on the size of what it is given, where it clips or scales. Both sides have run
with the loss, the port on PyTorch's outputs: comparing costs no further run.
"""

from collections.abc import Sequence
from dataclasses import replace

from reprod_align.alignment.comparing import (
    LAYER_ROUNDING,
    WHOLE_ROUNDING,
    ParameterGap,
    Pass,
    compare_gradients,
    judge_all_gradients,
)
from reprod_align.alignment.findings import Findings
from reprod_align.alignment.noise import Noise
from reprod_align.alignment.runner import Runner
from reprod_align.base.text import count
from reprod_align.model.trace import Trace


def compare_own_gradient(
    runner: Runner, findings: Findings, reference: Trace, port: Trace
) -> Pass | None:
    """Compare the gradients of the loss; None where something before them differs."""
    if findings.at_stage("weights", "forward", "loss", "backward"):
        return None
    training = not runner.eval_backward
    done = Pass(training, reference, port, (), Noise(runner, training, loss=True))
    done = replace(done, gradients=compare_gradients(runner.pairing, done, port))
    return judge_all_gradients(runner.pairing, done)


def judge_own_gradient(runner: Runner, findings: Findings, done: Pass) -> None:
    """Add a finding where the gradients of the loss differ though nothing else does."""
    if not done.gradients or findings.at_stage("backward"):
        return
    every = [found for *_, found in done.gradients]
    findings.check_gaps("backward", "gradients of the loss", every)
    wrong = [one for one in done.gradients if not one[2].ok]
    if wrong:
        _add(runner, findings, done, wrong, len(every))


def _add(
    runner: Runner, findings: Findings, done: Pass, wrong: Sequence[ParameterGap], compared: int
) -> None:
    """Add a finding at the parameter nearest the outputs, unless float32 inside explains all."""
    mixed = findings.float32_inside or runner.dtype == "float32"
    limit = WHOLE_ROUNDING if mixed else LAYER_ROUNDING
    worst = max(wrong, key=lambda one: one[2].relative)
    least = limit * done.largest_gradient if mixed else 0.0  # rounding where zero is due
    if worst[2].relative <= limit or all(found.difference <= least for *_, found in wrong):
        findings.note_float32(worst[0], worst[2].relative)
        return
    if runner.dtype == "float32":  # what rounding makes of a deep model is not measured with a loss
        text = f"the gradients of the loss, in float32: they differ by {worst[2].relative:.1e}"
        findings.leave_unjudged("gradient", text)
        return
    name, other, found = wrong[-1]
    many = f"{len(wrong)} of {count(compared, 'parameter')}"
    text = (f"the gradient of the loss differs in {many}, though that of a projection of the same outputs "
            f"agrees: the backward pass depends on the size of the gradient; {found.words}")  # fmt: skip
    findings.add("backward", name, other, text, found, kind="loss-gradient")
