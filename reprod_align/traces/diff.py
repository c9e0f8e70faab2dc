"""Compares two recorded traces, offline and with numpy alone: where do the two runs diverge?

Calls are paired by module name and call index, their tensors by leaf path, or in order where both
calls have as many. What is named first is the first output, in call order, that differs, and the
first gradient in backward order if no output does.

Whole tensors are compared element by element, sketches by their sums and places. The L2 norm of the
difference must be within a limit of the expected tensor's, and each element within the same limit of the
values around it (`base/local.py`): a norm hides one wrong element of a million. Constants that stand apart
(masks) and what is not finite have no part in any norm.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

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
from reprod_align.base.files import to_plain
from reprod_align.base.local import SPREAD, Allowance, find_beyond, measure_sizes
from reprod_align.base.text import shorten_lines
from reprod_align.errors import ReprodError, join_lines, one_line
from reprod_align.traces import RecordedTrace, TraceTensor
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
_SEEN = 30.0  # times the usual difference of large rows: what any row may be off (base/local.py)
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
    """what else is to be said; "" if nothing"""
    nans: int = 0
    """how many elements are NaN on both sides, and so were not compared"""


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
    nans = 0
    if worst.settled and apart < math.inf:
        nans = sum(int(np.count_nonzero(np.isnan(part))) for _, part in read_blocks(ours))
    passed = apart <= limit * scale + floor and found.ok and not 0 < ours.size == nans
    words = "" if found.ok else found.words
    if passed and apart > limit * scale:
        words = "rounding around zero"
    words = _describe_nan(nans, ours.size) or words
    return Measured(divide(apart, scale), limit, False, passed, words, nans)


def _describe_nan(nans: int, size: int) -> str:
    if nans == size:
        return "NaN everywhere, on both sides"
    return f"{nans} NaN on both sides" if nans else ""


def _measure_sketches(
    expected: TraceTensor, actual: TraceTensor, limit: float, floor: float
) -> Measured:
    ours, theirs = read_sketch(expected), read_sketch(actual)
    scale, other = statistics(ours)["norm"], find_other_places(ours, theirs)
    apart, allowed = distance(ours, theirs), limit * statistics(ours)["norm"] + floor
    faults = {
        "its large constants differ": not compare_constants(ours, theirs) <= limit,
        "a few elements are far off": not find_largest_share(ours, theirs) <= _SHARE * allowed,
        "": not apart <= allowed,
        "some elements stand in other places": (
            not estimate_from_runs(ours, theirs) <= _RUNS * allowed
        ),
    }
    nans, size = count_nan(ours), math.prod(expected.shape)
    passed = math.isfinite(scale) and not any(faults.values()) and nans < size
    words = next((words for words, is_there in faults.items() if is_there), "")
    if other:
        words = f"{other} in other places"
    elif passed and apart > limit * scale:
        words = "rounding around zero"
    nans = 0 if other else nans
    words = _describe_nan(nans, size) or words
    return Measured(divide(apart, scale), limit, True, passed, words, nans)


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


def read_shape(tensor: TraceTensor) -> tuple[int, ...]:
    """Return the shape in PyTorch's layout."""
    return tensor.shape[::-1] if tensor.transposed else tensor.shape


def lay_as_torch(tensor: TraceTensor) -> Array:
    """Return the values of a whole tensor in PyTorch's layout."""
    return tensor.values.T if tensor.transposed else tensor.values


def read_sketch(tensor: TraceTensor) -> Vector:
    """Return the sketch of a tensor, in PyTorch's layout."""
    return sketch(lay_as_torch(tensor)) if tensor.whole else tensor.values.astype(np.float64)


_STATE_NAMES = {"_mean": "running_mean", "_variance": "running_var"}  # Paddle's of its norms
_SHOWN = 20
Measure = Callable[[TraceTensor, TraceTensor, Floors], Measured]


