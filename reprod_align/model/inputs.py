"""The batch that both models are given: arrays by name, or by position."""

from collections.abc import Mapping

from reprod_align.errors import ReprodError

import numpy as np


def check_inputs(inputs: object) -> None:
    """Raise ReprodError unless `inputs` are arrays, by name or by position."""
    if not isinstance(inputs, (Mapping, tuple, list)) or not inputs:
        raise ReprodError(
            "inputs must be a dict of arrays (keywords) or a tuple of arrays (by position), not empty"
        )
    named = inputs.items() if isinstance(inputs, Mapping) else enumerate(inputs)
    for name, value in named:
        if isinstance(inputs, Mapping) and not isinstance(name, str):
            raise ReprodError(f"inputs: expected names of arguments as keys, got {name!r}")
        if not isinstance(value, np.ndarray):
            advice = ": give its .numpy()" if hasattr(value, "numpy") else ""
            got = _class_of(value)
            raise ReprodError(f"inputs[{name!r}]: expected a numpy array, got a {got}{advice}")
        if value.dtype.kind not in "biufc":
            raise ReprodError(f"inputs[{name!r}]: expected numbers, got an array of {value.dtype}")
    values = inputs.values() if isinstance(inputs, Mapping) else inputs
    if not any(value.size for value in values):
        raise ReprodError("inputs: every array is empty, so nothing would be computed")


def _class_of(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__name__}".removeprefix("builtins.")
