"""One random stream for both frameworks: every random draw of a model and the order of batches.

Each framework has a generator of its own, and no seed makes the two agree. Here both sides draw
from numpy's Philox, a counter-based generator: a draw depends only on (seed, purpose, epoch, step, call),
never on what was drawn before, so that a run can be resumed at any step.
(Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.)

`SharedRandom` numbers the draws of a step as they come. `KeyedDraws` keys them by where in the model they
are asked for: the n-th draw in a module's k-th call gets the same numbers on both sides, so that a dropout
which one side lacks disturbs no other. A draw in a module that has no counterpart counts for the module
around it: a Dropout layer here, a functional dropout there, are the same draw. Python's `random` and numpy's
global generator, from which a forward pass may draw too, are seeded alike and given back.

`Draws` is what a stream offers; `backends.torch.random` and `backends.paddle.random` make a
framework draw from one. The functions below turn its numbers into the other distributions, in
float64, so that both sides apply the same arithmetic. Which of two equal values `topk` takes is left
to chance too, each framework's own: `leading` settles it for both.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from itertools import permutations
from typing import Any, Final, Protocol

from reprod_align.errors import ReprodError

import numpy as np
from numpy.typing import NDArray

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]
Shape = tuple[int, ...]

TIED = 2.0**-30
"""`topk` counts float64 values as equal if they differ by less than this share of the largest."""

# the purposes; part of the key, so that two purposes never share numbers
_UNIFORM, _ORDER, _NORMAL, _INTEGERS, _PERMUTATION = 1, 2, 3, 4, 5
CallKey = tuple[str, int]  # a module's name on the torch side, and which of its calls
PYTHON: Final = "Python's random"
NUMPY: Final = "numpy's global generator"


DrawFunction = Callable[[np.random.Generator, Shape], NDArray[Any]]
"""draws an array of a shape from a generator"""


class UnsharedDrawError(ReprodError):
    """A framework asked for a distribution that cannot be drawn from a shared stream."""


class Draws(Protocol):
    """A stream of random numbers; every call draws anew."""

    def uniform(self, shape: Shape) -> Float64:
        """Return float64 of `shape` from [0, 1)."""

    def normal(self, shape: Shape) -> Float64:
        """Return float64 of `shape` from the standard normal distribution."""

    def integers(self, low: int, high: int, shape: Shape) -> Int64:
        """Return int64 of `shape` from [low, high)."""

    def permutation(self, n: int) -> Int64:
        """Return the numbers 0 to n - 1 in random order, int64 (n,)."""


class _Stream:
    """A `Draws` whose numbers come from `_draw`."""

    def uniform(self, shape: Shape) -> Float64:
        """Return the next float64 of `shape` from [0, 1)."""
        return self._draw(_UNIFORM, shape, lambda source, wanted: source.random(wanted))

    def normal(self, shape: Shape) -> Float64:
        """Return the next float64 of `shape` from the standard normal distribution."""
        return self._draw(_NORMAL, shape, lambda source, wanted: source.standard_normal(wanted))

    def integers(self, low: int, high: int, shape: Shape) -> Int64:
        """Return the next int64 of `shape` from [low, high)."""
        return self._draw(
            _INTEGERS, shape, lambda source, wanted: source.integers(low, high, wanted)
        )

    def permutation(self, n: int) -> Int64:
        """Return the numbers 0 to n - 1 in the next random order, int64 (n,)."""
        return self._draw(_PERMUTATION, (n,), lambda source, _: source.permutation(n))

    def _draw(self, purpose: int, shape: Shape, draw: DrawFunction) -> NDArray[Any]:
        raise NotImplementedError


class SharedRandom(_Stream):
    """The random numbers of one training step, the same in both frameworks.

    Within a step the calls are numbered as they come: the two models must ask in the same order,
    which faithful ports do.
    """

    def __init__(self, seed: int, epoch: int, step: int) -> None:
        """Start the stream of the `step`-th step of `epoch` under `seed` (all at least 0)."""
        self._seed, self._when, self._call = seed, (epoch, step), 0

    def _draw(self, purpose: int, shape: Shape, draw: DrawFunction) -> NDArray[Any]:
        source = _make_generator(self._seed, purpose, *self._when, self._call)
        self._call += 1
        return np.asarray(draw(source, shape))


def epoch_order(length: int, seed: int, epoch: int) -> list[int]:
    """Return the order in which `length` examples are visited in `epoch`, the same in both frameworks."""
    order: list[int] = _make_generator(seed, _ORDER, epoch).permutation(length).tolist()
    return order


def bernoulli(uniform: Float64, probability: float | Float64) -> NDArray[np.bool_]:
    """Return where a draw with this probability of success succeeds, given uniform numbers.

    The upper end succeeds: a value is dropped where uniform < p, and kept with probability 1 - p.
    """
    return np.asarray(uniform >= 1.0 - probability)


def exponential(uniform: Float64, rate: float = 1.0) -> Float64:
    """Turn uniform numbers into ones from the exponential distribution, same shape."""
    return -np.log1p(-uniform) / rate


def multinomial(draws: Draws, weights: Float64, samples: int, replacement: bool) -> Int64:
    """Draw `samples` indices per row of `weights` ((K,) or (B, K), not normalised): int64 (..., samples)."""
    if replacement:
        return _invert_cdf(weights, draws.uniform((*weights.shape[:-1], samples)))
    with np.errstate(divide="ignore", invalid="ignore"):
        # a race: the k-th finisher is the k-th index drawn without replacement
        finish = exponential(draws.uniform(weights.shape)) / weights
    return np.argsort(finish, axis=-1, kind="stable")[..., :samples]


def leading(values: Float64, count: int, axis: int, largest: bool, tied: float = TIED) -> Int64:
    """Return the indices of the `count` largest (or smallest) along an axis, the lower index first at a tie.

    What differs by rounding alone is tied too: by less than about `tied` of the largest finite size
    along the axis. NaN must not be among the values.
    """
    sizes = np.where(np.isfinite(values), np.abs(values), 0.0)
    unit = np.maximum(sizes.max(axis=axis, keepdims=True), np.finfo(np.float64).tiny) * tied
    steps = np.round(values / unit) if tied else values
    order = np.argsort(-steps if largest else steps, axis=axis, kind="stable")
    return np.take(order, range(count), axis=axis)


def _invert_cdf(weights: Float64, uniform: Float64) -> Int64:
    cumulated = np.cumsum(weights, axis=-1).reshape(-1, weights.shape[-1])
    targets = uniform.reshape(len(cumulated), -1) * cumulated[:, -1:]  # below the total
    found = [np.searchsorted(*row, side="right") for row in zip(cumulated, targets, strict=True)]
    return np.stack(found).reshape(uniform.shape)


def _make_generator(*key: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(key)))


@dataclass
class KeyedDraws(_Stream):
    """The draws of one forward and backward pass on one side."""

    seed: int
    names: Mapping[str, str]
    """this side's module names that have a counterpart -> their names on the torch side"""
    asked: Mapping[tuple[CallKey, int], Shape] = field(default_factory=dict)
    """shapes that the torch side drew: a draw of as many elements is laid out like it"""
    place: Callable[[], list[CallKey]] = lambda: [("", 0)]
    """set by the run: the calls that are open, the innermost last"""
    drawn: dict[tuple[CallKey, int], Shape] = field(default_factory=dict)
    """what was asked for, filled as it comes"""
    _counts: Counter[CallKey] = field(default_factory=Counter)

    def _draw(self, purpose: int, shape: Shape, draw: DrawFunction) -> NDArray[Any]:
        shape = tuple(shape)
        key, source = self._begin(shape)
        return lay_out(draw, source, self.asked.get(key, shape), shape)

    def _begin(self, shape: Shape) -> tuple[tuple[CallKey, int], np.random.Generator]:
        """Note a draw; return its key, and the generator that is its alone."""
        place = self._find_paired_place()
        key = place, self._counts[place]
        self._counts[place] += 1
        self.drawn[key] = shape
        words = np.frombuffer(sha256(repr((self.seed, key)).encode()).digest(), dtype=np.uint32)
        return key, _make_generator(*words.tolist())

    def _find_paired_place(self) -> CallKey:
        for path, index in reversed(self.place()):
            if path in self.names:
                return self.names[path], index
        return "", 0


