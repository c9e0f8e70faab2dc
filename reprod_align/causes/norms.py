"""Which normalisation each side computes: of what, with which epsilon, weight and bias."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from reprod_align.base.difference import RELATIVE_TOLERANCE, gap
from reprod_align.causes.numbers import Floats, as_floats, head_sizes, is_telling, same
from reprod_align.causes.sums import Source

import numpy as np

_LARGEST = 50_000  # elements
_ROUGHLY = 0.1  # relative: with another epsilon a norm still fits that well
_EPSILONS = (1e-5, 1e-12, 1e-6, 1e-8, 1e-7, 1e-3, 1e-4, 1e-2, 0.0)


Normaliser = Callable[[float], Floats]


@dataclass(frozen=True)
class _Norm:
    """One normalisation: kind and epsilon in words, and the affine part that fits."""

    kind: str
    epsilon: float
    weight: Floats
    bias: Floats

    def has_affine_of(self, other: "_Norm") -> bool:
        """Tell whether weight and bias are the same, so that the rest makes the difference."""
        return same(other.weight, self.weight) and bool(
            np.abs(other.bias - self.bias).max() <= 1e-8 * max(1, np.abs(other.weight).max())
        )


def norm_cause(
    expected: Floats, actual: Floats, given: Sequence[Source], epsilons: Sequence[float] = ()
) -> str:
    """Explain both sides as normalisations of one input, or one side as the other normalised.

    epsilons: what the reference's settings say, tried beside the usual ones.
    """
    if (
        expected.size > _LARGEST
        or expected.ndim < 2
        or not is_telling(expected)
        or not is_telling(actual)
    ):
        return ""
    tried = [*epsilons, *(epsilon for epsilon in _EPSILONS if epsilon not in epsilons)]
    for source in given:
        if words := _batch_epsilon(source.values, expected, actual):
            return words
        ours = _norm_of(source.values, expected, tried)
        theirs = _norm_of(source.values, actual, tried, ours) if ours else None
        if ours and theirs:
            return _in_words(ours, theirs)
    if (missing := _norm_of(actual, expected, tried)) is not None:
        return f"{missing.kind} is missing: PyTorch normalises these values, Paddle does not"
    if (extra := _norm_of(expected, actual, tried)) is not None:
        return f"{extra.kind} too many: Paddle normalises these values, PyTorch does not"
    return ""


def _batch_epsilon(x: Floats, expected: Floats, actual: Floats) -> str:
    """Explain two batch norms of x: their slopes differ by the roots of variance plus epsilon."""
    rows = np.moveaxis(x, 1, 0).reshape(x.shape[1], -1)
    moved = x - rows.mean(1).reshape(1, -1, *[1] * (x.ndim - 2))
    first_fit, second_fit = _affine(moved, expected, 1), _affine(moved, actual, 1)
    if len(rows) < 4 or first_fit is None or second_fit is None:
        return ""
    (ours, bias), (theirs, other) = first_fit, second_fit
    if (
        not np.abs(bias - other).max() <= 1e-9 * max(np.abs(expected).max(), 1e-30)
        or not theirs.all()
    ):
        return ""
    variances = rows.var(1), rows.var(1, ddof=1)
    for first, epsilon, second, another in product((0, 1), _EPSILONS, (0, 1), _EPSILONS):
        expected_ratio = np.sqrt((variances[second] + another) / (variances[first] + epsilon))
        if same(ours / theirs, expected_ratio) and np.ptp(expected_ratio) > 1e-8:
            return _batch_words((first, epsilon), (second, another))
    return ""


def _batch_words(ours: tuple[int, float], theirs: tuple[int, float]) -> str:
    kinds = ("biased", "unbiased")
    if ours[1] != theirs[1]:
        return f"batch norm with epsilon {theirs[1]:g} in Paddle and {ours[1]:g} in PyTorch"
    return f"batch norm by the {kinds[theirs[0]]} variance in Paddle and the {kinds[ours[0]]} in PyTorch"


def _norm_of(
    x: Floats, made: Floats, epsilons: Sequence[float], like: _Norm | None = None
) -> _Norm | None:
    """Return the normalisation of x that gives `made`; the kind and epsilon of `like` first."""
    found: list[_Norm] = []
    for kind, axis, by in _kinds(x):
        found += _fitting(kind, axis, by, made, epsilons)
        if found and like is None:
            return found[0]
    if like is None:
        return None
    found.sort(key=lambda norm: norm.kind != like.kind)
    alike = [norm for norm in found if (norm.kind, norm.epsilon) == (like.kind, like.epsilon)]
    return next((norm for norm in found if norm.has_affine_of(like)), alike[0] if alike else None)


def _fitting(
    kind: str, axis: int, by: Normaliser, made: Floats, epsilons: Sequence[float]
) -> list[_Norm]:
    """Return this kind of norm with every epsilon that gives `made`."""
    found = []
    with np.errstate(all="ignore"):
        if _affine(by(epsilons[0]), made, axis, _ROUGHLY) is None:
            return []
        for epsilon in epsilons:
            affine = _affine(by(epsilon), made, axis)
            if affine is not None:
                found.append(_Norm(kind, epsilon, *affine))
    return found


def _kinds(x: Floats) -> Iterator[tuple[str, int, Normaliser]]:
    last, rest = (x.ndim - 1,), tuple(range(2, x.ndim))
    square = (x**2).mean(-1, keepdims=True)
    total = (x**2).sum(-1, keepdims=True)
    moved = x - x.mean(-1, keepdims=True)
    yield "layer norm", -1, lambda eps: moved / np.sqrt((moved**2).mean(-1, keepdims=True) + eps)
    yield "RMS norm", -1, lambda eps: x / np.sqrt(square + eps)
    yield "RMS norm with epsilon outside the root", -1, lambda eps: x / (np.sqrt(square) + eps)
    yield "RMS norm by the sum of squares", -1, lambda eps: x / np.sqrt(total + eps)
    yield "division by the length (L2)", -1, lambda eps: x / np.maximum(np.sqrt(total), eps)
    yield "division by the sum of magnitudes (L1)", -1, lambda eps: x / np.maximum(
        np.abs(x).sum(-1, keepdims=True), eps)  # fmt: skip
    yield "layer norm with the unbiased variance", -1, _moments(x, last, 1)
    yield "layer norm with epsilon outside the root", -1, lambda eps: moved / (
        np.sqrt((moved**2).mean(-1, keepdims=True)) + eps)  # fmt: skip
    for ddof, words in ((0, ""), (1, " with the unbiased variance")):
        if rest:
            yield f"instance norm{words}", 1, _moments(x, rest, ddof)
            yield f"group norm of one group{words}", 1, _moments(x, (1, *rest), ddof)
            for groups in head_sizes(x.shape[1]):
                yield f"group norm of {groups} groups{words}", 1, _groups(x, groups, ddof)


class _Moments:
    """Normalises by mean and variance; called with the epsilon."""

    def __init__(self, moved: Floats, variance: Floats, shape: Sequence[int]) -> None:
        """Take centred values and their variance; the result has this shape."""
        self.moved, self.variance, self._shape = moved, variance, shape

    def __call__(self, epsilon: float) -> Floats:
        """Return the normalised values."""
        return (self.moved / np.sqrt(self.variance + epsilon)).reshape(self._shape)


def _moments(x: Floats, axes: tuple[int, ...], ddof: int) -> _Moments:
    moved = x - x.mean(axes, keepdims=True)
    count = moved.size / max(1, x.mean(axes).size)
    return _Moments(moved, (moved**2).sum(axes, keepdims=True) / max(count - ddof, 0.5), x.shape)


def _groups(x: Floats, groups: int, ddof: int) -> _Moments:
    split = x.reshape(len(x), groups, -1)
    made = _moments(split, (2,), ddof)
    return _Moments(made.moved, made.variance, x.shape)


def _affine(
    normed: Floats, made: Floats, axis: int, relative: float = RELATIVE_TOLERANCE
) -> tuple[Floats, Floats] | None:
    """Return weight and bias, one for each index of the axis, that turn normed into made."""
    rows, target = (np.moveaxis(it, axis, 0).reshape(it.shape[axis], -1) for it in (normed, made))
    if rows.shape[1] < 3 or not np.isfinite(rows).all():
        return None
    if same(target, rows):
        return np.ones(len(rows)), np.zeros(len(rows))
    centred = rows - rows.mean(1, keepdims=True)
    power = (centred**2).sum(1)
    if not power.all():
        return None
    weight = (centred * target).sum(1) / power
    bias = target.mean(1) - weight * rows.mean(1)
    fitted = weight[:, None] * rows + bias[:, None]
    if not gap(target, fitted, relative=relative).ok or not weight.any():
        return None
    return weight, bias


def _in_words(ours: _Norm, theirs: _Norm) -> str:
    if ours.kind != theirs.kind:
        return f"{theirs.kind} in Paddle, {ours.kind} in PyTorch"
    if ours.epsilon != theirs.epsilon:
        return (
            f"{ours.kind} with epsilon {theirs.epsilon:g} in Paddle and {ours.epsilon:g} in PyTorch"
        )
    return _affine_words(ours, theirs)


def _affine_words(ours: _Norm, theirs: _Norm) -> str:
    same_bias = np.abs(ours.bias - theirs.bias).max() <= 1e-7
    apart = as_floats(theirs.weight - ours.weight)
    if same_bias and np.abs(apart - 1).max() <= 1e-7:
        return f"{ours.kind}: Paddle adds 1 to the weight, PyTorch does not"
    if same_bias and np.abs(apart + 1).max() <= 1e-7:
        return f"{ours.kind}: PyTorch adds 1 to the weight, Paddle does not"
    if np.abs(theirs.bias).max() <= 1e-7 < np.abs(ours.bias).max() and np.abs(apart).max() <= 1e-7:
        return f"{ours.kind} without its bias in Paddle"
    if np.abs(theirs.weight - 1).max() <= 1e-7 and np.abs(theirs.bias).max() <= 1e-7:
        return f"{ours.kind} without its weight and bias in Paddle"
    if np.abs(theirs.weight - 1).max() <= 1e-7 and same_bias:
        return f"{ours.kind} without its weight in Paddle"
    return f"{ours.kind} with another weight or bias in Paddle"
