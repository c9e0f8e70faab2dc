"""A large tensor in 8 KB: its statistics, and a projection from which differences are sized.

The elements, in C order, get fixed random signs and are dealt out to BINS sums, element i to sum
i mod BINS (or a lower prime, where BINS divides a length of the tensor). The sums are linear in the
tensor, and the length of a difference of two tensors' sums is, in expectation of its square, the
length of the tensors' difference. Its relative standard error is at most 1 / sqrt(2 * BINS), 3.1%,
for a difference within SLAB elements, and about 1 / sqrt(BINS), 4.4%, in the worst case (a constant
difference, over many slabs). Where no two changed elements share a sum it is exact: one element, or
a run of up to BINS of them.

A second set of ROWS sums guards the first. Two elements of one sum that have the same sign could be
exchanged unseen; so the signed elements are also summed run by run: BINS neighbours make a run, and each
slab deals out its runs from a start of its own. Two elements that are exchanged within a slab differ in
one of the two sums, or in their sign: always seen. Of different slabs they are missed if both sums and
the sign are the same: with probability 1 / (2 * BINS * ROWS), two in a million.

A small row beside large ones is rounding in all of these. So the rows along the last axis (of more than
GROUPS, neighbours together) also have a signed sum of each quarter, in float32: `sketch_with_rows`. The
length of the difference of two rows' four sums estimates the length of the rows' difference (its square is
right on average). It is below an eighth of that once in 2,000 times; once in ten if a single quarter differs.

BINS is prime, so that rows, columns and heads are dealt out evenly, whatever their stride.
(Charikar et al., "Finding frequent items in data streams", ICALP 2002; Alon, Matias, Szegedy,
STOC 1996.)
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import Any, Protocol

from reprod_align.base.blocks import Array, borrow, lay_dense, magnitude
from reprod_align.base.difference import divide
from reprod_align.base.local import measure_sizes

import numpy as np
from numpy.typing import NDArray

Bits = NDArray[np.uint64]

KINDS = ("NaN", "inf", "-inf", "large positive", "large negative")
"""of what a sketch keeps the places; large: constants that stand apart"""
_MODULUS = np.uint64(2**53)
Vector = NDArray[np.float64]
Sums = NDArray[np.floating[Any]]
Rows = NDArray[np.float32]
BINS = 509
_FEWER = 503  # where BINS divides a length: a changed column would meet a single sum
SLAB = BINS * 512  # elements that share a start among the signs
_BLOCK = 3 * 2**17  # bytes that a host takes at a time: with their signs they stay in the cache
STATISTICS = ("mean", "std", "min", "max", "nonfinite", "norm")
ROWS = 521  # prime, and more than the runs of a slab
_SUMS_END = len(STATISTICS) + BINS + ROWS
LENGTH = _SUMS_END + 2 + len(KINDS)
"""of a sketch: statistics, sums, sums of runs, how many NaN, the places of each of KINDS, integers' digest"""
LONG_LENGTH = LENGTH + BINS + ROWS
"""of a sketch of a tensor in which constants stand apart: with their own sums, times LARGE_UNIT"""
LARGE_UNIT = 2.0**-600  # the sums of the largest float64 stay finite
_LEAST_CONSTANT = 2.0**12  # below, none stands apart
GROUPS = 128
"""of rows that a tensor has at most"""
PARTS = 4
"""of each group, with a signed sum each: they take 2 KB beside the sketch at most"""
WHOLE = 4096  # elements up to which the pipeline records a tensor whole


def hash_numbers(numbers: Bits) -> Bits:
    """Return the numbers hashed (splitmix64)."""
    bits = numbers + np.uint64(1)
    bits *= np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def find_kinds(values: NDArray[np.floating], cut: float) -> Iterator[NDArray[np.bool_]]:
    """Yield for each of KINDS where it stands in `values`; large: from `cut` on."""
    finite = np.isfinite(values)
    yield np.isnan(values)
    yield values == np.inf
    yield values == -np.inf
    yield finite & (values >= cut)
    yield finite & (values <= -cut)


def hash_places(places: NDArray[np.integer], start: int) -> int:
    """Return a hash of a set of places, counted from the element with the number `start`."""
    return add_hashes(hash_numbers(places.astype(np.uint64) + np.uint64(start)))


def digest_integers(array: Array) -> float:
    """Return a number for the elements of an array of integers or booleans, and for their order."""
    values = np.ascontiguousarray(array).reshape(-1).astype(np.int64).view(np.uint64)
    places = np.arange(values.size, dtype=np.uint64)
    return float(add_hashes(hash_numbers(values ^ hash_numbers(places))))


