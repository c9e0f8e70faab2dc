"""Why two schedules of learning rates differ: a step early, another length, another factor."""

from collections.abc import Iterator
from typing import Final

from reprod_align.alignment.training.schedule_shapes import (
    Number,
    Rates,
    Shape,
    agree,
    find_turns,
    fit_shape,
)
from reprod_align.api.table import refer_to

import numpy as np

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
