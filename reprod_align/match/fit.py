"""Whether two modules can hold the same tensors, how well they go together, and joining them."""

from collections.abc import Mapping, Sequence

from reprod_align.base.naming import similarity
from reprod_align.match.evidence import Evidence, Owner
from reprod_align.model.layout import Lay, find_lays
from reprod_align.model.side import TensorInfo
from reprod_align.model.tensor_pair import Match, TensorPair

import numpy as np

Fit = Mapping[str, tuple[str, list[Lay]]]
"""{role: (Paddle's role, ways to lie)} of the tensors that two owners share"""

_MIXABLE = ({"Linear", "Conv"}, {"LayerNorm", "RMSNorm"}, {"GroupNorm", "InstanceNorm"})


def fit_owners(torch: Owner, paddle: Owner) -> Fit | None:
    """Return how the shared tensors of two owners fit; None if one does not, or none is shared."""
    shared: dict[str, tuple[str, list[Lay]]] = {}
    for role, other in _same_roles(torch, paddle).items():
        ours, theirs = torch.tensors[role], paddle.tensors[other]
        ways = find_lays(ours.shape, theirs.shape, torch.axes[role], paddle.axes[other])
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


def pair_tensors(found: Match, ours: TensorInfo, theirs: TensorInfo, ways: Sequence[Lay]) -> None:
    """Pair two tensors; the first of the ways to lie is taken, the others are choices."""
    choices = tuple((way,) for way in ways[1:])
    found.pairs.append(TensorPair((ours.name,), (theirs.name,), (ways[0],), choices=choices))


def rate_owners(torch: Owner, paddle: Owner, ours: Evidence, theirs: Evidence) -> float:
    """Return how well two owners go together; below 0: not at all."""
    shared = fit_owners(torch, paddle) if same_family(torch.kind, paddle.kind) else None
    if shared is None:
        return -1.0
    missing = len(torch.tensors.keys() ^ paddle.tensors.keys())
    alike = similarity(torch.path, paddle.path)
    value = 4.0 if _equal_values(torch, paddle, shared, ours, theirs) else 0.0
    return 2.0 + alike + value - 0.2 * min(missing, 4)


def same_family(torch: str, paddle: str) -> bool:
    """Tell whether layers of these kinds can hold the same weights; "" is a user's own class."""
    if not torch or not paddle or torch == paddle:
        return True
    first, second = (kind.rstrip("123d") for kind in (torch, paddle))
    return first == second or any({first, second} <= family for family in _MIXABLE)


def _same_roles(torch: Owner, paddle: Owner) -> dict[str, str]:
    """Return which tensor of one owner is which of the other's: by role, lone ones by themselves."""
    names = {role: role for role in torch.tensors if role in paddle.tensors}
    ours = [role for role in torch.tensors if role not in names]
    theirs = [role for role in paddle.tensors if role not in names]
    if len(ours) == len(theirs) == 1 and (not names or not torch.kind):
        names[ours[0]] = theirs[0]
    return names


def _equal_values(
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
