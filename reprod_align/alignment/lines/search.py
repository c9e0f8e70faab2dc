"""Finds the first call of the port's code whose inputs the reference knows and whose result it does not.

Both sides' calls inside one module are paired by value. The search begins at a value that is wrong
(handed to a child, or returned) and goes back through the calls that made it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

from reprod_align.alignment.lines.values import KnownValues, are_equal
from reprod_align.model.source.operation import RETURN, Operation
from reprod_align.model.trace import Array

How = Literal["call", "layout", "lacking", "extra", "value", "cut"]
"""call: a call gives another result; layout: it puts the elements in another order; lacking: Paddle
does not call what PyTorch calls here; extra: Paddle calls what PyTorch does not; value: Paddle uses
another value; cut: the gradient stops at one of them"""

_NAMES: Final[Mapping[str, str]] = {
    "truediv": "divide", "div": "divide", "rtruediv": "divide", "true_divide": "divide",
    "sub": "subtract", "rsub": "subtract", "mul": "multiply", "rmul": "multiply", "radd": "add",
    "permute": "transpose", "swapaxes": "transpose", "T": "transpose", "mT": "transpose", "t": "transpose",
    "view": "reshape", "flatten": "reshape", "unflatten": "reshape", "cat": "concat",
    "bmm": "matmul", "mm": "matmul", "rmatmul": "matmul", "to": "cast", "type": "cast", "astype": "cast",
    "float": "cast", "double": "cast", "long": "cast", "clamp": "clip", "neg": "scale", "rpow": "pow",
    "expand": "expand", "expand_as": "expand", "broadcast_to": "expand", "amax": "max", "amin": "min",
    "less": "less_than", "lt": "less_than", "gt": "greater_than", "le": "less_equal", "ge": "greater_equal",
    "eq": "equal", "ne": "not_equal", "invert": "logical_not",
}  # fmt: skip


@dataclass(frozen=True)
class Difference:
    """Two calls between which the difference arises; None: that side has none."""

    how: How
    ours: Operation | None
    theirs: Operation | None
    proven: bool = False
    """both take the same values, and no other call of either side gives what they give"""


def find_difference(
    ours: Sequence[Operation],
    theirs: Sequence[Operation],
    expected: Sequence[Array],
    wrong: Sequence[Array],
    consumers: tuple[Operation | None, Operation | None],
    relative: float,
) -> Difference | None:
    """Return where the port's code begins to differ, None if nothing tells.

    ours, theirs: the calls inside one module, in order, up to the consumers. expected, wrong: what
    the two consumers take. consumers: who takes it, PyTorch's and Paddle's: a child module's call, or
    the return statement.
    """
    search = _Search(ours, theirs, relative)
    right = KnownValues(expected, relative)
    for value in wrong:
        if not right.find_equal(value):
            found = search.explain(value, [e for e in expected if e.shape == value.shape] or expected,
                                   consumers)  # fmt: skip
            if found is not None:
                return found
    return None


class _Search:
    def __init__(
        self, ours: Sequence[Operation], theirs: Sequence[Operation], relative: float
    ) -> None:
        self._ours, self._theirs, self._relative = ours, theirs, relative
        self._known = KnownValues(_values(ours), relative)
        self._met = KnownValues(_values(theirs), relative)
        self._seen: set[int] = set()

    def explain(
        self,
        wrong: Array,
        expected: Sequence[Array],
        consumers: tuple[Operation | None, Operation | None],
    ) -> Difference | None:
        if self._known.find_equal(wrong):
            return self._explain_other_value(wrong, expected, consumers)
        maker = self._maker(wrong, len(self._theirs))
        if maker is None:
            return Difference("value", self._maker_of_ours(expected) or consumers[0], consumers[1])
        starts = list(dict.fromkeys(self._starts(maker)))
        found = [self._compare(at) for at in sorted(starts)]
        best = max(found, key=_rank, default=None)
        if best is not None and best.ours is None:
            return Difference(best.how, consumers[0], best.theirs)
        return best

    def _explain_other_value(
        self,
        wrong: Array,
        expected: Sequence[Array],
        consumers: tuple[Operation | None, Operation | None],
    ) -> Difference:
        """Explain a value that is one of the reference's, but not the one that is due here."""
        maker = self._maker_of_ours(expected)
        if maker is not None and not self._is_made(maker):
            given = KnownValues(maker.inputs, self._relative)
            how: How = "lacking" if given.knows(wrong) else "value"
            return Difference(how, maker, consumers[1])
        at = self._maker(wrong, len(self._theirs))
        theirs = None if at is None else self._theirs[at]
        if theirs is not None and theirs.child is None and not self._is_known_result(theirs):
            return Difference("extra", consumers[0], theirs)
        return Difference("value", consumers[0], consumers[1])

    def _is_known_result(self, theirs: Operation) -> bool:
        return all(self._known.find_equal(array) for array in theirs.outputs)

    # ------------------------------------------------------------- back through the port's calls

    def _maker(self, value: Array, before: int) -> int | None:
        """Return the number of the port's last call before `before` that gave this value."""
        for at in range(before - 1, -1, -1):
            if any(_is_same(value, made) for made in self._theirs[at].outputs):
                return at
        return None

    def _starts(self, at: int) -> Iterator[int]:
        """Yield the calls at which values begin to differ, back from a call that gave a wrong one."""
        if at in self._seen:
            return
        self._seen.add(at)
        unknown = [value for value in self._theirs[at].inputs if not self._known.knows(value)]
        makers = [self._maker(value, at) for value in unknown]
        earlier = [maker for maker in makers if maker is not None and maker not in self._seen]
        if not earlier:
            yield at
        for maker in earlier:
            yield from self._starts(maker)

    # ------------------------------------------------------------- what the reference does there

    def _compare(self, at: int) -> Difference:
        """Compare a call of the port's with the reference's that takes the same."""
        theirs = self._theirs[at]
        ours = self._counterpart(theirs)
        if ours is None:
            return Difference("extra" if theirs.inputs else "value", None, theirs)
        moved = self._find_other_layout(ours, theirs, at)
        if moved is not None:
            return moved
        how: How = "layout" if self._is_layout(theirs) else "call"
        return Difference(how, ours, theirs, proven=self._takes_the_same(ours, theirs))

    def _counterpart(self, theirs: Operation) -> Operation | None:
        """Return the reference's call that stands for the port's: it takes the same values."""
        scores = [(self._score(ours, theirs), -number) for number, ours in enumerate(self._ours)]
        best, number = max(scores, default=(0.0, 0))
        ours = self._ours[-number] if best > 0 else None
        if ours is None or (self._is_layout(theirs) and not self._is_layout(ours)):
            return None
        taken = any(self._score(ours, other) > best for other in self._unknown_results)
        return None if taken else ours

    @cached_property
    def _unknown_results(self) -> list[Operation]:
        """The port's calls whose results the reference does not know."""
        return [theirs for theirs in self._theirs
                if theirs.name != RETURN and not all(map(self._known.knows, theirs.outputs))]  # fmt: skip

    def _score(self, ours: Operation, theirs: Operation) -> float:
        """Return how much speaks for two calls being counterparts; 0: nothing."""
        if ours.name == RETURN or self._is_made(ours):
            return 0.0
        taken = KnownValues(ours.inputs, self._relative)
        equal = sum(bool(taken.find_equal(value)) for value in theirs.inputs)
        alike = sum(taken.knows(value) for value in theirs.inputs) - equal
        named = _name(ours) == _name(theirs)
        if not equal + alike and (theirs.inputs or ours.inputs or not named):
            return 0.0
        shapes = [one.shape for one in ours.outputs] == [one.shape for one in theirs.outputs]
        spare = abs(len(ours.inputs) - len(theirs.inputs))
        return 4 * equal + 3 * alike + 3 * named + shapes - 0.5 * spare

    def _is_made(self, ours: Operation) -> bool:
        """Tell whether the port's code gets all that a call of the reference gives."""
        return all(self._met.find_equal(array) for array in ours.outputs)

    def _is_layout(self, theirs: Operation) -> bool:
        """Tell whether a call only moves elements about."""
        given = KnownValues(theirs.inputs, self._relative)
        return all(given.find_alike(array) for array in theirs.outputs)

    def _takes_the_same(self, ours: Operation, theirs: Operation) -> bool:
        taken = KnownValues(ours.inputs, self._relative)
        return bool(theirs.inputs) and all(taken.find_equal(value) for value in theirs.inputs)

    def _find_other_layout(self, ours: Operation, theirs: Operation, at: int) -> Difference | None:
        """Return the call that laid an input of `theirs` out otherwise than the reference's is."""
        taken = KnownValues(ours.inputs, self._relative)
        for value in theirs.inputs:
            if self._known.find_equal(value) or not taken.find_alike(value):
                continue
            same_call = _name(ours) == _name(theirs) and _numbers(ours) == _numbers(theirs)
            same_shape = any(one.shape == value.shape for one in ours.inputs)
            maker = self._maker(value, at)
            if maker is None or not (same_shape or same_call):
                continue
            first = self._first_moved(maker)
            made = self._theirs[first]
            if not self._is_layout(made):
                return Difference("layout", self._counterpart(made) or ours, made)
            other = self._layout_counterpart(made)
            return Difference("layout" if other else "extra", other, made)
        return None

    def _first_moved(self, at: int) -> int:
        """Return the first of the calls that moved a value's elements about."""
        for value in self._theirs[at].inputs:
            if self._known.find_equal(value):
                continue
            maker = self._maker(value, at)
            if maker is not None and self._known.find_alike(value):
                return self._first_moved(maker)
        return at

    def _layout_counterpart(self, theirs: Operation) -> Operation | None:
        given = KnownValues(theirs.inputs, self._relative)
        for ours in self._ours:
            if ours.child is None and any(given.find_equal(value) for value in ours.inputs):
                if not self._is_made(ours) and self._is_layout(ours):
                    return ours
        return None

    def _maker_of_ours(self, values: Sequence[Array]) -> Operation | None:
        """Return the reference's last call that gave one of these values."""
        wanted = KnownValues(values, self._relative)
        for ours in reversed(self._ours):
            if ours.name != RETURN and any(wanted.find_equal(made) for made in ours.outputs):
                return ours
        return None


def _values(operations: Sequence[Operation]) -> Iterator[Array]:
    for operation in operations:
        yield from operation.inputs
        if operation.name != RETURN:
            yield from operation.outputs


def _is_same(value: Array, made: Array) -> bool:
    return value is made or (value.shape == made.shape and are_equal(made, value, 0.0))


def _name(operation: Operation) -> str:
    """Return what a call does, by one name for both frameworks and for operator and function."""
    name = operation.name.strip("_")
    return _NAMES.get(name, name)


def _numbers(operation: Operation) -> list[float]:
    return [one for one in operation.constants if isinstance(one, (int, float)) and one is not None]


def _rank(found: Difference) -> tuple[bool, bool]:
    return found.ours is not None, found.proven
