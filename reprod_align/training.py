"""Compares optimizer steps: losses, learning rates and updates, and what causes a difference.

An update is judged relative to itself, not to the parameter that it moves: a decay of 1e-4 times a
small weight is invisible next to the weight. Where a gradient is zero but for rounding, an adaptive
optimizer makes a large step of it; how large, the reference's own run from weights moved by a few
units in the last place tells.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from reprod_align.audit import OptimizerDifference, compare_optimizers
from reprod_align.keyed_draws import KeyedDraws
from reprod_align.leaf import JUDGE, Gap, gap
from reprod_align.projection import Projection
from reprod_align.side import Side, Step
from reprod_align.trace import Array

import numpy as np

if TYPE_CHECKING:
    from reprod_align.bench import Bench

HORIZON = 1000
"""steps of a schedule that are compared without training"""
ROUNDING = 1e-6
"""relative: what float32 constants inside Paddle's optimizer kernels do to an update"""
_SEED = 77
_JITTER = 4 * float(np.finfo(np.float64).eps)
_NOISE = 100.0  # times the noise measured is still noise
_CALM = 1e-4  # noise above this share of the largest update tells nothing: the run is chaotic

Updates = dict[str, tuple[str, Gap]]  # Paddle's name -> PyTorch's name and the gap of one step


def compare_training(judge: "Bench") -> None:
    """Take the steps on both sides, compare, and add checks and findings to the judge's result."""
    taken = _train(judge, judge.reference)
    natural = _train(judge, judge.port)
    rates_ok = _compare_rates(judge, taken, natural)
    noise = _noise(judge, taken)
    losses_ok = _compare_losses(judge, taken, natural, noise)
    updates_ok = _compare_updates(judge, taken, natural, noise)
    if updates_ok and losses_ok:
        return
    replayed = _train(judge, judge.port, taken)
    _explain_updates(judge, taken, replayed, noise)
    if rates_ok and not judge.result.findings and not judge.coarse:
        _unexplained(judge, taken, natural)


def _train(judge: "Bench", side: Side, replay: Sequence[Step] | None = None) -> list[Step]:
    """Train one side from the common weights; `replay`: with these steps' gradients and rates."""
    reference = side is judge.reference
    judge.restore(side, True)
    projection = Projection() if reference else Projection(dict(judge.expected.outputs))
    names = {name: name for name in judge.places.values()} if reference else judge.places
    draws = [
        KeyedDraws(_SEED + step, names, {} if reference else judge.draws.get(("step", step), {}))
        for step in range(judge.steps)
    ]
    gradients = None if replay is None else [_converted(judge, step.gradients) for step in replay]
    rates = None if replay is None else [step.rates for step in replay]
    objective = projection if side.loss is None else None
    try:
        taken = side.train(judge.inputs, judge.steps, draws, objective, gradients, rates)
    finally:
        judge.restore(side, True)
    if reference:
        judge.draws.update({("step", number): step.drawn for number, step in enumerate(taken)})
    return taken


def _converted(judge: "Bench", gradients: Mapping[str, Array]) -> dict[str, Array]:
    """Return PyTorch's gradients as Paddle's parameters would have them."""
    made: dict[str, Array] = {}
    for pair in judge.match.pairs:
        if all(name in gradients for name in pair.torch):
            made.update(pair.to_paddle(gradients))
    return made


