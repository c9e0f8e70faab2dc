"""How far the two sides' updates are apart, and which optimizer settings make them differ.

An update is judged relative to itself, not to the parameter that it moves: a decay of 1e-4 times a
small weight is invisible next to the weight. Where a gradient is zero but for rounding, an adaptive
optimizer makes a large step of it; how large, the reference's own run from weights moved by a few
units in the last place tells.

A setting is named by what it does to the steps that were taken. The gradients and rates are the same. The
steps are worked out in numpy by PyTorch's rules, with PyTorch's settings and with one of Paddle's in its
place. This is believed only where PyTorch's own steps come out. Paddle's rules are the same, but for where
some add their epsilon (`eps_place`).
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

from reprod_align.alignment.audit import OptimizerDifference, describe_differences
from reprod_align.alignment.comparing import WHOLE_ROUNDING
from reprod_align.alignment.findings import Findings
from reprod_align.alignment.runner import Runner, shake
from reprod_align.base import PORT, REFERENCE, Role
from reprod_align.base.blocks import Array, magnitude
from reprod_align.base.difference import RELATIVE_TOLERANCE, Gap, gap
from reprod_align.model.settings import OptimizerSettings, Values
from reprod_align.model.side import TrainingStep
from reprod_align.model.store import keep_copy

import numpy as np

NOISE = 100.0
"""times the noise measured is still noise"""
_SEED = 77
_CALM = 1e-4  # noise above this share of the largest update tells nothing: the run is chaotic
_ROUNDED = 500  # units of the last place of the largest gradient: a smaller one is but rounding

UpdateGaps = dict[str, tuple[str, Gap]]
"""of one step: Paddle's name -> PyTorch's name, and how far the two updates are apart"""


@dataclass(frozen=True)
class _Updates(Mapping[str, Array]):
    """What one step added to each float tensor, subtracted when asked for: all would not fit memory."""

    before: Mapping[str, Array]
    after: Mapping[str, Array]

    def __getitem__(self, name: str) -> Array:
        if name not in self:
            raise KeyError(name)
        moved: Array = self.after[name] - self.before[name]
        return moved

    def __contains__(self, name: object) -> bool:
        known = name in self.before and name in self.after
        return known and self.after[str(name)].dtype.kind == "f"

    def __iter__(self) -> Iterator[str]:
        return (name for name in self.after if name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def updates_of(
    steps: Sequence[TrainingStep], number: int, start: Mapping[str, Array]
) -> Mapping[str, Array]:
    """Return what step `number` added; `start`: the tensors before the first step."""
    return _Updates(steps[number - 1].tensors if number else start, steps[number].tensors)


@dataclass(frozen=True)
class UpdateComparer:
    """Compares Paddle's updates with those of PyTorch's steps."""

    runner: Runner
    taken: Sequence[TrainingStep]
    """PyTorch's"""

    @cached_property
    def noise(self) -> Sequence[Mapping[str, float]]:
        """By step and PyTorch's name: how far updates move when weights move by a few ulp; "": losses."""
        runner = self.runner
        moved = {
            name: keep_copy(array) for name, array in shake(runner.weights, self._epsilon, _SEED)
        }
        start = {**runner.weights, **moved}
        shaken = runner.train_reference(len(self.taken), start)
        noise = []
        for number, (step, other) in enumerate(zip(self.taken, shaken, strict=True)):
            ours = updates_of(self.taken, number, runner.weights)
            theirs = updates_of(shaken, number, start)
            largest = max((magnitude(move) for move in ours.values()), default=0.0)
            found = {name: magnitude(theirs[name] - ours[name]) for name in ours}
            calm = {n: size if size <= _CALM * largest else 0.0 for n, size in found.items()}
            noise.append({**calm, "": abs(step.loss - other.loss)})
        return noise

    @property
    def _epsilon(self) -> float:
        return float(np.finfo(self.runner.dtype).eps)

    @cached_property
    def port_start(self) -> Mapping[str, Array]:
        """Paddle's tensors before the first step."""
        return self.runner.port_start()

    def compare(self, other: Sequence[TrainingStep]) -> list[UpdateGaps]:
        """Compare each step's update of every paired parameter."""
        return [self._compare_step(other, number) for number in range(len(self.taken))]

    def _compare_step(self, other: Sequence[TrainingStep], number: int) -> UpdateGaps:
        pairing, noise = self.runner.pairing, self.noise[number]
        ours = updates_of(self.taken, number, self.runner.weights)
        theirs = updates_of(other, number, self.port_start)
        found: UpdateGaps = {}
        for pair in pairing.distinct:
            if not all(pairing.torch.tensors[name].is_parameter for name in pair.torch):
                continue
            floor = NOISE * max(noise.get(name, 0.0) for name in pair.torch)
            for name, expected in pair.to_paddle(ours).items():
                if pairing.paddle.tensors[name].is_parameter:
                    rounding = 8 * self._epsilon * magnitude(self.port_start[name])
                    apart = gap(expected, theirs[name], floor=floor + rounding)
                    found[name] = pair.torch[0], apart
        return found

    def leave_out_rounded(
        self, gaps: Sequence[UpdateGaps], natural: Sequence[TrainingStep]
    ) -> list[UpdateGaps]:
        """Return `gaps` without the elements whose gradient is mere rounding on both sides.

        Some optimizers take a whole step by the sign of such a gradient. This is right only where
        Paddle's steps with PyTorch's gradients agree: they judge the optimizer at these elements.
        """
        rounded: dict[str, Array] = {}
        known: list[UpdateGaps] = []
        for number, step in enumerate(gaps):
            self._add_rounded(rounded, self.taken[number], natural[number])
            theirs = updates_of(natural, number, self.port_start)
            ours = self.runner.pairing.convert(updates_of(self.taken, number, self.runner.weights))
            known.append({})
            for name, (torch_name, found) in step.items():
                if not found.ok and name in rounded:
                    sure = ~rounded[name]
                    found = gap(ours[name] * sure, theirs[name] * sure, floor=found.tolerance)
                known[-1][name] = torch_name, found
        return known

    def _add_rounded(
        self, rounded: dict[str, Array], taken: TrainingStep, natural: TrainingStep
    ) -> None:
        """Add, by Paddle's name, the elements at which both gradients of this step are mere rounding."""
        largest = max((magnitude(gradient) for gradient in taken.gradients.values()), default=0.0)
        floor = _ROUNDED * self._epsilon * largest
        for name, ours in self.runner.pairing.convert(taken.gradients).items():
            theirs = self.runner.pairing.paddle.find(natural.gradients, name)
            if theirs is not None and theirs.shape == ours.shape:
                size = np.maximum(np.abs(ours), np.abs(theirs))
                rounded[name] = rounded.get(name, False) | ((size > 0) & (size <= floor))


