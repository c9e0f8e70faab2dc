"""Compares two tensors of traces: whole ones element by element, sketches by their sums and places.

The L2 norm of the difference must be within a limit of the expected tensor's, and each element within
the same limit of the values around it (`base/local.py`): a norm hides one wrong element of a million.
Constants that stand apart (masks) and what is not finite have no part in any norm.
"""

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial

from reprod_align.base.blocks import (
    Array,
    Span,
    borrow,
    map_distances,
    map_spans,
    measure_peak,
    read_blocks,
)
from reprod_align.base.difference import (
    combine_worst,
    divide,
    make_gap,
    measure_length,
    measure_worst,
)
from reprod_align.base.local import SPREAD, Allowance, find_beyond, measure_sizes
from reprod_align.traces.file import TraceTensor
from reprod_align.traces.sketch import (
    Vector,
    compare_constants,
    count_nan,
    count_together,
    distance,
    estimate_from_runs,
    find_largest_share,
    find_other_places,
    sketch,
    sketch_with_rows,
    statistics,
)

import numpy as np

LIMITS = {"float64": 1e-9, "float32": 1e-4, "float16": 3e-2, "bfloat16": 2e-1}
"""relative L2 difference, by the coarser dtype of the two; docs/align_reference.md says why"""

_WORKS_IN = {"complex128": "float64", "complex64": "float32"}
_EPS = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
_SUM_ROUNDING = 4.0  # units of the last place that a sum of a few hundred terms may be off
_ROUNDING = 10.0  # units of the last place of the largest row: what every row may be off
_RUNS = 4.0  # times what is allowed: what the sums of runs may be off
_ROWS = 2.0  # times what is allowed: what the sums of a row may be off
_ROW_LIMIT = 1e-6  # of a row's norm: rows are kept in float32
_LARGE_ROW = 1e-2  # of the largest: such rows show how noisy the tensor is
_SEEN = (
    30.0  # times the usual difference of large rows: what any row may be off (see base/local.py)
)
_SHARE = 4.0  # times its part of the norm: what one sum of a sketch may be off


@dataclass(frozen=True)
class Measured:
    """How far two tensors are apart."""

    relative: float
    """L2 norm of the difference over that of the expected tensor"""
    limit: float
    estimated: bool
    """from sketches; else exact"""
    passed: bool
    words: str = ""
    nans: int = 0
    """how many elements are NaN on both sides"""


class Floors:
    """How large rounding errors are where the true value is zero, in units of the precision."""

    def __init__(self, tensors: Iterable[TraceTensor]) -> None:
        """Measure the tensors of the expected trace."""
        spread: dict[str, list[float]] = defaultdict(list)
        self._norms: dict[int, float] = {}
        self._arriving: dict[str, float] = defaultdict(float)
        for tensor in tensors:
            size = math.prod(tensor.shape)
            if size and _find_precision(tensor.dtype):
                norm = self._norms[id(tensor)] = _measure_norm(tensor)
                spread[tensor.phase].append(norm / math.sqrt(size))
                if tensor.phase == "gradient":
                    self._arriving[tensor.module] = max(norm, self._arriving[tensor.module])
        self._usual = {phase: float(np.median(values)) for phase, values in spread.items()}

    def norm(self, tensor: TraceTensor) -> float:
        """Return the L2 norm of a tensor of the expected trace."""
        known = self._norms.get(id(tensor))
        return _measure_norm(tensor) if known is None else known

    def of(self, tensor: TraceTensor) -> float:
        """Return the norm of the usual tensor of this size; for a parameter, what its sum is over.

        A bias' gradient adds up its module's output gradient, which may cancel: a key bias' does.
        """
        usual = self._usual.get(tensor.phase, 0.0) * math.sqrt(math.prod(tensor.shape))
        return max(usual, self._of_sum(tensor))

    def of_element(self, tensor: TraceTensor) -> float:
        """Return the same for a single element."""
        return max(_ROUNDING * self._usual.get(tensor.phase, 0.0), self._of_sum(tensor))

    def _of_sum(self, tensor: TraceTensor) -> float:
        if tensor.phase != "parameter gradient":
            return 0.0
        return _SUM_ROUNDING * self._arriving[tensor.module]


