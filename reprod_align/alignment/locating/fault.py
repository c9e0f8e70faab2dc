"""A place at which the port, given the reference's numbers, computes others.

Which tensors differ there where the outputs depend on them, whether that is float32 rounding, and which
child is closer to it. A recurrent layer may stand in one model where the other has cells in a loop: their
weights are paired, they themselves are not, and all that is known is that the difference arises between
them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from reprod_align.alignment.comparing import (
    LAYER_ROUNDING,
    WHOLE_ROUNDING,
    Pass,
    limit_own_code,
)
from reprod_align.alignment.findings import Findings
from reprod_align.alignment.locating.counterparts import CallPair, PinnedRun, Which
from reprod_align.alignment.noise import Judge
from reprod_align.alignment.pairing import Pairing
from reprod_align.alignment.runner import Runner
from reprod_align.base import PORT
from reprod_align.base.blocks import Array, magnitude
from reprod_align.base.difference import Gap
from reprod_align.base.local import measure_ordinary
from reprod_align.base.text import parent
from reprod_align.model.trace import (
    HIDDEN,
    Call,
    Leaf,
    LeafPair,
    Trace,
    equal_in_effect,
    find_unpaired,
)

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
        """How far apart, relatively, float32 inside may leave the values when the fault is gone.

        What a cut gradient would have been is not known: all that it hid may show then.
        """
        if self.kind == "cut" or not np.isfinite(self.gap.relative):
            return ROUNDED
        return min(ROUNDED, _BESIDE * self.gap.relative)

    @property
    def is_of_shape(self) -> bool:
        """Whether an output has another shape, so that it is compared with nothing."""
        return self.expected is None and np.isinf(self.gap.relative) and self.stage == "forward"

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


_FAINT = 40.0  # a score that far below another adds e**-40, which float64 does not hold


Apart = tuple[LeafPair, Gap, Array, Array]
"""two tensors that differ, by how much, and both in the port's layout"""


def find_differing(run: PinnedRun, calls: CallPair, which: Which, floor: float) -> Iterator[Apart]:
    """Yield the pairs of tensors that differ where it matters.

    floor: what rounding leaves where zero is due.
    """
    for apart in find_apart(run, calls, which, floor):
        if is_felt(run, calls, which, apart):
            yield apart


def find_apart(run: PinnedRun, calls: CallPair, which: Which, floor: float) -> Iterator[Apart]:
    """Yield the pairs of tensors that differ, whether the outputs depend on it or not."""
    for pair in run.pair_leaves(calls, which):
        ours, theirs = calls.leaves(pair, which)
        judge = run.judge_values(calls, pair, which)
        found = compare(pair, ours.array, theirs.array, floor, judge)
        if not found.ok:
            found = _compare_shown(pair.to_port(ours.array), theirs.array, floor, found)
        if not found.ok:
            yield pair, found, pair.to_port(ours.array), theirs.array


def is_felt(run: PinnedRun, calls: CallPair, which: Which, apart: Apart) -> bool:
    """Tell whether the outputs depend on a difference; yes, where no gradients tell."""
    pair, found, _, actual = apart
    ours, _ = calls.leaves(pair, which)
    no_gradients = all(leaf.gradient is None for leaf in run.reference.outputs.values())
    return (
        no_gradients
        or _matters(pair, ours, actual, found.tolerance)
        or (run.counterparts.is_spoilt and _spoils(pair, ours.array, actual))
    )


def _compare_shown(expected: Array, actual: Array, floor: float, found: Gap) -> Gap:
    """Return the gap of what a mask leaves: what both hide, by whatever number, sets no tolerance."""
    if expected.shape != actual.shape or expected.dtype.kind != "f":
        return found
    both = (expected <= -HIDDEN) & (actual <= -HIDDEN)
    if not both.any() or both.all():
        return found
    return ALONE.compare(np.where(both, 0.0, expected), np.where(both, 0.0, actual), floor)


def _spoils(pair: LeafPair, expected: Array, actual: Array) -> bool:
    """Tell whether a value is not finite where the reference's is: even times 0 it is felt."""
    laid = pair.to_port(expected)
    if laid.shape != actual.shape or laid.dtype.kind != "f":
        return False
    return bool((np.isfinite(laid) & ~np.isfinite(actual)).any())


def _matters(pair: LeafPair, leaf: Leaf, actual: Array, tolerance: float) -> bool:
    """Tell whether the difference lies where the outputs depend on it: not in padding, say."""
    if not leaf.differentiable:
        return True
    gradient, expected = pair.to_port(leaf.gradient), pair.to_port(leaf.array)
    if gradient is None:
        return False
    if expected.shape != actual.shape:
        return True
    with np.errstate(all="ignore"):
        distance = np.abs(actual.astype(np.float64) - expected.astype(np.float64))
    apart = ~(distance <= tolerance) & (actual != expected)
    felt = np.abs(gradient) > 1e-12 * magnitude(gradient)
    return bool((apart & (felt | _is_uncovered(expected, actual, felt))).any())


def _is_uncovered(expected: Array, actual: Array, felt: Array) -> Array:
    """Return where the port shows a score that the reference hides, among scores that are felt.

    No gradient tells: what is hidden gets none.
    """
    hidden = (expected <= -HIDDEN) & np.isfinite(actual)
    if not hidden.any() or not expected.ndim:
        return np.zeros_like(hidden)
    shown = np.where(felt, actual, -np.inf).max(axis=-1, keepdims=True)
    return np.asarray(hidden & (actual > shown - _FAINT) & np.isfinite(shown))