def all_agree(gaps: Sequence[UpdateGaps], rounding: float = 0.0) -> bool:
    """Tell whether every update of every step agrees, or differs by no more than rounding, relative."""
    every = (found for step in gaps for _, found in step.values())
    return all(found.ok or found.relative <= rounding for found in every)


OptimizerSlots = dict[str, Any]
UpdateRule = Callable[[Values, OptimizerSlots, Any, float, int], Any]
"""settings, state, gradient, learning rate, number of the step from 1 -> what to subtract"""

Moves = list[dict[str, Array]]
"""of each step, what it adds to each parameter"""
Wrong = Mapping[str, tuple[str, Gap]]
"""updates of one step that differ: PyTorch's name -> Paddle's name, and how far they are apart"""

NORM_GUARD: Final = 1e-6
"""what clip_grad_norm_ adds to the norm, and Paddle's clips do not"""
ROUNDING = 1e-6
"""relative: what float32 constants inside Paddle's optimizer kernels do to an update"""
_BELIEVED = 1e-8  # relative; a wrong rule or an unknown hook is far further off
_PLAIN_SETTINGS = ("kind", "missing")  # what these do needs no working out


def work_out_moves(
    kind: str, settings: Values, start: Array, gradients: Sequence[Array], rates: Sequence[float]
) -> list[Array] | None:
    """Return what each step adds to a parameter; None for an optimizer whose rule is not known.

    start, gradients: of the parameter, all of one shape, float64.
    """
    rule = _RULES.get(kind)
    if rule is None:
        return None
    value, state, made = np.asarray(start, np.float64), OptimizerSlots(), []
    decay, decoupled = settings.get("weight_decay", 0.0), settings.get("decoupled", False)
    squared = settings.get("l2_decay", 0.0) + (0.0 if decoupled else decay)
    for number, (gradient, rate) in enumerate(zip(gradients, rates, strict=True), 1):
        gradient = -gradient if settings.get("maximize") else gradient
        gradient = gradient + squared * value + settings.get("l1_decay", 0.0) * np.sign(value)
        moved = -rule(settings, state, gradient, rate, number)
        moved = moved - rate * decay * value if decoupled else moved
        value = value + moved
        made.append(moved)
    return made


