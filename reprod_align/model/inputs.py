"""The batch that both models are given: arrays by name, or by position."""

from collections.abc import Mapping

from reprod_align.errors import ReprodError
from reprod_align.model.store import Array

import numpy as np

_MASK_VALUES = 3  # shown, hidden, and halfway


def check_inputs(inputs: object) -> None:
    """Raise ReprodError unless `inputs` are arrays, by name or by position."""
    if not isinstance(inputs, (Mapping, tuple, list)):
        raise ReprodError(
            "inputs must be a dict of arrays (keywords) or a tuple of arrays (by position), "
            f"not {_describe_value(inputs)}"
        )
    if not inputs:
        raise ReprodError("inputs: expected at least one array, got none")
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


def name_inputs(inputs: Mapping[str, Array] | tuple[Array, ...]) -> dict[str, Array]:
    """Return the arrays by name; those by position have their numbers for names."""
    if isinstance(inputs, Mapping):
        return dict(inputs)
    return {str(number): array for number, array in enumerate(inputs)}


def may_have_gradient(array: Array) -> bool:
    """Tell whether an input can have a gradient: it holds floats."""
    return array.dtype.kind == "f" and array.size > 0


def has_few_values(array: Array) -> bool:
    """Tell whether an input can be a mask: the frameworks' ways to hide need not have one gradient."""
    return len(np.unique(array)) <= min(_MASK_VALUES, array.size - 1)


def _describe_value(value: object) -> str:
    """Return what was given in place of several arrays; of one array, what to write instead."""
    if not hasattr(value, "shape"):
        return f"a {_class_of(value)}"
    return (
        f"one {_class_of(value)} of shape {tuple(value.shape)}: return a dict, "
        "{'the name of the argument': array}, or a tuple, (array,)"
    )


def _class_of(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__name__}".removeprefix("builtins.")
