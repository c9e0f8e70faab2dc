"""Pairs modules and tensors by what they are called: by the user's map, by equal names, by alike names.

A pair must fit: its kinds of layer, and the shapes of all tensors that the two modules share.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from reprod_align.base.text import is_within, numbered, parent, similarity
from reprod_align.errors import ReprodError
from reprod_align.match.evidence import Evidence, Owner
from reprod_align.match.tensor_pair import Match, TensorPair, find_turns
from reprod_align.model.side import TensorInfo

import numpy as np

Fit = Mapping[str, tuple[str, list[bool]]]
"""{role: (Paddle's role, whether it lies transposed, the likeliest first)} of what two owners share"""

_MIXABLE = ({"Linear", "Conv"}, {"LayerNorm", "RMSNorm"}, {"GroupNorm", "InstanceNorm"})
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
        (torch, name_map.keys(), "PyTorch"),
        (paddle, name_map.values(), "Paddle"),
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
            fitting = find_turns(
                ours.shape, theirs.shape, torch.find_axes(ours), paddle.find_axes(theirs)
            )
            if fitting and (are_same_family(*kinds) or ours.role == theirs.role):
                yield (ours, theirs), fitting