def clip_gradients(
    clip: Values | None, gradients: Mapping[str, Array], guard: float
) -> dict[str, Array] | None:
    """Return one step's gradients after clipping; None for a clip that is not known.

    guard: NORM_GUARD as PyTorch does it, 0 as Paddle does.
    """
    if clip is None:
        return dict(gradients)
    if clip["kind"] == "value":
        low, high = clip["min"], clip["max"]
        return {name: np.clip(gradient, low, high) for name, gradient in gradients.items()}
    norms = {name: float(np.linalg.norm(gradient)) for name, gradient in gradients.items()}
    if clip["kind"] == "global norm":
        norms = dict.fromkeys(norms, float(np.linalg.norm(list(norms.values()))))
    elif clip["kind"] != "the norm of each parameter":
        return None
    most = clip["max_norm"]
    return {
        name: gradient * min(1.0, most / max(norms[name] + guard, 1e-300))
        for name, gradient in gradients.items()
    }


def _sgd(settings: Values, state: OptimizerSlots, gradient: Any, rate: float, number: int) -> Any:
    momentum = settings["momentum"]
    if not momentum:
        return rate * gradient
    kept = 1.0 if number == 1 else 1.0 - settings.get("dampening", 0.0)
    state["v"] = momentum * state.get("v", 0.0) + kept * gradient
    return rate * (gradient + momentum * state["v"] if settings.get("nesterov") else state["v"])


def _adam(settings: Values, state: OptimizerSlots, gradient: Any, rate: float, number: int) -> Any:
    first, second = settings["betas"]
    _average(state, "m", first, gradient)
    size = _average(state, "v", second, gradient**2)
    if settings["amsgrad"]:
        size = state["largest"] = np.maximum(state.get("largest", 0.0), size)
    divisor = np.sqrt(size / (1 - second**number)) + settings["eps"]
    return rate / (1 - first**number) * state["m"] / divisor


def _adagrad(
    settings: Values, state: OptimizerSlots, gradient: Any, rate: float, number: int
) -> Any:
    state["sum"] = state.get("sum", settings["initial_accumulator_value"]) + gradient**2
    rate = rate / (1 + (number - 1) * settings["lr_decay"])
    return rate * gradient / (np.sqrt(state["sum"]) + settings["eps"])


def _rmsprop(
    settings: Values, state: OptimizerSlots, gradient: Any, rate: float, number: int
) -> Any:
    size = _average(state, "v", settings["alpha"], gradient**2)
    if settings["centered"]:
        size = size - _average(state, "m", settings["alpha"], gradient) ** 2
    eps = settings["eps"]
    inside = settings["eps_place"] == "inside the root"
    divisor = np.sqrt(size + eps) if inside else np.sqrt(np.maximum(size, 0.0)) + eps
    state["step"] = settings["momentum"] * state.get("step", 0.0) + gradient / divisor
    return rate * state["step"]


def _adadelta(
    settings: Values, state: OptimizerSlots, gradient: Any, rate: float, number: int
) -> Any:
    rho, eps = settings["rho"], settings["eps"]
    size = _average(state, "v", rho, gradient**2)
    step = np.sqrt(state.get("steps", 0.0) + eps) / np.sqrt(size + eps) * gradient
    _average(state, "steps", rho, step**2)
    return rate * step


def _adamax(
    settings: Values, state: OptimizerSlots, gradient: Any, rate: float, number: int
) -> Any:
    (first, second), eps = settings["betas"], settings["eps"]
    _average(state, "m", first, gradient)
    size, faded = np.abs(gradient), second * state.get("u", 0.0)
    on_gradient = settings["eps_place"] == "gradient"
    state["u"] = np.maximum(faded, size + eps) if on_gradient else np.maximum(faded + eps, size)
    return rate / (1 - first**number) * state["m"] / state["u"]


def _average(state: OptimizerSlots, name: str, keep: float, value: Any) -> Any:
    """Move the running average `name` towards `value`, and return it."""
    state[name] = keep * state.get(name, 0.0) + (1 - keep) * value
    return state[name]


_RULES: Final[Mapping[str, UpdateRule]] = {
    "SGD": _sgd,
    "Adam": _adam,
    "AdamW": _adam,
    "Adagrad": _adagrad,
    "RMSprop": _rmsprop,
    "Adadelta": _adadelta,
    "Adamax": _adamax,
}


def _find_guard(role: Role) -> float:
    return role.choose(NORM_GUARD, 0.0)


