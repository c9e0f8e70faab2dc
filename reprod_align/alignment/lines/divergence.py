"""Finds the first call of the port's code whose inputs the reference knows and whose result it does not.

Both sides' calls inside one module are paired by value. The search begins at a value that is wrong
(handed to a child, or returned) and goes back through the calls that made it. Two kinds of differences
have searches of their own: the call at which one side stops the gradient, and the call that makes a mask.
Masks follow conventions (True and False, 1 and 0, 0 and -10000), so they are compared by the places that
they hide; a call in between may hide the right places by other numbers.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Final, Literal

from reprod_align.alignment.lines.composites import write_out
from reprod_align.alignment.lines.graph import (
    KnownValues,
    are_equal,
    find_maker,
    is_one_number,
    is_same,
    name_of,
    trace_back,
)
from reprod_align.base.blocks import Array
from reprod_align.model.source import RETURN, Operation
from reprod_align.model.source.parsing import is_same_function
from reprod_align.model.trace import HIDDEN

import numpy as np

How = Literal["call", "layout", "lacking", "extra", "value", "cut", "mask"]
"""call: a call gives another result; layout: it puts the elements in another order; lacking: Paddle
does not call what PyTorch calls here; extra: Paddle calls what PyTorch does not; value: Paddle uses
another value; cut: the gradient stops at one of them; mask: a mask that hides other places is made"""

_SCALING = frozenset({"multiply", "divide", "scale"})
_EQUAL = 1e-9  # relative: what two equal masks may be apart
Consumers = tuple[Operation | None, Operation | None]


@dataclass(frozen=True)
class Difference:
    """Two calls between which the difference arises; None: that side has none."""

    how: How
    ours: Operation | None
    theirs: Operation | None
    is_sure: bool = False
    """the two calls stand for each other, so that what they do differently is the cause"""
    used: Operation | None = None
    """Paddle's call that takes the wrong value"""
    made: Operation | None = None
    """Paddle's call that gave the wrong value, where it is one of the reference's"""
    position: int = 0
    """of the wrong value among the inputs of `used`"""
    take_the_same: bool = False
    """both calls take the same values, all of them"""
    handed: int = 0
    """how many functions only hand the wrong value on, that of `used` first: no other call uses it rightly"""

    @property
    def held(self) -> list[str]:
        """The variables that hold the wrong value where `used` takes it."""
        tensors = {} if self.used is None else self.used.tensors
        return [name for name, position in tensors.items() if position == self.position]


def is_scaling(found: Difference) -> bool:
    """Tell whether both calls only multiply or divide."""
    calls = [call for call in (found.ours, found.theirs) if call is not None]
    return len(calls) == 2 and all(name_of(call) in _SCALING for call in calls)


def find_difference(
    ours: Sequence[Operation],
    theirs: Sequence[Operation],
    expected: Sequence[Array],
    wrong: Array,
    consumers: Consumers,
    relative: float,
    taken: Sequence[Array] = (),
    names: Mapping[str, str] = MappingProxyType({}),
) -> Difference | None:
    """Return where the port's code begins to differ, None if nothing tells.

    ours, theirs: the calls inside one module, in order. expected: the value that is due, as the
    reference has it and as the port would; wrong: what the port has. consumers: who takes it,
    PyTorch's and Paddle's: a child module's call, or the return statement. taken: what PyTorch's module
    is given, of which its own calls may use nothing. names: Paddle's modules -> PyTorch's.
    """
    return _Search(ours, theirs, relative, taken, names).explain(wrong, expected, consumers)


