"""Finds where the two sides divide their work between modules in other ways.

A norm may end one module here and begin the next one there; a layer may have an activation built in.
What passes such a boundary differs, and the reference's number in its place spoils what follows. It
is told from a fault by this: with the port's own number there, what follows is right.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from reprod_align.alignment.locating.counterparts import Boundary, PinnedRun
from reprod_align.alignment.locating.pinning.places import Place

import numpy as np

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