def _compare_rates(judge: "Bench", taken: Sequence[Step], natural: Sequence[Step]) -> bool:
    """Compare the learning rates of the steps taken, and of the schedules alone far beyond."""
    scheduled = any(side.schedule_known for side in (judge.reference, judge.port))
    ours, theirs = [s.rates for s in taken], [s.rates for s in natural]
    if scheduled:
        ours, theirs = judge.reference.rates(HORIZON), judge.port.rates(HORIZON)
    first, second = _comparable(ours), _comparable(theirs)
    length = min(len(first), len(second))
    if abs(len(first) - len(second)) > 0 and length < judge.steps:
        length = 0
    expected, actual = np.array(first[:length]), np.array(second[:length])
    found = gap(expected, actual)
    judge.check("schedule", f"learning rate, {length} step(s)", found.exceed * JUDGE, found.ok)
    if found.ok:
        return True
    scale = JUDGE * max(float(np.abs(expected).max()), 1e-300)
    at = int(np.argmax(np.abs(actual - expected) > scale))
    words = f"learning rate at step {at}: {expected[at]:.9g} in PyTorch, {actual[at]:.9g} in Paddle"
    if scheduled:
        judge.add("schedule", "", "", words, found)
    else:
        judge.add("optimizer", "", "", words, found)
    return False


def _comparable(rates: Sequence[Sequence[float]]) -> list[float]:
    """Return one number a step: the first group's rate."""
    return [step[0] for step in rates]


def _noise(judge: "Bench", taken: Sequence[Step]) -> list[dict[str, float]]:
    """Return, by step and PyTorch's name, how far updates move when weights move by a few ulp."""
    values = judge.torch_values
    source = np.random.default_rng(_SEED)
    moved = {
        name: array * (1 + _JITTER * source.uniform(-1, 1, array.shape))
        for name, array in values.items()
        if array.dtype.kind == "f"
    }
    judge.torch_values = {**values, **moved}
    try:
        shaken = _train(judge, judge.reference)
    finally:
        judge.torch_values = values
        judge.restore(judge.reference, True)
    noise = []
    for number, (step, other) in enumerate(zip(taken, shaken, strict=True)):
        ours = _moves(taken, number, values)
        theirs = _moves(shaken, number, {**values, **moved})
        largest = max((_size(move) for move in ours.values()), default=0.0)
        found = {name: _size(theirs[name] - ours[name]) for name in ours}
        calm = {name: size if size <= _CALM * largest else 0.0 for name, size in found.items()}
        calm[""] = abs(step.loss - other.loss)
        noise.append(calm)
    return noise


def _moves(steps: Sequence[Step], number: int, start: Mapping[str, Array]) -> dict[str, Array]:
    """Return what step `number` added to each float tensor."""
    before = start if number == 0 else steps[number - 1].tensors
    return {
        name: array - before[name]
        for name, array in steps[number].tensors.items()
        if array.dtype.kind == "f" and name in before
    }


def _compare_losses(
    judge: "Bench",
    taken: Sequence[Step],
    natural: Sequence[Step],
    noise: Sequence[Mapping[str, float]],
) -> bool:
    gaps = [
        gap(np.array(a.loss), np.array(b.loss), floor=_NOISE * n[""])
        for a, b, n in zip(taken, natural, noise, strict=True)
    ]
    ok = all(found.ok for found in gaps)
    worst = max(found.exceed * JUDGE for found in gaps)
    judge.check("optimizer", f"loss of {len(gaps)} training step(s)", worst, ok)
    return ok


def _compare_updates(
    judge: "Bench",
    taken: Sequence[Step],
    natural: Sequence[Step],
    noise: Sequence[Mapping[str, float]],
) -> bool:
    updates = [_updates(judge, taken, natural, noise, number) for number in range(len(taken))]
    gaps = [found for step in updates for _, found in step.values()]
    ok = all(found.ok for found in gaps)
    worst = max((found.exceed * JUDGE for found in gaps), default=0.0)
    judge.check("optimizer", f"updates of {len(taken)} step(s)", worst, ok)
    return ok