def measure(expected: TraceTensor, actual: TraceTensor, floors: Floors) -> Measured:
    """Compare two tensors; with different shapes or kinds of dtype they are infinitely far apart."""
    coarser = _find_coarser(expected, actual)
    limit, eps = (LIMITS[coarser], _EPS[coarser]) if coarser else (0.0, 0.0)
    estimated = not (expected.whole and actual.whole)
    words = _describe_other_kind(expected, actual)
    if words:
        return Measured(math.inf, limit, estimated, False, words)
    floor = eps * floors.of(expected)
    spread = min(1.0, max(SPREAD, _ROUNDING * eps / limit)) if limit else 0.0
    allowance = Allowance(limit, eps * floors.of_element(expected), spread)
    if estimated:
        found = _measure_sketches(expected, actual, limit, floor)
        return _judge_rows(expected, actual, allowance, found) if found.passed else found
    return _measure_whole(expected, actual, floors.norm(expected), floor, allowance)


def _measure_whole(
    expected: TraceTensor, actual: TraceTensor, scale: float, floor: float, allowance: Allowance
) -> Measured:
    ours, theirs, limit = lay_as_torch(expected), lay_as_torch(actual), allowance.relative
    if not ours.size:
        return Measured(0.0, limit, False, True)
    worst = combine_worst(map_distances(partial(measure_worst, with_length=True), ours, theirs))
    apart, found = worst.length, make_gap(ours, theirs, worst, limit, allowance.floor)
    found = find_beyond(ours, theirs, allowance, found) or found
    nans = _count_nan(ours) if worst.settled and apart < math.inf else 0
    passed = apart <= limit * scale + floor and found.ok and not 0 < ours.size == nans
    words = "" if found.ok else found.words
    if passed and apart > limit * scale:
        words = "rounding around zero"
    if nans:
        words = (
            "NaN everywhere, on both sides" if nans == ours.size else f"{nans} NaN on both sides"
        )
    return Measured(divide(apart, scale), limit, False, passed, words, nans)


def _measure_sketches(
    expected: TraceTensor, actual: TraceTensor, limit: float, floor: float
) -> Measured:
    ours, theirs = read_sketch(expected), read_sketch(actual)
    scale, other = statistics(ours)["norm"], find_other_places(ours, theirs)
    apart, allowed = distance(ours, theirs), limit * statistics(ours)["norm"] + floor
    constants = compare_constants(ours, theirs) <= limit
    even = find_largest_share(ours, theirs) <= _SHARE * allowed
    exchanged = not estimate_from_runs(ours, theirs) <= _RUNS * allowed
    nans, size = count_nan(ours), math.prod(expected.shape)
    passed = (
        math.isfinite(scale)
        and apart <= allowed
        and constants
        and even
        and nans < size
        and not exchanged
    )
    words = ""
    if other:
        words = f"{other} in other places"
    elif not passed:
        words = "" if constants else "its large constants differ"
        words = words or ("" if even else "a few elements are far off")
        words = words or (
            "some elements stand in other places" if exchanged and apart <= allowed else ""
        )
    elif apart > limit * scale:
        words = "rounding around zero"
    if not other and nans:
        words = "NaN everywhere, on both sides" if nans == size else f"{nans} NaN on both sides"
    return Measured(divide(apart, scale), limit, True, passed, words, 0 if other else nans)


def _judge_rows(
    expected: TraceTensor, actual: TraceTensor, allowance: Allowance, found: Measured
) -> Measured:
    """Return what was measured as a whole, or that a row is off which is small beside others."""
    ours, theirs = _to_rows(expected), _to_rows(actual)
    if ours is None or theirs is None:  # traces of earlier versions keep none
        return found
    known = np.isfinite(ours + theirs).all(axis=1)
    norms, apart = (np.linalg.norm(sums[known], axis=1) for sums in (ours, theirs - ours))
    if not norms.size:
        return found
    shape, large = read_shape(expected), norms >= _LARGE_ROW * norms.max()
    allowed = np.maximum(
        max(allowance.relative, _ROW_LIMIT) * norms,
        allowance.relative * allowance.spread * norms.max() + _SEEN * np.median(apart[large]),
    )
    floor = allowance.floor * math.sqrt(math.prod(shape) / len(ours))
    ok = apart <= _ROWS * (allowed + floor)
    if ok.all():
        return found
    at, together = int(np.argmin(ok)), count_together(shape)
    rows = f"row {at}" if together == 1 else f"rows {at * together} to {(at + 1) * together - 1}"
    words = (
        f"{rows}, small beside others: {divide(float(apart[at]), float(norms[at])):.1e} of its norm"
    )
    return replace(found, passed=False, words=words)