def find_misfit(run: PinnedRun, calls: CallPair) -> tuple[str, str] | None:
    """Return the first outputs of two calls that the shapes keep from being paired, if both have one.

    What the reference makes no use of needs no counterpart; what the models return does, and what one of
    them returns in another shape takes no gradient.
    """
    ours = calls.ours.outputs
    inside = calls.theirs.parent is not None
    if inside and any(leaf.gradient is not None for leaf in run.reference.outputs.values()):
        misfit = next(
            (find_misfit(run, one) for one in run.calls if one.theirs.parent is None), None
        )
        due = run.reference.outputs[misfit[0]].array if misfit is not None else None
        ours = {
            at: leaf
            for at, leaf in ours.items()
            if leaf.gradient is not None or (due is not None and np.array_equal(leaf.array, due))
        }
    return find_unpaired(ours, calls.theirs.outputs, run.counterparts.fit_leaves(calls, "outputs"))


def outputs_agree(run: PinnedRun, calls: CallPair) -> bool:
    """Tell whether the outputs of two calls fit each other and agree but for rounding inside layers."""
    fit = bool(run.pair_leaves(calls, "outputs")) and find_misfit(run, calls) is None
    return fit and not _differ(run, calls, "outputs")


def inputs_differ(run: PinnedRun, calls: CallPair) -> bool:
    """Tell whether two calls were handed different numbers; masks and indices are left aside."""
    return _differ(run, calls, "inputs")


def _differ(run: PinnedRun, calls: CallPair, which: Which) -> bool:
    leaves = getattr(calls.ours, which)
    return any(
        leaves[pair.expected].differentiable and found.relative > LAYER_ROUNDING
        for pair, found, *_ in find_differing(run, calls, which, rounding_of(calls.ours))
    )


_PRODUCTS = {"Linear", "Embedding", "Bilinear"} | {
    f"Conv{transpose}{axes}d" for transpose in ("", "Transpose") for axes in (1, 2, 3)
}
"""sums of products: there is no constant in them that a float32 could hold"""


def may_round(runner: Runner, ours: str, theirs: str) -> bool:
    """Tell whether a small difference in a pair of modules can be float32's, of a constant or of all."""
    paddle = runner.pairing.paddle
    exact = theirs in paddle.stock and paddle.modules[theirs].kind in _PRODUCTS
    if exact and runner.dtype == "float64":
        return False
    return not runner.pairing.settings_differ(ours, theirs)


def is_rounding(runner: Runner, fault: Fault, measured: bool = True) -> bool:
    """Tell whether a fault is float32 rounding inside a layer.

    measured: at each place by what float32 does there, and of a constant as the layer answers to it;
    both take a run of the reference.
    """
    if fault.kind == "cut" or not may_round(runner, *fault.place):
        return False
    own = not fault.stock or fault.own_code
    limit = limit_own_code(runner.dtype) if own else LAYER_ROUNDING
    if not measured or fault.expected is None or fault.actual is None:
        return fault.gap.relative <= limit
    return fault.judge.is_rounding(fault.gap, fault.expected, fault.actual, limit)


def is_rounding_throughout(done: Pass) -> bool:
    """Tell whether all that differs in a pass is as small as rounding that has grown on its way.

    Where no output could be compared, nothing tells.
    """
    outputs, gradients = [gap for _, gap in done.outputs], [gap for *_, gap in done.gradients]
    return bool(outputs) and _all_small(outputs) and _all_small(gradients)


def note_rounding_as_a_whole(
    runner: Runner, findings: Findings, place: str, worst: Gap, small: bool
) -> bool:
    """Tell whether what no module alone makes is float32 rounding that adds up; note it if so.

    small: whether it is no larger than that.
    """
    rounds = small and may_round(runner, "", "")
    if rounds:
        findings.note_float32(place, worst.relative)
    return rounds


def _all_small(gaps: Sequence[Gap]) -> bool:
    """Tell whether what differs is small next to its own largest value, or to that of all if it is 0."""
    largest = max((found.scale for found in gaps), default=0.0)
    return all(
        found.ok or found.difference <= WHOLE_ROUNDING * (found.scale or largest) for found in gaps
    )


def move_closer(fault: Fault, pairing: Pairing, reference: Trace) -> Fault:
    """Return the fault at the only unpaired child that shares its weights with unpaired ones there."""
    if not fault.own_code or fault.kind == "mask" or fault.stage != "forward":
        return fault
    called = {call.path for call in reference.calls if call.finished >= 0}
    ours = _find_unpaired(fault.place[0], pairing.torch.modules, pairing.modules) & called
    theirs = _find_unpaired(fault.place[1], pairing.paddle.modules, pairing.names)
    partners: dict[str, set[str]] = {}
    for pair in pairing.match.pairs:
        for child in {_find_holder(name, ours) for name in pair.torch} - {""}:
            partners.setdefault(child, set()).update(
                _find_holder(name, theirs) for name in pair.paddle
            )
    if len(partners) != 1:
        return fault
    ((child, others),) = partners.items()
    if "" in others:
        return fault
    where = fault.where.replace(
        "the value it hands", "the value made from its output and handed", 1
    )
    where += f"; its weights are those of {', '.join(sorted(others))} in {PORT}"
    other = next(iter(others)) if len(others) == 1 else fault.place[1]
    return replace(fault, place=(child, other), where=where, own_code=False)


def _find_unpaired(path: str, modules: Iterable[str], paired: Mapping[str, str]) -> set[str]:
    """Return the modules without counterpart directly below `path`, or below a mere list of modules there."""
    found = set()
    for module in modules:
        above = parent(module)
        while above and above != path and above not in paired:
            above = parent(above)
        if module and module not in paired and above == path:
            found.add(module)
    return found


def _find_holder(tensor: str, modules: Iterable[str]) -> str:
    """Return the outermost of `modules` that holds the tensor, "" if none does."""
    return min((m for m in modules if tensor.startswith(f"{m}.")), key=len, default="")
