"""Compares optimizer steps: losses, learning rates and updates, and what causes a difference.

An update is judged relative to itself, not to the parameter that it moves: a decay of 1e-4 times a
small weight is invisible next to the weight. Where a gradient is zero but for rounding, an adaptive
optimizer makes a large step of it; how large, the reference's own run from weights moved by a few
units in the last place tells.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from reprod_align.alignment.audit import OptimizerDifference, compare_optimizers, told
from reprod_align.alignment.bench import WHOLE_ROUNDING, Bench
from reprod_align.alignment.comparing import compared
from reprod_align.alignment.locating.blame import search
from reprod_align.alignment.training.optimizer_effects import Effects, Steps
from reprod_align.base.difference import RELATIVE_TOLERANCE, Gap, gap, magnitude
from reprod_align.base.keyed_draws import KeyedDraws
from reprod_align.model.projection import Projection
from reprod_align.model.settings import OptimizerSettings
from reprod_align.model.side import Side, Step
from reprod_align.model.trace import Array, keep_copy

import numpy as np

HORIZON = 1000
"""steps of a schedule that are compared without training"""
ROUNDING = 1e-6
"""relative: what float32 constants inside Paddle's optimizer kernels do to an update"""
_SEED = 77
_JITTER = 4 * float(np.finfo(np.float64).eps)
_NOISE = 100.0  # times the noise measured is still noise
_CALM = 1e-4  # noise above this share of the largest update tells nothing: the run is chaotic

_GROWTH = 100.0  # times in one step is growth; more is a fault of that step
_ROUNDED = 500  # units of the last place of the largest gradient: a smaller one is but rounding

Updates = dict[str, tuple[str, Gap]]  # Paddle's name -> PyTorch's name and the gap of one step
Wrong = Mapping[str, tuple[str, Gap]]  # PyTorch's name -> Paddle's name and the gap


def compare_training(judge: Bench) -> None:
    """Take the steps on both sides, compare, and add checks and findings to the judge's result.

    Raises ReprodError if what the user's function returns is no optimizer.
    """
    settings = judge.reference.optimizer_settings(), judge.port.optimizer_settings()
    all_differences = compare_optimizers(*settings, _names(judge))
    differences = _without_schedule(all_differences, settings[0])
    taken = _train(judge, judge.reference)
    natural = _train(judge, judge.port)
    same = all(difference.setting != "lr" for difference in all_differences)
    paddle_rates = {v["lr"] for v in settings[1].parameters.values()} if same else set()
    rates_ok = _compare_rates(judge, taken, natural, paddle_rates)
    noise = _noise(judge, taken)
    losses_ok = _compare_losses(judge, taken, natural, noise)
    updates = _updates_of_all(judge, taken, natural, noise)
    if _agree(updates) and losses_ok:
        _check_updates(judge, updates)
        _remark_on(judge, [d for d in differences if d.conclusive])
        return
    replayed = _train(judge, judge.port, taken)
    effects = Effects(_steps(judge, taken), *settings)
    again = _updates_of_all(judge, taken, replayed, noise)
    settled = _settled(judge, taken, natural, updates) if _agree(again) else updates
    _check_updates(judge, settled)
    if _agree(settled) and losses_ok:
        return
    _explain_updates(judge, again, replayed, differences, effects)
    drifted = bool(judge.coarse) and _grows(taken, natural, updates)
    if rates_ok and not judge.result.findings and not drifted:
        _unexplained(judge, taken, natural, settled)


def _train(judge: Bench, side: Side, replay: Sequence[Step] | None = None) -> list[Step]:
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


def _converted(judge: Bench, gradients: Mapping[str, Array]) -> dict[str, Array]:
    """Return PyTorch's gradients as Paddle's parameters would have them."""
    made: dict[str, Array] = {}
    for pair in judge.match.pairs:
        if all(name in gradients for name in pair.torch):
            made.update({n: keep_copy(array) for n, array in pair.to_paddle(gradients).items()})
    return made


def _compare_rates(
    judge: Bench, taken: Sequence[Step], natural: Sequence[Step], paddle_rates: Set[float]
) -> bool:
    """Compare the learning rates of the steps taken, and of the schedules alone far beyond.

    paddle_rates: those that its parameters start with, if PyTorch's start with the same.
    """
    scheduled = any(side.scheduler is not None for side in (judge.reference, judge.port))
    ours, theirs = [s.rates for s in taken], [s.rates for s in natural]
    if scheduled:
        ours, theirs = judge.reference.rates(HORIZON), judge.port.rates(HORIZON)
    first, second = _comparable(ours, theirs, paddle_rates)
    length = min(len(first), len(second))
    if abs(len(first) - len(second)) > 0 and length < judge.steps:
        length = 0
    expected, actual = np.array(first[:length]), np.array(second[:length])
    found = gap(expected, actual)
    judge.check(
        "schedule", f"learning rate, {length} step(s)", found.exceed * RELATIVE_TOLERANCE, found.ok
    )
    if found.ok:
        return True
    scale = RELATIVE_TOLERANCE * max(float(np.abs(expected).max()), 1e-300)
    at = int(np.argmax(np.abs(actual - expected) > scale))
    words = f"learning rate at step {at}: {expected[at]:.9g} in PyTorch, {actual[at]:.9g} in Paddle"
    if scheduled:
        judge.add("schedule", "", "", words, found)
    else:
        judge.add("optimizer", "", "", words, found)
    return False


