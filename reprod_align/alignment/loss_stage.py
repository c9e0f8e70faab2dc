"""Compares the two losses and their gradients, and says what a difference means to a user.

The losses are compared on the reference's own outputs. The parameters' gradients of the user's own loss
are compared beside those of a projection: a backward pass may depend on the size of what it is given,
where it clips or scales. Both sides have run with the loss, so that comparing costs no further run.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from reprod_align.alignment.comparing import (
    LAYER_ROUNDING,
    WHOLE_ROUNDING,
    ParameterGap,
    Pass,
    compare_gradients,
    judge_all_gradients,
    limit_own_code,
)
from reprod_align.alignment.findings import Findings
from reprod_align.alignment.locating.pinning import EndPins, NoWayBack
from reprod_align.alignment.noise import Noise
from reprod_align.alignment.runner import Runner
from reprod_align.base import PORT, REFERENCE
from reprod_align.base.blocks import Array
from reprod_align.base.difference import gap
from reprod_align.base.local import (
    Allowance,
    count_flips,
    is_named_scores,
    judge,
    may_be_scores,
    measure_ordinary,
)
from reprod_align.base.text import count
from reprod_align.causes import LossSides, explain_gradient, explain_loss
from reprod_align.causes.mismatch import as_floats
from reprod_align.model.trace import Leaf, LeafPair, Trace
from reprod_align.model.watch import NO_PINS

import numpy as np

TIE = 2e-11
"""relative: scores so near are a tie, which rounding may settle either way (docs/tolerances.md)"""


def describe_effects(
    expected: Mapping[str, Leaf], actual: Mapping[str, Leaf], pairs: Sequence[LeafPair]
) -> list[str]:
    """Return a sentence for each pair of outputs that holds a score for every class.

    Those are the outputs named so (logits, scores, probabilities), and a model's only output if it
    is (rows, classes) or (batch, positions, classes). The classes are on the last axis.
    """
    said = []
    for pair, ours, theirs in _find_scores(expected, actual, pairs):
        words = f"{_describe_prediction(ours, theirs)}; {_describe_divergence(ours, theirs)}"
        said.append(f"{pair.expected or 'output'}: {words}")
    return said


def describe_flips(
    expected: Mapping[str, Leaf], actual: Mapping[str, Leaf], pairs: Sequence[LeafPair]
) -> Iterator[str]:
    """Yield a sentence for each pair of outputs whose predictions flip where the scores are no tie."""
    for pair, ours, theirs in _find_scores(expected, actual, pairs):
        flips = count_flips(ours, theirs, TIE)
        if flips:
            name = pair.expected or "its output"
            yield f"{name}: {flips} of {len(ours)} predictions flip, and not between equal scores"


def _find_scores(
    expected: Mapping[str, Leaf], actual: Mapping[str, Leaf], pairs: Sequence[LeafPair]
) -> Iterator[tuple[LeafPair, Array, Array]]:
    """Yield each pair of outputs that holds scores, with both as (rows, classes)."""
    lone = sum(leaf.array.dtype.kind == "f" for leaf in expected.values()) == 1
    for pair in pairs:
        ours, theirs = pair.to_port(expected[pair.expected].array), actual[pair.actual].array
        if ours.shape == theirs.shape and _holds_scores(pair, ours, lone):
            rows, others = (array.reshape(-1, array.shape[-1]) for array in (ours, theirs))
            yield pair, rows, others


def effect_on_loss(ours: float, theirs: float) -> str:
    """Return both losses, each on its own side's outputs, and how far they are apart."""
    share = (
        f" ({(theirs - ours) / abs(ours):+.2%})"
        if ours and np.isfinite([ours, theirs]).all()
        else ""
    )
    return (
        f"loss on each side's own outputs: {ours:.6g} in {REFERENCE}, {theirs:.6g} in {PORT}{share}"
    )


def _holds_scores(pair: LeafPair, array: Array, lone: bool) -> bool:
    named = is_named_scores(pair.expected, array)
    return named or (lone and array.ndim <= 3 and may_be_scores(array))


def _describe_prediction(ours: Array, theirs: Array) -> str:
    """Return how many rows would choose another class. ours, theirs: (rows, classes)."""
    top = np.sort(np.where(np.isnan(ours), -np.inf, ours), axis=-1)[:, -2:]
    with np.errstate(invalid="ignore"):
        margin = float(np.nanmin(top[:, 1] - top[:, 0], initial=np.inf))
        apart = np.abs(theirs - ours)[ours != theirs]
    largest = float(np.where(np.isnan(apart), np.inf, apart).max(initial=0.0))
    flips = count_flips(ours, theirs)
    figures = f"(largest difference {largest:.2g}, smallest top-1 margin {margin:.2g})"
    if flips:
        return f"{flips} of {len(ours)} predictions flip {figures}"
    if 2 * largest < margin:
        return f"no prediction can flip {figures}"
    return f"all {len(ours)} predictions stay the same here, but some could flip {figures}"


def _describe_divergence(ours: Array, theirs: Array) -> str:
    divergences = np.array([*_kl(*map(_log_probabilities, (ours, theirs)))])
    return f"KL divergence {divergences.mean():.2g} on average, {divergences.max():.2g} at most"


def _kl(ours: Array, theirs: Array) -> Iterator[float]:
    for first, second in zip(ours, theirs, strict=True):
        likely = first > -np.inf
        with np.errstate(all="ignore"):
            yield max(0.0, float((np.exp(first[likely]) * (first[likely] - second[likely])).sum()))


def _log_probabilities(scores: Array) -> Array:
    """Return log-probabilities of (rows, classes): of logits, or of what sums to 1 already."""
    with np.errstate(all="ignore"):
        if (scores >= 0).all() and np.allclose(scores.sum(axis=-1), 1.0, atol=1e-3):
            return np.asarray(np.log(scores))
        shifted = scores - scores.max(axis=-1, keepdims=True)
        return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True)))


def compare_losses(
    runner: Runner, findings: Findings, in_training: bool = False
) -> tuple[Trace, Trace]:
    """Compare the losses on the reference's outputs, and where they agree their gradients.

    in_training: on those of train mode, as where eval mode has no backward pass. Returns the runs of both
    sides, the port's on those outputs. Where an optimizer's steps follow, which compare the parameters'
    gradients of the loss, none go back into the models here.
    """
    training = in_training or not runner.eval_backward
    ends = runner.reference.optimizer is not None
    pins = NoWayBack() if ends else NO_PINS
    reference = runner.run_reference(training, loss=True, keep="ends", pins=pins)
    given = runner.run_port(training, "ends", pins=EndPins(reference, ends), loss=True)
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
    text = (f"the loss of the same outputs is {float(theirs):.9g} in {PORT} and "
            f"{float(ours):.9g} in {REFERENCE}")  # fmt: skip
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
