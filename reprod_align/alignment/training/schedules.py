"""Why two schedules of learning rates differ: a step early, another length, another factor.

A schedule has a shape and numbers, which are fitted to its rates. A shape is taken only if it gives
all rates, so that two fitted schedules differ by their numbers alone, or by their shapes.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from reprod_align.api import refer_to
from reprod_align.base import PORT, REFERENCE
from reprod_align.base.difference import gap

import numpy as np
from numpy.typing import NDArray

Rates = NDArray[np.float64]
Number = float | str | tuple[float, ...]

_NEAR = 1e-9  # of the largest rate
_FEWEST_STEPS = 8  # fewer fit many causes
_FEWEST = 3  # points that prove a shape
_MOST_MILESTONES = 6
_MOST_CYCLES = 21
_MOST_SHIFTED = 5  # steps
_MOST_STRETCHED = 4  # times
_SHOWN = 3  # numbers

# The entry of the table of APIs: the first name found in a shape's name decides.
_ENTRIES: Final = {
    "warm-up": "linear-warmup",
    "steps of one": "step-decay",
    "steps": "multi-step",
    "cosine": "cosine-annealing",
}


def agree(rates: Rates, made: Rates) -> bool:
    """Tell whether two schedules are the same but for rounding."""
    return gap(rates, made, relative=_NEAR).ok


# ------------------------------------------------------------- the shape of a schedule


@dataclass(frozen=True)
class ScheduleShape:
    """A schedule: what it is called, and its numbers by name."""

    name: str
    numbers: Mapping[str, Number]

    def __str__(self) -> str:
        """The shape and its numbers in words."""
        numbers = [f"{name} {_show(value)}" for name, value in self.numbers.items() if value != ""]
        return f"{self.name} ({', '.join(numbers)})"


Drawn = tuple[str, Mapping[str, Number], Rates]
"""a shape's name and numbers, and the rates that it gives"""


def fit_shape(rates: Rates) -> ScheduleShape | None:
    """Return the simplest shape that gives these rates, one for each step; None if none is known."""
    if len(rates) < _FEWEST or not np.isfinite(rates).all() or not rates.any():
        return None
    return _fit(rates, (*_FALLING, _draw_warm_up))


def _fit(rates: Rates, families: "Sequence[ShapeFamily]") -> ScheduleShape | None:
    times = np.arange(len(rates), dtype=np.float64)
    drawn = (one for family in families for one in family(rates, times))
    return next(
        (ScheduleShape(name, numbers) for name, numbers, made in drawn if agree(rates, made)), None
    )


def _draw_constant(rates: Rates, times: Rates) -> Iterator[Drawn]:
    yield "a constant rate", {"rate": float(rates[0])}, np.full_like(rates, rates[0])


def _draw_steps(rates: Rates, times: Rates) -> Iterator[Drawn]:
    """Yield a rate that changes by factors at some steps: read off, so that it gives the rates."""
    held = np.abs(rates) > _NEAR * np.abs(rates).max()
    length = int(held.argmin()) if not held.all() else len(rates)
    changes = [t for t in range(1, length) if abs(rates[t] - rates[t - 1]) > _NEAR * abs(rates[t])]
    if not 0 < len(changes) <= length // 2:
        return
    factors = [float(rates[t] / rates[t - 1]) for t in changes]
    gaps = {after - before for before, after in pairwise([0, *changes])}
    even = np.ptp(factors) < 1e-9
    if not even and (len(changes) > _MOST_MILESTONES or min(gaps) < 2):
        return
    gamma: Number = _round(factors[0]) if even else tuple(map(_round, factors))
    start = {"first rate": _round(float(rates[0]))}
    if len(gaps) == 1 and even and changes[-1] + changes[0] >= length:
        numbers = {**start, "step length": gaps.pop(), "gamma": gamma}
        yield "steps of one length", numbers, rates
    else:
        yield "steps", {**start, "milestones": tuple(changes), "gamma": gamma}, rates


def _draw_exponential(rates: Rates, times: Rates) -> Iterator[Drawn]:
    gamma = rates[1] / rates[0] if rates[0] else 0.0
    if 0 < gamma < 1:
        numbers = {"first rate": float(rates[0]), "gamma": _round(gamma)}
        yield "an exponential decay", numbers, rates[0] * gamma**times


