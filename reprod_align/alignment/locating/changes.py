"""Proves by replacement which call makes a wrong mask or index: changed, it makes the fault go away."""

from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass, field, replace

from reprod_align.alignment.lines.changes import Change, list_changes
from reprod_align.alignment.locating.counterparts import PinnedRun
from reprod_align.alignment.locating.fault import Fault, rounding_of
from reprod_align.alignment.locating.pinning.pins import ReferencePins
from reprod_align.alignment.runner import Runner
from reprod_align.model.leaf import equal_in_effect
from reprod_align.model.side import ModelFailure
from reprod_align.model.source.operation import Operation, Wanted, Which, find_consumer
from reprod_align.model.trace import Array

Place = tuple[Which, str]
"""what a call takes or gives, and which leaf of it"""
_MOST_RUNS = 64  # of the port, for all faults of one pass


@dataclass(frozen=True)
class Trial:
    """Runs the port once more with the result of one recorded call replaced."""

    runner: Runner
    training: bool
    run: PinnedRun
    wanted: Wanted
    """as in the run that recorded the calls"""
    failed: set[Hashable]
    """what mended no fault, in other passes too: see `_describe`"""
    proven: list[Change] = field(default_factory=list)
    """changes that made earlier faults go away"""
    runs: list[Change] = field(default_factory=list)
    """what was tried, for all faults"""

    def find_change(
        self, fault: Fault, ours: Sequence[Operation], theirs: Sequence[Operation]
    ) -> Change | None:
        """Return the change of one call that makes the fault go away, None if none does.

        ours, theirs: all calls that were recorded.
        """
        place = find_wrong(fault)
        consumer = None if place is None else _find_consumer(theirs, fault, place[0])
        if place is None or consumer is None or fault.actual is None:
            return None
        skipped: Collection[str] = self.run.counterparts.stock
        changes = list_changes(ours, theirs, consumer, fault.actual, skipped)
        if not changes:
            return None
        attempts = [
            (change, _describe(change, fault, place, theirs)) for change in [*self.proven, *changes]
        ]
        change = self._choose([one for one in attempts if one[1] not in self.failed], fault, place)
        self.proven.extend([change] if change is not None and change not in self.proven else [])
        return change

    def _choose(
        self, attempts: Sequence[tuple[Change, Hashable]], fault: Fault, place: Place
    ) -> Change | None:
        """Return the first change that mends; rather one that makes a mask as the reference has it."""
        mending = None
        for change, attempt in attempts:
            if len(self.runs) >= _MOST_RUNS:
                break
            self.runs.append(change)
            made = self._try(change, fault, place)
            if made is None:
                self.failed.add(attempt)
            if made is not None and change.is_right(made):
                return change
            mending = change if mending is None and made is not None else mending
        return mending

    def _try(self, change: Change, fault: Fault, place: Place) -> Array | None:
        """Return the mask or index with the change if the fault is gone with it, else None."""
        wanted = replace(
            self.wanted,
            instead={change.number: change.variant.value},
            until=change.end,
            last=(fault.calls.theirs.key, place[0]),
        )
        pins = ReferencePins(self.run.counterparts, self.run.reference, constants=False)
        try:
            trace = self.runner.run_port(self.training, "all", pins, backward=False, wanted=wanted)
        except ModelFailure:
            return None
        call = trace.by_key().get(fault.calls.theirs.key)
        leaf = None if call is None else getattr(call, place[0]).get(place[1])
        if leaf is None or not agrees(fault, leaf.array) or len(trace.operations) <= change.end:
            return None
        return trace.operations[change.end].outputs[0]


def _describe(
    change: Change, fault: Fault, place: Place, operations: Sequence[Operation]
) -> Hashable:
    """Return what an attempt has in common with the same one in other code of the same lines.

    So it is in two layers of one class. In code outside of the module at fault it is one of its own.
    """
    operation = change.operation
    before = sum(one.call == operation.call for one in operations[: change.number])
    made = operation.source, before, operation.outputs[0].shape, change.variant.words
    if operation.call[0] != fault.place[1]:
        return fault.kind, place, fault.calls.theirs.key, operation.call, made, change.position
    return fault.kind, place, made, change.position


def find_wrong(fault: Fault) -> Place | None:
    """Return where the wrong value is at the fault's call: "inputs" or "outputs", and which."""
    places: tuple[Which, Which] = ("inputs", "outputs")
    for which in places:
        for at, leaf in getattr(fault.calls.theirs, which).items():
            if leaf.array is fault.actual:
                return which, at
    return None


def _find_consumer(operations: Sequence[Operation], fault: Fault, which: str) -> int | None:
    """Return the number of the call that takes the wrong value: the child's, or its return."""
    found = find_consumer(operations, fault.calls.theirs.key, which)
    return None if found is None else operations.index(found)


def agrees(fault: Fault, value: Array) -> bool:
    """Tell whether a value is what is due at a fault."""
    if fault.expected is None or fault.expected.shape != value.shape:
        return False
    found = fault.judge.compare(fault.expected, value, rounding_of(fault.calls.ours))
    return found.ok or equal_in_effect(fault.expected, value)