class _Search:
    def __init__(
        self,
        ours: Sequence[Operation],
        theirs: Sequence[Operation],
        relative: float,
        taken: Sequence[Array] = (),
        names: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._names = names
        inside = {names.get(one.child[0]) for one in theirs if one.child is not None}
        self._elsewhere = {*names.values()} - inside
        """PyTorch's modules whose counterparts the port calls in other code: they lack nowhere"""
        self._ours = write_out([one for one in ours if one.name != RETURN])
        self._theirs = [one for one in theirs if one.name != RETURN]
        self._relative = relative
        self._known = KnownValues(_list_values(self._ours), relative)
        self._taken_in = KnownValues(taken, relative)
        calls = [one for one in self._theirs if one.child is None]
        children = [one for one in self._theirs if one.child is not None]
        self._made = KnownValues((made for one in calls for made in one.outputs), relative)
        self._given = KnownValues((made for one in children for made in one.outputs), relative)
        self._numbers = {one: at for at, one in enumerate(self._theirs)}
        self._seen: set[int] = set()
        self._is_bare = False
        """whether the value to be explained is one number throughout: then equal ones tell nothing"""
        self._foreign: dict[int, bool] = {}
        self._taken: dict[Operation, KnownValues] = {}

    def explain(
        self, wrong: Array, expected: Sequence[Array], consumers: Consumers
    ) -> Difference | None:
        self._is_bare = is_one_number(wrong)
        if not self._is_bare and self._known.find_equal(wrong):
            return self._explain_other_value(wrong, expected, consumers)
        maker = self._find_maker(wrong, len(self._theirs), consumers[1])
        if maker is None:
            return Difference("value", *consumers, used=consumers[1])
        made, due = self._theirs[maker], KnownValues(expected, self._relative)
        if len(made.outputs) > 1 and any(map(due.find_equal, made.outputs)):
            place = _find_position(consumers[1], wrong)  # another of what one call returns
            return Difference("value", *consumers, True, consumers[1], made, place)
        laid = self._explain_laid_value(maker, expected, consumers)
        if laid is not None:
            return laid
        starts = sorted(set(self._list_starts(maker)))
        found = [self._compare(at, wrong, expected) for at in starts]
        best = max(found, key=self._rank, default=None)
        if best is not None and best.ours is None:
            return Difference(best.how, consumers[0], best.theirs, best.is_sure)
        return best

    def _explain_laid_value(
        self, at: int, expected: Sequence[Array], consumers: Consumers
    ) -> Difference | None:
        """Explain what a call only laid out, where that was another of the reference's values."""
        taker = self._theirs[at]
        if not taker.inputs or taker.child is not None or not self._is_layout(taker):
            return None
        wrong, taker = self._follow_layouts(taker.inputs[0], at)
        due = self._lay_back([*expected])
        if not self._known.find_equal(wrong) or any(one.shape != wrong.shape for one in due):
            return None
        if KnownValues(due, self._relative).find_alike(wrong):
            return None
        found = self._explain_other_value(wrong, due, (consumers[0], taker))
        return found if found.how == "lacking" else None

    def _explain_other_value(
        self, wrong: Array, expected: Sequence[Array], consumers: Consumers
    ) -> Difference:
        """Explain a value that is one of the reference's, but not the one that is due here."""
        at = self._find_maker(wrong, len(self._theirs), consumers[1])
        made = None if at is None else self._theirs[at]
        place = _find_position(consumers[1], wrong)
        step = self._find_maker_of_ours(expected)
        due = step if step is None else step.whole or step
        called = due is not None and due.child is not None and due.child[0] in self._elsewhere
        if (step is not None and due is not None) and not (
            called or self._is_made(due, self._list_made_before(consumers[1]))
        ):
            sought = (step, due) if self._is_written_out(due, step) else (due, step)
            taking = [one for one in sought if self._list_taken(one).holds(wrong)]
            lacking = bool(taking)
            if not lacking and (parts := self._find_other_part(at, expected)) is not None:
                return Difference("call", *parts, True, take_the_same=True)
            if not lacking and at is not None and self._is_made_for(wrong, consumers[1]):
                return Difference("extra", due, self._theirs[self._pass_layouts(at)])
            while (
                lacking
                and at is not None
                and any(is_same(wrong, it) for it in self._theirs[at].inputs)
            ):
                at = self._find_maker(wrong, at)  # a dropout in eval mode returns what it takes
                made = None if at is None else self._theirs[at]
            how: How = "lacking" if lacking else "value"
            taker = consumers[1]
            return Difference(how, [*taking, due][0], taker, lacking, taker, made, place)
        if made is not None and self._gives_only(made, expected):
            return Difference("extra", consumers[0], made, True)
        while at is not None and self._passes_alone(self._theirs[at], wrong):
            taker, at = self._theirs[at], self._find_maker(wrong, at)
            made = None if at is None else self._theirs[at]
            consumers, place = (consumers[0], taker), _find_position(taker, wrong)
        handed = self._count_handing(wrong, consumers[1]) if made is None else 0
        return Difference("value", *consumers, True, consumers[1], made, place, handed=handed)

    def _is_written_out(self, whole: Operation, step: Operation) -> bool:
        """Tell whether the port makes another step of a function that PyTorch calls whole."""
        steps = (one for one in self._ours if one.whole is whole and one is not step)
        return any(map(self._made.holds, (made for one in steps for made in one.outputs)))

    def _is_made_for(self, value: Array, taker: Operation | None) -> bool:
        """Tell whether the port makes one whole number throughout, such as an index, for one call alone."""
        if value.dtype.kind not in "iu" or not is_one_number(value):
            return False
        maker = self._find_maker(value, len(self._theirs), taker)
        takers = [
            one
            for at, one in enumerate(self._theirs)
            if any(
                is_same(value, given) and self._find_maker(given, at) == maker
                for given in one.inputs
            )
        ]
        return maker is not None and takers == [taker]

    def _pass_layouts(self, at: int) -> int:
        """Return the call that made what a call of the port only lays out, or casts."""
        call = self._theirs[at]
        before = (
            self._find_maker(call.inputs[0], at) if call.inputs and self._is_layout(call) else None
        )
        return at if before is None else self._pass_layouts(before)

    def _find_other_part(
        self, at: int | None, expected: Sequence[Array]
    ) -> tuple[Operation, Operation] | None:
        """Return the two calls that take different parts of one tensor, as `x[..., 2, :]` and `x[..., 1, :]`.

        at: the port's call that gave the wrong value. The calls that only laid the parts out are passed by.
        """
        ours = self._find_maker_of_ours(self._lay_back([*expected]))
        while at is not None and self._theirs[at].inputs and self._is_layout(self._theirs[at]):
            at = self._find_maker(self._theirs[at].inputs[0], at)
        if ours is None or at is None or ours.child is not None:
            return None
        theirs = self._theirs[at]
        alike = name_of(ours) == name_of(theirs) and self._take_the_same(ours, theirs)
        return (ours, theirs) if alike and ours.inputs else None

    def _count_handing(self, value: Array, taker: Operation | None) -> int:
        """Count the functions, that of `taker` first, in which no other call uses a value rightly.

        A call uses it rightly if the reference has the same results. The count ends at such a function.
        """
        right = [
            one
            for one in self._theirs
            if one is not taker
            and any(is_same(value, given) for given in one.inputs)
            and all(map(self._known.knows, one.outputs))
        ]
        places = [] if taker is None else [taker.source, *taker.callers]
        for level, place in enumerate(places):
            around = places[level + 1 :]
            if any(
                [*one.callers] == around and is_same_function(one.source, place) for one in right
            ):
                return level
        return max(len(places) - 1, 0)

    def _passes_alone(self, call: Operation, value: Array) -> bool:
        """Tell whether a call of the port returns a value as it came, and no call of PyTorch's does so.

        A dropout in eval mode is such a call. If PyTorch has one here too, both are right, and the wrong
        value is handed to what follows. If it has none, the wrong value was handed to this call.
        """
        returns_it = any(is_same(value, one) for one in call.inputs)
        return returns_it and not any(
            self._list_taken(one).find_equal(value)
            and KnownValues(one.outputs, self._relative).find_equal(value)
            for one in self._ours
        )

    def _gives_only(self, made: Operation, expected: Sequence[Array]) -> bool:
        """Tell whether a call of the port's makes the wrong value of the one that is due."""
        due = KnownValues(expected, self._relative)
        return made.child is None and any(due.find_equal(value) for value in made.inputs)

    def _rank(self, found: Difference) -> tuple[bool, bool, bool]:
        takes = found.theirs is not None and any(map(self._known.knows, found.theirs.inputs))
        return found.ours is not None, takes, found.is_sure

    # ------------------------------------------------------------- back through the port's calls

    def _find_maker(self, value: Array, before: int, taker: Operation | None = None) -> int | None:
        """Return the number of the call that gave the very tensor that a call takes, or an equal one.

        taker: the call; the one at `before`, unless it is given.
        """
        if before < len(self._theirs):
            taker = self._theirs[before]
        place = _find_position(taker, value)
        maker = taker.makers[place] if taker is not None and taker.makers and place >= 0 else None
        known = None if maker is None else self._numbers.get(maker)
        return find_maker(self._theirs, value, before) if known is None else known

    def _list_starts(self, at: int) -> Iterator[int]:
        """Yield the calls at which values begin to differ, back from a call that gave a wrong one."""
        if at in self._seen:
            return
        self._seen.add(at)
        unknown = [value for value in self._theirs[at].inputs if not self._is_known(value)]
        makers = [self._find_maker(value, at) for value in unknown]
        earlier = [maker for maker in makers if maker is not None and maker not in self._seen]
        if all(map(self._is_foreign, earlier)):
            yield at
        for maker in earlier:
            yield from self._list_starts(maker)

    def _is_known(self, value: Array) -> bool:
        if self._is_bare and is_one_number(value):
            return False
        return self._known.knows(value) or bool(self._taken_in.find_equal(value))

    def _is_foreign(self, at: int) -> bool:
        """Tell whether a value is made without any of the reference's: a mask of another convention."""
        known = self._foreign.get(at)
        if known is None:
            self._foreign[at] = True  # until it is known: a value may be made of itself
            inputs = self._theirs[at].inputs
            makers = [self._find_maker(value, at) for value in inputs if not self._is_known(value)]
            known = len(makers) == len(inputs) and all(
                maker is None or self._is_foreign(maker) for maker in makers
            )
            self._foreign[at] = known
        return known

    # ------------------------------------------------------------- what the reference does there

    def _compare(self, at: int, wrong: Array, expected: Sequence[Array]) -> Difference:
        """Compare a call of the port's with the reference's that takes the same."""
        theirs = self._theirs[at]
        ours = self._find_counterpart(theirs)
        last = any(is_same(wrong, made) for made in theirs.outputs)
        other = ours is None or name_of(ours) != name_of(theirs)
        if other and self._is_passed_by(theirs):
            return Difference("extra", None, theirs, True)
        unlike = ours is None or self._is_layout(ours)
        meant = self._find_namesake(theirs) if unlike or name_of(theirs) not in _SCALING else None
        if meant is not None and (ours is None or unlike or self._leads_to(ours, meant)):
            wrong, taker = self._follow_layouts(theirs.inputs[0], at)
            return self._explain_other_value(
                wrong, self._lay_back([meant.inputs[0]]), (meant, taker)
            )
        if ours is None:
            sure = last and self._gives_only(theirs, expected)
            return Difference("extra", None, theirs, sure)
        moved = self._find_other_layout(ours, theirs, at)
        if moved is not None:
            return moved
        exchanged = self._find_exchanged(ours, theirs)
        if exchanged is not None:
            wrong, taker = self._follow_layouts(exchanged[0], at)
            given = exchanged[1] if taker is theirs else self._lay_back(exchanged[1])
            return self._explain_other_value(wrong, given, (ours, taker))
        how: How = "layout" if self._is_layout(theirs) else "call"
        due = KnownValues(ours.outputs, self._relative)
        both_last = last and any(due.knows(value) for value in expected)
        same = self._take_the_same(ours, theirs)
        shapes = [[one.shape for one in call.outputs] for call in (ours, theirs)]
        alone = same and shapes[0] == shapes[1] and not self._is_layout(ours)
        sure = both_last or name_of(ours) == name_of(theirs) or alone
        if not same and sorted(map(math.prod, shapes[0])) != sorted(map(math.prod, shapes[1])):
            sure = False  # such as of layers that are divided otherwise: nothing is proven
        if (handed := self._find_handed_back(ours, theirs)) is not None:
            return Difference("lacking", ours, theirs, sure, theirs, *handed)
        return Difference(how, ours, theirs, sure, take_the_same=same)

    def _find_handed_back(self, ours: Operation, theirs: Operation) -> tuple[Operation, int] | None:
        """Return the call whose result a method of the port hands to a framework's layer too early.

        PyTorch changes that result first. The layer's own code, which calls the method, is right.
        """
        taken, place = self._list_taken(ours), (theirs.source.file, theirs.source.line)
        for position, made in enumerate(theirs.makers):
            if made is not None and place in [(one.file, one.line) for one in made.callers]:
                if taken.holds(theirs.inputs[position]):
                    return made, position
        return None

    def _find_namesake(self, theirs: Operation) -> Operation | None:
        """Return the reference's one call of this name and shape whose input and output the port lacks."""
        if len(theirs.inputs) != 1 or self._is_layout(theirs):
            return None
        shapes = [one.shape for one in (*theirs.inputs, *theirs.outputs)]
        found = [
            one
            for one in self._ours
            if name_of(one) == name_of(theirs)
            and [it.shape for it in (*one.inputs, *one.outputs)] == shapes
            and not self._is_made(one)
            and not any(map(self._made.find_equal, one.inputs))
        ]
        return found[0] if len(found) == 1 else None

    def _leads_to(self, ours: Operation, later: Operation) -> bool:
        """Tell whether a call of the reference takes what another one gives."""
        return any(map(self._list_taken(later).find_equal, ours.outputs))

    def _is_passed_by(self, theirs: Operation) -> bool:
        """Tell whether the reference goes on with the input of a call where the port uses its result."""
        if len(theirs.inputs) != 1 or len(theirs.outputs) != 1 or self._is_lacking(theirs):
            return False
        made = theirs.outputs[0]
        takers = [one for one in self._theirs if any(is_same(made, value) for value in one.inputs)]
        for taker in takers[:1]:
            given = [theirs.inputs[0] if is_same(made, one) else one for one in taker.inputs]
            alike = [one for one in self._ours if name_of(one) == name_of(taker)]
            if any(len(one.inputs) == len(given) and all(map(self._list_taken(one).find_equal, given))
                   for one in alike):  # fmt: skip
                return True
        return False

    def _is_lacking(self, theirs: Operation) -> bool:
        """Tell whether the reference calls the same elsewhere: a scale on the scores for one on the query."""
        kind = name_of(theirs)
        alike = _SCALING if kind in _SCALING else {kind}
        return any(name_of(one) in alike and not self._is_made(one) for one in self._ours)

    def _list_taken(self, operation: Operation) -> KnownValues:
        """Return what a call of either side takes; every pair of calls asks for it."""
        if operation not in self._taken:
            self._taken[operation] = KnownValues(operation.inputs, self._relative)
        return self._taken[operation]

    def _take_the_same(self, ours: Operation, theirs: Operation) -> bool:
        """Tell whether two calls take the same values in the same order, in whatever shapes."""
        taken = self._list_taken(ours)
        return len(ours.inputs) == len(theirs.inputs) and all(map(taken.knows_order, theirs.inputs))

    def _find_exchanged(
        self, ours: Operation, theirs: Operation
    ) -> tuple[Array, list[Array]] | None:
        """Return the one input that is another of the reference's values, and what is due there."""
        if name_of(ours) != name_of(theirs) or len(ours.inputs) != len(theirs.inputs):
            return None
        given = self._list_taken(theirs)
        wrong, due = [*theirs.inputs], []
        for value in ours.inputs:
            if given.holds(value):  # the port may take it twice, as in `x + x` for `x + f(x)`
                met = KnownValues([value], self._relative)
                at = next((at for at, one in enumerate(wrong) if met.holds(one)), None)
                if at is not None:
                    wrong.pop(at)
            else:
                due.append(value)
        if len(wrong) != 1 or len(due) != 1 or not self._known.knows(wrong[0]):
            return None
        return wrong[0], due

    def _follow_layouts(self, value: Array, at: int) -> tuple[Array, Operation]:
        """Return the value as the reference has it, before it is laid out, and the call that takes it."""
        taker = self._theirs[at]
        while not self._known.find_equal(value):
            maker = self._find_maker(value, at)
            moved = None if maker is None else self._theirs[maker]
            if moved is None or maker is None or not moved.inputs or not self._is_layout(moved):
                break
            value, taker, at = moved.inputs[0], moved, maker
        return value, taker

    def _lay_back(self, values: list[Array]) -> list[Array]:
        """Return the value that is due as the reference has it before it is laid out.

        Only what was made before counts: a product with ones gives what it takes.
        """
        made = self._find_maker_of_ours(values)
        while made is not None and made.child is None and self._is_layout(made) and made.inputs:
            values = [made.inputs[0]]
            made = self._find_maker_of_ours(values, self._ours[: self._ours.index(made)])
        return values

    def _find_counterpart(self, theirs: Operation) -> Operation | None:
        """Return the reference's call that stands for the port's: it takes the same values.

        Of several for which as much speaks, the first, or the one that goes on with its result: the port
        may go on with what the first one takes.
        """
        child = None if theirs.child is None else self._names.get(theirs.child[0])
        paired = [one for one in self._ours if one.child is not None and one.child[0] == child]
        if len(paired) == 1:
            return paired[0]
        scores = [self._rate_counterparts(ours, theirs) for ours in self._ours]
        best = max(scores, default=0.0)
        if best <= 0:
            return None
        ours, *others = (
            one for one, score in zip(self._ours, scores, strict=True) if score == best
        )
        for other in others:
            if any(map(self._list_taken(other).find_equal, ours.outputs)):
                ours = other
        if self._is_layout(theirs) and not self._is_layout(ours):
            return None
        taken = any(self._rate_counterparts(ours, other) > best for other in self._unknown_results)
        return None if taken else ours

    @cached_property
    def _unknown_results(self) -> list[Operation]:
        """The port's calls whose results the reference does not know."""
        return [one for one in self._theirs if not all(map(self._known.knows, one.outputs))]

    def _rate_counterparts(self, ours: Operation, theirs: Operation) -> float:
        """Return how much speaks for two calls being counterparts; 0: nothing."""
        if self._is_made(ours):
            return 0.0
        taken = self._list_taken(ours)
        equal = sum(bool(taken.find_equal(value)) for value in theirs.inputs)
        alike = sum(taken.knows(value) for value in theirs.inputs) - equal
        named = name_of(ours) == name_of(theirs)
        if not equal + alike and (theirs.inputs or ours.inputs or not named):
            return 0.0
        shapes = [one.shape for one in ours.outputs] == [one.shape for one in theirs.outputs]
        spare = abs(len(ours.inputs) - len(theirs.inputs))
        return 4 * equal + 3 * alike + 3 * named + shapes - 0.5 * spare

    def _list_made_before(self, consumer: Operation | None) -> KnownValues:
        """Return what the port's children have given when a call takes its values."""
        if consumer not in self._theirs:
            return self._given
        before = self._theirs[: self._theirs.index(consumer)]
        given = (made for one in before if one.child is not None for made in one.outputs)
        return KnownValues(given, self._relative)

    def _is_made(self, ours: Operation, given: KnownValues | None = None) -> bool:
        """Tell whether the port's code makes all that a call of the reference gives.

        What the port's children give is the reference's: it counts for children alone. A call that
        gives what it takes, such as clone, makes nothing. given: what children give, all if None.
        """
        if ours.child is not None:
            return all(map((given or self._given).find_equal, ours.outputs))
        taken = self._list_taken(ours)
        return all(self._made.find_equal(one) or taken.find_equal(one) for one in ours.outputs)

    def _is_layout(self, operation: Operation) -> bool:
        """Tell whether a call only moves elements about."""
        given = self._list_taken(operation)
        return all(given.find_alike(array) for array in operation.outputs)

    def _find_other_layout(self, ours: Operation, theirs: Operation, at: int) -> Difference | None:
        """Return the call that laid an input of `theirs` out otherwise than the reference's is."""
        taken = self._list_taken(ours)
        for value in theirs.inputs:
            if self._known.find_equal(value) or not taken.find_alike(value):
                continue
            merged = any(_has_merged_axes(one, value, self._relative) for one in ours.inputs)
            others = (other for other in theirs.inputs if other is not value)
            if merged and not all(map(self._known.knows_order, others)):  # one of them is at fault
                continue
            same_call = name_of(ours) == name_of(theirs) and _list_numbers(ours) == _list_numbers(
                theirs
            )
            same_shape = any(one.shape == value.shape for one in ours.inputs)
            maker = self._find_maker(value, at)
            if maker is None or not (same_shape or same_call):
                continue
            made = self._theirs[self._find_first_moved(maker)]
            aligned = all(other.ndim == value.ndim for other in theirs.inputs)
            if merged and aligned and not same_shape and not self._is_layout(made):
                continue  # (16, 1, 1) for (1, 16, 1): a mean is right, PyTorch keeps its axes otherwise
            if not self._is_layout(made):
                return Difference("layout", self._find_counterpart(made) or ours, made, True)
            other = self._find_layout_counterpart(made)
            return Difference("layout" if other else "extra", other, made, True)
        return None

    def _find_first_moved(self, at: int) -> int:
        """Return the first of the calls that moved a value's elements about."""
        for value in self._theirs[at].inputs:
            if self._known.find_equal(value):
                continue
            maker = self._find_maker(value, at)
            if maker is not None and self._known.find_alike(value):
                return self._find_first_moved(maker)
        return at

    def _find_layout_counterpart(self, theirs: Operation) -> Operation | None:
        given = self._list_taken(theirs)
        for ours in self._ours:
            if ours.child is None and any(given.find_equal(value) for value in ours.inputs):
                if not self._is_made(ours) and self._is_layout(ours):
                    return ours
        return None

    def _find_maker_of_ours(
        self, values: Sequence[Array], among: Sequence[Operation] | None = None
    ) -> Operation | None:
        """Return the reference's first call, of all or of those given, that gave one of these values."""
        wanted = KnownValues(values, self._relative)
        for ours in self._ours if among is None else among:
            if any(wanted.find_equal(made) for made in ours.outputs):
                return ours
        return None


def _list_values(operations: Sequence[Operation]) -> Iterator[Array]:
    for operation in operations:
        yield from operation.inputs
        yield from operation.outputs


def _has_merged_axes(one: Array, other: Array, relative: float) -> bool:
    """Tell whether two arrays differ in shape alone: the elements are in the same order."""
    merged = one.size == other.size and one.shape != other.shape
    return merged and are_equal(one.ravel(), other.ravel(), relative)


def _find_position(operation: Operation | None, value: Array) -> int:
    inputs = () if operation is None else operation.inputs
    return next((at for at, one in enumerate(inputs) if is_same(value, one)), -1)


def _list_numbers(operation: Operation) -> list[float]:
    return [one for one in operation.constants if isinstance(one, (int, float))]


def find_cut(
    ours: Sequence[Operation], theirs: Sequence[Operation], relative: float
) -> Difference | None:
    """Return the first call, of either side, through which a gradient flows on the other side alone."""
    for at, (here, there) in enumerate(((theirs, ours), (ours, theirs))):
        flowing = KnownValues(_list_results(there, True), relative)
        stopped = KnownValues(_list_results(there, False), relative)
        for operation in here:
            if operation.differentiable or operation.name == RETURN:
                continue
            for made in operation.outputs:
                if made.dtype.kind != "f" or stopped.knows(made) or not flowing.knows(made):
                    continue
                other = _find_maker(there, operation, relative)
                pair = (other, operation) if at == 0 else (operation, other)
                return Difference("cut", *pair)
    return None


def _list_results(operations: Sequence[Operation], flowing: bool) -> list[Array]:
    return [made for one in operations if one.differentiable == flowing and one.name != RETURN
            for made in one.outputs]  # fmt: skip


def _find_maker(
    operations: Sequence[Operation], like: Operation, relative: float
) -> Operation | None:
    wanted = KnownValues(like.outputs, relative)
    return next((one for one in operations if any(map(wanted.knows, one.outputs))), None)


def find_mask_maker(
    operations: Sequence[Operation], mask: Array, expected: Sequence[Array]
) -> Operation | None:
    """Return the port's first call on the way to `mask` that tells other places apart.

    operations: of the port, in order. expected: the masks of the reference, one of which is due. The
    last call if all tell the right places apart: its numbers hide nothing, or the others.
    """
    chain = list(trace_back(operations, mask, len(operations), _may_tell))
    due = [found for one in expected if (found := find_places(one)) is not None]
    if not chain or not due:
        return None
    for operation in sorted(chain):
        found = find_places(operations[operation].outputs[0])
        if found is not None and not any(tell_the_same(found, one) for one in due):
            return operations[operation]
    made = [at for at in chain if not _lays_out(operations[at])]
    return operations[max(made or chain)]


def _lays_out(operation: Operation) -> bool:
    """Tell whether a call gives the numbers that it takes, in another dtype or shape."""
    given = KnownValues(operation.inputs, _EQUAL)
    return bool(given.find_alike(operation.outputs[0]))


def _may_tell(value: Array) -> bool:
    return find_places(value) is not None or value.size == 0 or bool(value.min() == value.max())


@dataclass(frozen=True)
class Places:
    """Two kinds of places that a mask tells apart."""

    low: Array
    """whether each is of the kind with the smaller number"""
    are_hidden: bool
    """whether these are hidden: their number is far below zero. 0 and 1 may mean either"""


def find_places(array: Array) -> Places | None:
    """Return which of two kinds of places each is; None if the array tells no two kinds apart."""
    if array.size < 2 or array.dtype.kind not in "biuf":
        return None
    values = array.astype(np.float64)
    low = values <= -HIDDEN
    hidden = bool(low.any())
    if not hidden and np.unique(values).size == 2:
        low = values == values.min()
    return None if low.all() or not low.any() else Places(np.squeeze(low), hidden)


def _lay_alike(one: Array, other: Array) -> tuple[Array, Array] | None:
    """Return two masks in one shape: one may have an axis of heads more, or heads within its first axis."""
    few, many = sorted((one, other), key=np.size)
    forms = [few]
    if few.ndim and few.ndim == many.ndim and not many.shape[0] % few.shape[0]:
        forms.append(np.repeat(few, many.shape[0] // few.shape[0], axis=0))
    if few.ndim and few.ndim + 1 == many.ndim:
        forms.append(few[:, None])
    if few.size == many.size:
        forms.append(few.reshape(many.shape))
    for form in forms:
        with suppress(ValueError):
            laid, whole = np.broadcast_arrays(form, many)
            return (laid, whole) if few is one else (whole, laid)
    return None


_ADDING: Final = frozenset({"add", "subtract"})


def is_mask_added(step: Operation) -> bool:
    """Tell whether a step inside a call adds a mask."""
    added = step.whole is not None and name_of(step) == "add"
    return added and any(it is not None and it.are_hidden for it in map(find_places, step.inputs))


def hides_otherwise(taker: Operation, mask: Array, known: Sequence[Places]) -> bool:
    """Tell whether a call of the port takes a mask that hides other places than the reference's masks.

    One that is added hides by a number far below zero; another number hides nothing.
    """
    found = find_places(mask)
    if found is None:
        return False
    added = name_of(taker) in _ADDING and mask.dtype.kind == "f"
    return (added and not found.are_hidden) or not any(tell_the_same(found, one) for one in known)


def tell_the_same(found: Places, due: Places) -> bool:
    """Tell whether two masks tell the same places apart; the same are hidden, if both say which."""
    laid = _lay_alike(due.low, found.low)
    if laid is None:
        return True  # nothing is known
    ours, theirs = laid
    either = not (found.are_hidden and due.are_hidden)
    return bool((ours == theirs).all() or (either and (ours != theirs).all()))