def _draw_polynomial(rates: Rates, times: Rates) -> Iterator[Drawn]:
    """Yield end + (first - end) (1 - t / T)^power, constant from T on; a line if it does not end."""
    first, end = float(rates[0]), float(rates[-1])
    still = np.abs(rates - end) <= _NEAR * np.abs(rates).max()
    length = len(rates) - int(np.argmin(still[::-1])) if not still.all() else 0
    if not _FEWEST <= length < len(rates):
        slope = float(rates[1] - rates[0])
        if slope:
            numbers = {"first rate": first, "change a step": slope}
            yield "a straight line", numbers, first + slope * times
        return
    half = length // 2
    share = (rates[half] - end) / (first - end) if first > end else 0.0
    if 0 < share < 1:
        power = _round(math.log(share) / math.log(1 - half / length))
        numbers = {"first rate": first, "length": length, "power": power, "last rate": end}
        made = end + (first - end) * (1 - np.minimum(times / length, 1)) ** power
        yield "a polynomial decay", numbers, made


def _draw_cosine(rates: Rates, times: Rates) -> Iterator[Drawn]:
    """Yield half a cosine wave of any length, and what comes after it."""
    first = float(rates[0])
    for length, low in _guess_waves(rates):
        wave = _draw_wave(first, low, length, times)
        falling = min(len(rates), math.ceil(length))
        if falling < _FEWEST or not agree(rates[:falling], wave[:falling]):
            continue
        for after, made in _list_after(first, low, length, times):
            numbers = {"first rate": first, "length": length, "lowest rate": low}
            yield "a cosine", {**numbers, "what follows": after}, made


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
            yield length, low if abs(low) > 1e-9 * float(np.abs(rates).max()) else 0.0
        step *= 2


def _settle(length: float) -> float:
    """Return the whole number that a length is but for rounding, or the length."""
    return float(round(length)) if abs(length - round(length)) < 1e-3 else length


def _list_after(
    first: float, low: float, length: float, times: Rates
) -> Iterator[tuple[str, Rates]]:
    """Yield what a cosine may do after its lowest rate; "" if these steps do not reach it."""
    wave = _draw_wave(first, low, length, times)
    if length >= len(times) - 1:
        yield "", wave
        return
    yield "rises again", wave
    yield "stays", np.where(times >= length, low, wave)
    for growth in (1, 2, 3, 4):
        longer = f", each cycle {growth} times as long" if growth > 1 else ""
        yield f"restarts{longer}", _draw_restarts(first, low, length, growth, times)
    again = _draw_restarts(first, low, length, 1, times)
    for cycles in range(2, _MOST_CYCLES):
        over = times >= length * cycles - 1e-9
        yield f"restarts, {cycles} cycles", np.where(over, low, again)


def _draw_wave(first: float, low: float, length: Any, times: Rates) -> Rates:
    return np.asarray(low + (first - low) * (1 + np.cos(math.pi * times / length)) / 2)


def _draw_restarts(first: float, low: float, length: float, growth: int, times: Rates) -> Rates:
    begins, lengths = np.zeros(len(times)), np.full(len(times), length)
    while (over := times >= begins + lengths - 1e-9).any():
        begins, lengths = begins + over * lengths, np.where(over, lengths * growth, lengths)
    return _draw_wave(first, low, lengths, times - begins)


def _draw_inverse(rates: Rates, times: Rates) -> Iterator[Drawn]:
    """Yield first / (1 + gamma t) to the power of 1 or 1/2."""
    for power, name in ((1, "an inverse decay"), (2, "a decay by the inverse root")):
        gamma = float((rates[0] / rates[1]) ** power - 1) if rates.all() else 0.0
        if gamma > 0:
            numbers = {"first rate": float(rates[0]), "gamma": _round(gamma)}
            yield name, numbers, rates[0] / (1 + gamma * times) ** (1 / power)


ShapeFamily = Callable[[Rates, Rates], Iterator[Drawn]]
_FALLING: Final[Sequence[ShapeFamily]] = (
    _draw_constant, _draw_steps, _draw_exponential, _draw_polynomial, _draw_cosine, _draw_inverse,
)  # fmt: skip


def _draw_warm_up(rates: Rates, times: Rates) -> Iterator[Drawn]:
    """Yield a rise, along a line or a cosine, to the largest rate, and another shape from there."""
    peak = int(np.argmax(rates > rates.max() * (1 - 1e-12)))
    rest = _fit(rates[peak:], _FALLING) if 0 < peak < len(rates) - _FEWEST else None
    share = times[: peak + 1] / max(peak, 1)
    for name, rise in (("warm-up", share), ("cosine warm-up", (1 - np.cos(math.pi * share)) / 2)):
        if rest is not None:
            begin = {f"length of the {name}": peak, "first rate": float(rates[0])}
            made = np.concatenate([rates[0] + (rates[peak] - rates[0]) * rise, rates[peak + 1 :]])
            yield f"a {name}, then {rest.name}", {**begin, **_number_rest(rest, peak)}, made


def _number_rest(rest: ScheduleShape, peak: int) -> dict[str, Number]:
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


def _round(number: float) -> float:
    """Return the number without the rounding of what it was computed from."""
    return float(f"{number:.9g}")


