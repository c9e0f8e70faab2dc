"""Proves by replacement which tensor that the port makes for itself is wrong: a rotary table, say.

No weight is loaded into such a tensor, and it is made before the run: no call of the run tells of it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from reprod_align.alignment.lines.arguments import find_argument
from reprod_align.alignment.lines.values import are_equal
from reprod_align.alignment.locating.changes import agrees, find_wrong
from reprod_align.alignment.locating.counterparts import PinnedRun
from reprod_align.alignment.locating.fault import Fault
from reprod_align.alignment.locating.pinning.pins import ReferencePins
from reprod_align.alignment.runner import Runner
from reprod_align.base.naming import is_within, last_part
from reprod_align.model.side import ModelFailure
from reprod_align.model.source.lines import SourceLine
from reprod_align.model.source.operation import Wanted

_CLOSE = 1e-6  # relative: a table may be kept in float32
_MOST_RUNS = 8  # of the port, for all faults of one pass


@dataclass(frozen=True)
class HeldTensors:
    """Runs the port once more with PyTorch's values in one of the tensors that no weight is loaded into."""

    runner: Runner
    training: bool
    run: PinnedRun
    runs: list[tuple[str, str]] = field(default_factory=list)
    """what was tried, for all faults"""

    def explain(self, fault: Fault) -> tuple[SourceLine | None, SourceLine | None, str] | None:
        """Return the lines that make a tensor with whose other values the fault is gone, and why.

        None if there is no such tensor in the module at fault.
        """
        if fault.stage == "backward" or fault.actual is None:
            return None
        for name, other in self._list_pairs(fault.place[1]):
            if len(self.runs) >= _MOST_RUNS:
                return None
            self.runs.append((name, other))
            if self._mends(fault, name, other):
                words = f"{last_part(other)}, a tensor that Paddle's module makes, is not PyTorch's {name}"
                return *self._find_lines(name, other), f"{words}: with its values the numbers agree"
        return None

    def _find_lines(self, name: str, other: str) -> tuple[SourceLine | None, SourceLine | None]:
        pairing = self.runner.pairing
        ours, theirs = pairing.torch.tensors[name], pairing.paddle.tensors[other]
        return (
            find_argument(self.runner.reference, pairing.torch, ours.owner, [ours.role]),
            find_argument(self.runner.port, pairing.paddle, theirs.owner, [theirs.role]),
        )

    def _list_pairs(self, path: str) -> Iterator[tuple[str, str]]:
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

    def _mends(self, fault: Fault, name: str, other: str) -> bool:
        place = find_wrong(fault)
        if place is None:
            return False
        port, held = self.runner.port, self.runner.held[other]
        wanted = Wanted(frozenset(), frozenset(), last=(fault.calls.theirs.key, place[0]))
        pins = ReferencePins(self.run.counterparts, self.run.reference, constants=False)
        port.load({other: self.runner.weights[name].reshape(held.shape)})
        try:
            trace = self.runner.run_port(self.training, "all", pins, backward=False, wanted=wanted)
        except ModelFailure:
            return False
        finally:
            port.load({other: held})
        call = trace.by_key().get(fault.calls.theirs.key)
        leaf = None if call is None else getattr(call, place[0]).get(place[1])
        return leaf is not None and agrees(fault, leaf.array)
