"""What a conversion will do, tensor by tensor, and what is wrong with it or with weights converted before.

No numbers are read before the plan is found sound.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from reprod_align.alignment import find_cause
from reprod_align.base.blocks import Array
from reprod_align.conversion.weight_map import WeightMap, find_shapes
from reprod_align.errors import WeightsError
from reprod_align.match import Shape, TensorPair
from reprod_align.weights import ArraysOnDemand, Stored, TensorEntry, widen

import numpy as np

ExpectedTensors = Mapping[str, tuple[Shape, bool]]
"""name -> the shape that the model has, and whether it holds floats"""


@dataclass(frozen=True)
class PlannedTensor:
    """One tensor of the result, or one that is left out."""

    torch: str
    paddle: str
    dtype: str
    torch_shape: str
    paddle_shape: str
    words: str

    HEADERS = ("PyTorch", "Paddle", "dtype", "PyTorch shape", "Paddle shape", "what happens")
    """of its fields, in order"""


@dataclass
class Plan:
    """The tensors to be written, and from what."""

    to: str
    """"torch" or "paddle": whose layout is written"""
    entries: list[TensorEntry] = field(default_factory=list)
    rows: list[PlannedTensor] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    """what is missing, left over or misshapen; nothing is written while there is any"""
    made: dict[str, tuple[TensorPair, tuple[Stored, ...], int]] = field(default_factory=dict)
    """name of an entry -> its rule, the tensors that it takes, and which of its results it is"""
    counters: dict[str, int] = field(default_factory=dict)
    """the values of counters that are left out"""
    own: dict[str, Array] = field(default_factory=dict)
    """name of an entry -> the target model's own value"""


def make_plan(
    found: WeightMap,
    source: Mapping[str, Stored],
    to: str,
    expected: tuple[ExpectedTensors, ExpectedTensors] = ({}, {}),
    own: Mapping[str, Array] | None = None,
) -> Plan:
    """Return the plan of converting `source` to the framework `to` by a map.

    expected: what the models' tensors are, of the source's side and of the other, if there are models.
    own: tensors that the target model makes itself.
    """
    planner = _Planner(found, source, to, expected, own or {})
    for rule in found.rules:
        planner.add(rule)
    planner.add_ties()
    planner.note_left_over()
    return planner.plan