def lay_out(
    draw: DrawFunction, source: np.random.Generator, wanted: Shape, shape: Shape
) -> NDArray[Any]:
    """Return the draw of shape `wanted`, with its axes or its grouping changed to `shape`."""
    if wanted == shape or int(np.prod(wanted)) != int(np.prod(shape)):
        return draw(source, shape)
    values = draw(source, wanted)
    if len(wanted) == len(shape):
        for axes in permutations(range(len(wanted))):
            if tuple(wanted[axis] for axis in axes) == shape:
                return np.ascontiguousarray(values.transpose(axes))
    return values.reshape(shape)


@contextmanager
def preserve_generators() -> Iterator[None]:
    """Give both generators the states back that they had before the block."""
    numpys, pythons = np.random.get_state(), random.getstate()
    try:
        yield
    finally:
        np.random.set_state(numpys)
        random.setstate(pythons)


def seed_generators(seed: int) -> Callable[[], dict[str, float]]:
    """Seed both; return what tells, once and later, which of them were drawn from since.

    Each comes with its next number: where that is equal, equally much was drawn.
    """
    random.seed(seed)
    np.random.seed(seed)

    def read_drawn() -> dict[str, float]:
        following = {PYTHON: random.random(), NUMPY: np.random.random()}
        first = _find_first(seed)
        return {name: number for name, number in following.items() if number != first[name]}

    return read_drawn


@lru_cache(maxsize=64)
def _find_first(seed: int) -> dict[str, float]:
    """Return the first number that each generator gives under a seed."""
    return {PYTHON: random.Random(seed).random(), NUMPY: np.random.RandomState(seed).random()}
