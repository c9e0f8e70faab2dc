"""Why two losses differ that were computed from the same outputs.

A loss and its gradient with respect to an output show which loss it is: of which labels or targets,
weights, smoothing, axis. A `Loss` is such a loss, fitted to one side. If one side's loss with one
thing changed has the other side's value and gradient, that change is the cause. Without gradients
that tell, the ratio of the two numbers is left.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, NamedTuple, Protocol, Self

from reprod_align.base import PORT, REFERENCE
from reprod_align.base.blocks import Array
from reprod_align.base.difference import gap
from reprod_align.causes.functions import sigmoid
from reprod_align.causes.mismatch import Bools, Floats, cite

import numpy as np

_FEWEST_ROWS = 4  # that prove the weight of a column
_CUT = 64.0  # below the largest score of a row: where Paddle's softmax stops
_CLOSE = 1e-9  # relative: how near a ratio must be to the number that explains it
_STEP = 1e-30  # of a complex step: its square is nothing beside any number
_BETAS = (1.0, 0.5, 0.1, 0.2, 0.25, 2.0, 1 / 9, 0.01, 10.0)
NEAR = 1e-7
"""relative: Paddle smooths labels in float32"""
GAMMAS = (0.0, 2.0, 1.0, 0.5, 1.5, 2.5, 3.0, 4.0, 5.0)
"""focal exponents that are tried"""


@dataclass(frozen=True)
class LossSides:
    """Two losses of the same scores, float64, all arrays of one shape, in the port's layout."""

    scores: Floats
    """the reference's output"""
    expected: float
    """PyTorch's loss"""
    actual: float
    ours: Floats
    """the gradient of PyTorch's loss with respect to the scores"""
    theirs: Floats
    alone: bool = True
    """whether no other output takes part in the loss, so that its value follows from this one"""

    def swap(self) -> Self:
        """Return the two sides exchanged."""
        return replace(self, expected=self.actual, actual=self.expected,
                       ours=self.theirs, theirs=self.ours)  # fmt: skip

    def cool(self, temperature: float) -> Self:
        """Return the sides as seen from the scores divided by a temperature."""
        return replace(self, scores=self.scores / temperature, ours=self.ours * temperature,
                       theirs=self.theirs * temperature)  # fmt: skip

    def both_ways(self) -> tuple[tuple[Self, Sequence[str]], tuple[Self, Sequence[str]]]:
        """Return the sides as they are, and exchanged, with the names of the frameworks in that order."""
        names = str(REFERENCE), str(PORT)
        return (self, names), (self.swap(), names[::-1])


class ChangedLoss(NamedTuple):
    """A loss with one thing changed, and what to say if it is the other side's."""

    words: str
    """"{0}" is the side that has the loss as it was, "{1}" the side that has it changed"""
    loss: "Loss"
    entry: str = ""


class Loss(Protocol):
    """A loss that was fitted to one side."""

    def replay(self, scores: Floats) -> tuple[float, Floats]:
        """Return its value, and its gradient with respect to the scores."""

    def compare(self, other: Self, sides: LossSides) -> Iterator[ChangedLoss]:
        """Yield this loss with one thing as the other loss, Paddle's, has it."""

    def vary(self, other: LossSides) -> Iterator[ChangedLoss]:
        """Yield this loss with something changed that cannot be fitted; other: the other side first."""


def is_near(number: float, other: float) -> bool:
    """Tell whether two numbers are the same but for rounding."""
    return abs(number - other) <= NEAR * max(abs(number), abs(other), 1e-30)


def agree(expected: Floats, made: Floats) -> bool:
    """Tell whether a hypothesis explains a whole gradient."""
    return gap(expected, made, relative=NEAR).ok


def are_constant(values: Floats) -> bool:
    """Tell whether all values are one number but for rounding; True for no values."""
    return not values.size or bool(np.ptp(values) <= NEAR * max(np.abs(values).max(), 1e-30))


def is_made_by(sides: LossSides, loss: Loss) -> bool:
    """Tell whether this is PyTorch's loss: by its gradient and, where it is alone, by its value."""
    value, gradient = loss.replay(sides.scores)
    return agree(sides.ours, gradient) and (not sides.alone or is_near(value, sides.expected))


