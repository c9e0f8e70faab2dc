"""Pairs the modules that are left, by aligning the two models as sequences."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations

from reprod_align.base.naming import numbered, parent, pattern, similarity
from reprod_align.match.evidence import Evidence, Owner
from reprod_align.match.fit import pair_owners, rate_owners
from reprod_align.model.layout import Shape
from reprod_align.model.tensor_pair import Match
from reprod_align.model.trace import Array

import numpy as np

_EQUAL = 1e-9  # scores nearer than that differ by rounding alone


def pair_by_order(found: Match, torch: Evidence, paddle: Evidence) -> None:
    """Align the owners that are left as two sequences, then settle equals by name.

    The order is that of the calls or that of the definitions, whichever brings the better sum.
    """
    taken, names = set(found.owners.values()), found.paired()
    ours = [o for o in torch.owners.values() if o.path not in found.owners]
    theirs = [o for o in paddle.owners.values() if o.path not in taken]
    ours, theirs = ([o for o in s if o.is_own and not is_taken(o, names)] for s in (ours, theirs))
    if not ours or not theirs:
        return
    called = _sequence(ours, theirs, torch, paddle)
    defined = _sequence(_as_defined(ours, torch), _as_defined(theirs, paddle), torch, paddle)
    best = max((called, defined), key=lambda pairs: sum(worth for *_, worth in pairs))
    for first, second, _ in best:
        pair_owners(found, first, second)


def is_taken(owner: Owner, names: set[str]) -> bool:
    """Tell whether one of the owner's tensors is among the names."""
    return any(tensor.name in names for tensor in owner.tensors.values())


def align_sequences(scores: Array) -> list[tuple[int, int]]:
    """Return the pairs (row, column), both ascending, with the largest sum of scores; none below 0."""
    rows, columns = scores.shape
    best = np.zeros((rows + 1, columns + 1))
    for row in range(rows - 1, -1, -1):
        for column in range(columns - 1, -1, -1):
            value = scores[row, column]
            paired = value + best[row + 1, column + 1] if value >= 0 else -1.0
            best[row, column] = max(paired, best[row + 1, column], best[row, column + 1])
    pairs, row, column = [], 0, 0
    while row < rows and column < columns:
        value = scores[row, column]
        if value >= 0 and best[row, column] == value + best[row + 1, column + 1]:
            pairs.append((row, column))
            row, column = row + 1, column + 1
        elif best[row, column] == best[row + 1, column]:
            row += 1
        else:
            column += 1
    return pairs


def _as_defined(owners: Sequence[Owner], side: Evidence) -> list[Owner]:
    places = {path: at for at, path in enumerate(side.info.modules)}

    def place(owner: Owner) -> int:
        path = owner.path
        while path not in places:  # a part of an opened module
            path = parent(path)
        return places[path]

    return sorted(owners, key=place)


def _sequence(
    ours: Sequence[Owner], theirs: Sequence[Owner], torch: Evidence, paddle: Evidence
) -> list[tuple[Owner, Owner, float]]:
    """Return the pairs of two sequences, with their scores."""
    scores = np.array([[rate_owners(t, p, torch, paddle) for p in theirs] for t in ours])
    straight = align_sequences(scores)
    rows = {row for row, _ in straight}  # what is paired out of order speaks for neither order
    return [
        (ours[row], theirs[column], float(scores[row, column]) if row in rows else 0.0)
        for row, column in _settled(straight, scores, ours, theirs)
    ]


def _settled(
    pairs: list[tuple[int, int]], scores: Array, ours: Sequence[Owner], theirs: Sequence[Owner]
) -> list[tuple[int, int]]:
    """Exchange partners within groups of equals where names or values say so; add what was left."""
    paired = dict(pairs)
    columns = set(paired.values())
    for groups in _groups(paired, ours, theirs):
        present = tuple(range(len(groups[0])))
        told = scores - _misleading(groups, paired, ours, theirs)

        def worth(
            order: tuple[int, ...], groups: list[list[int]] = groups, told: Array = told
        ) -> float:
            return sum(_total(told, g, [paired[g[at]] for at in order]) for g in groups)

        best = max(permutations(present), key=worth)
        if worth(best) > worth(present) + _EQUAL:
            for group in groups:
                paired.update(zip(group, [paired[group[at]] for at in best], strict=True))
    for row in range(len(ours)):
        free = [c for c in range(len(theirs)) if c not in columns and scores[row, c] >= 0]
        if row not in paired and free:
            paired[row] = max(free, key=lambda column: float(scores[row, column]))
            columns.add(paired[row])
    return sorted(paired.items())


def _misleading(
    groups: Sequence[Sequence[int]],
    paired: Mapping[int, int],
    ours: Sequence[Owner],
    theirs: Sequence[Owner],
) -> Array:
    """Return the share of names in the scores where norm1, norm2 stand here for norm0, norm1 there."""
    share = np.zeros((len(ours), len(theirs)))
    for rows in groups:
        columns = [paired[row] for row in rows]
        first = [numbered(ours[row].path) for row in rows]
        second = [numbered(theirs[column].path) for column in columns]
        if _one_stem(first) and _one_stem(second) and _numbers(first) != _numbers(second):
            share[np.ix_(rows, columns)] = [
                [similarity(ours[row].path, theirs[column].path) for column in columns]
                for row in rows
            ]
    return share


def _one_stem(names: Sequence[tuple[str, int] | None]) -> bool:
    return len({name and name[0] for name in names}) == 1 and None not in names


def _numbers(names: Sequence[tuple[str, int] | None]) -> set[int]:
    return {name[1] for name in names if name is not None}


def _total(scores: Array, rows: Sequence[int], columns: Sequence[int]) -> float:
    picked = [float(scores[row, column]) for row, column in zip(rows, columns, strict=True)]
    return sum(picked) if min(picked) >= 0 else -1.0


def _groups(
    paired: Mapping[int, int], ours: Sequence[Owner], theirs: Sequence[Owner]
) -> Iterator[list[list[int]]]:
    """Yield rows that look alike and stand under one parent on both sides, up to six at a time.

    Groups of one pattern, which repeat from block to block, come together: what is exchanged in
    one is exchanged in all, so that a mistake made in a single block is not taken for a convention.
    """
    groups: dict[tuple[str, str, tuple[Shape, ...]], list[int]] = defaultdict(list)
    for row, column in paired.items():
        shapes = tuple(sorted(tensor.shape for tensor in ours[row].tensors.values()))
        groups[parent(ours[row].path), parent(theirs[column].path), shapes].append(row)
    patterns: dict[object, list[list[int]]] = defaultdict(list)
    for (above, beside, shapes), rows in groups.items():
        if 2 <= len(rows) <= 6:
            patterns[pattern(above), pattern(beside), shapes, len(rows)].append(rows)
    yield from patterns.values()
