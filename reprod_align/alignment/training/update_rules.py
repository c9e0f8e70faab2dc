"""What an optimizer of given settings does to a parameter, in numpy: PyTorch's rules, by its names.

Paddle's rules are the same, but for where some add their epsilon (`eps_place`). So the effect of a
setting can be worked out: with this value and with that one.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from reprod_align.model.settings import Values
from reprod_align.model.trace import Array

import numpy as np

State = dict[str, Any]
Rule = Callable[[Values, State, Any, float, int], Any]
"""settings, state, gradient, learning rate, number of the step from 1 -> what to subtract"""

NORM_GUARD: Final = 1e-6
"""what clip_grad_norm_ adds to the norm, and Paddle's clips do not"""


def work_out_moves(
    kind: str, settings: Values, start: Array, gradients: Sequence[Array], rates: Sequence[float]
) -> list[Array] | None:
    """Return what each step adds to a parameter; None for an optimizer whose rule is not known.

    start, gradients: of the parameter, all of one shape, float64.
    """
    rule = _RULES.get(kind)
    if rule is None:
        return None
    value, state, made = np.asarray(start, np.float64), State(), []
    for number, (gradient, rate) in enumerate(zip(gradients, rates, strict=True), 1):
        moved = -_decay_apart(settings, value, rate)
        moved = moved - rule(settings, state, _add_decay(settings, value, gradient), rate, number)
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


def _decay_apart(settings: Values, value: Any, rate: float) -> Any:
    if not settings.get("decoupled"):
        return np.zeros_like(value)
    return rate * settings["weight_decay"] * value


def _add_decay(settings: Values, value: Any, gradient: Any) -> Any:
    gradient = -gradient if settings.get("maximize") else gradient
    coupled = 0.0 if settings.get("decoupled") else settings.get("weight_decay", 0.0)
    squared = coupled + settings.get("l2_decay", 0.0)
    return gradient + squared * value + settings.get("l1_decay", 0.0) * np.sign(value)


def _sgd(settings: Values, state: State, gradient: Any, rate: float, number: int) -> Any:
    momentum = settings["momentum"]
    if not momentum:
        return rate * gradient
    kept = 1.0 if number == 1 else 1.0 - settings.get("dampening", 0.0)
    state["v"] = momentum * state.get("v", 0.0) + kept * gradient
    return rate * (gradient + momentum * state["v"] if settings.get("nesterov") else state["v"])


def _adam(settings: Values, state: State, gradient: Any, rate: float, number: int) -> Any:
    first, second = settings["betas"]
    _average(state, "m", first, gradient)
    size = _average(state, "v", second, gradient**2)
    if settings["amsgrad"]:
        size = state["largest"] = np.maximum(state.get("largest", 0.0), size)
    divisor = np.sqrt(size / (1 - second**number)) + settings["eps"]
    return rate / (1 - first**number) * state["m"] / divisor


def _adagrad(settings: Values, state: State, gradient: Any, rate: float, number: int) -> Any:
    state["sum"] = state.get("sum", settings["initial_accumulator_value"]) + gradient**2
    rate = rate / (1 + (number - 1) * settings["lr_decay"])
    return rate * gradient / (np.sqrt(state["sum"]) + settings["eps"])


def _rmsprop(settings: Values, state: State, gradient: Any, rate: float, number: int) -> Any:
    size = _average(state, "v", settings["alpha"], gradient**2)
    if settings["centered"]:
        size = size - _average(state, "m", settings["alpha"], gradient) ** 2
    eps = settings["eps"]
    inside = settings["eps_place"] == "inside the root"
    divisor = np.sqrt(size + eps) if inside else np.sqrt(np.maximum(size, 0.0)) + eps
    state["step"] = settings["momentum"] * state.get("step", 0.0) + gradient / divisor
    return rate * state["step"]


def _adadelta(settings: Values, state: State, gradient: Any, rate: float, number: int) -> Any:
    rho, eps = settings["rho"], settings["eps"]
    size = _average(state, "v", rho, gradient**2)
    step = np.sqrt(state.get("steps", 0.0) + eps) / np.sqrt(size + eps) * gradient
    _average(state, "steps", rho, step**2)
    return rate * step


def _adamax(settings: Values, state: State, gradient: Any, rate: float, number: int) -> Any:
    (first, second), eps = settings["betas"], settings["eps"]
    _average(state, "m", first, gradient)
    size, faded = np.abs(gradient), second * state.get("u", 0.0)
    on_gradient = settings["eps_place"] == "gradient"
    state["u"] = np.maximum(faded, size + eps) if on_gradient else np.maximum(faded + eps, size)
    return rate / (1 - first**number) * state["m"] / state["u"]


def _average(state: State, name: str, keep: float, value: Any) -> Any:
    """Move the running average `name` towards `value`, and return it."""
    state[name] = keep * state.get(name, 0.0) + (1 - keep) * value
    return state[name]


_RULES: Final[Mapping[str, Rule]] = {
    "SGD": _sgd,
    "Adam": _adam,
    "AdamW": _adam,
    "Adagrad": _adagrad,
    "RMSprop": _rmsprop,
    "Adadelta": _adadelta,
    "Adamax": _adamax,
}