def _to_rows(tensor: TraceTensor) -> Vector | None:
    rows = sketch_with_rows(lay_as_torch(tensor))[1] if tensor.whole else tensor.rows
    return None if rows is None else rows.astype(np.float64)


def _describe_other_kind(expected: TraceTensor, actual: TraceTensor) -> str:
    shape, theirs = read_shape(expected), read_shape(actual)
    if shape != theirs:
        return f"shape {shape} expected, got {theirs}"
    if bool(_find_precision(expected.dtype)) != bool(_find_precision(actual.dtype)):
        return f"{expected.dtype} expected, got {actual.dtype}"
    return ""


def _find_coarser(expected: TraceTensor, actual: TraceTensor) -> str:
    """Return the coarser of the two precisions; "" if neither is inexact."""
    both = [_find_precision(tensor.dtype) for tensor in (expected, actual)]
    return max(filter(None, both), key=lambda name: LIMITS[name], default="")


def _find_precision(dtype: str) -> str:
    name = _WORKS_IN.get(dtype, dtype)
    return name if name in LIMITS else ""


def _measure_norm(tensor: TraceTensor) -> float:
    """Return the L2 norm of the elements that are finite and do not stand apart as constants."""
    if not tensor.whole:
        return statistics(read_sketch(tensor))["norm"]
    values = tensor.values
    most, length = _measure_size(values, math.inf)
    most = most if values.dtype.kind in "fc" else 0.0  # as `magnitude` says of integers
    apart = measure_sizes(values, most).apart if values.size else ()
    cut = min((one.low for one in apart if not one.computed), default=math.inf)
    return length if cut == math.inf else _measure_size(values, cut)[1]


def _measure_size(values: Array, cut: float) -> tuple[float, float]:
    """Return the largest magnitude below `cut`, and the L2 norm of all such elements."""

    def measure(span: Span) -> tuple[float, float]:
        found = [_measure_block(part, cut) for _, part in read_blocks(values, span)]
        return max(size for size, _ in found), math.hypot(*(length for _, length in found))

    found = map_spans(measure, values.size)
    return max(size for size, _ in found), math.hypot(*(length for _, length in found))


def _measure_block(part: Array, cut: float) -> tuple[float, float]:
    """Return the same of one block."""
    with borrow(part.size, np.dtype(np.float64)) as sizes:
        np.copyto(sizes, np.abs(part) if part.dtype.kind == "c" else part)
        np.abs(sizes, out=sizes)
        most = measure_peak(sizes)
        if not most < cut:  # NaN is not, nor is infinity
            sizes = sizes[sizes < cut]
            most = measure_peak(sizes)
        return most, measure_length(sizes, most)


def _count_nan(array: Array) -> int:
    if array.dtype.kind not in "fc":
        return 0
    return sum(int(np.count_nonzero(np.isnan(part))) for _, part in read_blocks(array))


def read_shape(tensor: TraceTensor) -> tuple[int, ...]:
    """Return the shape in PyTorch's layout."""
    return tensor.shape[::-1] if tensor.transposed else tensor.shape


def lay_as_torch(tensor: TraceTensor) -> Array:
    """Return the values of a whole tensor in PyTorch's layout."""
    return tensor.values.T if tensor.transposed else tensor.values


def read_sketch(tensor: TraceTensor) -> Vector:
    """Return the sketch of a tensor, in PyTorch's layout."""
    return sketch(lay_as_torch(tensor)) if tensor.whole else tensor.values.astype(np.float64)
