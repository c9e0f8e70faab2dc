"""Compares training: losses, learning rates and updates of some steps, and what makes them differ.

Learning rates are compared twice: of the steps taken, and of the schedules alone far beyond them.
"""

from collections.abc import Sequence, Set

from reprod_align.alignment.audit import OptimizerDifference, compare_optimizers
from reprod_align.alignment.comparing import WHOLE_ROUNDING, compare_pass
from reprod_align.alignment.details import add_curves
from reprod_align.alignment.findings import Findings
from reprod_align.alignment.locating.blame import search
from reprod_align.alignment.loss_stage import compare_losses
from reprod_align.alignment.runner import Runner
from reprod_align.alignment.training.effects import (
    NOISE,
    ROUNDING,
    Effects,
    UpdateComparer,
    UpdateGaps,
    all_agree,
    explain_updates,
    limit_rounding,
    remark_on_settings,
)
from reprod_align.alignment.training.schedules import explain_rates
from reprod_align.base import PORT, REFERENCE
from reprod_align.base.difference import RELATIVE_TOLERANCE, gap
from reprod_align.base.text import count
from reprod_align.errors import MissingNameError
from reprod_align.model.settings import OptimizerSettings
from reprod_align.model.side import TrainingStep
from reprod_align.report import Stage

import numpy as np

HORIZON = 1000
"""steps of a schedule that are compared without training"""
StepRates = Sequence[Sequence[float]]  # per step, one for each parameter group


def compare_rates(
    runner: Runner,
    findings: Findings,
    taken: Sequence[TrainingStep],
    natural: Sequence[TrainingStep],
    first_rates: Set[float],
) -> bool:
    """Compare the learning rates of PyTorch's steps and Paddle's; True if they agree.

    first_rates: those that Paddle's parameters start with; empty if PyTorch's start with others.
    """
    scheduled = runner.reference.scheduler is not None or runner.port.scheduler is not None
    ours: StepRates = [step.rates for step in taken]
    theirs: StepRates = [step.rates for step in natural]
    if scheduled:
        ours, theirs = runner.reference.rates(HORIZON), runner.port.rates(HORIZON)
    first, second = _find_closest_groups(ours, theirs, first_rates)
    length = min(len(first), len(second))
    if len(first) != len(second) and length < len(taken):  # one schedule ends before the training
        length = 0
    expected, actual = np.array(first[:length]), np.array(second[:length])
    found = gap(expected, actual)
    findings.check_gaps("schedule", f"learning rate, {count(length, 'step')}", [found])
    if not found.ok:
        scale = RELATIVE_TOLERANCE * max(float(np.abs(expected).max()), 1e-300)
        at = int(np.argmax(np.abs(actual - expected) > scale))
        text = f"learning rate at step {at}: {expected[at]:.9g} in {REFERENCE}, {actual[at]:.9g} in {PORT}"
        stage: Stage = "schedule" if scheduled else "optimizer"
        cause = explain_rates(expected, actual) if scheduled else ""
        findings.add(stage, "", "", text, found, cause=cause, kind="learning-rate")
    return found.ok


def leave_to_schedule(
    differences: Sequence[OptimizerDifference], settings: OptimizerSettings
) -> list[OptimizerDifference]:
    """Return the differences without a learning rate that differs by one factor for all parameters.

    `compare_rates` judges it step by step: a scheduler may set it before the first step.
    settings: of PyTorch's optimizer.
    """
    rates = [d for d in differences if d.setting == "lr"]
    concerned = {name for d in rates for name in d.torch_names}
    trained = {name for name, values in settings.parameters.items() if not values["frozen"]}
    ratios = {round(d.paddle_value / (d.torch_value or 1.0), 12) for d in rates}
    if len(ratios) == 1 and concerned >= trained:
        return [d for d in differences if d.setting != "lr"]
    return list(differences)


def _find_closest_groups(
    ours: StepRates, theirs: StepRates, first_rates: Set[float]
) -> tuple[list[float], list[float]]:
    """Return one number a step: the rates of the two groups that are closest to each other.

    Paddle's groups have factors of one rate, which need not be the rate of any group.
    """
    base = [step[0] for step in theirs]
    factors = {rate / base[0] for rate in first_rates} if base[0] else set()
    scaled = [[rate * factor for rate in base] for factor in factors or {1.0}]
    pairs = [(list(group), rates) for group in zip(*ours, strict=True) for rates in scaled]
    return min(pairs, key=lambda p: max(abs(a - b) for a, b in zip(*p, strict=False)))


_GROWTH = 100.0  # times in one step is growth; more is a fault of that step


