"""What the code of a composite makes of its inputs: sums, products and gates, and which inputs."""

from collections.abc import Iterator, Sequence
from itertools import combinations

from reprod_align.causes.functions import FUNCTIONS
from reprod_align.causes.mismatch import Mismatch, Source
from reprod_align.causes.numbers import Floats, fits, is_telling, name_number, same

import numpy as np

_ROWS = 256  # elements by which a sum is fitted
_GATE_ROWS = 64
_TERMS = 3
_CLOSE = 1e-9  # relative

Terms = Sequence[tuple[float, Source]]
"""the factors and inputs of a sum"""


def explain_sum(mismatch: Mismatch) -> str:
    """Explain the difference by what is added: a residual missing, twice, scaled, or another one."""
    expected, actual, given = mismatch.expected, mismatch.actual, mismatch.sources
    if not is_telling(expected) or not given:
        return ""
    ours, theirs = _fit_sum(expected, given), _fit_sum(actual, given)
    width = expected.shape[-1]
    if ours is not None and theirs is not None:
        if all(len(terms) == 1 and terms[0][0] == 1 for terms in (ours, theirs)):
            return f"PyTorch passes on {ours[0][1].name} here, Paddle {theirs[0][1].name}"
        return f"PyTorch computes {_write(ours, width)}, Paddle {_write(theirs, width)}"
    apart = _fit_sum(actual - expected, given, terms=2)
    return _describe(apart, width) if apart is not None else ""


def _fit_sum(made: Floats, given: Sequence[Source], terms: int = _TERMS) -> Terms | None:
    """Return the fewest inputs, and their factors, whose sum is `made`."""
    if not is_telling(made):
        return None
    step = max(1, made.size // _ROWS)
    rows = [source.values.reshape(-1)[::step] for source in given]
    target = made.reshape(-1)[::step]
    for count in range(1, terms + 1):
        if target.size < 4 * count:
            break
        for chosen in combinations(range(len(given)), count):
            matrix = np.stack([rows[at] for at in chosen], axis=1)
            factors = np.linalg.lstsq(matrix, target, rcond=None)[0]
            if not same(target, matrix @ factors) or np.abs(factors).min() < 1e-7:
                continue
            whole_numbers = np.round(factors)
            factors = np.where(np.abs(factors - whole_numbers) < _CLOSE, whole_numbers, factors)
            found = [(float(f), given[at]) for f, at in zip(factors, chosen, strict=True)]
            if same(made, np.asarray(sum(factor * source.values for factor, source in found))):
                return found
    return None


def _write(terms: Terms, width: int) -> str:
    times = {1.0: "", -1.0: "-"}
    return " + ".join(
        f"{times.get(factor, f'{_name(factor, width)} times ')}{source.name}"
        for factor, source in terms
    )


def _name(factor: float, width: int) -> str:
    return f"{factor:g}" if abs(factor) in (2, 3) else name_number(factor, (width,))


def _describe(apart: Terms, width: int) -> str:
    """Say what Paddle's values hold more or less than PyTorch's."""
    named = dict(apart)
    factors = sorted(factor for factor, _ in apart)
    if factors == [-1.0]:
        return f"Paddle does not add {named[-1.0].name} (a residual or another term is missing)"
    if factors == [1.0]:
        return f"Paddle adds {named[1.0].name} once more than PyTorch"
    if factors == [-1.0, 1.0]:
        return f"Paddle adds {named[1.0].name} where PyTorch adds {named[-1.0].name}"
    return f"Paddle's values are PyTorch's plus {_write(apart, width)}"


def explain_gate(mismatch: Mismatch) -> str:
    """Explain both sides as f(x) * y or f(x) + y of inputs or halves of inputs."""
    given = [*mismatch.sources, *_halves(mismatch)]
    if not mismatch.is_telling or not given:
        return ""
    ours = _fit_gate(mismatch.expected, given)
    theirs = _fit_gate(mismatch.actual, given) if ours else ""
    return f"PyTorch computes {ours}, Paddle {theirs}" if theirs and theirs != ours else ""


def _halves(mismatch: Mismatch) -> Iterator[Source]:
    """Yield the halves of inputs that are twice as wide as the output along one axis."""
    shape = mismatch.expected.shape
    for name, array in reversed(mismatch.floats):
        if array.ndim != len(shape):
            continue
        wider = [axis for axis, size in enumerate(shape) if array.shape[axis] != size]
        if len(wider) == 1 and array.shape[wider[0]] == 2 * shape[wider[0]]:
            for which, part in zip(("first", "second"), np.split(array, 2, wider[0]), strict=True):
                yield Source(f"the {which} half of {name}", np.asarray(part, np.float64))


def _fit_gate(made: Floats, given: Sequence[Source]) -> str:
    """Return "f(x) * y" or "f(x) + y" for the simplest that is `made`; "" if there is none."""
    step = max(1, made.size // _GATE_ROWS)
    target = made.reshape(-1)[::step]
    rows = [source.values.reshape(-1)[::step] for source in given]
    table = [(name, at) for name in FUNCTIONS for at in range(len(given))]
    values = np.stack([FUNCTIONS[name](rows[at]) for name, at in table])
    for y, row in zip(given, rows, strict=True):
        for sign, combined in (("*", values * row), ("+", values + row)):
            near = np.abs(combined - target).max(axis=1) <= _CLOSE * np.abs(target).max()
            for hit in np.flatnonzero(near):
                name, at = table[hit]
                if _is_gate(made, name, sign, given[at], y):
                    x = given[at].name
                    return f"{x if name == 'identity' else f'{name} of {x}'} {sign} {y.name}"
    return ""


def _is_gate(made: Floats, name: str, sign: str, x: Source, y: Source) -> bool:
    function, combine = FUNCTIONS[name], np.multiply if sign == "*" else np.add
    return fits(made, lambda one, other: combine(function(one), other), x.values, y.values)


def explain_bias_or_gain(mismatch: Mismatch) -> str:
    """Explain the difference by a bias or a gain, one number for each index of one axis."""
    expected, actual = mismatch.expected, mismatch.actual
    if expected.ndim < 2 or not is_telling(expected):
        return ""
    scale = np.abs(expected).max()
    for axis in reversed(range(expected.ndim)):
        ours, theirs = _rows_of(expected, axis), _rows_of(actual, axis)
        if min(ours.shape) < 3 or (ours.shape[1] > 8 and not all(map(is_telling, ours))):
            continue
        if axis and np.ptp(theirs - ours, axis=1).max() <= _CLOSE * scale:
            return (f"the difference is one number for each index of axis {axis}: a bias (or an "
                    "embedding) is added on one side only")  # fmt: skip
        largest = np.abs(ours).argmax(axis=1)[:, None]
        gain = np.take_along_axis(theirs, largest, 1) / np.take_along_axis(ours, largest, 1)
        if np.isfinite(gain).all() and gain.any() and same(ours * gain, theirs):
            what = ("a gain (weight), or a statistic that divides them," if axis else
                    "a division of each item (by its norm or a count)")  # fmt: skip
            return (f"the ratio is one number for each index of axis {axis}: {what} is on one side "
                    "only, or differs")  # fmt: skip
    return ""


def _rows_of(values: Floats, axis: int) -> Floats:
    return np.moveaxis(values, axis, 0).reshape(values.shape[axis], -1)
