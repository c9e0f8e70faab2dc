"""Runs the port with the reference's numbers in place of its own, call by call.

That is done where both sides have the same boundaries. Where they divide their work between modules in
other ways, the port keeps its own numbers: a norm may end one module here and begin the next one there,
a layer may have an activation built in. What passes such a boundary differs, and the reference's number
in its place spoils what follows. It is told from a fault by this: with the port's own number there,
what follows is right.
"""

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from reprod_align.alignment.comparing import WHOLE_ROUNDING, Pass
from reprod_align.alignment.locating.counterparts import (
    Boundary,
    CallPair,
    Counterparts,
    PinnedRun,
    Which,
)
from reprod_align.alignment.locating.fault import (
    FLOOR,
    compare_gradients,
    find_apart,
    is_felt,
    rounding_of,
)
from reprod_align.alignment.locating.faults import find_largest_gradient, pair_gradients
from reprod_align.alignment.runner import Runner
from reprod_align.base.blocks import Array
from reprod_align.model.side import ModelFailure
from reprod_align.model.source import Wanted
from reprod_align.model.trace import (
    Call,
    Leaf,
    LeafPair,
    Trace,
    carries_mask,
    pair_leaves,
    sum_gradients,
)
from reprod_align.model.watch import Pin, Pins
from reprod_align.randomness import CallKey

import numpy as np

_EITHER: tuple[Which, Which] = ("inputs", "outputs")


@dataclass(frozen=True)
class Place:
    """A boundary at which the port's number is far from the reference's."""

    boundary: Boundary
    tick: int
    """when it showed: later ones are larger"""
    actual: Array
    may_move: bool
    """False: what a layer of the framework's own takes and gives says what it is"""
    is_felt: bool
    """whether the outputs depend on the difference"""


def find_values(run: PinnedRun) -> Mapping[Boundary, Place]:
    """Return the boundaries at which a value differs, in the order of the forward pass."""
    return _sort(_list_values(replace(run, noise=None)))


def find_gradients(run: PinnedRun) -> Mapping[Boundary, Place]:
    """Return the boundaries at which a gradient differs, in the order of the backward pass."""
    return _sort(_list_gradients(replace(run, noise=None)))


def _sort(places: Iterable[Place]) -> Mapping[Boundary, Place]:
    found: dict[Boundary, Place] = {}
    for place in sorted(places, key=lambda place: place.tick):
        found.setdefault(place.boundary, place)
    return found


def _list_values(run: PinnedRun) -> Iterator[Place]:
    for calls in _list_inner(run):
        floor = rounding_of(calls.ours)
        for which in _EITHER:
            may_move = run.counterparts.may_move(calls.theirs, which)
            for apart in find_apart(run, calls, which, floor):
                pair, gap, _, actual = apart
                ours, _ = calls.leaves(pair, which)
                if ours.differentiable and gap.relative > WHOLE_ROUNDING:
                    boundary = calls.theirs.path, which, pair.actual
                    felt = is_felt(run, calls, which, apart)
                    yield Place(boundary, _tick(calls, which), actual, may_move, felt)


def _list_gradients(run: PinnedRun) -> Iterator[Place]:
    floor = FLOOR * find_largest_gradient(run.reference)
    for calls in _list_inner(run):
        for which, pair, ours, theirs in pair_gradients(run, calls):
            gap = compare_gradients(pair, ours.gradient, theirs.gradient, floor)
            flows = ours.differentiable and theirs.differentiable
            if flows and not gap.ok and gap.relative > WHOLE_ROUNDING:
                boundary = calls.theirs.path, which, pair.actual
                may_move = run.counterparts.may_move(calls.theirs, which)
                none = np.zeros(theirs.array.shape)
                actual = none if theirs.gradient is None else theirs.gradient
                yield Place(boundary, -_tick(calls, which), actual, may_move, True)


def _list_inner(run: PinnedRun) -> Iterator[CallPair]:
    """Yield the calls within the models' own."""
    for calls in run.calls:
        if calls.theirs.parent is not None and calls.theirs.finished >= 0:
            yield calls


def _tick(calls: CallPair, which: Which) -> int:
    return calls.theirs.began if which == "inputs" else calls.theirs.finished


_ROUNDS = 8  # runs that are tried

Rerun = Callable[[frozenset[Boundary]], PinnedRun]
"""runs the port on the reference's numbers, but with its own at these boundaries"""
FindPlaces = Callable[[PinnedRun], Mapping[Boundary, Place]]
"""returns where a run differs, in the order in which it shows"""