def differentiate(function: Callable[..., Array], x: Floats) -> Floats:
    """Return the slopes of a function of each element, exact but for rounding: a complex step."""
    return np.asarray(function(x + 1j * _STEP).imag / _STEP)


def name_reductions(shape: tuple[int, ...], rows: int, counted: float) -> Mapping[str, float]:
    """Return what the sum over rows is multiplied by, by the words for it.

    rows: how many there are. counted: the weight of those that count.
    """
    found: dict[str, float] = {}
    for words, divisor in (
        ("averaged over those that count (reduction='mean')", counted),
        ("averaged over all, ignored ones too", float(rows)),
        ("summed (reduction='sum')", 1.0),
        ("divided by the batch size", float(shape[0]) if shape else 1.0),
        ("divided by the number of elements", float(np.prod(shape))),
    ):
        if divisor and not any(is_near(1 / divisor, known) for known in found.values()):
            found[words] = 1 / divisor
    return found


def explain_by(sides: LossSides, ours: Loss | None, theirs: Loss | None) -> str:
    """Return the one change between PyTorch's loss and Paddle's, each fitted to its side if it could be."""
    if ours is not None and theirs is not None:
        for words, changed, entry in ours.compare(theirs, sides):
            if is_made_by(sides.swap(), changed):
                return cite(words, entry)
    for loss, (given, names) in zip((ours, theirs), sides.both_ways(), strict=True):
        other = given.swap()
        for words, changed, entry in loss.vary(other) if loss is not None else ():
            if is_made_by(other, changed):
                return cite(words.format(*names), entry)
    return ""


# ------------------------------------------------------------- one loss as a function of the other

_OF_THE_VALUE: Final[Mapping[str, Callable[..., Array]]] = {
    "the square root": np.sqrt,
    "the logarithm": np.log,
}


def explain_total(sides: LossSides) -> str:
    """Explain one loss as the other plus a constant or a further term, or as a function of it."""
    if agree(sides.ours, sides.theirs):
        apart = sides.actual - sides.expected
        cut = apart < 0 and _reaches_far(sides.scores)  # Paddle's softmax is the reason then
        if not sides.alone or cut or is_near(sides.actual, sides.expected):
            return ""
        return f"the gradients agree: {PORT}'s loss is {REFERENCE}'s plus the constant {apart:.6g}"
    for given, names in sides.both_ways() if min(sides.expected, sides.actual) > 0 else ():
        value = np.asarray(given.expected)
        for words, function in _OF_THE_VALUE.items() if sides.alone else ():
            if is_near(float(function(value)), given.actual):
                if agree(given.theirs, differentiate(function, value) * given.ours):
                    return f"{names[1]}'s loss is {words} of {names[0]}'s"
    return _explain_term(sides)


def _explain_term(sides: LossSides) -> str:
    """Explain the difference as a multiple of the sum of the squares, or magnitudes, of the output."""
    apart, z = sides.theirs - sides.ours, sides.scores
    for words, function in (("squares", np.square), ("magnitudes", _magnitude)):
        factor = _fit_factor(differentiate(function, z), apart)
        made = factor * float(function(z).sum())
        whole = factor * differentiate(function, z)
        if factor and agree(apart, whole) and is_near(sides.actual, sides.expected + made):
            side = str(PORT) if factor > 0 else str(REFERENCE)
            return (f"{side} adds {abs(factor):.6g} times the sum of the {words} of the output, or that "
                    "much more than the other side")  # fmt: skip
    return ""


def _fit_factor(slopes: Floats, gradient: Floats) -> float:
    power = float((slopes**2).sum())
    return float((slopes * gradient).sum()) / power if power else 0.0


# ------------------------------------------------------------- binary cross-entropy, focal loss