# ------------------------------------------------------------- how two schedules differ


def explain_rates(expected: Rates, actual: Rates) -> str:
    """Return what makes Paddle's learning rates differ, one for each step; "" if nothing known does.

    A cause is returned only if it gives all of the rates.
    """
    if len(expected) != len(actual) or len(expected) < _FEWEST_STEPS or agree(expected, actual):
        return ""
    if agree(actual, np.full_like(actual, expected[0])):
        return f"{PORT}'s rate never changes: its scheduler takes no step, or is not the optimizer's own"
    at, shift = int(np.abs(expected).argmax()), _name_shift(expected, actual)
    factor = float(actual[at] / expected[at])
    if agree(expected * factor, actual):  # an exponential decay that is shifted is also scaled
        words = (
            f"all of {PORT}'s rates are {REFERENCE}'s times {factor:.6g}: the first rates differ"
        )
        return f"{words}; or {shift}" if shift else words
    if shift:
        return shift + refer_to(["schedule-order"])
    if words := _name_pace(expected, actual) or _explain_start(expected, actual):
        return words
    ours, theirs = fit_shape(expected), fit_shape(actual)
    if ours is not None and theirs is not None and (words := _compare_shapes(ours, theirs)):
        return words
    return _compare_turns(expected, actual)


def _name_shift(expected: Rates, actual: Rates) -> str:
    for by in range(1, min(_MOST_SHIFTED, len(expected) - _FEWEST_STEPS) + 1):
        count = "one step" if by == 1 else f"{by} steps"
        if agree(expected[by:], actual[:-by]):
            return f"{PORT}'s schedule is {count} early: its rate at step t is {REFERENCE}'s at step t + {by}"
        if agree(actual[by:], expected[:-by]):
            return f"{PORT}'s schedule is {count} late: its rate at step t is {REFERENCE}'s at step t - {by}"
    return ""


def _name_pace(expected: Rates, actual: Rates) -> str:
    """Name a scheduler that is stepped several times a step, or only now and then."""
    length = len(expected)
    for times in range(2, _MOST_STRETCHED + 1):
        if agree(expected[::times], actual[: len(expected[::times])]):
            return (f"{PORT}'s schedule runs {times} times as fast: it is stepped {times} times, or is that "
                    "much shorter")  # fmt: skip
        if agree(expected[np.arange(length) // times], actual):
            return f"{PORT}'s schedule runs slower: its scheduler is stepped once in {times} steps"
    return ""


def _explain_start(expected: Rates, actual: Rates) -> str:
    """Explain schedules that agree from some step on by what each does before."""
    apart = np.abs(expected - actual) > _NEAR * np.abs(expected).max()
    first = len(apart) - int(apart[::-1].argmax())
    if not 1 < first <= len(expected) // 2 or np.ptp(expected[first:]) == 0:
        return ""
    ways = [_name_way(rates[: first + 1]) for rates in (expected, actual)]
    if not all(ways) or ways[0] == ways[1]:
        return ""
    return f"the rates agree from step {first} on; before it {REFERENCE}'s {ways[0]} and {PORT}'s {ways[1]}"


def _name_way(rates: Rates) -> str:
    changes = np.diff(rates)
    if np.ptp(rates) <= 1e-12 * np.abs(rates).max():
        return "stay (no warm-up)"
    if (changes >= 0).all():
        return "rise (a warm-up)"
    return "fall (no warm-up)" if (changes <= 0).all() else ""


def _compare_shapes(ours: ScheduleShape, theirs: ScheduleShape) -> str:
    """Name the numbers in which two fitted shapes differ, or the two shapes."""
    entry = next((slug for name, slug in _ENTRIES.items() if name in ours.name), "")
    if ours.name != theirs.name:
        return f"{REFERENCE}'s rates follow {ours}, {PORT}'s {theirs}{refer_to([entry])}"
    named = [
        f"{name}: {_show(ours.numbers[name])} in {REFERENCE}, {_show(theirs.numbers[name])} in {PORT}"
        for name in ours.numbers
        if _differ(ours.numbers[name], theirs.numbers.get(name, ""))
    ]
    if not named:
        return ""
    return f"both follow {ours.name}; {'; '.join(named[:_SHOWN])}{refer_to([entry])}"


def _compare_turns(expected: Rates, actual: Rates) -> str:
    """Say at which steps the rates of either side turn, if at others."""
    ours, theirs = find_turns(expected), find_turns(actual)
    if not ours or not theirs or ours[0] == theirs[0]:
        return ""
    return (f"{REFERENCE}'s rates turn first at step {ours[0]}, {PORT}'s at step {theirs[0]}: a rise or a "
            "cycle has another length")  # fmt: skip


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