def add_hashes(hashes: Bits) -> int:
    """Return the sum of hashes, below 2**53."""
    low = hashes % _MODULUS
    halves = (
        int((low >> np.uint64(26)).sum(dtype=np.uint64)),
        int((low & np.uint64(2**26 - 1)).sum()),
    )
    return ((halves[0] << 26) + halves[1]) % int(_MODULUS)


class Ops(Protocol):
    """What a framework does with a tensor on its own device. Each backend's module `sketch`, and NUMPY."""

    def flat(self, tensor: Any) -> Any:
        """Return the elements in C order, 1-D float32 or float64; complex as pairs.

        An array on the tensor's own memory if that is the host's: NUMPY then does the rest.
        """

    def measure(self, slab: Any, start: int, width: int) -> tuple[Vector, Sums]:
        """Return of a 1-D tensor sum, sum of squares, min and max; and the sums of slab * signs.

        These are sums over its whole rows of `width` (at least one): of the columns, then of the
        rows. Signs from signs()[start].
        """

    def measure_rows(self, slab: Any, width: int) -> Vector:
        """Return the signed sums of the quarters of rows of `width`, (PARTS, rows); signs from signs()[0]."""

    def array(self, tensor: Any) -> Array:
        """Return the tensor as an array."""


class _Numpy:
    """Ops of numpy arrays; on a CPU they take half the time of the frameworks' own."""

    def flat(self, tensor: Array) -> Array:
        real = lay_dense(tensor)
        if real.dtype.kind == "c":
            real = real.view(real.real.dtype)
        if real.dtype not in (np.float32, np.float64):
            real = real.astype(np.float32 if real.dtype == np.float16 else np.float64)
        return real.reshape(-1)

    def measure(self, slab: Any, start: int, width: int) -> tuple[Vector, Sums]:
        count, step = slab.size // width, _BLOCK // slab.itemsize // width
        rows = slab[: count * width].reshape(count, width)
        own = signs(slab.dtype)[start : start + rows.size].reshape(rows.shape)
        ones = _make_ones(slab.dtype)  # a matrix product adds up several times as fast as `sum`
        sums, plain = np.zeros(width + count), np.zeros(count)
        rest = slab[rows.size :]
        squares = float(np.dot(rest, rest))
        low, high = rest.min(initial=np.inf), rest.max(initial=-np.inf)
        with borrow(step * width, slab.dtype) as buffer:
            for at in range(0, count, step):
                block = rows[at : at + step]
                signed = buffer[: block.size].reshape(block.shape)
                np.multiply(block, own[at : at + step], out=signed)
                sums[:width] += ones[: len(block)] @ signed
                sums[width + at : width + at + step] = signed @ ones[:width]
                plain[at : at + step] = block @ ones[:width]
                block = block.reshape(-1)
                squares += float(np.dot(block, block))  # keeps a NaN, which extremes may lose
                low = min(low, np.minimum.reduce(block))
                high = max(high, np.maximum.reduce(block))
        total = plain.sum() + rest.sum(dtype=np.float64)
        return np.array([total, squares, low, high]), sums

    def measure_rows(self, slab: Any, width: int) -> Vector:
        rows, own = slab.reshape(-1, width), signs(slab.dtype)
        sums = [rows[:, part] @ own[part] for part in list_quarters(width)]
        return np.stack(sums).astype(np.float64)

    def array(self, tensor: Array) -> Array:
        return tensor


NUMPY: Ops = _Numpy()


def sketch(tensor: Any, ops: Ops = NUMPY) -> Vector:
    """Return the sketch of a tensor that is not empty: float64, of shape (LENGTH,) or (LONG_LENGTH,).

    Statistics and sums are those of the finite elements ("nonfinite" counts the others) that do not
    stand apart as constants: finfo.min, -1e9 and the like have sums of their own. Sums are formed in
    the tensor's precision, at least float32, up to 512 elements at a time, and then in float64. "std"
    comes from the sums, so it is lost in rounding below 1e-3 (float32) or 1e-7 of the mean.
    """
    return _sketch_flat(tensor, ops.flat(tensor), ops).vector(_digest(tensor, ops))


