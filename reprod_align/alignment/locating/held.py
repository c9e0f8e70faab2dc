"""Proves by replacement which value that the port's modules hold is wrong: a rotary table, a switch.

It is made before the run, so that no call of the run tells of it, and no edit of what runs mends it:
the port is run again with PyTorch's value in its place, or with a switch turned.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from reprod_align.alignment.lines.arguments import find_argument
from reprod_align.alignment.lines.values import are_equal
from reprod_align.alignment.locating.counterparts import CallPair, PinnedRun
from reprod_align.alignment.locating.fault import Fault
from reprod_align.alignment.locating.pinning.pins import ReferencePins
from reprod_align.alignment.runner import Runner
from reprod_align.base.naming import is_within, last_part, parent
from reprod_align.model.side import ModelFailure
from reprod_align.model.source.lines import SourceLine
from reprod_align.model.source.operation import Operation, Switch, Wanted

_CLOSE = 1e-6  # relative: a table may be kept in float32
_MOST_TENSORS = 8  # runs of the port, for all faults of one pass
_MOST_SWITCHES = 20

Told = tuple[SourceLine | None, SourceLine | None, str]
"""the lines that make a value, and what is wrong with it"""


@dataclass
class HeldValues:
    """Runs the port once more with another value in one of its modules."""

    runner: Runner
    training: bool
    run: PinnedRun
    tensors: int = 0
    """how many were tried, for all faults"""
    switches: int = 0
    proven: list[Switch] = field(default_factory=list)
    """what made earlier faults go away"""

    def explain_tensor(self, fault: Fault) -> Told | None:
        """Return what is wrong with a tensor that a module makes itself; None if nothing is found.

        With PyTorch's values in it the fault is gone.
        """
        pairing = self.runner.pairing
        for name, other in self._list_tensors(fault.place[1]):
            if self.tensors >= _MOST_TENSORS:
                return None
            self.tensors += 1
            if self._mends_loaded(fault, name, other):
                ours, theirs = pairing.torch.tensors[name], pairing.paddle.tensors[other]
                words = f"{last_part(other)}, a tensor that Paddle's module makes, is not PyTorch's {name}"
                return (
                    find_argument(self.runner.reference, pairing.torch, ours.owner, [ours.role]),
                    find_argument(self.runner.port, pairing.paddle, theirs.owner, [theirs.role]),
                    f"{words}: with its values the numbers agree",
                )
        return None

    def explain_switch(self, fault: Fault, scope: CallPair, inside: list[Operation]) -> Told | None:
        """Return which switch or number of a module makes the fault go away; None if none does.

        scope: the calls in whose code it arises. inside: the calls that the port's code makes there.
        """
        known = [(one.name, one.after) for one in self.proven]
        found = self._list_switches(fault, scope, inside)
        for one in sorted(found, key=lambda it: (it.name, it.after) not in known):
            if self.switches >= _MOST_SWITCHES:
                return None
            self.switches += 1
            if self._mends(fault, one):
                self.proven.append(one)
                info = self.runner.pairing.paddle
                line = find_argument(self.runner.port, info, one.path, [one.name])
                words = (
                    f"{one.name} is {one.before!r} in Paddle: {one.after!r} gives PyTorch's numbers"
                )
                return None, line, words
        return None

    def _list_tensors(self, path: str) -> Iterator[tuple[str, str]]:
        """Yield PyTorch's tensors beside those of the port's that could be meant to hold the same."""
        pairing = self.runner.pairing
        ours = {name: self.runner.weights[name] for name, one in pairing.torch.tensors.items()
                if one.is_float and not one.is_parameter and name in self.runner.weights}  # fmt: skip
        for other, one in pairing.paddle.tensors.items():
            if not one.is_float or one.is_parameter or other in pairing.loaded_names:
                continue
            held = self.runner.held.get(other)
            if held is None or not is_within(other, path):
                continue
            alike = [name for name, array in ours.items() if array.size == held.size > 1]
            if any(are_equal(ours[name].reshape(held.shape), held, _CLOSE) for name in alike):
                continue
            yield from (
                (name, other)
                for name in sorted(alike, key=lambda it: last_part(it) != last_part(other))
            )

    def _list_switches(
        self, fault: Fault, scope: CallPair, inside: list[Operation]
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
            if not self._is_kernel(path):
                due = self.runner.reference.read_attributes(names[path]) if path in names else {}
                yield from _turn(path, self.runner.port.read_attributes(path), due)

    def _is_kernel(self, path: str) -> bool:
        """Tell whether a layer of the framework's own hands what it holds to a kernel.

        A kernel that gets a wrong size ends the process; the audit compares these settings.
        """
        composites = {self.run.port.calls[number].path for number in self.run.composites}
        return path in self.run.counterparts.stock and path not in composites

    def _mends_loaded(self, fault: Fault, name: str, other: str) -> bool:
        port, held = self.runner.port, self.runner.held[other]
        port.load({other: self.runner.weights[name].reshape(held.shape)})
        try:
            return self._mends(fault)
        finally:
            port.load({other: held})

    def _mends(self, fault: Fault, switch: Switch | None = None) -> bool:
        return is_gone(self.runner, self.training, self.run, fault, switch)


def _turn(path: str, held: Mapping[str, object], due: Mapping[str, object]) -> Iterator[Switch]:
    """Yield each switch turned, and what PyTorch's module holds under the same name otherwise."""
    for name, value in held.items():
        if isinstance(value, bool):
            yield Switch(path, name, value, not value)
        elif name in due and type(due[name]) is type(value) and due[name] != value:
            yield Switch(path, name, value, due[name])


def is_gone(
    runner: Runner, training: bool, run: PinnedRun, fault: Fault, switch: Switch | None = None
) -> bool:
    """Tell whether the port has what is due at a fault of the forward pass now that it was changed.

    run: in which the fault was found. switch: another value that a module holds.
    """
    place = fault.find_wrong()
    if place is None:
        return False
    last = fault.calls.theirs.key, place[0]
    wanted = Wanted(frozenset(), frozenset(), last=last, switch=switch)
    pins = ReferencePins(run.counterparts, run.reference, constants=False)
    try:
        trace = runner.run_port(training, "all", pins, backward=False, wanted=wanted)
    except ModelFailure:
        return False
    call = trace.by_key().get(fault.calls.theirs.key)
    leaf = None if call is None else getattr(call, place[0]).get(place[1])
    return leaf is not None and fault.agrees(leaf.array)