def find_moved(run: PinnedRun, rerun: Rerun, find_places: FindPlaces) -> frozenset[Boundary]:
    """Return the boundaries that the port draws elsewhere; run: on the reference's numbers at all.

    Every boundary that differs gets the port's own value. What then differs further on takes the blame
    back to the boundary before it, which is a fault then, until nothing new differs.
    """
    known = find_places(run)
    felt = {boundary for boundary, place in known.items() if place.is_felt}
    lifted = {boundary: boundary for boundary, place in known.items() if place.may_move}
    for _ in range(_ROUNDS):
        if not lifted or not felt or len(known) < 2:  # a moved boundary spoils another
            break
        found = find_places(replace(run, port=rerun(frozenset(lifted)).port))
        moved = {boundary: found[boundary] for boundary in lifted if boundary in found}
        new = [found[boundary] for boundary in found if boundary not in {**known, **lifted}]
        passed = dict(_find_passed_on(new, moved.values()))
        spoilt = [place.tick for place in new if place.is_felt]
        if passed:
            lifted |= {boundary: lifted[source] for boundary, source in passed.items()}
        elif felt <= found.keys():  # nothing that was wrong is right now
            break
        elif spoilt:
            lifted = _take_back(lifted, moved.values(), min(spoilt))
        else:
            return frozenset(moved)
    return frozenset()


def _find_passed_on(
    new: Iterable[Place], moved: Iterable[Place]
) -> Iterator[tuple[Boundary, Boundary]]:
    """Yield the boundaries at which the value of a moved one arrives as it is, with that one."""
    for place in new:
        for source in moved:
            if place.may_move and source.tick < place.tick and _hold_same(place, source):
                yield place.boundary, source.boundary


def _hold_same(one: Place, other: Place) -> bool:
    """Tell whether two boundaries hold the same numbers, in whatever layout."""
    if one.actual.size != other.actual.size:
        return False
    return np.array_equal(np.sort(one.actual, None), np.sort(other.actual, None))


def _take_back(
    lifted: Mapping[Boundary, Boundary], moved: Iterable[Place], spoilt: int
) -> dict[Boundary, Boundary]:
    """Return the lifted boundaries without those last before the tick at which something is spoilt."""
    before = [place for place in moved if place.tick <= spoilt]
    if not before:
        return {}
    source = lifted[max(before, key=lambda place: place.tick).boundary]
    return {boundary: seed for boundary, seed in lifted.items() if seed != source}


class ReferencePins:
    """Gives the port the reference's values and gradients, call by call."""

    def __init__(self, counterparts: Counterparts, reference: Trace, constants: bool) -> None:
        """Take the reference's run; constants: masks and indices are given as well."""
        self._counterparts = counterparts
        trained = any(leaf.differentiable for leaf in reference.outputs.values())
        self._constants = constants or not trained

    def inputs(self, call: Call) -> dict[str, Pin]:
        """Return pins for the leaves of call.inputs."""
        return self._pin_all(call, "inputs")

    def outputs(self, call: Call) -> dict[str, Pin]:
        """Return pins for the leaves of call.outputs."""
        return self._pin_all(call, "outputs")

    def _pin_all(self, call: Call, which: Which) -> dict[str, Pin]:
        calls = self._counterparts.of(call)
        if calls is None:
            return {}
        pairs = self._counterparts.pair_leaves(calls, which)
        pins = self._pin(calls, pairs, which, self._constants)
        return {**pins, **_pin_copies(getattr(call, which), pairs, pins)}

    def _pin(
        self, calls: CallPair, pairs: Sequence[LeafPair], which: Which, constants: bool
    ) -> dict[str, Pin]:
        leaves = getattr(calls.ours, which)
        gradients = sum_gradients(leaves, pairs)
        pins = {}
        for pair in pairs:
            leaf = leaves[pair.expected]
            if (
                leaf.differentiable
                or constants
                or not (which == "inputs" or carries_mask(leaf.array))
            ):
                gradient = pair.to_port(gradients[pair.expected])
                pins[pair.actual] = Pin(pair.to_port(leaf.array), gradient, leaf.differentiable)
        return pins


class ChosenPins(ReferencePins):
    """Gives the port what the reference's calls of a few modules gave: outputs, and gradients of inputs."""

    def __init__(
        self, counterparts: Counterparts, reference: Trace, chosen: Container[tuple[str, int]]
    ) -> None:
        """Take the reference's run, and the keys of the port's calls."""
        super().__init__(counterparts, reference, constants=False)
        self._chosen = chosen

    def inputs(self, call: Call) -> dict[str, Pin]:
        """Return pins of the gradients; the values stay as they are."""
        pins = super().inputs(call) if call.key in self._chosen else {}
        return {at: Pin(None, pin.gradient) for at, pin in pins.items()}

    def outputs(self, call: Call) -> dict[str, Pin]:
        """Return pins of the values; the gradients stay as they are."""
        pins = super().outputs(call) if call.key in self._chosen else {}
        return {at: Pin(pin.array, None, pin.differentiable) for at, pin in pins.items()}


