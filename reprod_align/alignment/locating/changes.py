"""Proves by replacement which call makes a wrong mask or index: changed, it makes the fault go away."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from reprod_align.alignment.lines.changes import Change, list_changes
from reprod_align.alignment.locating.counterparts import PinnedRun
from reprod_align.alignment.locating.fault import Fault, rounding_of
from reprod_align.alignment.locating.pins import ReferencePins
from reprod_align.alignment.runner import Runner
from reprod_align.model.leaf import equal_in_effect
from reprod_align.model.side import ModelFailure
from reprod_align.model.source.operation import RETURN, Operation, Wanted
from reprod_align.model.trace import Array


@dataclass(frozen=True)
class Trial:
    """Runs the port once more with the result of one recorded call replaced."""

    runner: Runner
    training: bool
    run: PinnedRun
    wanted: Wanted
    """as in the run that recorded the calls"""
    proven: list[Change] = field(default_factory=list)
    """changes that made earlier faults go away"""

    def find_change(
        self, fault: Fault, ours: Sequence[Operation], theirs: Sequence[Operation]
    ) -> Change | None:
        """Return the change of one call that makes the fault go away, None if none does.

        ours, theirs: all calls that were recorded.
        """
        place = _find_wrong(fault)
        consumer = None if place is None else _find_consumer(theirs, fault)
        if place is None or consumer is None or fault.actual is None:
            return None
        skipped: Collection[str] = self.run.counterparts.stock
        changes = list_changes(ours, theirs, consumer, fault.actual, skipped)
        if not changes:
            return None
        found = (one for one in [*self.proven, *changes] if self._mends(fault, place, one))
        change = next(found, None)
        self.proven.extend([change] if change is not None and change not in self.proven else [])
        return change

    def _mends(self, fault: Fault, place: tuple[str, str], change: Change) -> bool:
        """Tell whether the fault is gone with the change."""
        wanted = replace(self.wanted, instead={change.number: change.variant.value})
        pins = ReferencePins(self.run.counterparts, self.run.reference, constants=False)
        try:
            trace = self.runner.run_port(
                self.training, "all", pins, backward=False, wanted=wanted
            )
        except ModelFailure:
            return False
        call = trace.by_key().get(fault.calls.theirs.key)
        leaf = None if call is None else getattr(call, place[0]).get(place[1])
        return leaf is not None and _agrees(fault, leaf.array)


def _find_wrong(fault: Fault) -> tuple[str, str] | None:
    """Return where the wrong value is at the fault's call: "inputs" or "outputs", and which."""
    for which in ("inputs", "outputs"):
        for at, leaf in getattr(fault.calls.theirs, which).items():
            if leaf.array is fault.actual:
                return which, at
    return None


def _find_consumer(operations: Sequence[Operation], fault: Fault) -> int | None:
    """Return the number of the call that takes the wrong value: the child's, or the return."""
    key = fault.calls.theirs.key
    found = (at for at, one in enumerate(operations)
             if one.child == key or (one.name == RETURN and one.call == key))  # fmt: skip
    return next(found, None)


def _agrees(fault: Fault, value: Array) -> bool:
    if fault.expected is None or fault.expected.shape != value.shape:
        return False
    found = fault.judge.compare(fault.expected, value, rounding_of(fault.calls.ours))
    return found.ok or equal_in_effect(fault.expected, value)