def _updates(
    judge: "Bench",
    taken: Sequence[Step],
    other: Sequence[Step],
    noise: Sequence[Mapping[str, float]],
    number: int,
) -> Updates:
    """Compare what one step added to each parameter."""
    start = judge.port_start()
    ours, theirs = _moves(taken, number, judge.torch_values), _moves(other, number, start)
    found: Updates = {}
    for pair in judge.match.pairs:
        if not all(judge.torch_info.tensors[name].is_parameter for name in pair.torch):
            continue
        floor = _NOISE * max(noise[number].get(name, 0.0) for name in pair.torch)
        for name, expected in pair.to_paddle(ours).items():
            if judge.paddle_info.tensors[name].is_parameter:
                rounding = 8 * np.finfo(np.float64).eps * _size(start[name])
                apart = gap(expected, theirs[name], floor=floor + rounding)
                found[name] = pair.torch[0], apart
    return found


def _explain_updates(
    judge: "Bench",
    taken: Sequence[Step],
    replayed: Sequence[Step],
    noise: Sequence[Mapping[str, float]],
) -> None:
    """Given the same gradients and rates, name the setting that makes the updates differ."""
    for number in range(len(taken)):
        updates = _updates(judge, taken, replayed, noise, number)
        wrong = {ours: (theirs, apart) for theirs, (ours, apart) in updates.items() if not apart.ok}
        if wrong and _name_settings(judge, wrong, number, len(updates)):
            return


def _name_settings(
    judge: "Bench", wrong: Mapping[str, tuple[str, Gap]], number: int, every: int
) -> bool:
    """Add findings for updates that differ; False if it is but float32 inside Paddle's kernels."""
    names = {pair.torch[0]: pair.paddle[0] for pair in judge.match.pairs
             if judge.torch_info.tensors[pair.torch[0]].is_parameter}  # fmt: skip
    differences = compare_optimizers(
        judge.reference.optimizer_settings(), judge.port.optimizer_settings(), names
    )
    felt = [d for d in differences if not d.torch_names or wrong.keys() & set(d.torch_names)
            or any(theirs in d.paddle_names for theirs, _ in wrong.values())]  # fmt: skip
    for difference in felt:
        _add_setting(judge, difference, wrong, every)
    if not felt and all(apart.relative <= ROUNDING for _, apart in wrong.values()):
        judge.note_coarse("the optimizer", max(apart.relative for _, apart in wrong.values()))
        return False
    if not felt:
        name, (other, apart) = next(iter(wrong.items()))
        name, other = (name, other) if len(wrong) < every else ("", "")
        text = f"given the same gradients, step {number} changes it differently; {apart.words}"
        judge.add("optimizer", name, other, text, apart)
    return True


def _add_setting(
    judge: "Bench",
    difference: OptimizerDifference,
    wrong: Mapping[str, tuple[str, Gap]],
    every: int,
) -> None:
    concerned = [name for name in difference.torch_names if name in wrong]
    worst = max((apart for _, apart in wrong.values()), key=lambda g: g.difference)
    whole = not concerned or len(difference.torch_names) >= every
    if whole and difference.paddle_names and not difference.torch_names:
        ours, theirs = "", difference.paddle_names[0]
    elif whole:
        ours, theirs = "", ""
    else:
        ours, theirs = concerned[0], wrong[concerned[0]][0]
        worst = wrong[concerned[0]][1]
    judge.add("optimizer", ours, theirs, difference.message, worst)


def _unexplained(judge: "Bench", taken: Sequence[Step], natural: Sequence[Step]) -> None:
    for number, (ours, theirs) in enumerate(zip(taken, natural, strict=True)):
        found = gap(np.array(ours.loss), np.array(theirs.loss))
        if not found.ok:
            text = (f"the loss of step {number} differs though every single part agrees: "
                    f"something is carried over from step to step; {found.words}")  # fmt: skip
            judge.add("optimizer", "", "", text, found)
            return
    text = "the updates differ though the same gradients give the same updates"
    judge.add("optimizer", "", "", text, Gap(np.inf, 0.0, 0.0, ""))


def _size(array: Any) -> float:
    values = np.asarray(array)
    finite = np.abs(values[np.isfinite(values)])
    return float(finite.max()) if finite.size else 0.0
