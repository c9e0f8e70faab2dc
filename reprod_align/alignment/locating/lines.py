"""Names the two lines of source at a fault: where the user's code first computes something else.

The modules at fault are run once more on each side with every call of their own code recorded; the
port gets the reference's numbers, as when the fault was found.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from reprod_align.alignment.lines.construction import find_settings
from reprod_align.alignment.lines.gradient import find_cut
from reprod_align.alignment.lines.origin import find_origin
from reprod_align.alignment.lines.search import Difference, find_difference
from reprod_align.alignment.lines.words import describe_difference
from reprod_align.alignment.locating.counterparts import CallPair, PinnedRun, Which
from reprod_align.alignment.locating.fault import Fault, compare, rounding_of
from reprod_align.alignment.locating.pins import ReferencePins
from reprod_align.alignment.runner import Runner
from reprod_align.model.side import ModelFailure
from reprod_align.model.source.lines import SourceLine
from reprod_align.model.source.operation import RETURN, CallKey, Operation, Wanted
from reprod_align.model.trace import Array, Trace

_RELATIVE = {"float64": 1e-9, "float32": 1e-4}
"""how far equal values may be apart: as in the search for the module"""


@dataclass(frozen=True)
class Lines:
    """The two lines of a finding, and the difference between them in words."""

    torch: SourceLine | None = None
    paddle: SourceLine | None = None
    words: str = ""


@dataclass(frozen=True, eq=False)
class _Target:
    """A wrong value, and which call takes it: a child's, or the module's own, which returns it."""

    key: CallKey
    expected: Sequence[Array]
    wrong: Array


class LineFinder:
    """Finds the lines for the faults of one pass; both sides are run when the first is asked for."""

    def __init__(self, runner: Runner, training: bool, run: PinnedRun, faults: Iterable[Fault]):
        """run: the port's run on the reference's numbers in which the faults were found."""
        self._runner, self._training, self._run = runner, training, run
        self._scopes = {id(fault): _find_scope(fault, run) for fault in faults}

    def find(self, fault: Fault) -> Lines:
        """Return the lines of one of the faults; empty ones where the code tells nothing."""
        scope = self._scopes[id(fault)]
        if scope is None or self._is_made_otherwise(fault):
            return Lines()
        ours = _inside(self._traces[0], scope.ours.key)
        theirs = _inside(self._traces[1], scope.theirs.key)
        relative = _RELATIVE[self._runner.dtype]
        if fault.stage == "backward":
            found = find_cut(ours, theirs, relative)
            return Lines() if found is None else make_lines(found)
        for target in self._find_targets(fault, scope):
            pair = (
                _find_consumer(ours, self._counterpart(target.key, scope)),
                _find_consumer(theirs, target.key),
            )
            if None not in pair:
                found = find_difference(ours, theirs, target.expected, target.wrong, pair, relative)
                if found is not None:
                    return make_lines(found)
        return Lines()

    def _is_made_otherwise(self, fault: Fault) -> bool:
        """Tell whether the module itself was made otherwise: the line is where it is made."""
        stock = fault.place[1] in self._run.counterparts.stock
        return stock or bool(find_settings(self._runner.pairing, *fault.place))

    def _find_targets(self, fault: Fault, scope: CallPair) -> Iterator[_Target]:
        """Yield the wrong values: the fault's own, or those that the scope's code hands on."""
        if fault.kind != "mask" and fault.actual is not None and fault.expected is not None:
            calls = scope if fault.calls.theirs is scope.theirs else fault.calls
            which: Which = "outputs" if calls is scope else "inputs"
            leaves = getattr(fault.calls.ours, which).values()
            due = [leaf.array for leaf in leaves if leaf.array.size == fault.expected.size]
            yield _Target(calls.theirs.key, [fault.expected, *due], fault.actual)
            return
        found = [*self._handed_on(scope)]
        yield from (target for target, flows in found if flows)
        yield from (target for target, flows in found if not flows)

    def _handed_on(self, scope: CallPair) -> Iterator[tuple[_Target, bool]]:
        """Yield what the scope's code hands to its children and is wrong; whether a gradient flows."""
        for calls in self._run.calls:
            around = self._run.counterparts_around(calls)
            if around is None or around.theirs is not scope.theirs:
                continue
            for pair in self._run.pair_leaves(calls, "inputs"):
                ours, theirs = calls.leaves(pair, "inputs")
                if not compare(pair, ours.array, theirs.array, rounding_of(calls.ours)).ok:
                    due = [pair.to_port(ours.array), ours.array]
                    yield _Target(calls.theirs.key, due, theirs.array), ours.differentiable

    def _counterpart(self, key: CallKey, scope: CallPair) -> CallKey:
        if key == scope.theirs.key:
            return scope.ours.key
        return self._runner.pairing.names.get(key[0], ""), key[1]

    @cached_property
    def _traces(self) -> tuple[Trace, Trace]:
        """Both sides' runs, with the calls of the code at fault."""
        scopes = [scope for scope in self._scopes.values() if scope is not None]
        names = self._run.counterparts.names
        ours = Wanted(frozenset(scope.ours.key for scope in scopes), frozenset(names.values()))
        theirs = Wanted(frozenset(scope.theirs.key for scope in scopes), frozenset(names))
        pins = ReferencePins(self._run.counterparts, self._run.reference, constants=False)
        try:
            return (
                self._runner.run_reference(self._training, keep="none", wanted=ours),
                self._runner.run_port(self._training, "all", pins, backward=False, wanted=theirs),
            )
        except ModelFailure:
            return Trace(), Trace()


def make_lines(found: Difference) -> Lines:
    """Return the lines of a difference, and what differs in words."""
    ours, theirs = find_origin(found)
    return Lines(ours, theirs, describe_difference(found))


def _find_scope(fault: Fault, run: PinnedRun) -> CallPair | None:
    """Return the calls in whose code the fault is: the innermost ones that stand for each other."""
    calls: CallPair | None = fault.calls
    if fault.place != fault.calls.paths and run.are_counterparts(fault.calls):
        calls = run.counterparts_around(fault.calls)
    around = calls
    while around is not None and around.paths != fault.place:
        around = run.counterparts_around(around)
    return around or calls


def _inside(trace: Trace, key: CallKey) -> list[Operation]:
    return [operation for operation in trace.operations if operation.call == key]


def _find_consumer(operations: Sequence[Operation], key: CallKey) -> Operation | None:
    found = (one for one in operations
             if one.child == key or (one.name == RETURN and one.call == key))  # fmt: skip
    return next(found, None)