def _comparable(
    ours: Sequence[Sequence[float]], theirs: Sequence[Sequence[float]], paddle_rates: Set[float]
) -> tuple[list[float], list[float]]:
    """Return one number a step: the rates of the two groups that are closest to each other.

    Paddle's groups have factors of one rate, which need be the rate of none of them.
    """
    base = [step[0] for step in theirs]
    factors = {rate / base[0] for rate in paddle_rates} if base[0] else set()
    scaled = [[rate * factor for rate in base] for factor in factors or {1.0}]
    pairs = [(list(group), rates) for group in zip(*ours, strict=True) for rates in scaled]
    return min(pairs, key=lambda p: max(abs(a - b) for a, b in zip(*p, strict=False)))


def _noise(judge: Bench, taken: Sequence[Step]) -> list[dict[str, float]]:
    """Return, by step and PyTorch's name, how far updates move when weights move by a few ulp."""
    values = judge.torch_values
    source = np.random.default_rng(_SEED)
    moved = {
        name: keep_copy(array * (1 + _JITTER * source.uniform(-1, 1, array.shape)))
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
        largest = max((magnitude(move) for move in ours.values()), default=0.0)
        found = {name: magnitude(theirs[name] - ours[name]) for name in ours}
        calm = {name: size if size <= _CALM * largest else 0.0 for name, size in found.items()}
        calm[""] = abs(step.loss - other.loss)
        noise.append(calm)
    return noise


def _moves(steps: Sequence[Step], number: int, start: Mapping[str, Array]) -> Mapping[str, Array]:
    """Return what step `number` added to each float tensor."""
    return _Moves(start if number == 0 else steps[number - 1].tensors, steps[number].tensors)


@dataclass(frozen=True)
class _Moves(Mapping[str, Array]):
    """Differences of the float tensors, each made when it is asked for: all would not fit memory."""

    before: Mapping[str, Array]
    after: Mapping[str, Array]

    def __getitem__(self, name: str) -> Array:
        if name not in self:
            raise KeyError(name)
        moved: Array = self.after[name] - self.before[name]
        return moved

    def __contains__(self, name: object) -> bool:
        return (
            name in self.before and name in self.after and self.after[str(name)].dtype.kind == "f"
        )

    def __iter__(self) -> Iterator[str]:
        return (name for name in self.after if name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _compare_losses(
    judge: Bench,
    taken: Sequence[Step],
    natural: Sequence[Step],
    noise: Sequence[Mapping[str, float]],
) -> bool:
    gaps = [
        gap(np.array(a.loss), np.array(b.loss), floor=_NOISE * n[""])
        for a, b, n in zip(taken, natural, noise, strict=True)
    ]
    ok = all(found.ok for found in gaps)
    worst = max(found.exceed * RELATIVE_TOLERANCE for found in gaps)
    judge.check("optimizer", f"loss of {len(gaps)} training step(s)", worst, ok)
    return ok


def _updates_of_all(
    judge: Bench,
    taken: Sequence[Step],
    other: Sequence[Step],
    noise: Sequence[Mapping[str, float]],
) -> list[Updates]:
    return [_updates(judge, taken, other, noise, number) for number in range(len(taken))]


def _agree(updates: Sequence[Updates]) -> bool:
    return all(found.ok for step in updates for _, found in step.values())


def _check_updates(judge: Bench, updates: Sequence[Updates]) -> None:
    gaps = [found for step in updates for _, found in step.values()]
    worst = max((found.exceed * RELATIVE_TOLERANCE for found in gaps), default=0.0)
    judge.check("optimizer", f"updates of {len(updates)} step(s)", worst, _agree(updates))


def _updates(
    judge: Bench,
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
                rounding = 8 * np.finfo(np.float64).eps * magnitude(start[name])
                apart = gap(expected, theirs[name], floor=floor + rounding)
                found[name] = pair.torch[0], apart
    return found


def _settled(
    judge: Bench,
    taken: Sequence[Step],
    natural: Sequence[Step],
    updates: Sequence[Updates],
) -> list[Updates]:
    """Return the updates' gaps without the elements whose gradient is but rounding on both sides.

    Some optimizers take a whole step by the sign of such a gradient. Only where the replay agrees:
    it has the very same gradients, and so judges the optimizer at these elements too.
    """
    unsure: dict[str, Array] = {}
    settled: list[Updates] = []
    start = judge.port_start()
    for number, step in enumerate(updates):
        _add_unsure(judge, unsure, taken[number], natural[number])
        theirs = _moves(natural, number, start)
        ours = _converted(judge, _moves(taken, number, judge.torch_values))
        settled.append({})
        for name, (torch_name, found) in step.items():
            if not found.ok and name in unsure:
                known = ~unsure[name]
                found = gap(ours[name] * known, theirs[name] * known, floor=found.tolerance)
            settled[-1][name] = torch_name, found
    return settled


def _add_unsure(judge: Bench, unsure: dict[str, Array], taken: Step, natural: Step) -> None:
    """Add, by Paddle's name, the elements at which both gradients of this step are but rounding."""
    largest = max((magnitude(gradient) for gradient in taken.gradients.values()), default=0.0)
    floor = _ROUNDED * float(np.finfo(judge.dtype).eps) * largest
    for name, ours in _converted(judge, taken.gradients).items():
        theirs = natural.gradients.get(name)
        if theirs is not None and theirs.shape == ours.shape:
            size = np.maximum(np.abs(ours), np.abs(theirs))
            unsure[name] = unsure.get(name, False) | ((size > 0) & (size <= floor))


def _explain_updates(
    judge: Bench,
    updates: Sequence[Updates],
    replayed: Sequence[Step],
    differences: Sequence[OptimizerDifference],
    effects: Effects,
) -> None:
    """Given the same gradients and rates, name the setting that makes the updates differ."""
    idle = [d for d in differences if d.conclusive and effects.of(d, 0)[1] <= RELATIVE_TOLERANCE]
    for number, step in enumerate(updates):
        wrong = {ours: (theirs, apart) for theirs, (ours, apart) in step.items() if not apart.ok}
        if not wrong:
            continue
        met = [d for d in differences if _meets(d, wrong)]
        felt, untold = _by_effect(met, effects, number)
        if not felt and _is_coarse(judge, wrong, effects, replayed, number):
            idle += [d for d in untold if d not in idle]
            continue
        for difference in felt or untold:
            _add_setting(judge, difference, wrong, len(step))
        if not (felt or untold):
            _unnamed(judge, wrong, number, len(step))
        idle = [d for d in idle if d not in (felt or untold)]
        break
    _remark_on(judge, idle)


def _meets(difference: OptimizerDifference, wrong: Wrong) -> bool:
    """Tell whether the difference is one of the whole model or of a parameter that is wrong."""
    concerned = wrong.keys() & set(difference.torch_names)
    held = {theirs for theirs, _ in wrong.values()} & set(difference.paddle_names)
    return not difference.torch_names or bool(concerned or held)


def _by_effect(
    differences: Sequence[OptimizerDifference], effects: Effects, number: int
) -> tuple[list[OptimizerDifference], list[OptimizerDifference]]:
    """Return what step `number` feels, the largest effect first, and what can't be told."""
    known = [(effects.of(difference, number), difference) for difference in differences]
    felt = [(effect, d) for effect, d in known if not effect[1] <= RELATIVE_TOLERANCE]
    sure = [one for one in felt if one[1].conclusive or np.isfinite(one[0][1])]
    ordered = sorted(sure, key=lambda one: (one[1].conclusive, one[0]), reverse=True)
    return [d for _, d in ordered], [d for effect, d in felt if (effect, d) not in sure]


def _is_coarse(
    judge: Bench,
    wrong: Wrong,
    effects: Effects,
    replayed: Sequence[Step],
    number: int,
) -> bool:
    """Tell whether the updates differ by float32 inside Paddle's kernels alone; note it if so."""
    worst = max(apart.relative for _, apart in wrong.values())
    expected = effects.as_in_paddle()
    if worst > ROUNDING and expected is not None:
        theirs = _moves(replayed, number, judge.port_start())
        made = _converted(judge, expected[number])
        names = [name for name, _ in wrong.values()]
        worst = max(gap(made[n], theirs[n]).relative if n in made else np.inf for n in names)
        judge.remark("clip_grad_norm_ adds 1e-6 to the norm, Paddle's clips by a norm do not")
    if worst <= ROUNDING:
        judge.note_coarse("the optimizer", worst)
    return worst <= ROUNDING


def _unnamed(judge: Bench, wrong: Wrong, number: int, every: int) -> None:
    name, (other, apart) = next(iter(wrong.items()))
    name, other = (name, other) if len(wrong) < every else ("", "")
    text = f"given the same gradients, step {number} changes it differently; {apart.words}"
    judge.add("optimizer", name, other, text, apart)


def _remark_on(judge: Bench, differences: Sequence[OptimizerDifference]) -> None:
    """Remark on settings that differ and change no step."""
    if differences:
        text = told(differences)
        judge.remark(f"the optimizer: settings differ without an effect seen here: {text}")


def _names(judge: Bench) -> dict[str, str]:
    """Return the paired parameters, PyTorch's name -> Paddle's."""
    return {pair.torch[0]: pair.paddle[0] for pair in judge.match.pairs
            if judge.torch_info.tensors[pair.torch[0]].is_parameter}  # fmt: skip


def _without_schedule(
    differences: Sequence[OptimizerDifference], settings: OptimizerSettings
) -> list[OptimizerDifference]:
    """Return the differences without a learning rate that is another for all parameters alike.

    It is compared step by step: a scheduler may set it before the first.
    """
    rates = [d for d in differences if d.setting == "lr"]
    concerned = {name for d in rates for name in d.torch_names}
    trained = [name for name, values in settings.parameters.items() if not values["frozen"]]
    ratios = {round(d.paddle_value / (d.torch_value or 1.0), 12) for d in rates}
    alike = len(ratios) == 1 and concerned >= set(trained)
    return [d for d in differences if d.setting != "lr" or not alike]


def _steps(judge: Bench, taken: Sequence[Step]) -> Steps:
    start = judge.torch_values
    moved = [_moves(taken, number, start) for number in range(len(taken))]
    return Steps(start, [s.gradients for s in taken], [s.rates[0] for s in taken], moved)


def _add_setting(
    judge: Bench,
    difference: OptimizerDifference,
    wrong: Wrong,
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
    judge.add("optimizer", ours, theirs, told([difference]), worst)


def _grows(taken: Sequence[Step], natural: Sequence[Step], updates: Sequence[Updates]) -> bool:
    """Tell whether the two part by and by, as from float32 rounding, and not in one step."""
    before = ROUNDING
    for ours, theirs, step in zip(taken, natural, updates, strict=True):
        sizes = [found.relative for _, found in step.values() if not found.ok]
        apart = max([gap(np.array(ours.loss), np.array(theirs.loss)).relative, *sizes])
        if not apart <= max(WHOLE_ROUNDING, _GROWTH * before):
            return False
        before = max(before, apart)
    return True


def _unexplained(
    judge: Bench, taken: Sequence[Step], natural: Sequence[Step], updates: Sequence[Updates]
) -> None:
    """Add a finding for steps that differ though each update agrees, unless rounding explains it.

    An optimizer that divides by the gradient's size makes more of what float32 constants leave of it.
    """
    if _on_same_weights(judge, taken):
        return
    if search(judge, compared(judge, judge.run_reference(True), True)):
        return
    for number, (ours, theirs) in enumerate(zip(taken, natural, strict=True)):
        found = gap(np.array(ours.loss), np.array(theirs.loss))
        if not found.ok:
            text = (f"the loss of step {number} differs though every single part agrees: "
                    f"something is carried over from step to step; {found.words}")  # fmt: skip
            judge.add("optimizer", "", "", text, found)
            return
    worst = max(found.relative for step in updates for _, found in step.values() if not found.ok)
    if worst <= ROUNDING:
        judge.note_coarse("the training step", worst)
        return
    text = "the updates differ though the same gradients give the same updates"
    judge.add("optimizer", "", "", text, Gap(np.inf, 0.0, 0.0, ""))


def _on_same_weights(judge: Bench, taken: Sequence[Step]) -> bool:
    """Run the port from PyTorch's weights of every step; add a finding for a loss that differs."""
    for number, step in enumerate(taken):
        draws = KeyedDraws(_SEED + number, judge.places, judge.draws.get(("step", number), {}))
        objective = None if judge.port.loss else Projection(dict(judge.expected.outputs))
        judge.restore(judge.port, True)
        if number:
            judge.port.load(_loaded(judge, taken[number - 1].tensors))
        try:
            trace = judge.port.run(judge.inputs, True, draws, "none", objective)
        finally:
            judge.restore(judge.port, True)
        found = gap(np.array(step.loss), np.array(trace.loss or 0.0), ROUNDING)
        if not found.ok:
            text = f"with PyTorch's own weights of step {number} the loss differs; {found.words}"
            judge.add("optimizer", "", "", text, found)
            return True
    return False


def _loaded(judge: Bench, tensors: Mapping[str, Array]) -> dict[str, Array]:
    """Return the reference's tensors as the port is given them."""
    made: dict[str, Array] = {}
    for pair in judge.match.pairs:
        if judge.is_loaded(pair):
            made.update(pair.to_paddle(tensors))
    return made
