"""Pairs the modules that are left, by aligning the two models as sequences."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import permutations, product

from reprod_align.base.naming import ancestors, numbered, parent, pattern, similarity
from reprod_align.match.evidence import Evidence, Owner
from reprod_align.match.fit import pair_owners, rate_owners
from reprod_align.model.layout import Shape
from reprod_align.model.tensor_pair import Match
from reprod_align.model.trace import Array

import numpy as np

_EQUAL = 1e-9  # scores nearer than that differ by rounding alone
_MOST = 6  # look-alikes whose orders are tried


def pair_by_order(found: Match, torch: Evidence, paddle: Evidence) -> None:
    """Align the owners that are left as two sequences, then exchange look-alikes by name.

    The order of the calls and that of the definitions are tried; the better sum of scores decides.
    """
    taken, names = set(found.owners.values()), found.paired_names()
    ours = [o for o in torch.owners.values() if o.path not in found.owners]
    theirs = [o for o in paddle.owners.values() if o.path not in taken]
    ours, theirs = ([o for o in s if o.is_own and not is_taken(o, names)] for s in (ours, theirs))
    if not ours or not theirs:
        return
    defined = _in_definition_order(ours, torch), _in_definition_order(theirs, paddle)
    tries = [_pair_sequences(*both, torch, paddle) for both in ((ours, theirs), defined)]
    best = max(tries, key=lambda pairs: sum(score for *_, score in pairs))
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


def group_look_alikes(
    partners: Mapping[str, str], owners: Mapping[str, Owner], most: int
) -> list[list[list[str]]]:
    """Group PyTorch's owners of equal shapes that share parents on both sides, 2 to `most` of them.

    partners: PyTorch's path -> Paddle's. Groups of one pattern, which repeat from block to block,
    come together: what is exchanged in one is exchanged in all, so that a mistake made in a single
    block is not taken for a convention.
    """
    groups: dict[tuple[str, str, tuple[Shape, ...]], list[str]] = defaultdict(list)
    for path, partner in partners.items():
        shapes = tuple(sorted(tensor.shape for tensor in owners[path].tensors.values()))
        groups[parent(path), parent(partner), shapes].append(path)
    patterns: dict[object, list[list[str]]] = defaultdict(list)
    for (above, beside, shapes), paths in groups.items():
        if 2 <= len(paths) <= most:
            patterns[pattern(above), pattern(beside), shapes, len(paths)].append(paths)
    return list(patterns.values())


def _in_definition_order(owners: Sequence[Owner], side: Evidence) -> list[Owner]:
    places = {path: at for at, path in enumerate(side.info.modules)}

    def place(owner: Owner) -> int:
        within = [owner.path, *ancestors(owner.path)]  # a part of an opened module has no place
        return next(places[path] for path in within if path in places)

    return sorted(owners, key=place)


def _pair_sequences(
    ours: Sequence[Owner], theirs: Sequence[Owner], torch: Evidence, paddle: Evidence
) -> list[tuple[Owner, Owner, float]]:
    """Return the pairs of two sequences, with their scores; 0 for a pair out of order."""
    scores = np.array([[rate_owners(t, p, torch, paddle) for p in theirs] for t in ours])
    paired = dict(align_sequences(scores))
    in_order = set(paired)
    _exchange_look_alikes(paired, scores, ours, theirs)
    _pair_left_over(paired, scores)
    return [
        (ours[row], theirs[column], float(scores[row, column]) if row in in_order else 0.0)
        for row, column in sorted(paired.items())
    ]


def _exchange_look_alikes(
    paired: dict[int, int], scores: Array, ours: Sequence[Owner], theirs: Sequence[Owner]
) -> None:
    """Exchange partners (row: column) within groups of look-alikes where names or values say so."""
    rows = {owner.path: row for row, owner in enumerate(ours)}
    partners = {ours[row].path: theirs[column].path for row, column in paired.items()}
    for look_alikes in group_look_alikes(partners, {owner.path: owner for owner in ours}, _MOST):
        groups = [[rows[path] for path in paths] for paths in look_alikes]
        fair = scores - _misleading_names(groups, paired, ours, theirs)
        present = tuple(range(len(groups[0])))
        worth = {order: _worth(order, groups, paired, fair) for order in permutations(present)}
        best = max(worth, key=lambda order: worth[order])
        if worth[best] > worth[present] + _EQUAL:
            for group in groups:
                paired.update(zip(group, [paired[group[at]] for at in best], strict=True))


def _worth(
    order: Sequence[int],
    groups: Sequence[Sequence[int]],
    paired: Mapping[int, int],
    scores: Array,
) -> float:
    """Return the sum of the scores if the partners in each group stand in this order."""
    total = 0.0
    for rows in groups:
        picked = [scores[row, paired[rows[at]]] for row, at in zip(rows, order, strict=True)]
        total += float(sum(picked)) if min(picked) >= 0 else -1.0
    return total


def _misleading_names(
    groups: Sequence[Sequence[int]],
    paired: Mapping[int, int],
    ours: Sequence[Owner],
    theirs: Sequence[Owner],
) -> Array:
    """Return the share of names in the scores where norm1, norm2 stand here for norm0, norm1 there."""
    share = np.zeros((len(ours), len(theirs)))
    for rows in groups:
        columns = [paired[row] for row in rows]
        first = _numbers_of_one_stem([ours[row].path for row in rows])
        second = _numbers_of_one_stem([theirs[column].path for column in columns])
        if first and second and first != second:
            for row, column in product(rows, columns):
                share[row, column] = similarity(ours[row].path, theirs[column].path)
    return share


def _numbers_of_one_stem(paths: Sequence[str]) -> set[int]:
    """Return the numbers at the ends of names that are alike but for them; none if there are others."""
    names = [numbered(path) for path in paths]
    stems = {name and name[0] for name in names}
    return {name[1] for name in names if name} if len(stems) == 1 else set()


def _pair_left_over(paired: dict[int, int], scores: Array) -> None:
    """Give each row without a partner the free column with the best score."""
    free = set(range(scores.shape[1])) - set(paired.values())
    for row in range(len(scores)):
        fitting = [column for column in sorted(free) if scores[row, column] >= 0]
        if row not in paired and fitting:
            paired[row] = max(fitting, key=lambda column: float(scores[row, column]))
            free.discard(paired[row])