@dataclass(frozen=True, eq=False)
class Binary:
    """A binary cross-entropy, element by element; arrays have the shape of the scores.

    An element of which the label's probability is r gives -w (1 - r)^gamma log r. pos_weight and focal
    alpha are the ratio of w for label 1 to w for label 0.
    """

    positive: Bools
    """which elements have label 1"""
    counts: Bools
    """which elements count"""
    on_positive: Floats
    on_negative: Floats
    """w of elements with label 1 and 0: numbers, or one for each index of the last axis"""
    gamma: float
    start: str = "scores"
    """what the loss is given: scores, probabilities, or sigmoid twice"""

    def replay(self, scores: Floats) -> tuple[float, Floats]:
        """Return its value, and its gradient with respect to the scores."""
        weight = np.where(self.positive, self.on_positive, self.on_negative) * self.counts
        sign = np.where(self.positive, 1.0, -1.0)

        def give(z: Array) -> Array:
            if self.start == "probabilities":
                right = np.where(self.positive, z, 1 - z)
            else:
                right = sigmoid(sign * (sigmoid(z) if self.start == "sigmoid twice" else z))
            return np.asarray(-weight * (1 - right) ** self.gamma * np.log(right))

        return float(give(scores).sum()), differentiate(give, scores)

    @property
    def ratio(self) -> Floats:
        """What an element with label 1 counts, in elements with label 0."""
        return np.asarray(self.on_positive / self.on_negative)

    def compare(self, other: Self, sides: LossSides) -> Iterator[ChangedLoss]:
        """Yield this loss with one thing as the other loss, Paddle's, has it."""
        weights = _compare_weights(self, other)
        if self.gamma != other.gamma:
            words = f"focal gamma is {other.gamma:g} in {PORT} and {self.gamma:g} in {REFERENCE}"
            yield ChangedLoss("; ".join(filter(None, (words, weights))), other)
        elif not np.array_equal(self.positive & self.counts, other.positive & other.counts):
            count = int((self.positive != other.positive).sum())
            changed = replace(self, positive=other.positive, counts=other.counts)
            yield ChangedLoss(f"the labels differ in {count} places", changed)
        elif not np.array_equal(self.counts, other.counts):
            first, second = int(self.counts.sum()), int(other.counts.sum())
            yield ChangedLoss(f"{PORT} counts {second} elements and {REFERENCE} {first}", other)
        elif weights:
            yield ChangedLoss(weights, other)

    def vary(self, other: LossSides) -> Iterator[ChangedLoss]:
        """Yield this loss with something changed that cannot be fitted."""
        for start, words in (
            ("sigmoid twice", "{1} applies sigmoid before a loss that applies it again"),
            ("probabilities", "{1} takes the scores as probabilities: the sigmoid is missing"),
        ):
            yield ChangedLoss(words, replace(self, start=start))


def explain_binary(sides: LossSides) -> str:
    """Explain the two losses as binary cross-entropies of the scores that differ in one respect."""
    return explain_by(sides, fit_binary(sides), fit_binary(sides.swap()))


def fit_binary(sides: LossSides) -> Binary | None:
    """Return the binary cross-entropy whose gradient is PyTorch's; None if there is none."""
    gradient, positive, counts = sides.ours, sides.ours < 0, sides.ours != 0
    if sides.scores.size < 4 or not (positive & counts).any() or not (~positive & counts).any():
        return None
    for gamma in GAMMAS:
        plain = Binary(positive, counts, np.array(1.0), np.array(1.0), gamma)
        factors = np.abs(gradient) / np.maximum(np.abs(plain.replay(sides.scores)[1]), 1e-300)
        rows = gradient.size // gradient.shape[-1]
        by_column = (False, True) if gradient.ndim > 1 and rows >= _FEWEST_ROWS else (False,)
        for columns in by_column:
            weights = [_average(factors, it & counts, columns) for it in (positive, ~positive)]
            if weights[0] is None or weights[1] is None:
                continue
            found = replace(plain, on_positive=weights[0], on_negative=weights[1])
            if is_made_by(sides, found):
                return found
    return None


def _average(factors: Floats, which: Bools, by_column: bool) -> Floats | None:
    """Return the one factor of these elements, or one for each column; None if they differ."""
    if not by_column:
        return np.array(factors[which].mean()) if are_constant(factors[which]) else None
    rows, chosen = (it.reshape(-1, it.shape[-1]) for it in (factors, which))
    held = [rows[chosen[:, column], column] for column in range(rows.shape[1])]
    if not all(map(are_constant, held)):
        return None
    return np.array([values[0] if values.size else 1.0 for values in held])