def sketch_with_rows(tensor: Any, ops: Ops = NUMPY) -> tuple[Vector, Rows | None]:
    """Return the sketch; and of each row, or group of rows, the signed sums: (n, PARTS), n at most GROUPS.

    None for a single row, and for integers, which are compared exactly. What a sketch leaves out
    counts as 0.
    """
    flat = ops.flat(tensor)
    total = _sketch_flat(tensor, flat, ops)
    rows = None
    if group_rows(tensor.shape) and not _is_integer(tensor):
        if total.nonfinite or total.constants:  # rare
            flat = _clear(ops.array(flat) if not isinstance(flat, np.ndarray) else flat, total.cut)
        rows = _measure_rows(flat, tensor.shape, NUMPY if isinstance(flat, np.ndarray) else ops)
    return total.vector(_digest(tensor, ops)), rows


def group_rows(shape: Sequence[int]) -> int:
    """Return how many groups of rows a tensor of this shape has; 0 for a single row."""
    rows, width = math.prod(shape[:-1]), shape[-1] if shape else 0
    together = -(-rows // GROUPS)
    return -(-rows // together) if rows > 1 and width else 0


def list_quarters(width: int) -> list[slice]:
    """Return the quarters of a row; some may be empty."""
    ends = [number * width // PARTS for number in range(PARTS + 1)]
    return [slice(*pair) for pair in pairwise(ends)]


def count_together(shape: Sequence[int]) -> int:
    """Return how many rows are a group; the last may be smaller."""
    return -(-math.prod(shape[:-1]) // GROUPS)


def _measure_rows(flat: Any, shape: Sequence[int], ops: Ops) -> Rows:
    """Return the signed sums of each group; no more than a slab is looked at at a time."""
    size = math.prod(flat.shape)
    length = size // math.prod(shape[:-1]) * count_together(shape)
    found = np.zeros((PARTS, group_rows(shape)))
    whole = max(1, SLAB // length)  # groups at a time
    for first in range(0, found.shape[1], whole):
        end = min(size, (first + whole) * length)
        for start in range(first * length, end, SLAB if length > SLAB else end):
            part = flat[start : min(end, start + SLAB)]
            many, rest = divmod(min(end, start + SLAB) - start, length)
            if many:
                found[:, first : first + many] += ops.measure_rows(part[: many * length], length)
            if rest:
                last = part[many * length :]
                last, own = (ops.array(last), NUMPY) if rest < PARTS else (last, ops)
                found[:, first + many] += own.measure_rows(last, rest)[:, 0]
    with np.errstate(all="ignore"):  # beyond float32 they are infinite, and tell nothing
        return found.T.astype(np.float32)


def _clear(values: Array, cut: float) -> Vector:
    """Return a copy with 0 for what is not finite or stands apart as a constant."""
    wide = values.astype(np.float64)
    wide[~(np.abs(wide) < cut)] = 0.0
    return wide


def _sketch_flat(tensor: Any, flat: Any, ops: Ops) -> "_Total":
    if isinstance(flat, np.ndarray):
        ops = NUMPY
    total = _add_up(flat, ops, _Total(_choose_width(tensor.shape)))
    if not max(-total.low, total.high) < _LEAST_CONSTANT:
        values = ops.array(flat)
        apart = measure_sizes(values, magnitude(values)).apart
        constants = [one.low for one in apart if not one.computed]
        if constants:
            total = _add_up(flat, ops, _Total(_choose_width(tensor.shape), min(constants)))
    return total


def _digest(tensor: Any, ops: Ops) -> float:
    return digest_integers(ops.array(tensor)) if _is_integer(tensor) else 0.0


def _is_integer(tensor: Any) -> bool:
    return any(name in str(tensor.dtype) for name in ("int", "bool"))


def _add_up(flat: Any, ops: Ops, total: "_Total") -> "_Total":
    with np.errstate(all="ignore"):  # of sums of constants yet to be set apart
        for number, start in enumerate(range(0, math.prod(flat.shape), SLAB)):
            total.add(ops, flat[start : start + SLAB], number)
    return total


def combine(vectors: Sequence[Array], times: float) -> Vector:
    """Return the sketch of a sum of tensors, times a number; statistics and places are the first's."""
    found = vectors[0].astype(np.float64)
    for at in (slice(len(STATISTICS), _SUMS_END), slice(LENGTH, None)):
        found[at] = times * sum(one[at].astype(np.float64) for one in vectors)
    return found


def sketch_large(array: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
    """Return `array` itself if it has at most WHOLE elements, else the BINS + ROWS sums of its sketch.

    The sums keep the array's dtype; NaN and infinity stay visible, each in its two sums.
    """
    if array.size <= WHOLE:
        return array
    vector = sketch(array)
    sums = vector[len(STATISTICS) : _SUMS_END]
    if len(vector) > LENGTH:
        sums += vector[LENGTH:] / LARGE_UNIT
    if statistics(vector)["nonfinite"]:
        flat = array.reshape(-1)
        places = np.flatnonzero(~np.isfinite(flat))
        width = _choose_width(array.shape)
        runs = [(at % SLAB // width + _find_offset(at // SLAB)[2]) % ROWS for at in places.tolist()]
        with np.errstate(invalid="ignore"):
            np.add.at(sums, places % SLAB % width, flat[places])
            np.add.at(sums, BINS + np.array(runs), flat[places])
    return sums.astype(array.dtype)


def sketch_backwards(
    prefix: str, named: Iterable[tuple[str, NDArray[np.floating[Any]]]]
) -> dict[str, NDArray[np.floating[Any]]]:
    """Return a model's parameters or gradients as `prefix.NAME`, the large ones as sketches.

    The last layer comes first, as in the backward pass: the first that differs is where the two
    sides diverge.
    """
    sketches = {f"{prefix}.{name}": sketch_large(array).copy() for name, array in named}
    return dict(reversed(sketches.items()))


def _choose_width(shape: Iterable[int]) -> int:
    return _FEWER if any(length % BINS == 0 for length in shape) else BINS


@dataclass
class _Total:
    width: int
    cut: float = math.inf
    """what is so large is a constant that stands apart"""
    bins: Vector = field(default_factory=lambda: np.zeros(BINS + ROWS))
    size: int = 0
    nonfinite: int = 0
    constants: int = 0
    sum: float = 0.0
    squares: float = 0.0
    low: float = math.inf
    high: float = -math.inf
    large: Vector = field(default_factory=lambda: np.zeros(BINS + ROWS))
    nans: int = 0
    places: list[int] = field(default_factory=lambda: [0] * len(KINDS))

    def add(self, ops: Ops, slab: Any, number: int) -> None:
        if math.prod(slab.shape) < self.width:
            ops, slab = NUMPY, ops.array(slab)
        moments, sums = ops.measure(slab, _find_offset(number)[0], self.width)
        if not np.isfinite(moments).all() or max(-moments[2], moments[3]) >= self.cut:
            # rare: it has NaN, infinity or such a constant, or its squares overflow
            slab, moments, sums = self._set_apart(ops.array(slab).astype(np.float64), number)
            ops = NUMPY
        total, squares, low, high = moments.tolist()
        self.size += math.prod(slab.shape)
        self.sum += total
        self.squares += squares
        self.low, self.high = min(self.low, low), max(self.high, high)
        _add_sums(self.bins, sums, ops, slab, number, self.width)

    def _set_apart(self, slab: Vector, number: int) -> tuple[Vector, Vector, Sums]:
        """Count what is not finite and add the constants; return the others, 0 for these, as measured."""
        finite = np.isfinite(slab)
        self.nonfinite += int(slab.size - finite.sum())
        self.nans += int(np.isnan(slab).sum())
        for kind, there in enumerate(find_kinds(slab, self.cut)):
            hashed = hash_places(np.flatnonzero(there), number * SLAB)
            self.places[kind] = (self.places[kind] + hashed) % 2**53
        large = finite & (np.abs(slab) >= self.cut)
        self.constants += int(large.sum())
        start = _find_offset(number)[0]
        scaled = np.where(large, slab, 0.0) * LARGE_UNIT
        _, sums = NUMPY.measure(scaled, start, self.width)
        _add_sums(self.large, sums, NUMPY, scaled, number, self.width)
        usual = finite & ~large
        rest = np.where(usual, slab, 0.0)
        moments, sums = NUMPY.measure(rest, start, self.width)
        chosen = slab[usual]
        moments[2:] = chosen.min(initial=np.inf), chosen.max(initial=-np.inf)
        return rest, moments, sums

    def vector(self, digest: float) -> Vector:
        count = self.size - self.nonfinite - self.constants
        mean = self.sum / count if count else math.nan
        variance = max(self.squares / count - mean * mean, 0.0) if count else math.nan
        norm = math.sqrt(self.squares)
        statistics = [mean, math.sqrt(variance), self.low, self.high, self.nonfinite, norm]
        tail = np.array([self.nans, *self.places, digest], np.float64)
        large = self.large if self.constants else self.large[:0]
        return np.concatenate([np.array(statistics, np.float64), self.bins, tail, large])


def _add_sums(bins: Vector, sums: Sums, ops: Ops, slab: Any, number: int, width: int) -> None:
    """Add a slab's share: the sums of its whole rows, which are given, and the rest's."""
    start, sign, shift = _find_offset(number)
    size = math.prod(slab.shape)
    rows, rest = divmod(size, width)
    bins[:width] += sign * sums[:width]
    _add_runs(bins[BINS:], sign * sums[width:], shift)
    if rest:
        last = ops.array(slab[size - rest :]).astype(np.float64)
        last *= sign * signs()[start + size - rest : start + size]
        bins[:rest] += last
        _add_runs(bins[BINS:], last.sum(keepdims=True), shift + rows)


def _add_runs(runs: Vector, sums: Sums, start: int) -> None:
    """Add the sums of neighbouring runs, from number `start` on; after the last comes the first."""
    start %= ROWS
    before = min(len(sums), ROWS - start)
    runs[start : start + before] += sums[:before]
    runs[: len(sums) - before] += sums[before:]


@cache
def signs(dtype: Any = np.float64) -> NDArray[np.floating[Any]]:
    """Return 2 * SLAB random signs in `dtype`, the same in every process and numpy version."""
    bits = hash_numbers(np.arange(2 * SLAB, dtype=np.uint64))
    return np.where(bits >> np.uint64(63), -1.0, 1.0).astype(dtype, copy=False)


@cache
def _make_ones(dtype: Any) -> NDArray[np.floating[Any]]:
    return np.ones(SLAB // _FEWER, dtype)


@cache
def _find_offset(number: int) -> tuple[int, float, int]:
    """Return where slab `number` starts among the signs, the sign of it all, and where its runs start.

    The start's residue modulo BINS is its own for the first BINS slabs: one sign is then never
    used twice in one sum.
    """
    hashed = int(hash_numbers(np.array([number + (1 << 40)], np.uint64))[0])
    start = (hashed >> 1) % (SLAB - BINS)
    shift = (hashed >> 33) % ROWS
    return start - start % BINS + number * 211 % BINS, -1.0 if hashed & 1 else 1.0, shift


def statistics(vector: Vector) -> dict[str, float]:
    """Return the named statistics of a sketch."""
    return dict(zip(STATISTICS, vector.tolist(), strict=False))


def count_nan(vector: Vector) -> int:
    """Return how many elements are NaN."""
    return int(vector[_SUMS_END])


def find_other_places(expected: Vector, actual: Vector) -> str:
    """Return what two sketches hold in different places, in words; "" if nothing."""
    if statistics(expected)["nonfinite"] != statistics(actual)["nonfinite"]:
        return "NaN or infinity"
    tails = (one[_SUMS_END + 1 : LENGTH] for one in (expected, actual))
    names = (*KINDS, "integers")
    return ", ".join(
        name for name, ours, theirs in zip(names, *tails, strict=True) if ours != theirs
    )


def distance(expected: Vector, actual: Vector) -> float:
    """Estimate the L2 norm of the difference of two tensors from their sketches.

    Of elements that do not stand apart as constants. inf if NaN, infinities, constants or, in an
    array of integers, any elements are in different places.
    """
    if find_other_places(expected, actual):
        return math.inf
    return float(np.linalg.norm(read_sums(actual) - read_sums(expected)))


def compare_constants(expected: Vector, actual: Vector) -> float:
    """Return how far the constants that stand apart are from each other, relative; 0 if there are none."""
    ours, theirs = (one[LENGTH:] for one in (expected, actual))
    if len(ours) != len(theirs):
        return math.inf
    largest = np.abs(ours).max(initial=0.0) or 1.0  # their squares are too small for a float64
    ours, theirs = ours / largest, theirs / largest
    return divide(float(np.linalg.norm(theirs - ours)), float(np.linalg.norm(ours)))


def find_largest_share(expected: Vector, actual: Vector) -> float:
    """Return how far the sums that differ most are apart, times sqrt(BINS): what all would be then."""
    apart = np.abs(read_sums(actual) - read_sums(expected))
    return float(apart.max() * math.sqrt(BINS))


def estimate_from_runs(expected: Vector, actual: Vector) -> float:
    """Return the length of the difference of the sums of runs: a rougher estimate of the same.

    Of a difference within one run it is off by a factor, which is above 4 once in 16,000 times.
    """
    runs = (one[len(STATISTICS) + BINS : _SUMS_END] for one in (expected, actual))
    return float(np.linalg.norm(np.subtract(*runs)))


def read_sums(vector: Vector) -> Vector:
    """Return the signed sums, which add up as tensors do."""
    return vector[len(STATISTICS) : len(STATISTICS) + BINS]
