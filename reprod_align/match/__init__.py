"""Pairs the tensors of two models: by the user's map, by name, by structure and order, by value.

What cannot be paired is listed, never guessed. If two pairings are possible, both are offered, and the
caller, who has the numbers, decides (`find_alternatives`).
"""

from collections.abc import Mapping

from reprod_align.match.doubts import find_alternatives, note_doubts
from reprod_align.match.evidence import Evidence, collect_evidence, open_containers
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
from reprod_align.match.names import pair_by_map, pair_by_name, pair_single_tensors
from reprod_align.match.order import pair_by_order
from reprod_align.match.tensor_pair import Match, Shape, TensorPair

__all__ = [
    "Evidence",
    "Match",
    "Shape",
    "TensorPair",
    "collect_evidence",
    "find_alternatives",
    "find_built_in",
    "find_certain_places",
    "is_same_activation",
    "join_activation",
    "keep_common_places",
    "match_models",
    "pair_by_value",
    "pair_modules",
]


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
    return found