def _compare_weights(ours: Binary, theirs: Binary) -> str:
    """Say how the ratio of the two labels' factors, or the factors of columns, differ."""
    for one, other, names in ((ours, theirs, (REFERENCE, PORT)), (theirs, ours, (PORT, REFERENCE))):
        columns = np.ndim(one.on_positive) and not are_constant(np.atleast_1d(other.on_negative))
        even = are_constant(np.atleast_1d(other.ratio))
        if columns and even and are_constant(np.atleast_1d(one.on_negative)):
            return f"{names[1]} has weight= where {names[0]} has pos_weight="
    before, after = np.broadcast_arrays(ours.ratio, theirs.ratio)
    if agree(before, after):
        one_each = ours.on_negative.ndim == theirs.on_negative.ndim == 0
        return "" if one_each else "the weights of the columns differ: pass weight= on both sides"
    if before.ndim:
        return "pos_weight differs between the two sides, column by column"
    if ours.gamma or theirs.gamma:
        alphas = [float(ratio / (1 + ratio)) for ratio in (before, after)]
        return f"focal alpha is {alphas[1]:.6g} in {PORT} and {alphas[0]:.6g} in {REFERENCE}"
    return f"pos_weight is {float(after):.6g} in {PORT} and {float(before):.6g} in {REFERENCE}"


# ------------------------------------------------------------- distances to targets


def _magnitude(x: Array) -> Array:
    return np.asarray(x * np.sign(x.real))


def _smooth(beta: float, x: Array) -> Array:
    """Return x^2 / (2 beta) for |x| < beta and |x| - beta / 2 for others."""
    return np.where(np.abs(x.real) < beta, x**2 / (2 * beta), _magnitude(x) - beta / 2)


_DISTANCES: Final[Mapping[str, Callable[[Array], Array]]] = {
    "absolute distances (L1)": _magnitude,
    **{f"smooth L1 (or Huber) distances with beta {b:g}": partial(_smooth, b) for b in _BETAS},
    "the logarithm of the hyperbolic cosine": lambda x: np.log(np.cosh(x)),
}


@dataclass(frozen=True, eq=False)
class Distance:
    """A sum of distances to targets, each a function of what an output lacks of its target."""

    targets: Floats
    scale: float
    function: Callable[[Array], Array]
    words: str

    def replay(self, scores: Floats) -> tuple[float, Floats]:
        """Return its value, and its gradient with respect to the scores."""
        apart = scores - self.targets
        value = self.scale * float(self.function(apart).sum())
        return value, self.scale * differentiate(self.function, apart)

    def compare(self, other: Self, sides: LossSides) -> Iterator[ChangedLoss]:
        """Yield the other loss of squared distances, if it is to other targets."""
        wrong = np.abs(sides.ours - sides.theirs) > 1e-7 * np.abs(sides.ours).max()
        constant = are_constant(np.abs(sides.ours)) or are_constant(np.abs(sides.theirs))
        if is_near(self.scale, other.scale) and wrong.any() and not constant:
            count = int(wrong.sum())
            words = f"both sides take squared distances, to other targets in {count} of {wrong.size} places"
            yield ChangedLoss(words, other)

    def vary(self, other: LossSides) -> Iterator[ChangedLoss]:
        """Yield other distances to the same targets, multiplied as fits the other side best."""
        apart = other.scores - self.targets
        for name, function in _DISTANCES.items():
            slopes = differentiate(function, apart)
            if "smooth" in name and np.abs(slopes).max() < 1:  # quadratic everywhere
                continue
            changed = replace(self, function=function, scale=_fit_factor(slopes, other.ours))
            words = f"{{1}} takes {name}, {{0}} {self.words}"
            if changed.scale:
                yield ChangedLoss(words, changed, "smooth-l1" if "smooth" in name else "")


def explain_distance(sides: LossSides) -> str:
    """Explain one loss as squared distances, and the other as another distance to the same targets."""
    if not sides.alone or sides.scores.size < 3:
        return ""
    ours, theirs = _fit_squares(sides), _fit_squares(sides.swap())
    return explain_by(sides, ours, theirs) or _explain_turn(sides)


def _fit_squares(sides: LossSides) -> Distance | None:
    """Return the squared distances, or halves of them, that are PyTorch's loss; None if they are not."""
    size = sides.scores.size
    for half, words in ((1.0, "squared distances"), (0.5, "half the squared distances")):
        scale = float((sides.ours**2).sum()) / (4 * half * sides.expected)
        known = name_reductions(sides.scores.shape, size, size).values()
        if any(is_near(scale, number) for number in known):
            targets = sides.scores - sides.ours / (2 * half * scale)
            return Distance(targets, half * scale, np.square, words)
    return None


