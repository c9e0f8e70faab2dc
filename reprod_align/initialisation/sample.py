"""What a model's parameters start from over several seeds: which elements are fixed, how others vary.

A fixed element has the same value with every seed (a zero bias, LayerNorm's ones, the padding row);
the others are random. Only a sample of the random values is kept; their moments are those of all.
Positions are those of PyTorch's layout, in which a Linear weight is (out, in).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from hashlib import sha256

from reprod_align.base.blocks import Array
from reprod_align.errors import RecordError, ReprodError

import numpy as np

Samples = Mapping[str, "ParameterSample"]

SEEDS = tuple(range(8))
KEPT = 19_997  # values of a parameter and seed; a prime, so that they fall on different columns
_FEWEST_SEEDS = 3  # with two, equal float32 draws happen in a large table and look fixed
_VECTORS = 64  # how many rows or columns are tested for being orthogonal
_ORTHOGONAL = 1e-4  # the largest product of two unit vectors; of random ones it is 1 / sqrt(length)


@dataclass(frozen=True)
class Moments:
    """Of all random values: how many, and their mean, standard deviation and kurtosis (normal: 3)."""

    count: int
    mean: float
    std: float
    kurtosis: float


@dataclass(frozen=True)
class ParameterSample:
    """One parameter, as it started with every seed."""

    shape: tuple[int, ...]
    """as its framework keeps it"""
    layout_shape: tuple[int, ...]
    """in PyTorch's layout"""
    values: Array
    """(n,) float64: random values of all seeds, evenly picked"""
    moments: Moments
    fixed_at: Array
    """(F,) int64: flat positions of the fixed elements, in PyTorch's layout"""
    fixed: Array
    """(F,) float64: their values"""
    orthogonal: bool
    """whether the rows, or the columns if they are fewer, are orthogonal and equally long"""
    digest: str
    """of the first seed's values: two parameters share it if one starts as a copy of the other"""

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(self.layout_shape))

    @property
    def is_random(self) -> bool:
        """Whether any element varies."""
        return self.fixed.size < self.size


_FIELDS = tuple(field.name for field in fields(ParameterSample))


class Collector:
    """Takes every parameter of the models that one side built, seed by seed."""

    def __init__(self, seeds: Sequence[int]) -> None:
        """Expect one model for each of `seeds`; ReprodError if they are too few or repeat."""
        if len(set(seeds)) < max(len(seeds), _FEWEST_SEEDS):
            raise ReprodError(
                f"initialisation needs {_FEWEST_SEEDS} different seeds, got {list(seeds)}"
            )
        self._seeds = len(seeds)
        self._running: dict[str, _Running] = {}

    def add(self, name: str, array: Array, shape: Sequence[int]) -> None:
        """Take one parameter: its values in PyTorch's layout, and the shape in its framework's own."""
        if name not in self._running:
            self._running[name] = _Running(array, tuple(shape))
        self._running[name].take(name, array)

    def samples(self) -> dict[str, ParameterSample]:
        """Return what was collected; ReprodError unless every seed built the same parameters."""
        if not self._running:
            raise ReprodError("the model has no parameters")
        partial = [name for name, state in self._running.items() if state.taken != self._seeds]
        if partial:
            raise ReprodError(f"not every seed's model has {', '.join(sorted(partial))}")
        return {name: state.sample() for name, state in self._running.items()}


class _Running:
    """One parameter over the seeds so far: the first seed's values and the sums of all."""

    def __init__(self, array: Array, shape: tuple[int, ...]) -> None:
        self.taken = 0
        self.shape, self.layout_shape = shape, array.shape
        self.first = array.ravel().copy()
        self.fixed = np.ones(array.size, bool)
        self.at = np.unique(np.linspace(0, array.size - 1, min(array.size, KEPT)).astype(np.int64))
        self.kept: list[Array] = []
        self.sums = np.zeros(4)
        self.orthogonal = True

    def take(self, name: str, array: Array) -> None:
        flat = array.ravel()
        if array.shape != self.layout_shape:
            raise ReprodError(f"{name} is {array.shape}, with another seed {self.layout_shape}")
        if not np.isfinite(flat).all():
            raise ReprodError(
                f"{name} starts with NaN or infinity: was its memory ever initialised?"
            )
        self.taken += 1
        self.fixed &= flat == self.first
        self.kept.append(flat[self.at].astype(np.float64))
        self.sums += _sum_powers(flat)
        self.orthogonal = self.orthogonal and _is_orthogonal(array)

    def sample(self) -> ParameterSample:
        fixed = self.first[self.fixed].astype(np.float64)
        count = self.taken * (self.first.size - fixed.size)
        random = np.stack(self.kept)[:, ~self.fixed[self.at]].ravel()
        moments = _compute_moments(count, self.sums - self.taken * _sum_powers(fixed))
        at = np.flatnonzero(self.fixed)
        digest = sha256(self.first.tobytes()).hexdigest()[:16]
        return ParameterSample(
            self.shape, self.layout_shape, random, moments, at, fixed, self.orthogonal, digest
        )


