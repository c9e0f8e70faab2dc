"""Proves by replacement which condition or switch of the port's code is wrong.

A branch that is not taken leaves no call to compare. So conditions are negated and switches turned,
one at a time, and the port is run again: the one with which the fault is gone is to be mended.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from reprod_align.alignment.locating.changes import Place, agrees, find_wrong
from reprod_align.alignment.locating.counterparts import CallPair, PinnedRun
from reprod_align.alignment.locating.fault import Fault
from reprod_align.alignment.locating.pinning.pins import ReferencePins
from reprod_align.alignment.runner import Runner
from reprod_align.base.naming import parent
from reprod_align.model.side import ModelFailure
from reprod_align.model.source.alteration import Alteration, Edit, Switch
from reprod_align.model.source.editing import list_conditions
from reprod_align.model.source.operation import Operation, Wanted

_MOST = 10  # runs for one fault
_MOST_RUNS = 20  # of the port, for all faults of one pass


@dataclass(frozen=True)
class Alterations:
    """Runs the port once more with a condition or a switch of its code turned."""

    runner: Runner
    training: bool
    run: PinnedRun
    proven: list[Alteration] = field(default_factory=list)
    """what made earlier faults go away"""
    runs: list[Alteration] = field(default_factory=list)
    """what was tried, for all faults"""

    def find(self, fault: Fault, scope: CallPair, theirs: Sequence[Operation]) -> Alteration | None:
        """Return the alteration with which the fault is gone, None if none is.

        scope: the calls in whose code it arises. theirs: all calls that were recorded of the port.
        """
        place = find_wrong(fault)
        if place is None:
            return None
        inside = [one for one in theirs if one.call == scope.theirs.key]
        tried: list[Alteration] = [
            *self._list_switches(fault, scope, inside),
            *self._list_edits(inside),
        ]
        likely = sorted(tried, key=lambda one: not self._is_proven(one))
        for alteration in likely[:_MOST]:
            if len(self.runs) >= _MOST_RUNS:
                return None
            self.runs.append(alteration)
            if self._mends(alteration, fault, place):
                self.proven.append(alteration)
                return alteration
        return None

    def _is_proven(self, alteration: Alteration) -> bool:
        """Tell whether such an alteration, of another module of the kind maybe, has mended a fault."""
        if isinstance(alteration, Edit):
            return alteration in self.proven
        known = [(one.name, one.after) for one in self.proven if isinstance(one, Switch)]
        return (alteration.name, alteration.after) in known

    def _list_edits(self, inside: Sequence[Operation]) -> Iterator[Edit]:
        own = [one.source for one in inside if one.user is None]
        yield from list_conditions(own)

    def _list_switches(
        self, fault: Fault, scope: CallPair, inside: Sequence[Operation]
    ) -> Iterator[Switch]:
        """Yield switches of the modules around the fault and of those that these call.

        Numbers are exchanged for those of PyTorch's module.
        """
        around = [fault.calls.theirs.path]
        while around[-1] and around[-1] != scope.theirs.path:
            around.append(parent(around[-1]))
        children = [one.child[0] for one in inside if one.child is not None]
        names = self.run.counterparts.names
        for path in dict.fromkeys([*around[1:], *around[:1], *children]):
            if self._is_kernel(path):
                continue
            due = self.runner.reference.read_attributes(names[path]) if path in names else {}
            yield from _turn(path, self.runner.port.read_attributes(path), due)

    def _is_kernel(self, path: str) -> bool:
        """Tell whether a layer of the framework's own hands what it holds to a kernel.

        A kernel that gets a wrong size ends the process; the audit compares these settings.
        """
        composites = {self.run.port.calls[number].path for number in self.run.composites}
        return path in self.run.counterparts.stock and path not in composites

    def _mends(self, alteration: Alteration, fault: Fault, place: Place) -> bool:
        last = fault.calls.theirs.key, place[0]
        wanted = Wanted(frozenset(), frozenset(), last=last, alteration=alteration)
        pins = ReferencePins(self.run.counterparts, self.run.reference, constants=False)
        try:
            trace = self.runner.run_port(self.training, "all", pins, backward=False, wanted=wanted)
        except ModelFailure:
            return False
        call = trace.by_key().get(fault.calls.theirs.key)
        leaf = None if call is None else getattr(call, place[0]).get(place[1])
        return leaf is not None and agrees(fault, leaf.array)


def _turn(path: str, held: Mapping[str, object], due: Mapping[str, object]) -> Iterator[Switch]:
    """Yield each switch turned, and what PyTorch's module holds under the same name otherwise."""
    for name, value in held.items():
        if isinstance(value, bool):
            yield Switch(path, name, value, not value)
        elif name in due and type(due[name]) is type(value) and due[name] != value:
            yield Switch(path, name, value, due[name])


def describe_alteration(alteration: Alteration) -> str:
    """Return which alteration makes the difference go away."""
    before, after = alteration.before, alteration.after
    if isinstance(alteration, Switch):
        return f"{alteration.name} is {before!r} in Paddle: {after!r} gives PyTorch's numbers"
    return f"`{after}` in place of `{before}` gives PyTorch's numbers"
