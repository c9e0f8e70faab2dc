"""The places at which the random draws of both sides are told apart: each place has its own stream."""

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping
from typing import Any

from reprod_align.base.naming import ancestors, is_within, last_part, parent
from reprod_align.match.evidence import Evidence
from reprod_align.match.modules import leaves_without_tensors

Draws = Mapping[Any, tuple[int, ...]]
"""((module, its call), number of the draw) -> shape, in the order of the draws (Trace.drawn)"""


def find_certain_places(
    pairs: Mapping[str, str], torch: Evidence, paddle: Evidence
) -> dict[str, str]:
    """Return the pairs (Paddle's name -> PyTorch's) at which random draws can be told apart by place.

    A dropout layer counts only where all such layers of its parent that are called have the same
    names on both sides. Otherwise which of several is which is a guess, and their order within the
    parent decides.
    """
    silent = leaves_without_tensors(torch.info)
    ours, theirs = (
        leaves_without_tensors(side.info) & set(side.order or side.info.modules)
        for side in (torch, paddle)
    )
    certain = {}
    names, other_names = _by_parent(ours), _by_parent(theirs)
    for path, other in pairs.items():
        above, beside = parent(path), parent(other)
        same_names = names[above] == other_names[beside]
        if path not in silent or (same_names and pairs.get(above) == beside):
            certain[other] = path
    return certain


def _by_parent(paths: Iterable[str]) -> defaultdict[str, set[str]]:
    """Return the last parts of the paths by what stands above them."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for path in paths:
        found[parent(path)].add(last_part(path))
    return found


def keep_common_places(places: Mapping[str, str], ours: Draws, theirs: Draws) -> dict[str, str]:
    """Return the places without those that do not hold the same draws on both sides.

    ours, theirs: what each side drew in a run with these places. A dropout may stand inside a
    module here and right after it there. If the module around both holds the same draws on both
    sides, in one order, they are told apart by that order. Otherwise a draw is missing: all stay.
    """
    kept = dict(places)
    for place in sorted(set(places.values()), key=lambda path: -path.count(".")):
        if place not in kept.values() or _agree(place, kept, ours, theirs):
            continue
        for above in ancestors(place):
            fewer = {k: v for k, v in kept.items() if v == above or not is_within(v, above)}
            if above in kept.values() and _agree(above, fewer, ours, theirs):
                kept = fewer
                break
    return kept


def _agree(place: str, places: Mapping[str, str], ours: Draws, theirs: Draws) -> bool:
    """Tell whether both sides draw the same there; one may have the batch first, the other second."""
    first, second = (
        [sorted(shape) for shape in shapes_drawn(side, place, places.values())]
        for side in (ours, theirs)
    )
    return first == second


def shapes_drawn(drawn: Draws, place: str, places: Iterable[str]) -> list[tuple[int, ...]]:
    """Return the shapes drawn in a module, outside the places that lie deeper in it."""
    inside = [(path, shape) for ((path, _), _), shape in drawn.items() if is_within(path, place)]
    known = {place, *places} if inside else set()
    return [shape for path, shape in inside if _find_innermost(path, known) == place]


def _find_innermost(path: str, places: Container[str]) -> str | None:
    """Return the place that holds a path and lies deepest."""
    return next((one for one in (path, *ancestors(path)) if one in places), None)