def as_record(samples: Samples) -> dict[str, Array]:
    """Return the samples as a record {name: array} that a file can hold."""
    record: dict[str, Array] = {}
    for name, sample in samples.items():
        values = vars(sample) | {"moments": list(vars(sample.moments).values())}
        record |= {f"{name}|{field}": np.asarray(values[field]) for field in _FIELDS}
    return record


def from_record(record: Mapping[str, Array]) -> dict[str, ParameterSample]:
    """Return the samples that `as_record` wrote; RecordError if an entry is missing or damaged."""
    names = dict.fromkeys(key.rpartition("|")[0] for key in record)
    if not names:
        raise RecordError("the record of the initialisation is empty: write it again")
    try:
        return {name: _from_fields({f: record[f"{name}|{f}"] for f in _FIELDS}) for name in names}
    except (KeyError, OverflowError, TypeError, ValueError) as error:
        message = f"the record does not hold an initialisation ({error}): write it again"
        raise RecordError(message) from error


def count_fans(shape: tuple[int, ...]) -> tuple[int, int] | None:
    """Return fan_in and fan_out of a weight in PyTorch's layout, None for a vector or a scalar."""
    if len(shape) < 2:
        return None
    field = int(np.prod(shape[2:]))
    return shape[1] * field, shape[0] * field


def _from_fields(found: Mapping[str, Array]) -> ParameterSample:
    count, mean, std, kurtosis = found["moments"].astype(float)
    sample = ParameterSample(
        shape=tuple(map(int, found["shape"])),
        layout_shape=tuple(map(int, found["layout_shape"])),
        values=found["values"].astype(np.float64),
        moments=Moments(int(count), float(mean), float(std), float(kurtosis)),
        fixed_at=found["fixed_at"].astype(np.int64),
        fixed=found["fixed"].astype(np.float64),
        orthogonal=bool(found["orthogonal"]),
        digest=str(found["digest"]),
    )
    _require_sound(sample)
    return sample


def _require_sound(sample: ParameterSample) -> None:
    """Raise ValueError unless the numbers are finite and fit each other."""
    axes = (*sample.shape, *sample.layout_shape)
    if min(axes, default=0) < 0 or math.prod(sample.shape) != math.prod(sample.layout_shape):
        raise ValueError(f"shapes {sample.shape} and {sample.layout_shape} do not fit each other")
    for array in (sample.values, sample.fixed, np.array(list(vars(sample.moments).values()))):
        if array.ndim != 1 or not np.isfinite(array).all():
            raise ValueError("expected one row of finite values")
    inside = np.all((sample.fixed_at >= 0) & (sample.fixed_at < sample.size))
    if sample.fixed_at.shape != sample.fixed.shape or sample.fixed.size > sample.size or not inside:
        raise ValueError("its fixed elements lie outside the parameter")
    if min(sample.moments.count, sample.moments.std, sample.moments.kurtosis) < 0:
        raise ValueError("its moments are negative")


def _sum_powers(flat: Array) -> Array:
    """Return the sums of the first four powers, in float64: (4,)."""
    values = flat.astype(np.float64)
    squares = values * values
    return np.array([values.sum(), squares.sum(), (squares * values).sum(), squares @ squares])


def _compute_moments(count: int, sums: Array) -> Moments:
    if not count:
        return Moments(0, 0.0, 0.0, 0.0)
    mean, second, third, fourth = (float(value) for value in sums / count)
    variance = max(second - mean**2, 0.0)
    central = fourth - 4 * mean * third + 6 * mean**2 * second - 3 * mean**4
    kurtosis = central / variance**2 if variance else 0.0
    unbiased = variance * count / max(count - 1, 1)
    return Moments(count, mean, float(np.sqrt(unbiased)), kurtosis)


def _is_orthogonal(array: Array) -> bool:
    if array.ndim < 2 or min(len(array), array[0].size) < 2:
        return False
    matrix = array.reshape(len(array), -1).astype(np.float64)
    vectors = matrix if len(matrix) <= matrix.shape[1] else matrix.T
    gram = vectors[:_VECTORS] @ vectors[:_VECTORS].T
    length = float(gram[0, 0])
    return length > 0 and bool(np.abs(gram / length - np.eye(len(gram))).max() < _ORTHOGONAL)