def _explain_turn(sides: LossSides) -> str:
    """Explain two smooth L1 (Huber) losses: where they turn, and by what Paddle's is multiplied.

    Far from its target an element has the largest slope, near to it a slope in proportion to the distance.
    """
    ours, theirs = np.abs(sides.ours), np.abs(sides.theirs)
    first, second = float(ours.max()), float(theirs.max())
    if not first or not second:
        return ""
    far = [size >= most * (1 - 1e-9) for size, most in ((ours, first), (theirs, second))]
    near = ~far[0] & ~far[1] & (ours > 0)
    factor = second / first
    scaled = agree(sides.theirs, factor * sides.ours)
    if min(it.sum() for it in far) < 2 or far[0].all() or (near.sum() < 3 and not scaled):
        return ""
    ratio = (ours[near] / first) / np.maximum(theirs[near] / second, 1e-300)
    if not are_constant(ratio) or not np.array_equal(np.sign(sides.ours), np.sign(sides.theirs)):
        return ""
    turn = 1.0 if scaled else float(ratio.mean())
    if abs(turn - 1) > 1e-6:
        words = f"smooth L1 (Huber) losses whose beta (delta) in {PORT} is {turn:.6g} times {REFERENCE}'s"
        return cite(words, "smooth-l1")
    known = name_reductions(sides.scores.shape, ours.size, ours.size).values()
    if any(is_near(second, number) for number in known):
        return ""
    words = (
        f"{PORT}'s smooth L1 loss is {REFERENCE}'s times {factor:.6g}: "
        "its smooth_l1_loss multiplies by delta"
    )
    return cite(words, "smooth-l1")


# ------------------------------------------------------------- the two numbers alone


def explain_ratio(expected: float, actual: float, outputs: Sequence[Array]) -> str:
    """Return what the ratio of two losses may stand for; or ""."""
    if not (np.isfinite(expected) and np.isfinite(actual)) or not expected or not actual:
        return ""
    ratio = actual / expected
    if abs(ratio - 1) <= _CLOSE:
        return ""
    for number, words in _list_ratios(outputs):
        if abs(ratio / number - 1) <= _CLOSE:
            return words.format(f"{ratio:.6g}")
    if actual < expected and any(_reaches_far(output) for output in outputs):
        words = ("perhaps because some scores are more than 64 below the largest of their row, which "
                 "Paddle's cross_entropy takes as 64 below")  # fmt: skip
        return cite(words, "softmax-far-below")
    return ""


def _list_ratios(outputs: Sequence[Array]) -> Iterator[tuple[float, str]]:
    """Yield known ratios of Paddle's loss to PyTorch's, and what each may stand for."""
    yield -1, f"the loss has the opposite sign in {PORT}"
    for output in outputs:
        rows = output.size // output.shape[-1] if output.ndim > 1 and output.size > 1 else 0
        for number, what, sums in (
            (len(output) if output.ndim else 0, "the batch size", "'sum'"),
            (output.size if rows else 0, "the number of elements", "'sum'"),
            (rows, "the number of rows", "'sum'"),
            (output.shape[-1] if rows else 0, "the size of the last axis", "'batchmean' or 'sum'"),
        ):
            times = f"times {number} ({what}): perhaps reduction="
            if number > 1:
                yield number, f"{PORT}'s loss is {REFERENCE}'s {times}'sum' instead of 'mean'"
                yield 1 / number, f"{REFERENCE}'s loss is {PORT}'s {times}'mean' instead of {sums}"
    for ratio in (2, 1 / 2):
        yield (
            ratio,
            f"{PORT}'s loss is {REFERENCE}'s times {{}}: perhaps only one side has a factor 1/2",
        )
    for ratio in (math.log(2), 1 / math.log(2)):
        yield ratio, "one side takes the natural logarithm, the other the logarithm to base 2"


def _reaches_far(scores: Array) -> bool:
    """Tell whether a row of scores holds one that Paddle's softmax cuts off."""
    if scores.ndim < 2 or not scores.size or scores.dtype.kind != "f":
        return False
    return bool((scores.max(-1) - scores.min(-1) > _CUT).any())
