"""Pairs the tensors of two models: by the user's map, by name, by structure and order, by value.

What cannot be paired is listed, never guessed. If two pairings are possible, both are offered, and the
caller, who has the numbers, decides (`find_alternatives`).
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, islice, permutations
from math import gcd

from reprod_align.base.difference import gap
from reprod_align.base.text import parent, pattern, similarity
from reprod_align.match.evidence import Evidence, collect_evidence, name_role, open_containers
from reprod_align.match.fused import pair_fused
from reprod_align.match.modules import (
    find_built_in,
    find_certain_places,
    is_same_activation,
    join_activation,
    keep_common_places,
    pair_by_value,
    pair_modules,
)
from reprod_align.match.owners import (
    group_look_alikes,
    map_name,
    pair_by_map,
    pair_by_name,
    pair_by_order,
    pair_single_tensors,
    pair_spare,
)
from reprod_align.match.tensor_pair import Match, TensorPair
from reprod_align.randomness import Shape

__all__ = [
    "Evidence",
    "Match",
    "Relayout",
    "Shape",
    "TensorPair",
    "collect_evidence",
    "find_alternatives",
    "find_built_in",
    "find_certain_places",
    "is_same_activation",
    "join_activation",
    "keep_common_places",
    "map_name",
    "match_models",
    "name_role",
    "pair_by_value",
    "pair_modules",
    "take_spare",
]

_SAME = 1e-6  # relative: a weight may have gone through float32 on its way
_GROUPINGS = 8  # ways of dealing out rows to heads that are offered
_COMBINED = 24  # ways of turning some weights that are offered
_MOST = 4  # look-alikes whose orders are offered

Relayout = Mapping[TensorPair, TensorPair]
"""pairs of tensors -> the same laid out another way"""


def match_models(
    torch: Evidence, paddle: Evidence, name_map: Mapping[str, str] | None = None
) -> Match:
    """Pair the tensors of the two models. Raises ReprodError if the map names what isn't there."""
    found = Match()
    pair_by_map(found, torch, paddle, name_map or {})
    torch, paddle = open_containers(torch, paddle), open_containers(paddle, torch)
    pair_by_name(found, torch, paddle)
    pair_fused(found, torch, paddle)
    pair_by_order(found, torch, paddle)
    pair_single_tensors(found, torch, paddle)
    note_doubts(found, torch, paddle, name_map or {})
    found.torch_left = list(torch.free_names(found.paired_names()))
    found.paddle_left = list(paddle.free_names(found.paired_names()))
    found.spare = pair_spare(found, torch, paddle)
    return found


def note_doubts(
    found: Match, torch: Evidence, paddle: Evidence, name_map: Mapping[str, str]
) -> None:
    """Note what could be paired or laid out otherwise; take it where the present weights say so."""
    found.doubts += _list_look_alikes(found, torch, name_map)
    heads = _find_head_counts(torch) | _find_head_counts(paddle)
    for change in _list_layouts(found, heads):
        if _is_held(change, torch, paddle):
            found.pairs = [change.get(pair, pair) for pair in found.pairs]
    found.layouts = list(_list_layouts(found, heads))


def find_alternatives(found: Match) -> Iterator[tuple[str, Match]]:
    """Yield the other matches that could be meant, each with what it does in words."""
    if found.spare:
        found, named = take_spare(found)
        yield named, found
    for change in _combine(found.layouts):
        pairs = [change.get(pair, pair) for pair in found.pairs]
        named = ", ".join(" + ".join(pair.torch) for pair in change)
        yield f"laid out another way: {named}", replace(found, pairs=pairs)
    known = {name for pair in found.pairs for name in pair.paddle} | {*found.paddle_left}
    for groups in found.doubts:
        others = islice(
            permutations(range(len(groups[0]))), 1, None
        )  # the first is the present one
        for order in others:
            other = exchange(found, groups, order)
            if not known.issuperset(name for pair in other.pairs for name in pair.paddle):
                continue  # one of the look-alikes lacks a tensor, such as a bias
            named = ", ".join(f"{path} with {other.owners[path]}" for g in groups for path in g)
            yield named, other


def take_spare(found: Match) -> tuple[Match, str]:
    """Return the match with the pairs of what was left over, and these in words."""
    named = ", ".join(f"{pair.torch[0]} with {pair.paddle[0]}" for pair in found.spare)
    owners = {parent(pair.torch[0]): parent(pair.paddle[0]) for pair in found.spare}
    taken = {name for pair in found.spare for name in (*pair.torch, *pair.paddle)}
    left = [[name for name in names if name not in taken]
            for names in (found.torch_left, found.paddle_left)]  # fmt: skip
    made = replace(found, pairs=[*found.pairs, *found.spare], owners={**owners, **found.owners},
                   torch_left=left[0], paddle_left=left[1], spare=[])  # fmt: skip
    return made, named


