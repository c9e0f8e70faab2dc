"""Pairs the modules that hold tensors: by the user's map, by equal names, by alike names, then by order.

A pair must fit: its kinds of layer, and the shapes of all tensors that the two modules share. What is left
is paired by aligning the two models as sequences.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations, product

from reprod_align.base import PORT, REFERENCE
from reprod_align.base.blocks import Array
from reprod_align.base.text import (
    ancestors,
    is_within,
    last_part,
    numbered,
    parent,
    pattern,
    similarity,
)
from reprod_align.errors import ReprodError
from reprod_align.match.evidence import Evidence, Owner
from reprod_align.match.tensor_pair import Match, TensorPair, find_turns
from reprod_align.model.side import TensorInfo
from reprod_align.randomness import Shape

import numpy as np
from numpy.typing import NDArray

Fit = Mapping[str, tuple[str, list[bool]]]
"""{role: (Paddle's role, whether it lies transposed, the likeliest first)} of what two owners share"""

_MIXABLE = ({"Linear", "Conv"}, {"LayerNorm", "RMSNorm"}, {"GroupNorm", "InstanceNorm"})
_NESTED = 0.8  # `transform` and `transform.dense`: one side keeps the layer in a module of its own
_TELLING = 0.6  # attn_norm and post_attention_layernorm: 0.8; ffn_norm and input_layernorm: 0.5
_ALIKE = 0.4  # names less alike than that are a guess


def fit_owners(torch: Owner, paddle: Owner) -> Fit | None:
    """Return how the shared tensors of two owners fit; None if one does not, or none is shared."""
    shared: dict[str, tuple[str, list[bool]]] = {}
    for role, other in _find_same_roles(torch, paddle).items():
        ours, theirs = torch.tensors[role], paddle.tensors[other]
        ways = find_turns(ours.shape, theirs.shape, torch.axes[role], paddle.axes[other])
        if not ways:
            return None
        shared[role] = other, ways
    return shared or None


def pair_owners(found: Match, torch: Owner, paddle: Owner) -> None:
    """Pair two owners and the tensors that they share, if these fit."""
    shared = fit_owners(torch, paddle)
    if shared is None:
        return
    found.owners[torch.path] = paddle.path
    for role, (other, ways) in shared.items():
        pair_tensors(found, torch.tensors[role], paddle.tensors[other], ways)


def pair_tensors(found: Match, ours: TensorInfo, theirs: TensorInfo, ways: Sequence[bool]) -> None:
    """Pair two tensors, transposed or not as the first of the ways says."""
    pair = TensorPair(
        (ours.name,),
        (theirs.name,),
        (ways[0],),
        torch_shapes=(ours.shape,),
        paddle_shapes=(theirs.shape,),
        either_way=len(ways) > 1,
    )
    found.pairs.append(pair)


def rate_owners(torch: Owner, paddle: Owner, ours: Evidence, theirs: Evidence) -> float:
    """Return how well two owners go together; below 0: not at all."""
    shared = fit_owners(torch, paddle) if are_same_family(torch.kind, paddle.kind) else None
    if shared is None:
        return -1.0
    missing = len(torch.tensors.keys() ^ paddle.tensors.keys())
    alike = similarity(torch.path, paddle.path)
    paths = torch.path, paddle.path
    if all(paths) and (is_within(*paths) or is_within(*reversed(paths))):
        alike = max(alike, _NESTED)
    value = 4.0 if _are_values_equal(torch, paddle, shared, ours, theirs) else 0.0
    return 2.0 + alike + value - 0.2 * min(missing, 4)


def are_same_family(torch: str, paddle: str) -> bool:
    """Tell whether layers of these kinds can hold the same weights; "" is a user's own class."""
    if not torch or not paddle or torch == paddle:
        return True
    first, second = (kind.rstrip("123d") for kind in (torch, paddle))
    return first == second or any({first, second} <= family for family in _MIXABLE)


def _find_same_roles(torch: Owner, paddle: Owner) -> dict[str, str]:
    """Return which tensor of one owner is which of the other's: by role, lone ones by themselves."""
    names = {role: role for role in torch.tensors if role in paddle.tensors}
    ours = [role for role in torch.tensors if role not in names]
    theirs = [role for role in paddle.tensors if role not in names]
    if len(ours) == len(theirs) == 1 and (not names or not torch.kind):
        names[ours[0]] = theirs[0]
    return names


def _are_values_equal(
    torch: Owner, paddle: Owner, shared: Fit, ours: Evidence, theirs: Evidence
) -> bool:
    """Tell whether the weights are the same numbers already, and not constant ones."""
    compared = False
    for role, (other, _) in shared.items():
        expected = ours.fingerprint(torch.tensors[role].name)
        actual = theirs.fingerprint(paddle.tensors[other].name)
        if expected is not None and actual is not None:
            if not np.allclose(expected, actual, rtol=1e-6, atol=0):
                return False
            compared = True
    return compared


def pair_by_map(
    found: Match, torch: Evidence, paddle: Evidence, name_map: Mapping[str, str]
) -> None:
    """Pair what the map names. Raises ReprodError if it names what isn't there or does not fit."""
    _check_map(torch, paddle, name_map)
    sources: dict[str, str] = {}
    for path, owner in torch.owners.items():
        target = map_name(path, name_map)
        if target is not None and target in paddle.owners:
            if owner.is_own and sources.setdefault(target, path) != path:
                raise ReprodError(f"name_map sends both {sources[target]} and {path} to {target}")
            pair_owners(found, owner, paddle.owners[target])
            if path in name_map and path not in found.owners:
                raise ReprodError(f"name_map pairs {path} with {target}: their tensors do not fit")
    paired = found.by_torch()
    for name, target in name_map.items():
        first, second = torch.info.tensors.get(name), paddle.info.tensors.get(target)
        if first is not None and second is not None and name not in paired:
            _pair_mapped(found, torch, paddle, first, second)


def map_name(path: str, name_map: Mapping[str, str]) -> str | None:
    """Return the name under the longest prefix that the map holds, None if it holds none."""
    for prefix in sorted(name_map, key=len, reverse=True):
        if is_within(path, prefix):
            rest = path[len(prefix) :].lstrip(".")
            return ".".join(part for part in (name_map[prefix], rest) if part)
    return None


def pair_by_name(found: Match, torch: Evidence, paddle: Evidence) -> None:
    """Pair owners of the same name; numbered ones only where both sides number the same set."""
    taken = set(found.owners.values())
    ours = {path for path in torch.owners if path not in found.owners}
    theirs = {path for path in paddle.owners if path not in taken}
    doubtful = _find_renumbered(ours, theirs)
    for path in torch.owners:
        if path in ours and path in theirs and not any(is_within(path, d) for d in doubtful):
            pair_owners(found, torch.owners[path], paddle.owners[path])


def _pair_mapped(
    found: Match, torch: Evidence, paddle: Evidence, ours: TensorInfo, theirs: TensorInfo
) -> None:
    ways = find_turns(ours.shape, theirs.shape, torch.find_axes(ours), paddle.find_axes(theirs))
    if not ways:
        raise ReprodError(
            f"name_map pairs {ours.name} {ours.shape} with {theirs.name} {theirs.shape}: "
            "one does not fit the other"
        )
    pair_tensors(found, ours, theirs, ways)
    found.owners.setdefault(ours.owner, theirs.owner)


def _check_map(torch: Evidence, paddle: Evidence, name_map: Mapping[str, str]) -> None:
    for side, names, framework in (
        (torch, name_map.keys(), str(REFERENCE)),
        (paddle, name_map.values(), str(PORT)),
    ):
        known = [*side.info.modules, *side.info.tensors]
        for name in names:
            if not any(is_within(other, name) for other in known):
                raise ReprodError(
                    f"name_map: the {framework} model has no module or tensor {name!r}"
                )


def _find_renumbered(ours: set[str], theirs: set[str]) -> set[str]:
    """Return the numbered modules that are numbered differently on each side: conv1, conv2; conv0, conv1."""
    sets: list[dict[str, set[str]]] = [defaultdict(set), defaultdict(set)]
    for side, paths in zip(sets, (ours, theirs), strict=True):
        for path in paths:
            while path:
                known = numbered(path)
                if known is not None:
                    side[known[0]].add(path)
                path = parent(path)
    first, second = sets
    return {
        path
        for stem in first.keys() | second.keys()
        if first[stem] != second[stem]
        for path in first[stem] | second[stem]
    }


def pair_single_tensors(found: Match, torch: Evidence, paddle: Evidence) -> None:
    """Pair the remaining tensors that fit each other, those with the most similar names first.

    A bare parameter here may be a Linear's weight there; one that is tied to another here may be
    a tensor of its own there.
    """
    while True:
        ways = dict(_list_candidates(found, torch, paddle))
        best = max(ways, key=_rate_names, default=None)
        if best is None or _rate_names(best) < _ALIKE:
            return
        ours, theirs = best
        pair_tensors(found, ours, theirs, ways[best])
        found.owners.setdefault(ours.owner, theirs.owner)


def pair_spare(found: Match, torch: Evidence, paddle: Evidence) -> list[TensorPair]:
    """Return pairs of the parameters that are left over, in the order of their definition, if all fit.

    Only numbers can tell whether they are meant: `cross_w` and `cross_weight`.
    """
    left = (torch.info, found.torch_left), (paddle.info, found.paddle_left)
    ours, theirs = (
        [info.tensors[name] for name in names if info.tensors[name].is_parameter]
        for info, names in left
    )
    candidates, pairs = (
        dict(_list_candidates(found, torch, paddle)),
        [*zip(ours, theirs, strict=False)],
    )
    if len(ours) != len(theirs) or not all(pair in candidates for pair in pairs):
        return []
    spare = Match()
    for pair in pairs:
        pair_tensors(spare, *pair, candidates[pair])
    return spare.pairs


def _rate_names(pair: tuple[TensorInfo, TensorInfo]) -> float:
    """Return how alike two tensors' names are; a module's weight may go by the module's name."""
    names = [tensor.name for tensor in pair]
    return max(similarity(*names), similarity(*(name.removesuffix(".weight") for name in names)))


def _list_candidates(
    found: Match, torch: Evidence, paddle: Evidence
) -> Iterator[tuple[tuple[TensorInfo, TensorInfo], Sequence[bool]]]:
    paired = found.paired_names()
    left = [paddle.info.tensors[name] for name in paddle.free_names(paired)]
    for ours in torch.info.tensors.values():
        owner = torch.owners.get(ours.owner)
        if ours.name in paired or owner is None or ours not in owner.tensors.values():
            continue
        for theirs in left:
            if theirs.owner not in paddle.owners or ours.is_parameter != theirs.is_parameter:
                continue
            kinds = torch.owners[ours.owner].kind, paddle.owners[theirs.owner].kind
            if all(kinds) and found.owners.get(ours.owner, theirs.owner) != theirs.owner:
                continue  # a layer's bias is not the bias of another layer
            fitting = find_turns(
                ours.shape, theirs.shape, torch.find_axes(ours), paddle.find_axes(theirs)
            )
            if fitting and (are_same_family(*kinds) or ours.role == theirs.role):
                yield (ours, theirs), fitting


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
    defined = _sort_by_definition(ours, torch), _sort_by_definition(theirs, paddle)
    tries = [_pair_sequences(*both, torch, paddle, both is defined)
             for both in ((ours, theirs), defined)]  # fmt: skip
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
        groups[parent(path), parent(partner), owners[path].shapes].append(path)
    patterns: dict[object, list[list[str]]] = defaultdict(list)
    for (above, beside, shapes), paths in groups.items():
        if 2 <= len(paths) <= most:
            patterns[pattern(above), pattern(beside), shapes, len(paths)].append(paths)
    return list(patterns.values())


def _sort_by_definition(owners: Sequence[Owner], side: Evidence) -> list[Owner]:
    places = {path: at for at, path in enumerate(side.info.modules)}

    def place(owner: Owner) -> int:
        within = [owner.path, *ancestors(owner.path)]  # a part of an opened module has no place
        return next(places[path] for path in within if path in places)

    return sorted(owners, key=place)


def _pair_sequences(
    ours: Sequence[Owner],
    theirs: Sequence[Owner],
    torch: Evidence,
    paddle: Evidence,
    as_defined: bool,
) -> list[tuple[Owner, Owner, float]]:
    """Return the pairs of two sequences, with their scores; 0 for a pair out of order.

    as_defined: whether that is the order of the definitions.
    """
    scores = np.array([[rate_owners(t, p, torch, paddle) for p in theirs] for t in ours])
    paired = dict(align_sequences(scores))
    crossing = _find_crossing(paired, ours, theirs)
    complete = len(ours) == len(theirs) == len(paired)  # a norm may stand in the next block there
    crosses = not complete and any(crossing[pair] for pair in paired.items())
    if crosses:
        scores = np.where(crossing, -1.0, scores)
        paired = dict(align_sequences(scores))
    in_order = set(paired)
    _exchange_look_alikes(paired, scores, ours, theirs, as_defined)
    _pair_left_over(paired, scores)
    if crosses or as_defined:
        _sort_left_over(paired, in_order, ours, theirs, torch, paddle)
    return [
        (ours[row], theirs[column], float(scores[row, column]) if row in in_order else 0.0)
        for row, column in sorted(paired.items())
    ]


def _find_crossing(
    paired: Mapping[int, int], ours: Sequence[Owner], theirs: Sequence[Owner]
) -> NDArray[np.bool_]:
    """Return, for each row and column, whether their blocks are not counterparts.

    A block is a numbered module; its counterpart is the block with which most of its pairs are. A norm that
    the port calls one block later would otherwise shift the sequences against each other.
    """
    blocks = [[_find_block(owner.path) for owner in side] for side in (ours, theirs)]
    partners: dict[str, Counter[str]] = defaultdict(Counter)
    for row, column in paired.items():
        partners[blocks[0][row]][blocks[1][column]] += 1
    usual = {block: counts.most_common(1)[0][0] for block, counts in partners.items() if block}
    return np.array([[bool(usual.get(one) and other and usual[one] != other) for other in blocks[1]]
                     for one in blocks[0]])  # fmt: skip


def _find_block(path: str) -> str:
    """Return the innermost numbered module around one; "" if there is none."""
    return next((above for above in ancestors(path) if above.rpartition(".")[2].isdigit()), "")


def _sort_left_over(
    paired: dict[int, int],
    in_order: set[int],
    ours: Sequence[Owner],
    theirs: Sequence[Owner],
    torch: Evidence,
    paddle: Evidence,
) -> None:
    """Pair look-alikes of a block, one of which was left over, in the order of their definition."""
    groups: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for row, column in paired.items():
        block = _find_block(ours[row].path), _find_block(theirs[column].path)
        groups[(*block, ours[row].kind, ours[row].shapes)].append(row)
    places = [[owner.path for owner in _sort_by_definition(owners, side)]
              for owners, side in ((ours, torch), (theirs, paddle))]  # fmt: skip
    for rows in groups.values():
        if not in_order.issuperset(rows):
            rows.sort(key=lambda row: places[0].index(ours[row].path))
            columns = [paired[row] for row in rows]
            columns.sort(key=lambda column: places[1].index(theirs[column].path))
            paired.update(zip(rows, columns, strict=True))


def _exchange_look_alikes(
    paired: dict[int, int],
    scores: Array,
    ours: Sequence[Owner],
    theirs: Sequence[Owner],
    as_defined: bool,
) -> None:
    """Exchange partners (row: column) within groups of look-alikes where names or values say so.

    The weights of norms are all ones: outputs can't tell two norms apart, gradients do. So they keep the
    order of their calls, unless each name is like its partner's.
    """
    rows = {owner.path: row for row, owner in enumerate(ours)}
    partners = {ours[row].path: theirs[column].path for row, column in paired.items()}
    for look_alikes in group_look_alikes(partners, {owner.path: owner for owner in ours}, _MOST):
        groups = [[rows[path] for path in paths] for paths in look_alikes]
        fair = scores - _measure_misleading_names(groups, paired, ours, theirs)
        present = tuple(range(len(groups[0])))
        worth = {order: _rate_order(order, groups, paired, fair) for order in permutations(present)}
        if not as_defined and all(max(map(len, ours[row].shapes)) == 1 for row in groups[0]):
            worth = {
                order: value
                for order, value in worth.items()
                if order == present or _are_names_alike(order, groups, paired, ours, theirs)
            }
        best = max(worth, key=lambda order: worth[order])
        if worth[best] > worth[present] + _EQUAL:
            for group in groups:
                paired.update(zip(group, [paired[group[at]] for at in best], strict=True))


def _are_names_alike(
    order: Sequence[int],
    groups: Sequence[Sequence[int]],
    paired: Mapping[int, int],
    ours: Sequence[Owner],
    theirs: Sequence[Owner],
) -> bool:
    """Tell whether each name is much like its partner's, below what they share, in an order of partners."""
    names = [[last_part(owner.path) for owner in side] for side in (ours, theirs)]
    partners = [
        (row, paired[rows[at]]) for rows in groups for row, at in zip(rows, order, strict=True)
    ]
    return all(similarity(names[0][row], names[1][at]) >= _TELLING for row, at in partners)


def _rate_order(
    order: Sequence[int], groups: Sequence[Sequence[int]], paired: Mapping[int, int], scores: Array
) -> float:
    """Return the sum of the scores if the partners in each group stand in this order."""
    total = 0.0
    for rows in groups:
        picked = [scores[row, paired[rows[at]]] for row, at in zip(rows, order, strict=True)]
        total += float(sum(picked)) if min(picked) >= 0 else -1.0
    return total


def _measure_misleading_names(
    groups: Sequence[Sequence[int]],
    paired: Mapping[int, int],
    ours: Sequence[Owner],
    theirs: Sequence[Owner],
) -> Array:
    """Return the share of names in the scores where norm1, norm2 stand here for norm0, norm1 there."""
    share = np.zeros((len(ours), len(theirs)))
    for rows in groups:
        columns = [paired[row] for row in rows]
        first = _find_numbers_of_one_stem([ours[row].path for row in rows])
        second = _find_numbers_of_one_stem([theirs[column].path for column in columns])
        if first and second and first != second:
            for row, column in product(rows, columns):
                share[row, column] = similarity(ours[row].path, theirs[column].path)
    return share


def _find_numbers_of_one_stem(paths: Sequence[str]) -> set[int]:
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
