"""Compares two recorded traces, offline and with numpy alone: where do the two runs diverge?

Calls are paired by module name and call index, their tensors by leaf path, or in order where both
calls have as many. What is named first is the first output, in call order, that differs, and the
first gradient in backward order if no output does.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reprod_align.base.files import to_plain
from reprod_align.base.text import shorten_lines
from reprod_align.errors import ReprodError, join_lines, one_line
from reprod_align.traces.file import RecordedTrace, TraceTensor
from reprod_align.traces.tensors import Floors, Measured, measure

_STATE_NAMES = {"_mean": "running_mean", "_variance": "running_var"}  # Paddle's of its norms
_SHOWN = 20
Measure = Callable[[TraceTensor, TraceTensor, Floors], Measured]


@dataclass(frozen=True)
class TensorDifference:
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
    nans: int = 0
    """how many elements are NaN on both sides, and so were not compared"""

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
    left: list[tuple[_Key, TraceTensor]] = []
    right: list[tuple[_Key, TraceTensor]] = []
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


_Key = tuple[str, str, int]
"""phase, module or parameter in the names of the actual trace, call"""
_Groups = dict[_Key, list[TraceTensor]]


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


def _name_unpaired(left: Iterable[tuple[_Key, TraceTensor]], other: _Groups) -> tuple[str, ...]:
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
    where = (tensor.phase, tensor.module, tensor.call, tensor.leaf)
    return TensorDifference(
        *where, found.relative, found.limit, found.estimated, found.passed, found.words, found.nans
    )


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
