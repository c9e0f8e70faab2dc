"""Pairs the tensors of two models: by the user's map, by name, by structure and order, by value.

What can't be paired is listed, never guessed; where two pairings are possible both are offered, and
whoever has the numbers decides (`alternatives`).
"""

from collections.abc import Mapping

from reprod_align.match.doubts import alternatives, exchanged, note_doubts, orders
from reprod_align.match.evidence import Evidence, Owner, evidence, opened
from reprod_align.match.fused import fused
from reprod_align.match.modules import module_pairs
from reprod_align.match.names import by_map, by_name
from reprod_align.match.order import by_order
from reprod_align.match.rest import single_tensors
from reprod_align.match.values import (
    certain_places,
    common_places,
    leaves_without_tensors,
    pair_by_value,
)
from reprod_align.model.tensor_pair import Match, TensorPair

__all__ = [
    "Evidence", "Match", "Owner", "TensorPair", "alternatives", "certain_places", "common_places", "evidence",
    "exchanged", "leaves_without_tensors", "match", "module_pairs", "orders", "pair_by_value",
]  # fmt: skip


def match(torch: Evidence, paddle: Evidence, name_map: Mapping[str, str] | None = None) -> Match:
    """Pair the tensors of the two models. Raises ReprodError if the map names what isn't there."""
    found = Match()
    by_map(found, torch, paddle, name_map or {})
    torch, paddle = opened(torch, paddle), opened(paddle, torch)
    by_name(found, torch, paddle)
    fused(found, torch, paddle)
    by_order(found, torch, paddle)
    single_tensors(found, torch, paddle)
    note_doubts(found, torch, paddle, name_map or {})
    used = found.paired()
    found.torch_left = [name for name in torch.tensor_names() if name not in used]
    found.paddle_left = [name for name in paddle.tensor_names() if name not in used]
    return found