@dataclass(frozen=True, kw_only=True)
class TensorDifference(Measured):
    """One pair of tensors."""

    phase: str
    module: str
    """in the expected trace"""
    call: int
    leaf: str

    @property
    def amount(self) -> str:
        """How far the two are apart: as a whole, or where a single element is."""
        if self.relative <= self.limit and self.words:
            return self.words
        words = f": {self.words}" if self.words else ""
        return f"{self.relative:.1e} (limit {self.limit:.0e}){words}"

    @property
    def place(self) -> str:
        """What was compared, in words."""
        call = f" (call {self.call})" if self.call else ""
        leaf = f" {self.leaf}" if self.leaf else ""
        return f"{one_line(self.module) or 'the model'}{one_line(leaf)}{call}"


@dataclass(frozen=True)
class TraceDiff:
    """The result of `compare_traces`."""

    rows: tuple[TensorDifference, ...]
    """inputs, outputs and buffers in call order, then gradients in backward order"""
    only_expected: tuple[str, ...]
    only_actual: tuple[str, ...]
    """what has no partner on the other side"""
    allow_unpaired: bool

    @property
    def first(self) -> TensorDifference | None:
        """Where the two diverge: the first output that differs, else the first gradient, ..."""
        order = ("output", "gradient", "parameter gradient", "buffer", "input")
        differ = [row for row in self.rows if not row.passed]
        backward = [row for row in differ if "gradient" in row.phase]
        outputs = [row for row in differ if row.phase == "output"]
        rest = sorted(differ, key=lambda row: order.index(row.phase))
        return next(iter(outputs or backward or rest), None)

    @property
    def passed(self) -> bool:
        """Whether all that is paired agrees, and all is paired unless that may be."""
        paired = self.allow_unpaired or not (self.only_expected or self.only_actual)
        return paired and all(row.passed for row in self.rows)

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain values that strict JSON can hold; inf and nan as text."""
        return {
            "passed": self.passed,
            "first": to_plain(self.first),
            "rows": to_plain(self.rows),
            "only_expected": list(self.only_expected),
            "only_actual": list(self.only_actual),
        }

    def summary(self) -> str:
        """Return the result as text: every output and gradient, what is unpaired, the verdict."""
        shown = [row for row in self.rows if row.phase != "input" or not row.passed]
        lines = ["relative L2 difference (~ estimated from sketches, within 20%)"]
        lines += [_describe_line(row) for row in shown]
        lines += _list("only in the expected trace", self.only_expected)
        lines += _list("only in the actual trace", self.only_actual)
        lines += _list("NaN on both sides, not compared", self._nans)
        return join_lines([*lines, "", self.headline])

    @property
    def _nans(self) -> list[str]:
        """Where NaN stands on both sides, and how often."""
        return [f"{row.nans} in the {row.phase} of {row.place}" for row in self.rows if row.nans]

    @property
    def headline(self) -> str:
        """The verdict in one line, with the first difference."""
        first, counted = self.first, f"{len(self.rows)} pairs of tensors"
        if first is None:
            aside = f", {len(self._nans)} of them but for NaN on both sides" if self._nans else ""
            word = "aligned" if self.passed else "NOT aligned, some unpaired"
            return f"{word}: {counted} agree{aside}"
        failed = sum(not row.passed for row in self.rows)
        return (
            f"NOT aligned: {failed} of {counted} differ, first the {first.phase} of {first.place}: "
            f"{first.amount}{self._judge_inputs(first)}"
        )

    def _judge_inputs(self, first: TensorDifference) -> str:
        call = (first.module, first.call)
        inputs = [
            row for row in self.rows if row.phase == "input" and (row.module, row.call) == call
        ]
        if first.phase != "output" or not inputs:
            return ""
        if all(row.passed for row in inputs):
            return "; its inputs agree, so the difference is made there"
        return "; its inputs differ already, between the modules before it and this one"


def compare_traces(
    expected: RecordedTrace,
    actual: RecordedTrace,
    names: Mapping[str, str] | None = None,
    allow_unpaired: bool = False,
    measure: Measure = measure,
) -> TraceDiff:
    """Compare two traces.

    names: module or parameter names of `expected` -> of `actual`, also for everything below them;
    the longest that fits counts. measure: compares two tensors that are paired.
    Raises ReprodError if not one output or gradient has a partner.
    """
    ours, theirs = _group(expected, names or {}), _group(actual, {})
    floors = Floors(expected.tensors)
    rows: list[TensorDifference] = []
    left: list[tuple[_GroupKey, TraceTensor]] = []
    right: list[tuple[_GroupKey, TraceTensor]] = []
    for key in (*ours, *(key for key in theirs if key not in ours)):
        pairs = _pair_leaves(ours.get(key, []), theirs.get(key, []))
        rows += [_make_row(one, measure(one, other, floors)) for one, other in pairs]
        paired = {id(one) for pair in pairs for one in pair}
        left += [(key, one) for one in ours.get(key, []) if id(one) not in paired]
        right += [(key, one) for one in theirs.get(key, []) if id(one) not in paired]
    if all(row.phase in ("input", "buffer") for row in rows):
        raise ReprodError("no module of one trace has a partner in the other: give a name map")
    return TraceDiff(
        tuple(rows), _name_unpaired(left, theirs), _name_unpaired(right, ours), allow_unpaired
    )


_GroupKey = tuple[str, str, int]
"""phase, module or parameter in the names of the actual trace, call"""
_Groups = dict[_GroupKey, list[TraceTensor]]


def _group(trace: RecordedTrace, names: Mapping[str, str]) -> _Groups:
    groups: _Groups = defaultdict(list)
    for tensor in trace.tensors:
        groups[tensor.phase, _map_name(_find_name(tensor), names), tensor.call].append(tensor)
    return dict(groups)


def _find_name(tensor: TraceTensor) -> str:
    """Return the module's name, or the parameter's or buffer's."""
    if tensor.phase not in ("parameter gradient", "buffer"):
        return tensor.module
    leaf = _STATE_NAMES.get(tensor.leaf, tensor.leaf)
    return f"{tensor.module}.{leaf}" if tensor.module else leaf


