"""A place at which the port, given the reference's numbers, computes others."""

from dataclasses import dataclass
from typing import Literal

from reprod_align.alignment.locating.counterparts import CallPair, Which
from reprod_align.alignment.noise import Judge
from reprod_align.base.apart import measure_ordinary
from reprod_align.base.difference import Gap
from reprod_align.model.leaf import LeafPair, equal_in_effect
from reprod_align.model.trace import Array, Call

import numpy as np

FLOOR = 1e-13
"""of the largest value that a call meets: what rounding leaves where zero is due"""
ALONE = Judge()
"""compares two arrays of which no more is known"""
ROUNDED = 2e-6
"""how far float32 inside, such as that of rotary tables, may move a value"""
_BESIDE = 1e-4
"""times a fault: what is apart by less did not make it"""
Kind = Literal["number", "mask", "cut", "kink"]


@dataclass(frozen=True, eq=False)
class Fault:
    """What differs, and where."""

    stage: Literal["forward", "backward"]
    place: tuple[str, str]
    """the module at fault: PyTorch's name and Paddle's"""
    gap: Gap
    where: str
    """what differs, in words"""
    tick: int
    """when it showed, on the clock of the port's run"""
    calls: CallPair
    """the calls at which it showed"""
    own_code: bool
    """True: between or after the children of a composite; False: in the module itself"""
    expected: Array | None = None
    """the reference's tensor in the port's layout, or its gradient"""
    actual: Array | None = None
    kind: Kind = "number"
    """mask: a mask or index made there is at fault; cut: no gradient flows here on one side alone;
    kink: gradients differ only where an activation's slope jumps, which each framework settles its own way"""
    stock: bool = False
    """True: in a layer of the framework's own"""
    judge: Judge = ALONE
    """what compared the two"""
    shown: "Fault | None" = None
    """how it showed first, where the blame was moved to what makes a mask or an index"""

    @property
    def key(self) -> tuple[object, ...]:
        """What is the same for this fault in another run."""
        return self.stage, self.place, self.calls.theirs.key, self.where.partition(":")[0]

    @property
    def residue(self) -> float:
        """How far apart, relatively, float32 inside may leave the values when the fault is gone."""
        return (
            min(ROUNDED, _BESIDE * self.gap.relative) if np.isfinite(self.gap.relative) else ROUNDED
        )

    def find_wrong(self) -> tuple[Which, str] | None:
        """Return where the wrong value is at the port's call, and which leaf of it; None if nowhere."""
        places: tuple[Which, Which] = ("inputs", "outputs")
        for which in places:
            for at, leaf in getattr(self.calls.theirs, which).items():
                if leaf.array is self.actual:
                    return which, at
        return None

    def agrees(self, value: Array) -> bool:
        """Tell whether a value is what is due here."""
        if self.expected is None or self.expected.shape != value.shape:
            return False
        found = self.judge.compare(self.expected, value, rounding_of(self.calls.ours))
        return found.ok or found.relative <= self.residue or equal_in_effect(self.expected, value)


def compare(
    pair: LeafPair, expected: Array, actual: Array, floor: float, judge: Judge = ALONE
) -> Gap:
    """Compare a value of the reference with the port's."""
    return judge.compare(pair.to_port(expected), actual, floor)


def compare_gradients(
    pair: LeafPair,
    expected: Array | None,
    actual: Array | None,
    floor: float,
    judge: Judge = ALONE,
) -> Gap:
    """Compare two gradients; one that never arrived is zero."""
    laid = pair.to_port(expected)
    if actual is None:
        actual = np.zeros(1 if laid is None else laid.shape)
    return judge.compare(np.zeros(actual.shape) if laid is None else laid, actual, floor)


def rounding_of(call: Call) -> float:
    """Return what rounding leaves in a call where zero is due."""
    leaves = [*call.inputs.values(), *call.outputs.values()]
    sizes = (measure_ordinary(leaf.array) for leaf in leaves if leaf.differentiable)
    return FLOOR * max(sizes, default=0.0)
