"""Compares two recorded traces, offline and with numpy alone: where do the two runs diverge?

Calls are paired by module name and call index, their tensors by leaf path, or in order where both
calls have as many. What is named first is the first output, in call order, that differs, and the
first gradient in backward order if no output does.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reprod_align.base.difference import by_place, distances, divide
from reprod_align.base.json import to_plain
from reprod_align.base.text import shorten_lines
from reprod_align.errors import ReprodError, one_line
from reprod_align.traces.file import Array, RecordedTrace, TraceTensor
from reprod_align.traces.sketch import Vector, distance, sketch, statistics

import numpy as np

LIMITS = {"float64": 1e-9, "float32": 1e-4, "float16": 3e-2, "bfloat16": 2e-1}
"""relative L2 difference, by the coarser dtype of the two; docs/align.md says why"""

_WORKS_IN = {"complex128": "float64", "complex64": "float32"}
_EPS = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
_STATE_NAMES = {"_mean": "running_mean", "_variance": "running_var"}  # Paddle's of its norms
_SUM_ROUNDING = 4.0  # units of the last place that a sum of a few hundred terms may be off
_SHOWN = 20


@dataclass(frozen=True)
class Row:
    """One pair of tensors."""

    phase: str
    module: str
    """in the expected trace"""
    call: int
    leaf: str
    relative: float
    """L2 norm of the difference over that of the expected tensor"""
    limit: float
    estimated: bool
    """from sketches; else exact"""
    passed: bool
    words: str
    """what else is to be said; "" if nothing"""

    @property
    def place(self) -> str:
        """What was compared, in words."""
        call = f" (call {self.call})" if self.call else ""
        leaf = f" {self.leaf}" if self.leaf else ""
        return f"{one_line(self.module) or 'the model'}{one_line(leaf)}{call}"


@dataclass(frozen=True)
class TraceDiff:
    """The result of `compare_traces`."""

    rows: tuple[Row, ...]
    """inputs, outputs and buffers in call order, then gradients in backward order"""
    only_expected: tuple[str, ...]
    only_actual: tuple[str, ...]
    """what has no partner on the other side"""
    allow_unpaired: bool

    @property
    def first(self) -> Row | None:
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
        lines += [_line(row) for row in shown]
        lines += _list("only in the expected trace", self.only_expected)
        lines += _list("only in the actual trace", self.only_actual)
        return "\n".join([*lines, "", self._verdict()])

    def _verdict(self) -> str:
        first, counted = self.first, f"{len(self.rows)} pairs of tensors"
        if first is None:
            return f"{'aligned' if self.passed else 'NOT aligned, some unpaired'}: {counted} agree"
        failed = sum(not row.passed for row in self.rows)
        return (
            f"NOT aligned: {failed} of {counted} differ, first the {first.phase} of {first.place}: "
            f"{first.relative:.1e} (limit {first.limit:.0e}){self._judge_inputs(first)}"
        )

    def _judge_inputs(self, first: Row) -> str:
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
) -> TraceDiff:
    """Compare two traces.

    names: module or parameter names of `expected` -> of `actual`, also for everything below them;
    the longest that fits counts. Raises ReprodError if not one output or gradient has a partner.
    """
    ours, theirs = _group(expected, names or {}), _group(actual, {})
    floors = _Floors(expected.tensors)
    rows: list[Row] = []
    left: list[tuple[_Key, TraceTensor]] = []
    right: list[tuple[_Key, TraceTensor]] = []
    for key in (*ours, *(key for key in theirs if key not in ours)):
        pairs = _pair_leaves(ours.get(key, []), theirs.get(key, []))
        rows += [_row(one, other, floors) for one, other in pairs]
        paired = {id(one) for pair in pairs for one in pair}
        left += [(key, one) for one in ours.get(key, []) if id(one) not in paired]
        right += [(key, one) for one in theirs.get(key, []) if id(one) not in paired]
    if all(row.phase in ("input", "buffer") for row in rows):
        raise ReprodError("no module of one trace has a partner in the other: give a name map")
    return TraceDiff(
        tuple(rows), _name_unpaired(left, theirs), _name_unpaired(right, ours), allow_unpaired
    )


_Key = tuple[str, str, int]
"""phase, module or parameter in the names of the actual trace, call"""
_Groups = dict[_Key, list[TraceTensor]]


def _group(trace: RecordedTrace, names: Mapping[str, str]) -> _Groups:
    groups: _Groups = defaultdict(list)
    for tensor in trace.tensors:
        groups[tensor.phase, _map_name(_own_name(tensor), names), tensor.call].append(tensor)
    return dict(groups)


def _own_name(tensor: TraceTensor) -> str:
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


def _name_unpaired(left: Iterable[tuple[_Key, TraceTensor]], other: _Groups) -> tuple[str, ...]:
    """Return what lacks a partner, in words.

    Inputs and buffers may: the frameworks pass and keep them as they like. So may the gradient of
    an output that the other side's module only passed on: it is the gradient of its input there.
    """
    words = []
    for (phase, name, call), tensor in left:
        outputs = other.get(("output", name, call), [])
        passed_on = phase == "gradient" and any(output.passed_on for output in outputs)
        if phase not in ("input", "buffer") and not passed_on:
            words.append(one_line(f"{phase} of {_own_name(tensor) or 'the model'} {tensor.leaf}"))
    return tuple(words)


# ---------------------------------------------------------------------- one pair of tensors


class _Floors:
    """How large rounding errors are where the true value is zero, in units of the precision."""

    def __init__(self, tensors: Iterable[TraceTensor]) -> None:
        """Measure the tensors of the expected trace."""
        spread: dict[str, list[float]] = defaultdict(list)
        self._arriving: dict[str, float] = defaultdict(float)
        for tensor in tensors:
            size = math.prod(tensor.shape)
            if size and _precision(tensor.dtype):
                norm = _norm(tensor)
                spread[tensor.phase].append(norm / math.sqrt(size))
                if tensor.phase == "gradient":
                    self._arriving[tensor.module] = max(norm, self._arriving[tensor.module])
        self._usual = {phase: float(np.median(values)) for phase, values in spread.items()}

    def of(self, tensor: TraceTensor) -> float:
        """Return the norm of the usual tensor of this size; for a parameter, what its sum is over.

        A bias' gradient adds up its module's output gradient, which may cancel: a key bias' does.
        """
        usual = self._usual.get(tensor.phase, 0.0) * math.sqrt(math.prod(tensor.shape))
        if tensor.phase != "parameter gradient":
            return usual
        return max(usual, _SUM_ROUNDING * self._arriving[tensor.module])


def _row(expected: TraceTensor, actual: TraceTensor, floors: _Floors) -> Row:
    difference, scale, words = _difference(expected, actual)
    coarser = _coarser(expected, actual)
    limit, eps = (LIMITS[coarser], _EPS[coarser]) if coarser else (0.0, 0.0)
    passed = math.isfinite(scale) and difference <= limit * scale + eps * floors.of(expected)
    relative = divide(difference, scale)
    if passed and relative > limit:
        words = "rounding around zero"
    estimated = not (expected.whole and actual.whole)
    where = (expected.phase, expected.module, expected.call, expected.leaf)
    return Row(*where, relative, limit, estimated, passed, words)


def _coarser(expected: TraceTensor, actual: TraceTensor) -> str:
    """Return the coarser of the two precisions; "" if neither is inexact."""
    both = [_precision(tensor.dtype) for tensor in (expected, actual)]
    return max(filter(None, both), key=lambda name: LIMITS[name], default="")


def _precision(dtype: str) -> str:
    name = _WORKS_IN.get(dtype, dtype)
    return name if name in LIMITS else ""


def _difference(expected: TraceTensor, actual: TraceTensor) -> tuple[float, float, str]:
    """Return the L2 norm of the difference, that of the expected tensor, and what is wrong."""
    shape, theirs = _shape(expected), _shape(actual)
    scale = _norm(expected)
    if shape != theirs:
        return math.inf, scale, f"shape {shape} expected, got {theirs}"
    if bool(_precision(expected.dtype)) != bool(_precision(actual.dtype)):
        return math.inf, scale, f"{expected.dtype} expected, got {actual.dtype}"
    if expected.whole and actual.whole:
        return _distance(_in_torch_layout(expected), _in_torch_layout(actual)), scale, ""
    return distance(_to_sketch(expected), _to_sketch(actual)), scale, ""


def _distance(expected: Array, actual: Array) -> float:
    """Return the L2 norm of the difference; inf unless NaN and infinities stand in the same places."""
    lengths = []
    for _, apart, ours, theirs in distances(expected, actual):
        finite = np.isfinite(apart).all()
        lengths.append(_length(apart if finite else by_place(apart, ours, theirs)))
    return math.hypot(*lengths)


def _norm(tensor: TraceTensor) -> float:
    """Return the L2 norm of the finite elements."""
    if not tensor.whole:
        return statistics(_to_sketch(tensor))["norm"]
    wide = tensor.values.astype(np.result_type(tensor.values, np.float64))
    return _length(wide[np.isfinite(wide)])


def _length(values: Array) -> float:
    """Return the L2 norm; scaled, since the squares of very large and very small elements get lost."""
    size = float(np.abs(values).max(initial=0.0))
    if not 0 < size < math.inf:
        return size
    return size * float(np.linalg.norm(np.divide(values, size)))


def _shape(tensor: TraceTensor) -> tuple[int, ...]:
    return tensor.shape[::-1] if tensor.transposed else tensor.shape


def _in_torch_layout(tensor: TraceTensor) -> Array:
    """Return the values of a whole tensor in PyTorch's layout."""
    return tensor.values.T if tensor.transposed else tensor.values


def _to_sketch(tensor: TraceTensor) -> Vector:
    return sketch(_in_torch_layout(tensor)) if tensor.whole else tensor.values.astype(np.float64)


# ---------------------------------------------------------------------- words


def _line(row: Row) -> str:
    about, end = "~" if row.estimated else " ", "" if row.passed else "DIFFERENT"
    words = "  ".join(filter(None, [end, row.words]))
    return f"  {row.phase:<18}  {about}{row.relative:7.1e}  {row.place}  {words}".rstrip()


def _list(title: str, names: Sequence[str]) -> list[str]:
    if not names:
        return []
    lines = [f"  {name}" for name in names]
    return ["", f"{title} ({len(names)}):", *shorten_lines(lines, _SHOWN, indent="  ")]
