"""What a model gives beside tensors: numbers, texts and None, which are compared; other objects are named."""

from collections.abc import Set
from enum import Enum
from typing import Any

from reprod_align.base.tree import IsTensor, plain_leaves
from reprod_align.model.trace import Array

import numpy as np

_COMPARED = "biufcSU"  # kinds of arrays


def read_values(
    output: object, is_tensor: IsTensor
) -> tuple[dict[str, Array | None], dict[str, str]]:
    """Return the values in an output that can be compared, by path, and the classes of the other objects."""
    values: dict[str, Array | None] = {}
    objects: dict[str, str] = {}
    for path, part in plain_leaves(output, is_tensor).items():
        read = None if part is None else _read(part)
        if part is None or read is not None:
            values[path] = read
        else:
            objects[path] = type(part).__name__
    return values, objects


def _read(part: Any) -> Array | None:
    """Return a value as an array, None if it is no plain value."""
    if isinstance(part, Enum) and not isinstance(part, (int, float, str)):
        return np.array(str(part))
    if isinstance(part, (bytes, bytearray)):
        return np.array(bytes(part).hex())
    if isinstance(part, (range, slice)):
        return np.array(repr(part))
    if isinstance(part, Set):
        return np.array(repr(sorted(map(repr, part))))
    if isinstance(part, (bool, int, float, complex, str, np.generic, np.ndarray)):
        array = np.array(part)
        if array.dtype.kind == "O" and isinstance(part, int):  # larger than any integer of numpy's
            array = np.array(str(part))
        return array if array.dtype.kind in _COMPARED else None
    return None