class Effects:
    """Works out the reference's steps under other settings."""

    def __init__(
        self,
        start: Mapping[str, Array],
        taken: Sequence[TrainingStep],
        settings: OptimizerSettings,
        other: OptimizerSettings,
    ) -> None:
        """Find out how PyTorch's side clips gradients: its hooks don't tell, its steps do.

        start: PyTorch's tensors before the first of the steps `taken`. settings: of its optimizer;
        other: of Paddle's.
        """
        self._start, self._taken, self._settings, self._other = start, taken, settings, other
        self._clip: Values | None = None
        self._own: Moves | None = None
        known = REFERENCE.choose(other.clip, settings.clip)  # a hook of PyTorch's does not tell
        for clip in [None] if settings.clip is None else [known, None]:
            made = self._work_out(settings, clip, _find_guard(REFERENCE))
            if made is not None and self._are_taken(made):
                self._clip, self._own = clip, made
                break

    @property
    def optimizer(self) -> str:
        """The class of the port's optimizer."""
        return self._other.class_name

    @property
    def clips_alike(self) -> bool:
        """Whether the reference is seen to clip as the port is set to, as far as its hooks tell."""
        theirs = PORT.choose(self._other.clip and self._clip, self._other.clip)
        return self._own is not None and self._clip == theirs

    def as_in_port(self) -> Moves | None:
        """Return the steps with the reference's settings and the port's way of clipping by a norm."""
        guard = _find_guard(PORT)
        return self._work_out(self._settings, self._clip, guard) if self.clips_alike else None

    def of(self, difference: OptimizerDifference, number: int) -> tuple[float, float]:
        """Return what the difference changes in step `number`, and at most in any; inf: not known.

        Both relative to the largest update of the parameter.
        """
        changed = None if self._own is None else self._work_out_with(difference)
        if changed is None or self._own is None:
            return math.inf, math.inf
        apart = [
            max((gap(own[name], new[name]).relative for name in own), default=0.0)
            for own, new in zip(self._own, changed, strict=True)
        ]
        return apart[number], max(apart)

    def _work_out_with(self, difference: OptimizerDifference) -> Moves | None:
        guard = _find_guard(REFERENCE)
        if difference.setting == "clip":
            return self._work_out(self._settings, self._other.clip, guard)
        if difference.setting in _PLAIN_SETTINGS:
            return None
        changed = {
            name: {**values, difference.setting: difference.paddle_value}
            if name in difference.torch_names
            else values
            for name, values in self._settings.parameters.items()
        }
        return self._work_out(replace(self._settings, parameters=changed), self._clip, guard)

    def _work_out(
        self, settings: OptimizerSettings, clip: Values | None, guard: float
    ) -> Moves | None:
        held = [name for name in settings.parameters if name in self._start]
        gradients = [step.gradients for step in self._taken]
        used = [{name: step[name] for name in held if name in step} for step in gradients]
        given = [clip_gradients(clip, step, guard) for step in used]
        made: Moves = [{} for _ in given]
        for name in held:
            own = [step[name] for step in given if step is not None and name in step]
            if len(own) < len(given):
                continue
            values, first = settings.parameters[name], self._taken[0].rates[0] or 1.0
            rates = [
                values["lr"] * rate / first for rate in (step.rates[0] for step in self._taken)
            ]
            moved = work_out_moves(settings.kind, values, self._start[name], own, rates)
            for step, move in zip(made, moved or [], strict=bool(moved)):
                step[name] = move
        return made if all(made) else None

    def _are_taken(self, made: Moves) -> bool:
        """Tell whether these are the reference's steps, each computed from the values around it."""
        believed = REFERENCE.choose(_BELIEVED, ROUNDING)
        eps = 16 * float(np.finfo(np.float64).eps)
        return all(
            gap(own[name], move, believed, eps * magnitude(self._start[name])).ok
            for number, step in enumerate(made)
            for own in [updates_of(self._taken, number, self._start)]
            for name, move in step.items()
        )


def explain_updates(
    runner: Runner,
    findings: Findings,
    gaps: Sequence[UpdateGaps],
    replayed: Sequence[TrainingStep],
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
            name, (other, apart) = next(iter(wrong.items()))
            name, other = (name, other) if len(wrong) < len(step) else ("", "")
            text = f"given the same gradients, step {number} changes it differently; {apart.words}"
            findings.add("optimizer", name, other, text, apart, kind="update")
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
    replayed: Sequence[TrainingStep],
    number: int,
) -> bool:
    """Tell whether the updates differ by float32 inside Paddle's kernels alone; note it if so."""
    named = max(wrong.values(), key=lambda one: one[1].relative)
    worst, limit = named[1].relative, limit_rounding(runner)
    expected = effects.as_in_port()
    if worst > limit and expected is not None:
        theirs = updates_of(replayed, number, runner.port_start())
        made = runner.pairing.convert(expected[number])
        names = [name for name, _ in wrong.values()]
        worst = max(gap(made[n], theirs[n]).relative if n in made else np.inf for n in names)
        findings.remark("clip_grad_norm_ adds 1e-6 to the norm, Paddle's norm clipping does not")
    if worst <= limit:
        findings.note_float32(f"{PORT}'s {effects.optimizer} (its update of {named[0]})", worst)
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