class _Planner:
    def __init__(
        self,
        found: WeightMap,
        source: Mapping[str, Stored],
        to: str,
        expected: tuple[ExpectedTensors, ExpectedTensors],
        own: Mapping[str, Array],
    ) -> None:
        self.map, self.source, self.own = found, source, own
        self.plan, self.used = Plan(to), set[str]()
        self.before = "torch" if to == "paddle" else "paddle"
        self.expected, self.expected_after = expected
        self.second: dict[str, list[str]] = {}
        for name, first in found.tied[self.before].items():
            self.second.setdefault(first, []).append(name)

    def add(self, rule: TensorPair) -> None:
        """Plan one rule."""
        sources, results = getattr(rule, self.before), getattr(rule, self.plan.to)
        if not results:
            self.leave_out(rule, sources)
        elif not sources:
            self.make_own(rule, results[0])
        else:
            taken = [self.take(name) for name in sources]
            missing = [name for name, held in zip(sources, taken, strict=True) if held is None]
            self.plan.faults += [f"missing: {n}, for {' + '.join(results)}" for n in missing]
            if not missing:
                self.convert(rule, sources, results, tuple(filter(None, taken)))

    def take(self, name: str) -> Stored | None:
        """Return the source's tensor under any of its names; None if it is missing."""
        names = [other for other in (name, *self.second.get(name, ())) if other in self.source]
        self.used.update(names)
        for other in names[1:]:
            if not are_equal(self.source[names[0]], self.source[other]):
                self.plan.faults.append(
                    f"untied: {names[0]} and {other} are one tensor in the model, and differ here"
                )
        return self.source[names[0]] if names else None

    def convert(
        self,
        rule: TensorPair,
        sources: Sequence[str],
        results: Sequence[str],
        taken: tuple[Stored, ...],
    ) -> None:
        """Plan a rule whose tensors are all there."""
        before = [tensor.shape for tensor in taken]
        misshapen = [*_compare_shapes(sources, before, self.expected),
                     *_compare_kinds(sources, taken, self.expected)]  # fmt: skip
        dtypes = {tensor.dtype for tensor in taken}
        if len(dtypes) > 1:
            misshapen.append(f"wrong dtype: {' + '.join(sources)} are {', '.join(sorted(dtypes))}")
        after: list[Shape] = []
        if not misshapen:
            try:
                after = find_shapes(rule, before, self.plan.to)
                misshapen += _compare_shapes(results, after, self.expected_after)
            except WeightsError as error:
                misshapen.append(f"misshapen: {error}")
        self.plan.faults += misshapen
        if misshapen:
            return
        for at, (name, shape) in enumerate(zip(results, after, strict=True)):
            if name in self.plan.made:
                self.compare_twin(name, rule, taken, at)
                continue
            self.plan.entries.append(TensorEntry(name, taken[0].dtype, shape))
            self.plan.made[name] = rule, taken, at
        both = (before, after) if self.plan.to == "paddle" else (after, before)
        ours, theirs = (" + ".join(map(str, shapes)) for shapes in both)
        self.note(rule, taken[0].dtype, ours, theirs, rule.words)

    def compare_twin(self, name: str, rule: TensorPair, taken: tuple[Stored, ...], at: int) -> None:
        """Require that two rules, or two parts of one, give the same numbers for one tensor of the target."""
        other, before, place = self.plan.made[name]
        first = other.make([tensor.read() for tensor in before], self.plan.to)[place]
        second = rule.make([tensor.read() for tensor in taken], self.plan.to)[at]
        if before[0].dtype != taken[0].dtype or not _hold_the_same(first, second):
            names = " and ".join(" + ".join(getattr(one, self.before)) for one in (other, rule))
            text = f"untied: {names} differ, and {name} is one tensor in the other model"
            self.plan.faults.append(text)

    def leave_out(self, rule: TensorPair, sources: Sequence[str]) -> None:
        """Plan to leave a tensor out."""
        for name in sources:
            held = self.take(name)
            if held is not None:
                shape = str(held.shape)
                self.note(rule, held.dtype, shape, shape, "left out: the other model has none")
                if held.dtype == "int64" and not held.shape:
                    self.plan.counters[name] = int(held.read())

    def make_own(self, rule: TensorPair, name: str) -> None:
        """Plan to write the target model's own value; without a model nothing is written."""
        kept = self.map.counters.get(name)
        array = self.own.get(name) if kept is None else np.array(kept)
        if array is None:
            self.note(rule, "", "", "", "left to the model itself")
            return
        self.plan.entries.append(TensorEntry(name, str(array.dtype), array.shape))
        self.plan.own[name] = array
        shape = str(array.shape)
        self.note(rule, str(array.dtype), shape, shape, "the model's own")

    def note(self, rule: TensorPair, dtype: str, ours: str, theirs: str, words: str) -> None:
        """Add a row."""
        names = " + ".join(rule.torch), " + ".join(rule.paddle)
        shapes = ours if rule.torch else "", theirs if rule.paddle else ""
        self.plan.rows.append(PlannedTensor(*names, dtype, *shapes, words))

    def add_ties(self) -> None:
        """Plan the second names of what is written."""
        entries = {entry.name: entry for entry in self.plan.entries}
        for name, first in self.map.tied[self.plan.to].items():
            if first in entries:
                held = entries[first]
                self.plan.entries.append(TensorEntry(name, held.dtype, held.shape, first))

    def note_left_over(self) -> None:
        """Find fault with every tensor of the source that no rule takes."""
        for name in sorted(self.source.keys() - self.used):
            self.plan.faults.append(
                f"left over: {name} {self.source[name].shape}, which no rule takes"
            )


def _compare_shapes(
    names: Sequence[str], shapes: Sequence[Shape], expected: ExpectedTensors
) -> Iterator[str]:
    for name, shape in zip(names, shapes, strict=True):
        if name in expected and expected[name][0] != shape:
            yield f"misshapen: {name} is {shape}, the model has {expected[name][0]}"


def _compare_kinds(
    names: Sequence[str], tensors: Sequence[Stored], expected: ExpectedTensors
) -> Iterator[str]:
    for name, tensor in zip(names, tensors, strict=True):
        is_float = "float" in tensor.dtype
        if name in expected and expected[name][1] != is_float:
            wanted = "integers" if is_float else "floats"
            yield f"wrong dtype: {name} is {tensor.dtype}, the model's holds {wanted}"