def _combine(layouts: Sequence[Relayout]) -> Iterator[Relayout]:
    """Yield combinations of other layouts: all transpositions at once, each alone, then several of them.

    What one author wrote lies in one way: often all such weights of a model are turned, or none.
    """
    turns = [change for change in layouts if not any(pair.is_fused for pair in change)]
    sizes = [len(turns), *range(1, len(turns))]
    combined = (chosen for size in sizes for chosen in combinations(turns, size))
    for chosen in islice(combined, _COMBINED) if turns else ():
        yield {pair: new for change in chosen for pair, new in change.items()}
    yield from (change for change in layouts if change not in turns)


def exchange(found: Match, groups: Sequence[Sequence[str]], order: Sequence[int]) -> Match:
    """Return the match with the partners within each group exchanged, as `order` says."""
    target = {
        path: found.owners[group[place]]
        for group in groups
        for path, place in zip(group, order, strict=True)
    }
    moved = {}
    for path in target:
        for pair in found.pairs:
            if parent(pair.torch[0]) == path:
                moved[pair] = _move(pair, found.owners[path], target[path])
    pairs = [moved.get(pair, pair) for pair in found.pairs]
    return replace(found, pairs=pairs, owners={**found.owners, **target})


def _move(pair: TensorPair, owner: str, target: str) -> TensorPair:
    names = tuple(target + name[len(owner) :] for name in pair.paddle)
    return replace(pair, paddle=names)


def _list_look_alikes(
    found: Match, torch: Evidence, name_map: Mapping[str, str]
) -> Iterator[tuple[tuple[str, ...], ...]]:
    """Yield groups of look-alikes whose names say nothing about which is which."""
    shared = Counter(found.owners.values())
    free = {
        path: partner
        for path, partner in found.owners.items()
        if path in torch.owners and shared[partner] == 1 and map_name(path, name_map) is None
    }
    for groups in group_look_alikes(free, torch.owners, _MOST):
        doubtful = [tuple(group) for group in groups if not _names_tell(group, found.owners)]
        if doubtful:
            yield tuple(doubtful)


def _names_tell(paths: Sequence[str], owners: Mapping[str, str]) -> bool:
    """Tell whether each path is more like its own partner than like any other of the group."""
    if all(path == owners[path] for path in paths):
        return True
    return all(
        similarity(path, owners[path]) > similarity(path, owners[other])
        for path in paths
        for other in paths
        if other != path
    )


def _find_head_counts(side: Evidence) -> set[int]:
    """Return the numbers of heads that a model may have: integer settings with "head" in their name."""
    return {
        value
        for settings in side.info.modules.values()
        for name, value in settings.values.items()
        if "head" in name and type(value) is int and value > 1
    }


def _list_layouts(found: Match, heads: set[int]) -> Iterator[Relayout]:
    """Yield the other ways to lie of the pairs that have some, all pairs of a pattern alike."""
    alike: dict[object, list[TensorPair]] = defaultdict(list)
    for pair in found.pairs:
        if pair.is_fused:
            alike[pattern(parent(pair.torch[0])), pattern(parent(pair.paddle[0]))].append(pair)
        elif pair.either_way:
            alike[pattern(pair.torch[0]), pattern(pair.paddle[0])].append(pair)
    for pairs in alike.values():
        if pairs[0].is_fused:
            yield from _regroup(pairs, heads)
        else:
            yield {pair: pair.lay_other_way() for pair in pairs}


def _regroup(pairs: Sequence[TensorPair], heads: set[int]) -> Iterator[Relayout]:
    """Yield fused tensors with their rows stored head by head, for every likely count of heads."""
    common = gcd(*(size for pair in pairs for size in pair.parts))
    counts = [count for count in range(2, common) if common % count == 0]
    known = [count for count in counts if count in heads]
    for count in [*known, *(c for c in counts if c not in heads)][:_GROUPINGS]:
        yield {pair: replace(pair, groups=count) for pair in pairs}


def _is_held(change: Relayout, torch: Evidence, paddle: Evidence) -> bool:
    """Tell whether the port's present weights are the reference's in the new layout, not in the old."""
    return all(
        _holds(new, torch, paddle) and not _holds(old, torch, paddle) for old, new in change.items()
    )


def _holds(pair: TensorPair, torch: Evidence, paddle: Evidence) -> bool:
    made = pair.to_paddle(torch.values)
    return all(gap(values, paddle.values[name], _SAME).ok for name, values in made.items())
