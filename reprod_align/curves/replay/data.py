"""How the data of a step differ between two trainings, in words."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from reprod_align.curves.replay.training import Batch
from reprod_align.model.trace import Array

import numpy as np

_NEAR = (1, -1, 2, -2)  # steps off, where the same data may be found


def describe_difference(
    ours: Callable[[int], Batch], theirs: Callable[[int], Batch], steps: Sequence[int]
) -> str:
    """Return the first of `steps` whose data differ, and how; "" if all agree."""
    for step in steps:
        mine, other = _arrays(ours(step)), _arrays(theirs(step))
        if not _same(mine, other):
            return f"step {step}: {_describe(mine, other, ours, step)}"
    return ""


def _arrays(batch: Batch) -> dict[str, Array]:
    inputs, targets = batch
    named = dict(inputs) if isinstance(inputs, Mapping) else dict(enumerate(inputs))
    found = {f"input {name}": array for name, array in named.items()}
    return found | dict(_name_arrays(targets, "targets"))


def _name_arrays(value: Any, name: str) -> list[tuple[str, Array]]:
    if isinstance(value, np.ndarray):
        return [(name, value)]
    items: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, Mapping):
        items = value.items()
    elif isinstance(value, (list, tuple)):
        items = enumerate(value)
    return [pair for key, one in items for pair in _name_arrays(one, f"{name}[{key}]")]


def _same(ours: Mapping[str, Array], theirs: Mapping[str, Array]) -> bool:
    return ours.keys() == theirs.keys() and all(_equal(ours[name], theirs[name]) for name in ours)


def _equal(ours: Array, theirs: Array) -> bool:
    return np.array_equal(ours, theirs, equal_nan=ours.dtype.kind == "f" == theirs.dtype.kind)


def _describe(
    ours: Mapping[str, Array],
    theirs: Mapping[str, Array],
    source: Callable[[int], Batch],
    step: int,
) -> str:
    if ours.keys() != theirs.keys():
        return f"PyTorch reads {', '.join(ours)}, Paddle {', '.join(theirs)}"
    for by in _NEAR:
        if step + by > 0 and _is_of(theirs, source, step + by):
            return f"Paddle reads what PyTorch reads at step {step + by}"
    apart = [name for name in ours if not _equal(ours[name], theirs[name])]
    if _is_reordered(ours, theirs):
        return "the same examples in another order within the batch"
    return f"{apart[0]} differs: {_describe_arrays(ours[apart[0]], theirs[apart[0]])}"


def _is_of(theirs: Mapping[str, Array], source: Callable[[int], Batch], step: int) -> bool:
    try:
        return _same(_arrays(source(step)), theirs)
    except (IndexError, KeyError, ValueError, StopIteration):  # beyond the end of the training
        return False


def _is_reordered(ours: Mapping[str, Array], theirs: Mapping[str, Array]) -> bool:
    """Tell whether the rows of all arrays together are the same, but for their order."""
    if any(ours[name].shape != theirs[name].shape or not ours[name].ndim for name in ours):
        return False
    if len({len(array) for array in ours.values()}) != 1:
        return False
    rows = [_rows(arrays) for arrays in (ours, theirs)]
    return sorted(rows[0]) == sorted(rows[1])


def _rows(arrays: Mapping[str, Array]) -> list[bytes]:
    parts = [np.ascontiguousarray(array) for array in arrays.values()]
    return [b"".join(part[row].tobytes() for part in parts) for row in range(len(parts[0]))]


def _describe_arrays(ours: Array, theirs: Array) -> str:
    if ours.shape != theirs.shape:
        return f"shape {ours.shape} in PyTorch, {theirs.shape} in Paddle"
    if ours.dtype.kind != theirs.dtype.kind:
        return f"{ours.dtype} in PyTorch, {theirs.dtype} in Paddle"
    count = int(np.count_nonzero(~((ours == theirs) | ((ours != ours) & (theirs != theirs)))))
    return f"{count} of {ours.size} elements"
