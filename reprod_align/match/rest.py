"""Pairs single tensors that are left over when whole modules are paired."""

from collections.abc import Iterator, Sequence

from reprod_align.base.naming import similarity
from reprod_align.match.evidence import Evidence
from reprod_align.match.fit import pair_tensors, same_family
from reprod_align.model.layout import Lay, find_lays
from reprod_align.model.side import TensorInfo
from reprod_align.model.tensor_pair import Match

_ALIKE = 0.4  # names less alike than that are a guess


def pair_single_tensors(found: Match, torch: Evidence, paddle: Evidence) -> None:
    """Pair tensors without a partner that fit each other and no others, or whose names are alike.

    A bare parameter here may be a Linear's weight there; one that is tied to another here may be
    a tensor of its own there.
    """
    while True:
        ways = dict(_candidates(found, torch, paddle))
        best = max(ways, key=_alike, default=None)
        if best is None or _alike(best) < _ALIKE:
            return
        ours, theirs = best
        pair_tensors(found, ours, theirs, ways[best])
        found.owners.setdefault(ours.owner, theirs.owner)


def _alike(pair: tuple[TensorInfo, TensorInfo]) -> float:
    """Return how alike two tensors' names are; a module's weight may go by the module's name."""
    names = [tensor.name for tensor in pair]
    return max(similarity(*names), similarity(*(name.removesuffix(".weight") for name in names)))


def _candidates(
    found: Match, torch: Evidence, paddle: Evidence
) -> Iterator[tuple[tuple[TensorInfo, TensorInfo], Sequence[Lay]]]:
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
            fitting = find_lays(ours.shape, theirs.shape, torch.axes(ours), paddle.axes(theirs))
            if fitting and (same_family(*kinds) or ours.role == theirs.role):
                yield (ours, theirs), fitting
