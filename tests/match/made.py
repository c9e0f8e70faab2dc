"""A model as matching sees it, made by hand: modules, and their tensors as numpy arrays."""

from collections.abc import Mapping, Sequence
from typing import Any

from reprod_align.base.text import ancestors
from reprod_align.match.evidence import Evidence, collect_evidence
from reprod_align.model.settings import ModuleSettings
from reprod_align.model.side import ModelInfo, TensorInfo

import numpy as np

BUFFERS = {"running_mean", "running_var", "num_batches_tracked", "_mean", "_variance"}
Module = tuple[str, Mapping[str, np.ndarray]]
"""the kind of a layer, "" for a user's own class, and its tensors by role"""


def numbers(*shape: int) -> np.ndarray:
    """Return the same different numbers for one shape at each call."""
    return np.arange(1.0, 1.0 + np.prod(shape)).reshape(shape)


def linear(*shape: int, bias: int = 0) -> Module:
    tensors = {"weight": numbers(*shape)}
    return "Linear", tensors | ({"bias": numbers(bias)} if bias else {})


def make_info(modules: Mapping[str, Module], values: Mapping[str, Any] | None = None) -> ModelInfo:
    """Return the modules, and those around them. values: the settings of every user's own class."""
    known = dict.fromkeys(p for path in modules for p in (*reversed([*ancestors(path)]), path))
    kinds = {path: modules.get(path, ("", {}))[0] for path in known}
    settings = {
        p: ModuleSettings(k, k or "Own", {} if k else values or {}) for p, k in kinds.items()
    }
    first: dict[int, str] = {}
    tensors = {}
    for path, (_, held) in modules.items():
        for role, array in held.items():
            name = f"{path}.{role}" if path else role
            is_parameter = role not in BUFFERS
            tie = first.setdefault(id(array), name)
            tensors[name] = TensorInfo(
                name, path, role, array.shape, True, is_parameter, is_parameter, True, tie
            )
    return ModelInfo(settings, tensors, frozenset(p for p, kind in kinds.items() if kind))


def make_evidence(
    framework: str,
    modules: Mapping[str, Module],
    order: Sequence[str] = (),
    values: Mapping[str, Any] | None = None,
) -> Evidence:
    held = {
        f"{path}.{role}" if path else role: array
        for path, (_, tensors) in modules.items()
        for role, array in tensors.items()
    }
    return collect_evidence(make_info(modules, values), order, held, framework)


def make_both(
    ours: Mapping[str, Module], theirs: Mapping[str, Module]
) -> tuple[Evidence, Evidence]:
    return make_evidence("PyTorch", ours), make_evidence("Paddle", theirs)
