"""Names the optimizer settings that make updates differ, given the same gradients and rates."""

from collections.abc import Mapping, Sequence

from reprod_align.alignment.audit import OptimizerDifference, describe_differences
from reprod_align.alignment.comparing import WHOLE_ROUNDING
from reprod_align.alignment.findings import Findings
from reprod_align.alignment.runner import Runner
from reprod_align.alignment.training.optimizer_effects import Effects
from reprod_align.alignment.training.updates import UpdateGaps, updates_of
from reprod_align.base.difference import RELATIVE_TOLERANCE, Gap, gap
from reprod_align.model.side import Step

import numpy as np

ROUNDING = 1e-6
"""relative: what float32 constants inside Paddle's optimizer kernels do to an update"""

Wrong = Mapping[str, tuple[str, Gap]]
"""updates of one step that differ: PyTorch's name -> Paddle's name, and how far they are apart"""


def explain_updates(
    runner: Runner,
    findings: Findings,
    gaps: Sequence[UpdateGaps],
    replayed: Sequence[Step],
    differences: Sequence[OptimizerDifference],
    effects: Effects,
) -> None:
    """Add a finding for each setting that the first differing step feels, or one without a setting.

    gaps: of Paddle's steps with PyTorch's gradients and rates, `replayed`. A step that differs by no
    more than float32 inside Paddle's kernels is passed over. Settings without an effect are remarked on.
    """
    idle = [d for d in differences if d.conclusive and effects.of(d, 0)[1] <= RELATIVE_TOLERANCE]
    for number, step in enumerate(gaps):
        wrong = {ours: (theirs, apart) for theirs, (ours, apart) in step.items() if not apart.ok}
        if not wrong:
            continue
        concerned = [d for d in differences if _concerns(d, wrong)]
        certain, possible = _sort_by_effect(concerned, effects, number)
        if not certain and _is_float32(runner, findings, wrong, effects, replayed, number):
            idle += [d for d in possible if d not in idle]
            continue
        named = certain or possible
        for difference in named:
            _add_setting(findings, difference, wrong, len(step))
        if not named:
            _add_unnamed(findings, wrong, number, len(step))
        idle = [d for d in idle if d not in named]
        break
    remark_on_settings(findings, idle)


def remark_on_settings(findings: Findings, differences: Sequence[OptimizerDifference]) -> None:
    """Remark on settings that differ and change no step."""
    if differences:
        text = describe_differences(differences)
        findings.remark(f"the optimizer: settings differ without an effect seen here: {text}")


def _concerns(difference: OptimizerDifference, wrong: Wrong) -> bool:
    """Tell whether the difference is one of the whole model or of a parameter that is wrong."""
    if not difference.torch_names:
        return True
    theirs = {name for name, _ in wrong.values()}
    return bool(wrong.keys() & set(difference.torch_names) or theirs & set(difference.paddle_names))


def _sort_by_effect(
    differences: Sequence[OptimizerDifference], effects: Effects, number: int
) -> tuple[list[OptimizerDifference], list[OptimizerDifference]]:
    """Return what certainly changes the steps, the largest change to step `number` first; and what may."""
    certain, possible = [], []
    for difference in differences:
        effect = effects.of(difference, number)
        if difference.conclusive or np.isfinite(effect[1]):
            certain.append((effect, difference))
        else:
            possible.append(difference)
    felt = [(effect, d) for effect, d in certain if not effect[1] <= RELATIVE_TOLERANCE]
    felt.sort(key=lambda one: (one[1].conclusive, one[0]), reverse=True)
    return [d for _, d in felt], possible


def _is_float32(
    runner: Runner,
    findings: Findings,
    wrong: Wrong,
    effects: Effects,
    replayed: Sequence[Step],
    number: int,
) -> bool:
    """Tell whether the updates differ by float32 inside Paddle's kernels alone; note it if so."""
    named = max(wrong.values(), key=lambda one: one[1].relative)
    worst, limit = named[1].relative, limit_rounding(runner)
    expected = effects.as_in_paddle()
    if worst > limit and expected is not None:
        theirs = updates_of(replayed, number, runner.port_start())
        made = runner.pairing.convert(expected[number])
        names = [name for name, _ in wrong.values()]
        worst = max(gap(made[n], theirs[n]).relative if n in made else np.inf for n in names)
        findings.remark("clip_grad_norm_ adds 1e-6 to the norm, Paddle's norm clipping does not")
    if worst <= limit:
        findings.note_float32(f"Paddle's {effects.optimizer} (its update of {named[0]})", worst)
    return worst <= limit


def limit_rounding(runner: Runner) -> float:
    """Return how far rounding brings updates apart, relative: 1 - beta**t keeps four digits in float32."""
    return ROUNDING if runner.dtype == "float64" else WHOLE_ROUNDING


def _add_setting(
    findings: Findings, difference: OptimizerDifference, wrong: Wrong, count: int
) -> None:
    """Add a finding for a setting; count: how many parameters are trained."""
    ours = next((name for name in difference.torch_names if name in wrong), "")
    if ours and len(difference.torch_names) < count:
        theirs, worst = wrong[ours]
    else:
        of_paddle = difference.paddle_names if not difference.torch_names else ()
        ours, theirs = "", next(iter(of_paddle), "")
        worst = max((apart for _, apart in wrong.values()), key=lambda g: g.difference)
    text, cause = f"the updates differ; {worst.words}", describe_differences([difference])
    findings.add("optimizer", ours, theirs, text, worst, kind="optimizer-setting", cause=cause)


def _add_unnamed(findings: Findings, wrong: Wrong, number: int, count: int) -> None:
    """Add a finding for updates that no setting explains."""
    name, (other, apart) = next(iter(wrong.items()))
    name, other = (name, other) if len(wrong) < count else ("", "")
    text = f"given the same gradients, step {number} changes it differently; {apart.words}"
    findings.add("optimizer", name, other, text, apart, kind="update")