def compare_training(runner: Runner, findings: Findings, steps: int) -> None:
    """Take the steps on both sides, compare, and add checks and findings.

    Raises ReprodError if the user's function does not return an optimizer.
    """
    pairing = runner.pairing
    ours, theirs = _read_settings(runner, findings)
    names = {pair.torch[0]: pair.paddle[0] for pair in pairing.match.pairs
             if pairing.torch.tensors[pair.torch[0]].is_parameter}  # fmt: skip
    all_differences = compare_optimizers(ours, theirs, names)
    differences = leave_to_schedule(all_differences, ours)
    taken, natural = runner.train_reference(steps), runner.train_port(steps)
    add_curves(findings, taken, natural)
    same_rates = all(difference.setting != "lr" for difference in all_differences)
    first_rates = {v["lr"] for v in theirs.parameters.values()} if same_rates else set()
    rates_ok = compare_rates(runner, findings, taken, natural, first_rates)
    comparer = UpdateComparer(runner, taken)
    losses_ok = _compare_losses(findings, comparer, natural)
    gaps = comparer.compare(natural)
    if all_agree(gaps) and losses_ok:
        _check_updates(findings, gaps)
        remark_on_settings(findings, [d for d in differences if d.conclusive])
        return
    replayed = runner.train_port(steps, taken)
    replayed_gaps = comparer.compare(replayed)
    limit = limit_rounding(runner)
    sure = comparer.leave_out_rounded(gaps, natural) if all_agree(replayed_gaps, limit) else gaps
    _check_updates(findings, sure)
    if all_agree(sure) and losses_ok:
        return
    effects = Effects(runner.weights, taken, ours, theirs)
    explain_updates(runner, findings, replayed_gaps, replayed, differences, effects)
    drifts = findings.float32_inside and _grows(limit, taken, natural, sure)
    if rates_ok and not findings.report.findings and not drifts:
        _search_elsewhere(runner, findings, taken, natural, sure)


def _read_settings(
    runner: Runner, findings: Findings
) -> tuple[OptimizerSettings, OptimizerSettings]:
    """Return the two optimizers' settings; none, and a remark, where a framework hides its own."""
    try:
        return runner.reference.optimizer_settings(), runner.port.optimizer_settings()
    except MissingNameError as error:
        findings.remark(str(error))
        nothing = OptimizerSettings("", "", {}, None)
        return nothing, nothing


def _compare_losses(
    findings: Findings, comparer: UpdateComparer, natural: Sequence[TrainingStep]
) -> bool:
    gaps = [
        gap(np.array(a.loss), np.array(b.loss), floor=NOISE * noise[""])
        for a, b, noise in zip(comparer.taken, natural, comparer.noise, strict=True)
    ]
    findings.check_gaps("optimizer", f"loss of {count(len(gaps), 'training step')}", gaps)
    return all(found.ok for found in gaps)


def _check_updates(findings: Findings, gaps: Sequence[UpdateGaps]) -> None:
    every = [found for step in gaps for _, found in step.values()]
    findings.check_gaps("optimizer", f"updates of {count(len(gaps), 'step')}", every)


def _grows(
    before: float,
    taken: Sequence[TrainingStep],
    natural: Sequence[TrainingStep],
    gaps: Sequence[UpdateGaps],
) -> bool:
    """Tell whether the two sides drift apart slowly, as from float32 rounding, and not in one step.

    before: what rounding does to a step.
    """
    for ours, theirs, step in zip(taken, natural, gaps, strict=True):
        sizes = [found.relative for _, found in step.values() if not found.ok]
        apart = max([gap(np.array(ours.loss), np.array(theirs.loss)).relative, *sizes])
        if not apart <= max(WHOLE_ROUNDING, _GROWTH * before):
            return False
        before = max(before, apart)
    return True


def _search_elsewhere(
    runner: Runner,
    findings: Findings,
    taken: Sequence[TrainingStep],
    natural: Sequence[TrainingStep],
    gaps: Sequence[UpdateGaps],
) -> None:
    """Add a finding for steps that differ though each update agrees, unless rounding explains it.

    An optimizer that divides by the gradient's size makes more of what float32 constants leave of it.
    """
    if runner.reference.loss is not None:  # one that agrees on the outputs of eval mode
        compare_losses(runner, findings, in_training=True)
    if findings.at_stage("loss"):
        return
    if _differs_on_same_weights(runner, findings, taken):
        return
    if search(runner, findings, compare_pass(runner, runner.run_reference(True), True)):
        return
    for number, (ours, theirs) in enumerate(zip(taken, natural, strict=True)):
        found = gap(np.array(ours.loss), np.array(theirs.loss))
        if not found.ok:
            text = (f"the loss of step {number} differs although each part of it agrees: "
                    f"something is carried over from step to step; {found.words}")  # fmt: skip
            findings.add("optimizer", "", "", text, found, kind="training-loss")
            return
    wrong = [one for step in gaps for one in step.values() if not one[1].ok]
    name, worst = max(wrong, key=lambda one: one[1].relative)
    if worst.relative <= ROUNDING:
        findings.note_float32(f"the training step (its update of {name})", worst.relative)
    else:
        text = "the updates differ, although equal gradients give equal updates"
        findings.add("optimizer", "", "", text, kind="update")


def _differs_on_same_weights(
    runner: Runner, findings: Findings, taken: Sequence[TrainingStep]
) -> bool:
    """Run the port from PyTorch's weights of every step; add a finding for a loss that differs."""
    for number, step in enumerate(taken):
        trace = runner.run_step(number, taken[number - 1].tensors if number else None)
        found = gap(np.array(step.loss), np.array(trace.loss or 0.0), ROUNDING)
        if not found.ok:
            text = (
                f"with {REFERENCE}'s own weights of step {number} the loss differs; {found.words}"
            )
            findings.add("optimizer", "", "", text, found, kind="training-loss")
            return True
    return False
