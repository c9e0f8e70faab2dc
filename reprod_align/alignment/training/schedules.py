"""Why two schedules of learning rates differ: their shapes and numbers, fitted to every step.

A shape is taken only if it gives all rates, so that two fitted shapes differ by their numbers alone.
Then a step early, another length, another factor are told from each other.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from reprod_align.api.table import refer_to

import numpy as np
from numpy.typing import NDArray

Rates = NDArray[np.float64]
Number = float | str | tuple[float, ...]

_NEAR = 1e-9  # of the largest rate
_SEEN = 1e-9  # of the largest rate: where factors of a decay are read off
_MOST_MILESTONES = 6
_MOST_CYCLES = 21
_FEWEST_POINTS = 3  # points that prove a shape


@dataclass(frozen=True)
class Shape:
    """A schedule: what it is called, and its numbers by name."""

    name: str
    numbers: Mapping[str, Number]


def fit_shape(rates: Rates) -> Shape | None:
    """Return the simplest shape that gives these rates, one for each step; None if none is known."""
    if len(rates) < _FEWEST_POINTS or not np.isfinite(rates).all() or not rates.any():
        return None
    for fit in (_fit_constant, *_FALLING, _fit_warm_up):
        if (shape := fit(rates)) is not None:
            return shape
    return None


def agree(rates: Rates, made: Rates) -> bool:
    """Tell whether two schedules are the same but for rounding."""
    return bool(np.abs(rates - made).max() <= _NEAR * np.abs(rates).max())


def _fit_constant(rates: Rates) -> Shape | None:
    if not agree(rates, np.full_like(rates, rates[0])):
        return None
    return Shape("a constant rate", {"rate": float(rates[0])})


def _fit_steps(rates: Rates) -> Shape | None:
    """Fit a rate that changes by factors at some steps."""
    held = np.abs(rates) > _SEEN * np.abs(rates).max()
    length = int(held.argmin()) if not held.all() else len(rates)
    changes = [t for t in range(1, length) if abs(rates[t] - rates[t - 1]) > _NEAR * abs(rates[t])]
    if not 0 < len(changes) <= length // 2:
        return None
    factors = [float(rates[t] / rates[t - 1]) for t in changes]
    gaps = {after - before for before, after in pairwise([0, *changes])}
    even = np.ptp(factors) < 1e-9
    if not even and (len(changes) > _MOST_MILESTONES or min(gaps) < 2):
        return None
    gamma: Number = _round(factors[0]) if even else tuple(map(_round, factors))
    start = {"first rate": _round(float(rates[0]))}
    if len(gaps) == 1 and even and changes[-1] + changes[0] >= length:
        return Shape("steps of one length", {**start, "step length": gaps.pop(), "gamma": gamma})
    return Shape("steps", {**start, "milestones": tuple(changes), "gamma": gamma})


def _fit_exponential(rates: Rates) -> Shape | None:
    gamma = rates[1] / rates[0] if rates[0] else 0.0
    if not 0 < gamma < 1 or not agree(rates, rates[0] * gamma ** np.arange(len(rates))):
        return None
    return Shape("an exponential decay", {"first rate": float(rates[0]), "gamma": _round(gamma)})


def _fit_inverse(rates: Rates) -> Shape | None:
    """Fit first / (1 + gamma t) to the power of 1 or 1/2."""
    for power, name in ((1, "an inverse decay"), (2, "a decay by the inverse root")):
        if not rates.all():
            return None
        grown = (rates[0] / rates) ** power
        gamma = float(grown[1] - 1)
        times = np.arange(len(rates))
        if gamma > 0 and agree(rates, rates[0] / (1 + gamma * times) ** (1 / power)):
            return Shape(name, {"first rate": float(rates[0]), "gamma": _round(gamma)})
    return None


def _fit_polynomial(rates: Rates) -> Shape | None:
    """Fit end + (first - end) (1 - t / T)^power, constant from T on."""
    end = rates[-1]
    still = np.abs(rates - end) <= _NEAR * np.abs(rates).max()
    length = len(rates) - int(np.argmin(still[::-1])) if not still.all() else 0
    if not _FEWEST_POINTS <= length < len(rates):
        return _fit_line(rates)
    if rates[0] < end:
        return None
    half = length // 2
    share = (rates[half] - end) / (rates[0] - end) if rates[0] != end else 0.0
    if not 0 < share < 1:
        return None
    power = _round(math.log(share) / math.log(1 - half / length))
    times = np.minimum(np.arange(len(rates)) / length, 1)
    if not agree(rates, end + (rates[0] - end) * (1 - times) ** power):
        return None
    numbers = {
        "first rate": float(rates[0]),
        "length": length,
        "power": power,
        "last rate": float(end),
    }
    return Shape("a polynomial decay", numbers)


def _fit_line(rates: Rates) -> Shape | None:
    slope = float(rates[1] - rates[0])
    if not slope or not agree(rates, rates[0] + slope * np.arange(len(rates))):
        return None
    return Shape("a straight line", {"first rate": float(rates[0]), "change a step": slope})


def _fit_cosine(rates: Rates) -> Shape | None:
    """Fit half a cosine wave of any length, and what comes after it."""
    for length, low in _guess_waves(rates):
        wave = _draw_wave(rates[0], low, length, np.arange(len(rates)))
        falling = min(len(rates), math.ceil(length))
        if falling < _FEWEST_POINTS or not agree(rates[:falling], wave[:falling]):
            continue
        after = _name_after(rates, low, length)
        if after is not None:
            numbers = {"first rate": float(rates[0]), "length": length, "lowest rate": low}
            return Shape("a cosine", {**numbers, "what follows": after})
    return None


def _guess_waves(rates: Rates) -> Iterator[tuple[float, float]]:
    """Yield lengths and lowest rates: f(0) - f(2k) = 2 (1 + cos(k w)) (f(0) - f(k))."""
    whole = 2 * rates[-1] / rates[0] - 1 if rates[0] else 2.0
    if abs(whole) < 1:  # towards 0, and perhaps not there yet
        yield _settle(math.pi * (len(rates) - 1) / math.acos(whole)), 0.0
    step = 1
    while 2 * step < len(rates):
        one, two = rates[0] - rates[step], rates[0] - rates[2 * step]
        turn = two / (2 * one) - 1 if one else 2.0
        if abs(turn) < 1:
            length = _settle(math.pi * step / math.acos(turn))
            low = float(rates[0] - 2 * one / (1 - math.cos(math.pi * step / length)))
            yield length, _snap(low, float(np.abs(rates).max()))
        step *= 2


def _settle(length: float) -> float:
    """Return the whole number that a length is but for rounding, or the length."""
    return float(round(length)) if abs(length - round(length)) < 1e-3 else length


def _draw_wave(first: float, low: float, length: float, times: NDArray[np.int64]) -> Rates:
    return np.asarray(low + (first - low) * (1 + np.cos(math.pi * times / length)) / 2)


def _name_after(rates: Rates, low: float, length: float) -> str | None:
    """Say what a cosine does after its lowest rate; "" if these steps do not reach it."""
    times = np.arange(len(rates))
    if length >= len(rates) - 1:
        return ""
    wave = _draw_wave(rates[0], low, length, times)
    if agree(rates, wave):
        return "rises again"
    if agree(rates, np.where(times >= length, low, wave)):
        return "stays"
    for growth in (1, 2, 3, 4):
        if agree(rates, _draw_restarts(rates[0], low, length, growth, times)):
            return "restarts" + (f", each cycle {growth} times as long" if growth > 1 else "")
    for cycles in range(2, _MOST_CYCLES):
        over = times >= length * cycles - 1e-9
        if agree(rates, np.where(over, low, _draw_restarts(rates[0], low, length, 1, times))):
            return f"restarts, {cycles} cycles"
    return None


def _draw_restarts(
    first: float, low: float, length: float, growth: int, times: NDArray[np.int64]
) -> Rates:
    made, begin, size = np.empty(len(times)), 0.0, length
    for time in times:
        if time >= begin + size - 1e-9:
            begin, size = begin + size, size * growth
        made[time] = _draw_wave(first, low, size, time - begin)
    return made


def _fit_warm_up(rates: Rates) -> Shape | None:
    """Fit a rise, along a line or a cosine, to the largest rate, and another shape from there."""
    peak = int(np.argmax(rates > rates.max() * (1 - 1e-12)))
    if not 0 < peak < len(rates) - _FEWEST_POINTS:
        return None
    rest = next((s for fit in (_fit_constant, *_FALLING) if (s := fit(rates[peak:]))), None)
    if rest is None:
        return None
    times = np.arange(peak + 1) / peak
    lines = {
        "warm-up": rates[0] + (rates[peak] - rates[0]) * times,
        "cosine warm-up": rates[0] + (rates[peak] - rates[0]) * (1 - np.cos(math.pi * times)) / 2,
    }
    for name, line in lines.items():
        if agree(rates[: peak + 1], line):
            rise = {f"length of the {name}": peak, "first rate": float(rates[0])}
            return Shape(f"a {name}, then {rest.name}", {**rise, **_number_rest(rest, peak)})
    return None


def _number_rest(rest: Shape, peak: int) -> dict[str, Number]:
    """Return the numbers of a shape that begins at the peak: lengths end at a step of the whole."""
    numbers: dict[str, Number] = {}
    for key, value in rest.numbers.items():
        if key in ("first rate", "rate"):
            numbers["largest rate"] = value
        elif key == "length" and not isinstance(value, str | tuple):
            numbers["last step of the decay"] = value + peak
        else:
            numbers[key] = value
    return numbers


def find_turns(rates: Rates) -> tuple[int, ...]:
    """Return the steps at which the rates begin to fall after a rise, or to rise after a fall."""
    changes = np.diff(rates)
    moving = np.flatnonzero(np.abs(changes) > _NEAR * np.abs(rates).max())
    signs = np.sign(changes[moving])
    return tuple(int(moving[at + 1]) for at in np.flatnonzero(signs[1:] != signs[:-1]))


def _snap(number: float, scale: float) -> float:
    return 0.0 if abs(number) <= 1e-9 * scale else number


def _round(number: float) -> float:
    """Return the number without the rounding of what it was computed from."""
    return float(f"{number:.9g}")


_FALLING: Final[Sequence[Callable[[Rates], Shape | None]]] = (
    _fit_steps, _fit_exponential, _fit_polynomial, _fit_cosine, _fit_inverse,
)  # fmt: skip


_MOST_SHIFTED = 5  # steps
_MOST_STRETCHED = 4  # times
_SHOWN = 3  # numbers
_FEWEST = 8  # steps: fewer fit many shapes

# The first name found in a shape's name decides.
_ENTRIES: Final = {
    "warm-up": "linear-warmup",
    "steps of one": "step-decay",
    "steps": "multi-step",
    "cosine": "cosine-annealing",
}


def explain_rates(expected: Rates, actual: Rates) -> str:
    """Return what makes Paddle's learning rates differ, one for each step; "" if nothing known does.

    A cause is returned only if it gives all of the rates.
    """
    if len(expected) != len(actual) or len(expected) < _FEWEST or agree(expected, actual):
        return ""
    return next((words for words in _try_all(expected, actual) if words), "")


def _try_all(expected: Rates, actual: Rates) -> Iterator[str]:
    yield _explain_standstill(expected, actual)
    yield _explain_shift_or_factor(expected, actual)
    yield _explain_pace(expected, actual)
    yield _explain_start(expected, actual)
    ours, theirs = fit_shape(expected), fit_shape(actual)
    if ours is not None and theirs is not None:
        yield _compare_shapes(ours, theirs)
    yield _compare_turns(find_turns(expected), find_turns(actual))


def _explain_standstill(expected: Rates, actual: Rates) -> str:
    if not agree(actual, np.full_like(actual, actual[0])) or actual[0] != expected[0]:
        return ""
    return "Paddle's rate never changes: its scheduler takes no step, or is not the optimizer's own"


def _explain_shift_or_factor(expected: Rates, actual: Rates) -> str:
    """Explain by another first rate, or by a schedule that begins some steps early or late."""
    shift = _name_shift(expected, actual)
    at = int(np.abs(expected).argmax())
    factor = float(actual[at] / expected[at])
    if agree(expected * factor, actual):  # an exponential decay that is shifted is also scaled
        words = f"all of Paddle's rates are PyTorch's times {factor:.6g}: the first rates differ"
        return f"{words}; or {shift}" if shift else words
    return f"{shift}{refer_to(['schedule-order'])}" if shift else ""


def _name_shift(expected: Rates, actual: Rates) -> str:
    for by in range(1, min(_MOST_SHIFTED, len(expected) - _FEWEST) + 1):
        count = "one step" if by == 1 else f"{by} steps"
        if agree(expected[by:], actual[:-by]):
            return f"Paddle's schedule is {count} early: its rate at step t is PyTorch's at step t + {by}"
        if agree(actual[by:], expected[:-by]):
            return f"Paddle's schedule is {count} late: its rate at step t is PyTorch's at step t - {by}"
    return ""


def _explain_start(expected: Rates, actual: Rates) -> str:
    """Explain schedules that agree from some step on by what each does before."""
    apart = np.abs(expected - actual) > 1e-9 * np.abs(expected).max()
    first = len(apart) - int(apart[::-1].argmax())
    if not 1 < first <= len(expected) // 2 or np.ptp(expected[first:]) == 0:
        return ""
    ways = [_name_way(rates[: first + 1]) for rates in (expected, actual)]
    if not all(ways) or ways[0] == ways[1]:
        return ""
    return f"the rates agree from step {first} on; before it PyTorch's {ways[0]} and Paddle's {ways[1]}"


def _name_way(rates: Rates) -> str:
    changes = np.diff(rates)
    if np.ptp(rates) <= 1e-12 * np.abs(rates).max():
        return "stay (no warm-up)"
    if (changes >= 0).all():
        return "rise (a warm-up)"
    return "fall (no warm-up)" if (changes <= 0).all() else ""


def _explain_pace(expected: Rates, actual: Rates) -> str:
    """Explain by a scheduler that is stepped several times a step, or only now and then."""
    length = len(expected)
    for times in range(2, _MOST_STRETCHED + 1):
        if agree(expected[::times], actual[: len(expected[::times])]):
            return f"Paddle's schedule runs {times} times as fast: its scheduler is stepped {times} times"
        if agree(expected[np.arange(length) // times], actual):
            return f"Paddle's schedule runs slower: its scheduler is stepped once in {times} steps"
    return ""


def _compare_shapes(ours: Shape, theirs: Shape) -> str:
    """Name the numbers in which two fitted shapes differ, or the two shapes."""
    entry = next((slug for name, slug in _ENTRIES.items() if name in ours.name), "")
    if ours.name != theirs.name:
        words = f"PyTorch's rates follow {_describe(ours)}, Paddle's {_describe(theirs)}"
        return words + refer_to([entry])
    named = [
        f"{name}: {_show(ours.numbers[name])} in PyTorch, {_show(theirs.numbers[name])} in Paddle"
        for name in ours.numbers
        if _differ(ours.numbers[name], theirs.numbers.get(name, ""))
    ]
    if not named:
        return ""
    return f"both follow {ours.name}; {'; '.join(named[:_SHOWN])}{refer_to([entry])}"


def _compare_turns(ours: tuple[int, ...], theirs: tuple[int, ...]) -> str:
    """Say at which steps the rates of either side turn, if at others."""
    if not ours or not theirs or ours[0] == theirs[0]:
        return ""
    return (f"PyTorch's rates turn first at step {ours[0]}, Paddle's at step {theirs[0]}: a rise or a "
            "cycle has another length")  # fmt: skip


def _describe(shape: Shape) -> str:
    numbers = [f"{name} {_show(value)}" for name, value in shape.numbers.items() if value != ""]
    return f"{shape.name} ({', '.join(numbers)})"


def _show(value: Number) -> str:
    if isinstance(value, tuple):
        shown = ", ".join(f"{number:.6g}" for number in value[:6])
        return f"({shown}{', ...' if len(value) > 6 else ''})"
    return value or "not reached" if isinstance(value, str) else f"{value:.6g}"


def _differ(one: Number, other: Number) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return one != other and "" not in (one, other)
    first, second = np.atleast_1d(one), np.atleast_1d(other)
    return first.shape != second.shape or bool(
        (np.abs(first - second) > 1e-7 * np.maximum(np.abs(first), np.abs(second)) + 1e-15).any()
    )
