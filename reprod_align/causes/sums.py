"""What the code of a composite makes of its inputs: sums, products and gates, and which inputs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from reprod_align.causes.functions import FUNCTIONS
from reprod_align.causes.numbers import Floats, fits, is_telling, name_number, same
from reprod_align.model.trace import Array

import numpy as np

_MOST = 10  # inputs that are tried
_ROWS = 256  # elements by which a sum is fitted
_GATE_ROWS = 64
_TERMS = 3


@dataclass(frozen=True)
class Source:
    """A value that the code had at hand, and its name."""

    name: str
    values: Floats


def sources(inputs: Sequence[Array], names: Sequence[str], like: Floats) -> list[Source]:
    """Return the distinct inputs that broadcast to the shape of `like`, the latest first."""
    found: list[Source] = []
    for name, array in reversed(list(zip(names, inputs, strict=True))):
        if array.dtype.kind != "f" or not _broadcasts(array, like) or not is_telling(array):
            continue
        values = np.broadcast_to(np.asarray(array, np.float64), like.shape)
        if not any(np.array_equal(values, source.values) for source in found):
            found.append(Source(name, values))
    return found[:_MOST]


def _broadcasts(array: Array, like: Floats) -> bool:
    return array.ndim <= like.ndim and all(
        size in (1, whole) for size, whole in zip(array.shape[::-1], like.shape[::-1], strict=False)
    )


def sum_cause(expected: Floats, actual: Floats, given: Sequence[Source]) -> str:
    """Explain the difference by what is added: a residual missing, twice, scaled, or another one."""
    if not is_telling(expected) or not given:
        return ""
    ours, theirs = _as_sum(expected, given), _as_sum(actual, given)
    if ours is not None and theirs is not None:
        if _plain(ours) and _plain(theirs):
            return f"PyTorch hands on {ours[0][1].name} here, Paddle {theirs[0][1].name}"
        return f"PyTorch computes {_written(ours, expected)}, Paddle {_written(theirs, expected)}"
    apart = _as_sum(actual - expected, given, terms=2)
    return _difference_words(apart, expected) if apart is not None else ""


Terms = Sequence[tuple[float, Source]]


def _as_sum(made: Floats, given: Sequence[Source], terms: int = _TERMS) -> Terms | None:
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
            factors = np.where(
                np.abs(factors - np.round(factors)) < 1e-9, np.round(factors), factors
            )
            whole = sum(f * given[at].values for f, at in zip(factors, chosen, strict=True))
            if same(made, np.asarray(whole)):
                return [(float(f), given[at]) for f, at in zip(factors, chosen, strict=True)]
    return None


def _plain(terms: Terms) -> bool:
    return len(terms) == 1 and terms[0][0] == 1


def _written(terms: Terms, like: Floats) -> str:
    times = {1.0: "", -1.0: "-"}
    return " + ".join(
        f"{times[factor]}{source.name}"
        if factor in times
        else f"{_number(factor, like)} times {source.name}"
        for factor, source in terms
    )


def _number(factor: float, like: Floats) -> str:
    return f"{factor:g}" if abs(factor) in (2, 3) else name_number(factor, like.shape[-1:])


def _difference_words(apart: Terms, like: Floats) -> str:
    if len(apart) == 1:
        factor, source = apart[0]
        if factor == -1:
            return f"Paddle does not add {source.name} (a residual or a summand left out)"
        if factor == 1:
            return f"Paddle adds {source.name} once more than PyTorch"
        number = _number(factor, like)
        return f"Paddle's values are PyTorch's plus {number} times {source.name}"
    named = {factor: source.name for factor, source in apart}
    if named.keys() != {1.0, -1.0}:
        return f"Paddle's values are PyTorch's plus {_written(apart, like)}"
    return f"Paddle adds {named[1.0]} where PyTorch adds {named[-1.0]}"


def gate_cause(expected: Floats, actual: Floats, given: Sequence[Source]) -> str:
    """Explain both sides as f(x) * y or f(x) + y of inputs or halves of inputs."""
    if not is_telling(expected) or not is_telling(actual) or not given:
        return ""
    ours = _as_gate(expected, given)
    theirs = _as_gate(actual, given) if ours else ""
    return f"PyTorch computes {ours}, Paddle {theirs}" if theirs and theirs != ours else ""


def halves(inputs: Sequence[Array], names: Sequence[str], like: Floats) -> Iterator[Source]:
    """Yield the halves of inputs that are twice as wide as `like` along one axis."""
    for name, array in zip(names, inputs, strict=True):
        if array.dtype.kind != "f" or array.ndim != like.ndim:
            continue
        wider = [axis for axis in range(like.ndim) if array.shape[axis] != like.shape[axis]]
        if len(wider) == 1 and array.shape[wider[0]] == 2 * like.shape[wider[0]]:
            for which, part in zip(("first", "second"), np.split(array, 2, wider[0]), strict=True):
                yield Source(f"the {which} half of {name}", np.asarray(part, np.float64))


def _as_gate(made: Floats, given: Sequence[Source]) -> str:
    """Return "f(x) * y" or "f(x) + y" for the simplest that is `made`."""
    step = max(1, made.size // _GATE_ROWS)
    target = made.reshape(-1)[::step]
    rows = [source.values.reshape(-1)[::step] for source in given]
    with np.errstate(all="ignore"):
        table = [(name, at, function(row)) for name, function in FUNCTIONS.items()
                 for at, row in enumerate(rows)]  # fmt: skip
        values = np.stack([row for *_, row in table])
        for other, row in enumerate(rows):
            for sign, made_rows in (("*", values * row), ("+", values + row)):
                near = np.abs(made_rows - target).max(axis=1) <= 1e-9 * np.abs(target).max()
                for hit in np.flatnonzero(near):
                    name, at, _ = table[hit]
                    x, y = given[at], given[other]
                    if _is_gate(made, name, sign, x, y):
                        return f"{_applied(name, x.name)} {sign} {y.name}"
    return ""


def _is_gate(made: Floats, name: str, sign: str, x: Source, y: Source) -> bool:
    function = FUNCTIONS[name]
    if sign == "*":
        return fits(made, lambda one, other: function(one) * other, x.values, y.values)
    return fits(made, lambda one, other: function(one) + other, x.values, y.values)


def _applied(name: str, source: str) -> str:
    return source if name == "identity" else f"{name} of {source}"


def _gain_words(axis: int) -> str:
    return "a gain (weight) is applied" if axis else "each item is divided (by its norm or a count)"


def _axis_rows(values: Floats, axis: int) -> Floats:
    return np.moveaxis(values, axis, 0).reshape(values.shape[axis], -1)


def per_feature_cause(expected: Floats, actual: Floats) -> str:
    """Explain the difference by a bias or a gain, one number for each index of one axis."""
    if expected.ndim < 2 or not is_telling(expected):
        return ""
    scale = np.abs(expected).max()
    for axis in reversed(range(expected.ndim)):
        ours, theirs = _axis_rows(expected, axis), _axis_rows(actual, axis)
        if (
            ours.shape[0] < 3
            or ours.shape[1] < 3
            or not all(map(is_telling, ours))
            and ours.shape[1] > 8
        ):
            continue
        offset = theirs - ours
        if axis and np.ptp(offset, axis=1).max() <= 1e-9 * scale:
            return (f"the difference is one number for each index of axis {axis}: a bias (or an "
                    "embedding) is added on one side alone")  # fmt: skip
        best = np.abs(ours).argmax(axis=1)[:, None]
        with np.errstate(all="ignore"):
            gain = np.take_along_axis(theirs, best, 1) / np.take_along_axis(ours, best, 1)
        if np.isfinite(gain).all() and gain.any() and same(ours * gain, theirs):
            return (f"the ratio is one number for each index of axis {axis}: {_gain_words(axis)} on "
                    "one side alone, or another one")  # fmt: skip
    return ""
