"""Pairs modules with tensors by what they are called: by the user's map, then by equal names."""

from collections import defaultdict
from collections.abc import Mapping

from reprod_align.base.naming import is_within, numbered, parent
from reprod_align.errors import ReprodError
from reprod_align.match.evidence import Evidence
from reprod_align.match.fit import pair_owners, pair_tensors
from reprod_align.model.layout import find_lays
from reprod_align.model.side import TensorInfo
from reprod_align.model.tensor_pair import Match


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
    doubtful = _renumbered(ours, theirs)
    for path in torch.owners:
        if path in ours and path in theirs and not any(is_within(path, d) for d in doubtful):
            pair_owners(found, torch.owners[path], paddle.owners[path])


def _pair_mapped(
    found: Match, torch: Evidence, paddle: Evidence, ours: TensorInfo, theirs: TensorInfo
) -> None:
    ways = find_lays(ours.shape, theirs.shape, torch.axes(ours), paddle.axes(theirs))
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


def _renumbered(ours: set[str], theirs: set[str]) -> set[str]:
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