def _map_name(name: str, names: Mapping[str, str]) -> str:
    """Return the name with the longest of its beginnings that is in `names` replaced."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        beginning = ".".join(parts[:length])
        if beginning in names:
            return ".".join(filter(None, [names[beginning], *parts[length:]]))
    return name


def _pair_leaves(
    ours: Sequence[TraceTensor], theirs: Sequence[TraceTensor]
) -> list[tuple[TraceTensor, TraceTensor]]:
    named = {tensor.leaf: tensor for tensor in theirs}
    if len(ours) == len(theirs) and {tensor.leaf for tensor in ours} != named.keys():
        return list(zip(ours, theirs, strict=True))
    return [(tensor, named[tensor.leaf]) for tensor in ours if tensor.leaf in named]


def _name_unpaired(
    left: Iterable[tuple[_GroupKey, TraceTensor]], other: _Groups
) -> tuple[str, ...]:
    """Return the names of the tensors that lack a partner and need one.

    Inputs and buffers need none: the frameworks pass and keep them as they like. The gradient of an output
    needs none if the other side's module returns its input unchanged: there it is the input's gradient.
    """
    words = []
    for (phase, name, call), tensor in left:
        outputs = other.get(("output", name, call), [])
        passed_on = phase == "gradient" and any(output.passed_on for output in outputs)
        if phase not in ("input", "buffer") and not passed_on:
            words.append(one_line(f"{phase} of {_find_name(tensor) or 'the model'} {tensor.leaf}"))
    return tuple(words)


def _make_row(tensor: TraceTensor, found: Measured) -> TensorDifference:
    place = {name: getattr(tensor, name) for name in ("phase", "module", "call", "leaf")}
    return TensorDifference(**vars(found), **place)


# ---------------------------------------------------------------------- words


def _describe_line(row: TensorDifference) -> str:
    about, end = "~" if row.estimated else " ", "" if row.passed else "DIFFERENT"
    words = "  ".join(filter(None, [end, row.words]))
    return f"  {row.phase:<18}  {about}{row.relative:7.1e}  {row.place}  {words}".rstrip()


def _list(title: str, names: Sequence[str]) -> list[str]:
    if not names:
        return []
    lines = [f"  {name}" for name in names]
    return ["", f"{title} ({len(names)}):", *shorten_lines(lines, _SHOWN, indent="  ")]
