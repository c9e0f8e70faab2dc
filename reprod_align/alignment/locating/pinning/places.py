"""Where a run on the reference's numbers differs by more than rounding: in values, or in gradients."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from reprod_align.alignment.comparing import WHOLE_ROUNDING
from reprod_align.alignment.locating.backward import find_largest_gradient, pair_gradients
from reprod_align.alignment.locating.counterparts import Boundary, CallPair, PinnedRun, Which
from reprod_align.alignment.locating.differing import find_apart, is_felt
from reprod_align.alignment.locating.fault import FLOOR, compare_gradients, rounding_of
from reprod_align.model.trace import Array

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
