"""Compares the two losses, and their gradients, on the reference's own outputs."""

from reprod_align.alignment.comparing import limit_own_code
from reprod_align.alignment.consequence import effect_on_loss
from reprod_align.alignment.findings import Findings
from reprod_align.alignment.locating.pinning.pins import EndPins, NoWayBack
from reprod_align.alignment.runner import Runner
from reprod_align.base.apart import measure_ordinary
from reprod_align.base.difference import gap
from reprod_align.base.local import Allowance, judge
from reprod_align.causes import explain_gradient, explain_loss
from reprod_align.causes.losses import LossSides
from reprod_align.causes.numbers import as_floats
from reprod_align.model.trace import Array, Trace
from reprod_align.model.watch import NO_PINS

import numpy as np


def compare_losses(runner: Runner, findings: Findings) -> tuple[Trace, Trace]:
    """Compare the losses on the reference's outputs, and where they agree their gradients.

    Returns the runs of both sides, the port's on those outputs. Where an optimizer's steps follow,
    which compare the parameters' gradients of the loss, none go back into the models here.
    """
    training, ends = not runner.eval_backward, runner.reference.optimizer is not None
    pins = NoWayBack() if ends else NO_PINS
    reference = runner.run_reference(training, loss=True, keep="ends", pins=pins)
    given = runner.run_port(training, "ends", EndPins(reference, ends), loss=True)
    if findings.at_stage("forward"):
        own = runner.run_port(training, "none", loss=True)
        if reference.loss is not None and own.loss is not None:
            findings.report.consequences.append(effect_on_loss(reference.loss, own.loss))
    if _compare_values(runner, findings, reference, given):
        _compare_gradients(runner, findings, reference, given)
    return reference, given


def _compare_values(runner: Runner, findings: Findings, reference: Trace, given: Trace) -> bool:
    """Compare the losses; True if it makes sense to go on with the gradients."""
    ours, theirs = (np.array(0.0 if t.loss is None else t.loss) for t in (reference, given))
    found = gap(ours, theirs)
    findings.check_gaps("loss", "loss on the same outputs", [found])
    if found.ok:
        return True
    if found.relative <= limit_own_code(runner.dtype):
        findings.note_float32("the loss", found.relative)
        return True
    arrays = [leaf.array for leaf in reference.outputs.values()]
    sides = _collect_sides(runner, reference, given)
    cause = explain_loss(float(ours), float(theirs), arrays, sides)
    text = (f"the loss of the same outputs is {float(theirs):.9g} in Paddle and "
            f"{float(ours):.9g} in PyTorch")  # fmt: skip
    findings.add("loss", "", "", text, found, cause=cause, kind="loss")
    return False


def _collect_sides(runner: Runner, reference: Trace, given: Trace) -> list[LossSides]:
    """Return the outputs that take part in PyTorch's loss, with both gradients."""
    found: list[tuple[Array, Array, Array]] = []
    for pair in runner.pairing.output_pairs(reference, given):
        ours, theirs = reference.outputs[pair.expected], given.outputs[pair.actual]
        scores = pair.to_port(ours.array)
        nothing: Array = np.zeros(scores.shape)
        first, second = pair.to_port(ours.gradient), theirs.gradient
        first, second = (nothing if it is None else it for it in (first, second))
        if first.any() or second.any():
            found.append((scores, first, second))
    values = float(reference.loss or 0.0), float(given.loss or 0.0)
    return [
        LossSides(as_floats(scores), *values, as_floats(first), as_floats(second), len(found) == 1)
        for scores, first, second in found
    ]


def _compare_gradients(runner: Runner, findings: Findings, reference: Trace, given: Trace) -> None:
    """Compare the gradients of the losses with respect to the outputs; one that is missing is zero."""
    for pair in runner.pairing.output_pairs(reference, given):
        ours, theirs = reference.outputs[pair.expected], given.outputs[pair.actual]
        cut = ours.differentiable and not theirs.differentiable  # by the model, not by the loss
        if cut or (ours.gradient is None and theirs.gradient is None):
            continue
        zeros = np.zeros(theirs.array.shape)
        expected = zeros if ours.gradient is None else pair.to_port(ours.gradient)
        actual = zeros if theirs.gradient is None else theirs.gradient
        found = judge(expected, actual, Allowance(floor=1e-13 * measure_ordinary(expected)))
        findings.check_gaps("loss", "gradient of the loss", [found])
        if not found.ok and found.relative <= limit_own_code(runner.dtype):
            findings.note_float32("the loss", found.relative)
        elif not found.ok:
            text = f"the loss agrees and its gradient with respect to the outputs does not: {found.words}"
            cause = explain_gradient(expected, actual)
            findings.add("loss", "", "", text, found, cause=cause, kind="loss-gradient")
