"""Finds where the two sides divide their work between modules in other ways.

A norm may end one module here and begin the next one there; a layer may have an activation built in.
The value at such a boundary differs, and the reference's number in its place spoils what follows. It
is told from a fault by this: with the port's own value there, what follows is right.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from reprod_align.alignment.comparing import WHOLE_ROUNDING
from reprod_align.alignment.locating.counterparts import Boundary, PinnedRun, Which
from reprod_align.alignment.locating.differing import find_apart, is_felt
from reprod_align.alignment.locating.fault import rounding_of
from reprod_align.model.trace import Array

import numpy as np

_ROUNDS = 8  # forward passes that are tried
_EITHER: tuple[Which, Which] = ("inputs", "outputs")

Rerun = Callable[[frozenset[Boundary]], PinnedRun]
"""runs the port on the reference's numbers, forward only, with its own values at these boundaries"""


@dataclass(frozen=True)
class _Place:
    """A boundary at which the port's value is far from the reference's, on the reference's numbers."""

    boundary: Boundary
    tick: int
    """when it showed, on the clock of the port's run"""
    actual: Array
    may_move: bool
    """False: what a layer of the framework's own takes and gives says what it is"""
    is_felt: bool
    """whether the outputs depend on the difference"""


def find_moved(run: PinnedRun, rerun: Rerun) -> frozenset[Boundary]:
    """Return the boundaries that the port draws elsewhere; run: on the reference's numbers at all.

    Every boundary that differs gets the port's own value. What then differs further on takes the blame
    back to the boundary before it, which is a fault then, until nothing new differs.
    """
    known = _find_places(run)
    felt = {boundary for boundary, place in known.items() if place.is_felt}
    lifted = {boundary: boundary for boundary, place in known.items() if place.may_move}
    for _ in range(_ROUNDS):
        if not lifted or not felt or len(known) < 2:  # a moved boundary spoils another
            break
        found = _find_places(replace(run, port=rerun(frozenset(lifted)).port))
        moved = {boundary: found[boundary] for boundary in lifted if boundary in found}
        new = [found[boundary] for boundary in found if boundary not in {**known, **lifted}]
        passed = dict(_find_passed_on(new, moved.values()))
        spoilt = [place.tick for place in new if place.is_felt]
        if passed:
            lifted |= {boundary: lifted[source] for boundary, source in passed.items()}
        elif spoilt:
            lifted = _take_back(lifted, moved.values(), min(spoilt))
        else:
            return frozenset(moved) if felt - found.keys() else frozenset()
    return frozenset()


def _find_places(run: PinnedRun) -> Mapping[Boundary, _Place]:
    """Return the boundaries that differ by more than rounding, in the order in which they show."""
    found: dict[Boundary, _Place] = {}
    for place in sorted(_list_places(replace(run, noise=None)), key=lambda place: place.tick):
        found.setdefault(place.boundary, place)
    return found


def _list_places(run: PinnedRun) -> Iterator[_Place]:
    for calls in run.calls:
        if calls.theirs.parent is not None and calls.theirs.finished >= 0:
            floor = rounding_of(calls.ours)
            for which in _EITHER:
                tick = calls.theirs.began if which == "inputs" else calls.theirs.finished
                may_move = run.counterparts.may_move(calls.theirs, which)
                for apart in find_apart(run, calls, which, floor):
                    pair, gap, _, actual = apart
                    ours, _ = calls.leaves(pair, which)
                    if ours.differentiable and gap.relative > WHOLE_ROUNDING:
                        boundary = calls.theirs.path, which, pair.actual
                        felt = is_felt(run, calls, which, apart)
                        yield _Place(boundary, tick, actual, may_move, felt)


def _find_passed_on(
    new: Iterable[_Place], moved: Iterable[_Place]
) -> Iterator[tuple[Boundary, Boundary]]:
    """Yield the boundaries at which the value of a moved one arrives as it is, with that one."""
    for place in new:
        for source in moved:
            if place.may_move and source.tick < place.tick and _hold_same(place, source):
                yield place.boundary, source.boundary


def _hold_same(one: _Place, other: _Place) -> bool:
    """Tell whether two boundaries hold the same numbers, in whatever layout."""
    if one.actual.size != other.actual.size:
        return False
    return np.array_equal(np.sort(one.actual, None), np.sort(other.actual, None))


def _take_back(
    lifted: Mapping[Boundary, Boundary], moved: Iterable[_Place], spoilt: int
) -> dict[Boundary, Boundary]:
    """Return the lifted boundaries without those last before the tick at which something is spoilt."""
    before = [place for place in moved if place.tick <= spoilt]
    if not before:
        return {}
    source = lifted[max(before, key=lambda place: place.tick).boundary]
    return {boundary: seed for boundary, seed in lifted.items() if seed != source}