def differ_in_effect(call: Call, first: Pins, second: Pins) -> bool:
    """Tell whether pins change what a call of a run with the first pins took or gave in another way.

    They do not where the second pin more values, and each is what the call has there anyway.
    """
    for which in ("inputs", "outputs"):
        leaves = getattr(call, which)
        known, more = getattr(first, which)(call), getattr(second, which)(call)
        for at in more.keys() - known.keys():
            given, leaf = more[at].array, leaves[at]
            if leaf.differentiable or given is None or not np.array_equal(given, leaf.array):
                return True
    return False


def _pin_copies(
    leaves: Mapping[str, Leaf], pairs: Sequence[LeafPair], pins: Mapping[str, Pin]
) -> dict[str, Pin]:
    """Return pins for tensors that repeat a pinned one, whose gradient must count once."""
    copies = {}
    for at, leaf in leaves.items():
        if at in pins or not leaf.differentiable:
            continue
        for pair in pairs:
            pin = pins.get(pair.actual)
            if pin is not None and np.array_equal(leaves[pair.actual].array, leaf.array):
                copies[at] = replace(pin, gradient=np.zeros(leaf.array.shape))
                break
    return copies


class EndPins:
    """Gives the port the reference's outputs alone: they are what the loss is judged on."""

    def __init__(self, reference: Trace, ends: bool = False) -> None:
        """Take the reference's run; ends: no gradient goes back into the model."""
        self._outputs, self._ends = reference.outputs, ends

    def inputs(self, call: Call) -> dict[str, Pin]:
        """Return nothing: inputs stay as they are."""
        return {}

    def outputs(self, call: Call) -> dict[str, Pin]:
        """Return pins for the model's own outputs."""
        if call.parent is not None:
            return {}
        pairs = pair_leaves(self._outputs, call.outputs)
        return {
            p.actual: Pin(p.to_port(self._outputs[p.expected].array), None, ends=self._ends)
            for p in pairs
        }


class NoWayBack:
    """Lets the loss's gradient go as far as the model's own outputs, which keep their values."""

    def inputs(self, call: Call) -> dict[str, Pin]:
        """Return nothing: inputs stay as they are."""
        return {}

    def outputs(self, call: Call) -> dict[str, Pin]:
        """Return pins for the model's own outputs."""
        ends = {} if call.parent is not None else call.outputs
        return {at: Pin(None, None, ends=True) for at in ends}


def run_again(
    runner: Runner,
    training: bool,
    run: PinnedRun,
    constants: bool = False,
    backward: bool = False,
    wanted: Wanted | None = None,
) -> PinnedRun:
    """Run the port anew on the reference's numbers of `run`; constants: masks and indices are given too."""
    pins = ReferencePins(run.counterparts, run.reference, constants)
    trace = runner.run_port(training, "all", pins=pins, backward=backward, wanted=wanted)
    return replace(run, port=trace)


def run_pinned(runner: Runner, done: Pass) -> tuple[PinnedRun, PinnedRun]:
    """Return the port's runs on the reference's numbers: masks and indices left alone, and given.

    Where the two sides divide their work in other ways, the port keeps its own numbers. Without a
    backward pass where the port's own run has deferred it.
    """
    goes_back = not done.natural.deferred
    counterparts = Counterparts(runner.pairing, done.reference, done.natural)
    natural = PinnedRun(done.reference, done.natural, counterparts, done.noise)

    def run_on(
        moved: Collection[Boundary], backward: bool = goes_back, constants: bool = False
    ) -> PinnedRun:
        run = replace(natural, counterparts=natural.counterparts.without(moved))
        return run_again(runner, done.training, run, constants, backward)

    free = run_on(frozenset())
    ways = (find_values, False), (find_gradients, True)
    for find_places, backward in ways if goes_back else ways[:1]:
        moved = find_moved(free, partial(run_on, backward=backward), find_places)
        if moved:
            natural = replace(natural, counterparts=natural.counterparts.without(moved))
            free = run_on(frozenset())
    pins = [ReferencePins(free.counterparts, done.reference, one) for one in (False, True)]
    if not any(differ_in_effect(call, *pins) for call in free.port.calls):
        return free, free
    try:
        return free, run_on(frozenset(), constants=True)
    except ModelFailure:  # a mask of the other convention need not fit
        return free, free


def run_on_chosen(
    runner: Runner, run: PinnedRun, training: bool, chosen: Container[CallKey]
) -> Trace:
    """Return the port's own run, but for what a few of its calls give: there it has the reference's."""
    pins = ChosenPins(run.counterparts, run.reference, chosen)
    return runner.run_port(training, "all", pins=pins)
