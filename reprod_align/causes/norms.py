"""Which normalisation each side computes: of what, with which epsilon, weight and bias."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

from reprod_align.base import PORT, REFERENCE
from reprod_align.base.difference import RELATIVE_TOLERANCE, gap
from reprod_align.causes.mismatch import Floats, Mismatch, cite, head_sizes, same
from reprod_align.model.settings import SYNONYMS

import numpy as np

_LARGEST = 50_000  # elements
_LEAST = 1e-6  # of the largest value: what the normalised input has to make of it
_ROUGHLY = 0.1  # relative: with another epsilon a norm still fits that well
EPSILONS = (1e-5, 1e-12, 1e-6, 1e-8, 1e-7, 1e-3, 1e-4, 1e-2, 0.0)
"""that layers, optimizers and papers use, the likeliest first"""

Normaliser = Callable[[float], Floats]
"""takes the epsilon"""


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


def explain_norm(mismatch: Mismatch) -> str:
    """Explain both sides as normalisations of one input, or one side as the other normalised."""
    expected, actual = mismatch.expected, mismatch.actual
    if expected.size > _LARGEST or expected.ndim < 2 or not mismatch.is_telling:
        return ""
    known = [mismatch.settings.get(name) for name in sorted(SYNONYMS["eps"])]
    tried = list(dict.fromkeys([*(eps for eps in known if isinstance(eps, float)), *EPSILONS]))
    for source in mismatch.sources:
        if words := _explain_batch_norm(source.values, expected, actual):
            return words
        ours = _fit_norm(source.values, expected, tried)
        theirs = _fit_norm(source.values, actual, tried, ours) if ours else None
        if ours and theirs:
            return _compare(ours, theirs)
    for made, given, (side, other) in mismatch.both_ways():
        if (found := _fit_norm(given, made, tried)) is not None:
            which = "missing" if side == str(REFERENCE) else "one too many"
            words = f"{found.kind} is {which}: {side} normalises these values, {other} does not"
            return _cite(words, found)
    return ""


def _cite(words: str, *norms: _Norm) -> str:
    """Add the entry that belongs to these kinds of norm."""
    kinds = " ".join(norm.kind for norm in norms)
    return cite(words, "variance" if "unbiased" in kinds else "rms-norm" if "RMS" in kinds else "")


def _explain_batch_norm(x: Floats, expected: Floats, actual: Floats) -> str:
    """Explain two batch norms of x: their slopes differ by the roots of variance plus epsilon."""
    rows = np.moveaxis(x, 1, 0).reshape(x.shape[1], -1)
    moved = x - rows.mean(1).reshape(1, -1, *[1] * (x.ndim - 2))
    first_fit, second_fit = _fit_affine(moved, expected, 1), _fit_affine(moved, actual, 1)
    if len(rows) < 4 or first_fit is None or second_fit is None:
        return ""
    (ours, bias), (theirs, other) = first_fit, second_fit
    same_bias = np.abs(bias - other).max() <= 1e-9 * max(np.abs(expected).max(), 1e-30)
    if not same_bias or not theirs.all():
        return ""
    variances = {"biased": rows.var(1), "unbiased": rows.var(1, ddof=1)}
    for first, epsilon, second, another in product(variances, EPSILONS, variances, EPSILONS):
        ratio = np.sqrt((variances[second] + another) / (variances[first] + epsilon))
        if same(ours / theirs, ratio) and np.ptp(ratio) > 1e-8:
            if epsilon != another:
                words = (
                    f"batch norm with epsilon {another:g} in {PORT} and {epsilon:g} in {REFERENCE}"
                )
                return cite(words, "batch-norm-epsilon")
            words = f"batch norm by the {second} variance in {PORT} and the {first} in {REFERENCE}"
            return cite(words, "batch-norm-running-variance")
    return ""


def _fit_norm(
    x: Floats, made: Floats, epsilons: Sequence[float], like: _Norm | None = None
) -> _Norm | None:
    """Return the normalisation of x that gives `made`; the kind and epsilon of `like` first."""
    found: list[_Norm] = []
    for kind, axis, normalise in _list_kinds(x):
        if _fit_affine(normalise(epsilons[0]), made, axis, _ROUGHLY) is None:
            continue
        fitted = [(epsilon, _fit_affine(normalise(epsilon), made, axis)) for epsilon in epsilons]
        found += [_Norm(kind, epsilon, *affine) for epsilon, affine in fitted if affine is not None]
        if found and like is None:
            return found[0]
    if like is None:
        return None
    found.sort(key=lambda norm: norm.kind != like.kind)
    alike = [norm for norm in found if (norm.kind, norm.epsilon) == (like.kind, like.epsilon)]
    return next((norm for norm in found if norm.has_affine_of(like)), alike[0] if alike else None)


def _list_kinds(x: Floats) -> Iterator[tuple[str, int, Normaliser]]:
    """Yield each kind of norm, the axis of its weight and bias, and what it makes of x with an epsilon."""
    last, rest = (x.ndim - 1,), tuple(range(2, x.ndim))
    moved = x - x.mean(-1, keepdims=True)
    square, variance = ((it**2).mean(-1, keepdims=True) for it in (x, moved))
    total, length = (x**2).sum(-1, keepdims=True), np.abs(x).sum(-1, keepdims=True)
    yield "layer norm", -1, lambda eps: moved / np.sqrt(variance + eps)
    yield "RMS norm", -1, lambda eps: x / np.sqrt(square + eps)
    yield "RMS norm with epsilon outside the root", -1, lambda eps: x / (np.sqrt(square) + eps)
    yield "RMS norm by the sum of squares", -1, lambda eps: x / np.sqrt(total + eps)
    yield "division by the length (L2)", -1, lambda eps: x / np.maximum(np.sqrt(total), eps)
    yield "division by the sum of magnitudes (L1)", -1, lambda eps: x / np.maximum(length, eps)
    yield "layer norm with the unbiased variance", -1, partial(_standardise, x, last, 1, x.shape)
    yield (
        "layer norm with epsilon outside the root",
        -1,
        lambda eps: moved / (np.sqrt(variance) + eps),
    )
    for ddof, words in ((0, ""), (1, " with the unbiased variance")) if rest else ():
        yield f"instance norm{words}", 1, partial(_standardise, x, rest, ddof, x.shape)
        for count in (1, *head_sizes(x.shape[1])):
            groups = "one group" if count == 1 else f"{count} groups"
            split = x.reshape(len(x), count, -1)
            yield (
                f"group norm of {groups}{words}",
                1,
                partial(_standardise, split, (2,), ddof, x.shape),
            )


def _standardise(
    x: Floats, axes: tuple[int, ...], ddof: int, shape: tuple[int, ...], epsilon: float
) -> Floats:
    """Return x less its mean over these axes, divided by the root of variance plus epsilon."""
    moved = x - x.mean(axes, keepdims=True)
    count = moved.size / max(1, x.mean(axes).size)
    variance = (moved**2).sum(axes, keepdims=True) / max(count - ddof, 0.5)
    return np.asarray(moved / np.sqrt(variance + epsilon)).reshape(shape)


def _fit_affine(
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
    if not gap(target, weight[:, None] * rows + bias[:, None], relative=relative).ok:
        return None
    made_of_it = np.abs(weight[:, None] * centred).max()  # a bias alone makes nothing of the input
    return (weight, bias) if made_of_it > _LEAST * np.abs(target).max() else None


def _compare(ours: _Norm, theirs: _Norm) -> str:
    if ours.kind != theirs.kind:
        return _cite(f"{theirs.kind} in {PORT}, {ours.kind} in {REFERENCE}", ours, theirs)
    if ours.epsilon != theirs.epsilon:
        words = f"{ours.kind} with epsilon {theirs.epsilon:g} in {PORT} and {ours.epsilon:g} in {REFERENCE}"
        return _cite(words, ours) if "RMS" in ours.kind else cite(words, "layer-norm-epsilon")
    return _cite(f"{ours.kind}{_compare_affine(ours, theirs)}", ours)


def _compare_affine(ours: _Norm, theirs: _Norm) -> str:
    apart = theirs.weight - ours.weight
    same_bias, plain = _is_near(ours.bias, theirs.bias), _is_near(theirs.weight, 1)
    for words, holds in (
        (f": {PORT} adds 1 to the weight, {REFERENCE} does not", same_bias and _is_near(apart, 1)),
        (f": {REFERENCE} adds 1 to the weight, {PORT} does not", same_bias and _is_near(apart, -1)),
        (f" without its bias in {PORT}",
         _is_near(theirs.bias, 0) and _is_near(apart, 0) and not same_bias),
        (f" without its weight and bias in {PORT}", plain and _is_near(theirs.bias, 0)),
        (f" without its weight in {PORT}", plain and same_bias),
    ):  # fmt: skip
        if holds:
            return words
    return f" with a different weight or bias in {PORT}"


def _is_near(values: Floats, number: Floats | float) -> bool:
    return bool(np.abs(values - number).max() <= 1e-7)
