"""Were both records of a step written by one framework? Then every computed float is the same to the bit.

Two frameworks round differently: of a BERT's logits and losses about one float in four is equal. What
is equal by design says nothing: learning rates, constants, and metrics, which are quotients of counts.
"""

import re
from collections.abc import Mapping
from typing import Any

from reprod_align.base.blocks import Array, read_span
from reprod_align.base.difference import INEXACT, dtype_kind
from reprod_align.records.record import unread_items
from reprod_align.records.verdict import Comparison

import numpy as np

ENOUGH = 8
"""so many equal floats are no chance: at one in four, once in 65,000 submissions"""

_RATE = re.compile(r"(^|[_.])(lr|learning_?rate)([_.\d]|$)", re.IGNORECASE)
_LOOKED_AT = 4096  # elements of a tensor


def count_copied(comparison: Comparison, expected: Mapping[str, Any], *, from_counts: bool) -> int:
    """Return how many different computed floats the records have, all of them equal; 0 if one differs.

    comparison: of `expected`, {name: array}, with the other side. from_counts: single numbers are
    metrics, and left out.
    """
    arrays, found = dict(unread_items(expected)), 0
    for result in comparison.results:
        array = arrays.get(result.key)
        if array is None or not _is_computed(result.key, array, from_counts):
            continue
        if result.difference is None or result.difference.mismatches:
            return 0
        values = np.unique(read_span(array, 0, min(array.size, _LOOKED_AT)))
        found += int(np.count_nonzero(values)) if values.size > 1 or array.size == 1 else 0
    return found


def _is_computed(key: str, array: Array, from_counts: bool) -> bool:
    if dtype_kind(array.dtype) not in INEXACT or _RATE.search(key):
        return False
    return array.size > (1 if from_counts else 0)