def are_equal(first: Stored, second: Stored) -> bool:
    """Tell whether two tensors hold the same bits."""
    if first == second:
        return True
    alike = (first.dtype, first.shape) == (second.dtype, second.shape)
    return alike and _hold_the_same(first.read(), second.read())


def _hold_the_same(first: Array, second: Array) -> bool:
    """Tell whether two arrays have the same shape and bits."""
    ours, theirs = (np.ascontiguousarray(one).reshape(-1).view(np.uint8) for one in (first, second))
    return first.shape == second.shape and np.array_equal(ours, theirs)


class Loader:
    """Gives the tensors of a plan their numbers, one rule in memory at a time."""

    def __init__(self, plan: Plan) -> None:
        """Take the plan."""
        self.plan = plan
        self._last: tuple[object, list[Array]] = (None, [])
        self._room = np.empty(0, np.uint8)

    def __call__(self, name: str) -> Array:
        """Return the bits of an entry, a dense array of its shape."""
        if name in self.plan.own:
            return self.plan.own[name]
        rule, taken, at = self.plan.made[name]
        if self._last[0] is not rule:
            self._last = None, []  # gone before the next is read
            self._last = rule, rule.make(self._read(taken), self.plan.to)
        found = self._last[1][at]
        if at == len(self._last[1]) - 1:
            self._last = None, []
        return found

    def _read(self, taken: Sequence[Stored]) -> list[Array]:
        """Read the tensors of a rule into memory that the next rule's use again: new memory costs time."""
        spans = [-(-tensor.span // 16) * 16 for tensor in taken]
        if sum(spans) > len(self._room):
            self._room = np.empty(0, np.uint8)
            self._room = np.empty(sum(spans), np.uint8)
        starts = np.cumsum([0, *spans])
        return [tensor.read(self._room[at:]) for tensor, at in zip(taken, starts[:-1], strict=True)]


def list_differences(plan: Plan, written: Mapping[str, Stored]) -> Iterator[str]:
    """Yield how a Paddle checkpoint differs from what a plan makes, bit for bit."""
    load = Loader(plan)
    for entry in plan.entries:
        held = written.get(entry.name)
        if held is not None and entry.tied_to in written:
            if not are_equal(held, written[entry.tied_to]):
                yield f"untied: {entry.name} and {entry.tied_to} are one tensor in the model"
        elif held is not None:
            yield from _compare(entry, held, load, written)
        elif not entry.tied_to:
            yield f"missing: {entry.name} {entry.shape}"
    known = {entry.name for entry in plan.entries}
    for name in sorted(written.keys() - known):
        yield f"left over: {name} {written[name].shape}, which no rule makes"


def _compare(
    entry: TensorEntry, held: Stored, load: Loader, written: Mapping[str, Stored]
) -> Iterator[str]:
    if held.shape != entry.shape:
        turned = ": not transposed" if held.shape == entry.shape[::-1] else ""
        yield f"misshapen: {entry.name} is {held.shape}, expected {entry.shape}{turned}"
    elif held.dtype != entry.dtype:
        yield f"wrong dtype: {entry.name} is {held.dtype}, expected {entry.dtype}"
    else:
        expected = load(entry.name)
        if expected.tobytes() != held.read().tobytes():
            values = widen(expected) if entry.dtype == "bfloat16" else expected
            others = ArraysOnDemand(written, lambda name: written[name].values())
            cause = find_cause(entry.name, values, others)
            if not cause:
                apart = np.count_nonzero(values != held.values())
                cause = f"{apart} of {values.size} elements differ"
            yield f"differs: {entry.name}: {cause}"


def list_departures(given: WeightMap, derived: WeightMap) -> Iterator[str]:
    """Yield where a map says other than the models."""
    known = {name: rule for rule in derived.rules for name in rule.torch}
    for rule in given.rules:
        expected = next((known[name] for name in rule.torch if name in known), rule)
        if rule != expected:
            said, due = (
                f"{one.name} -> {' + '.join(one.paddle) or 'nothing'} ({one.words})"
                for one in (rule, expected)
            )
            yield f"the map says {said}, the models {due}"
