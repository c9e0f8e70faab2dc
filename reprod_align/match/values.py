"""Pairs what holds no tensors by what came out of it, and says where random draws are told apart."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any

from reprod_align.base.difference import gap
from reprod_align.base.naming import is_within, parent
from reprod_align.match.evidence import Evidence
from reprod_align.match.modules import kind
from reprod_align.model.side import ModelInfo
from reprod_align.model.trace import Array, Trace

Draws = Mapping[Any, tuple[int, ...]]
"""((module, its call), number of the draw) -> shape, in the order of the draws (Trace.drawn)"""
Drawn = Sequence[tuple[str, tuple[int, ...]]]


def leaves_without_tensors(info: ModelInfo) -> set[str]:
    """Return the modules that hold neither children nor tensors: dropouts, activations, pools."""
    parents = {parent(path) for path in info.modules if path}
    owners = {tensor.owner for tensor in info.tensors.values()}
    return {path for path in info.modules if path and path not in parents and path not in owners}


def certain_places(pairs: Mapping[str, str], torch: Evidence, paddle: Evidence) -> dict[str, str]:
    """Return the pairs (Paddle's name -> PyTorch's) at which random draws can be told apart by place.

    A dropout layer counts only where all such layers of its parent that are called have the same
    names on both sides: which of several is which is otherwise a guess, and their order within the
    parent tells.
    """
    ours, theirs = (
        leaves_without_tensors(side.info) & set(side.order or side.info.modules)
        for side in (torch, paddle)
    )
    silent = leaves_without_tensors(torch.info)
    sure = {}
    for path, other in pairs.items():
        above, beside = parent(path), parent(other)
        names = [{p.rpartition(".")[2] for p in side if parent(p) == at}
                 for side, at in ((ours, above), (theirs, beside))]  # fmt: skip
        if path not in silent or (names[0] == names[1] and pairs.get(above) == beside):
            sure[other] = path
    return sure


def common_places(places: Mapping[str, str], ours: Draws, theirs: Draws) -> dict[str, str]:
    """Return the places without those that do not hold the same draws on both sides.

    ours, theirs: what each side drew in a run with these places. A dropout may stand inside a
    module here and right after it there: where the module around both holds the same draws on both
    sides, in one order, they are told apart by that order. Otherwise a draw is missing: all stay.
    """
    drawn = [[(place, shape) for ((place, _), _), shape in side.items()] for side in (ours, theirs)]
    kept = dict(places)
    for place in sorted(set(places.values()), key=lambda path: -path.count(".")):
        if place not in kept.values() or _agree(drawn, place, kept):
            continue
        for above in _ancestors(place):
            fewer = {k: v for k, v in kept.items() if v == above or not is_within(v, above)}
            if above in kept.values() and _agree(drawn, above, fewer):
                kept = fewer
                break
    return kept


def _agree(drawn: Sequence[Drawn], place: str, kept: Mapping[str, str]) -> bool:
    return _shapes(drawn[0], place, kept) == _shapes(drawn[1], place, kept)


def _shapes(drawn: Drawn, place: str, kept: Mapping[str, str]) -> list[tuple[int, ...]]:
    """Return the shapes drawn at a place or in a module below it that is no place."""
    finer = {path for path in kept.values() if path != place and is_within(path, place)}
    return [
        tuple(sorted(shape))  # batch first here, sequence first there
        for path, shape in drawn
        if is_within(path, place) and not any(is_within(path, f) for f in finer)
    ]


def _ancestors(path: str) -> Iterator[str]:
    while path:
        path = parent(path)
        yield path


def pair_by_value(
    pairs: dict[str, str], torch: Evidence, paddle: Evidence, expected: Trace, actual: Trace
) -> None:
    """Pair what holds no tensors of its own anew by what came out of it, where names do not tell.

    expected, actual: traces in eval mode from the same weights. Of composites nested in each other
    the one with equal outputs is the counterpart. Within one pair of parents, modules of one kind
    whose outputs are equal are the same, in whatever order they stand.
    """
    ours, theirs = leaves_without_tensors(torch.info), leaves_without_tensors(paddle.info)
    values = [
        {call.path: leaf.array for call in trace.calls if call.index == 0
         for leaf in list(call.outputs.values())[:1]}
        for trace in (expected, actual)
    ]  # fmt: skip
    _renested(pairs, values, torch.owners)
    for above, beside in list(pairs.items()):
        first = [p for p in ours if parent(p) == above and p in values[0]]
        second = [p for p in theirs if parent(p) == beside and p in values[1]]
        named = {p.rpartition(".")[2] for p in first} == {p.rpartition(".")[2] for p in second}
        if not named:
            _regroup(pairs, first, second, values, torch.info, paddle.info)


def _renested(
    pairs: dict[str, str], values: Sequence[Mapping[str, Array]], holders: Collection[str]
) -> None:
    """Pair composites with one further out or in whose output is equal, if their own is not.

    holders: PyTorch's modules with tensors. Without such a partner, composites that hold other
    layers than each other and end with others give different things: they are paired with nothing.
    """
    for path, other in list(pairs.items()):
        if not path or not other or _same_output(values, path, other):
            continue
        for ours in _nested(path, pairs, values[0]):
            if _same_output(values, ours, other):
                del pairs[path]
                pairs[ours] = other
                break
        else:
            for theirs in _nested(other, pairs.values(), values[1]):
                if _same_output(values, path, theirs):
                    pairs[path] = theirs
                    break
            else:
                crossed = _cut_otherwise(path, other, pairs, holders)
                if crossed and _end_elsewhere(path, other, pairs, values, holders):
                    del pairs[path]


def _cut_otherwise(
    path: str, other: str, pairs: Mapping[str, str], holders: Collection[str]
) -> bool:
    """Tell whether a layer with tensors stands inside the one composite and outside the other."""
    return any(
        is_within(ours, path) != is_within(theirs, other)
        for ours, theirs in pairs.items()
        if ours in holders
    )


def _end_elsewhere(
    path: str,
    other: str,
    pairs: Mapping[str, str],
    values: Sequence[Mapping[str, Array]],
    holders: Collection[str],
) -> bool:
    """Tell whether the last layers with tensors that two composites call are no pair."""
    known = {ours: theirs for ours, theirs in pairs.items() if ours in holders}
    ours = [known[p] for p in values[0] if p in known and is_within(p, path)]
    theirs = [q for q in values[1] if q in known.values() and is_within(q, other)]
    return ours[-1:] != theirs[-1:]


def _nested(path: str, paired: Collection[str], known: Mapping[str, Array]) -> list[str]:
    """Return the unpaired modules around a module, up to the first that is paired, and right in it.

    known: those that gave something; a list of modules, which is never called, stands for none.
    """
    around = takewhile(lambda above: above not in paired, _ancestors(path))
    within = [p for p in known if parent(p) == path and p not in paired]
    return [above for above in around if above in known] + within


def _same_output(values: Sequence[Mapping[str, Array]], path: str, other: str) -> bool:
    """Tell whether two modules gave the same; also True where one of them gave nothing."""
    if path not in values[0] or other not in values[1]:
        return True
    return gap(values[0][path], values[1][other]).ok


def _regroup(
    pairs: dict[str, str],
    first: Sequence[str],
    second: Sequence[str],
    values: Sequence[Mapping[str, Array]],
    torch: ModelInfo,
    paddle: ModelInfo,
) -> None:
    equal: dict[str, list[str]] = {
        p: [q for q in second if kind(torch, p) == kind(paddle, q)
            and gap(values[0][p], values[1][q]).ok] for p in first
    }  # fmt: skip
    claimed = [q for found in equal.values() for q in found]
    for path, found in equal.items():
        if len(found) == 1 and claimed.count(found[0]) == 1:
            for other in [p for p, q in pairs.items() if q == found[0]]:
                del pairs[other]
            pairs[path] = found[0]
