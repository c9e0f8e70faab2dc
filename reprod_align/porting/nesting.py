"""Inputs of any form: dicts, lists, dataclasses, numbers and None, nested, as arrays by name."""

import dataclasses
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from reprod_align.errors import ReprodError
from reprod_align.model.side import Inputs

import numpy as np

Arrange = Callable[[Mapping[str, Any]], tuple[tuple[Any, ...], dict[str, Any]]]
"""returns positional and named arguments, from arrays by name"""


def flatten_inputs(inputs: Any) -> tuple[Inputs, str]:
    """Return the arrays in `inputs` by name, and the code of `arrange(arrays)`, which puts them back.

    Arrays that are not nested stay as they are, and the code is "". PyTorch's tensors are taken as the
    arrays that they hold, and one array alone is the model's only argument. Raises ReprodError for what
    has no literal, neither at the top nor inside.
    """
    if isinstance(inputs, Mapping):
        inputs = {key: _to_array(one, str(key)) for key, one in inputs.items()}
    elif type(inputs) in (tuple, list):
        inputs = type(inputs)(_to_array(one, str(at)) for at, one in enumerate(inputs))
    elif isinstance(one := _to_array(inputs, "0"), np.ndarray):
        inputs = (one,)
    if not isinstance(inputs, Mapping | tuple | list):
        return inputs, ""
    values = list(inputs.values() if isinstance(inputs, Mapping) else inputs)
    if not values or all(isinstance(one, np.ndarray) for one in values):
        return inputs, ""  # type: ignore[return-value]
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    modules: set[str] = set()
    if isinstance(inputs, Mapping):
        named = {key: _write(one, str(key), arrays, modules) for key, one in inputs.items()}
        inside = "{" + ", ".join(f"{key!r}: {text}" for key, text in named.items()) + "}"
        result = f"(), {inside}"
    else:
        texts = (_write(one, str(at), arrays, modules) for at, one in enumerate(inputs))
        result = f"({''.join(f'{one}, ' for one in texts)}), {{}}"
    if not arrays:
        raise ReprodError("inputs: expected at least one array, got none")
    imports = "".join(f"    import {one}\n" for one in sorted(modules))
    return arrays, (
        "def arrange(arrays):\n"
        '    """Return the arguments of both models, by position and by name."""\n'
        f"{imports}    return {result}\n"
    )


def _to_array(value: Any, name: str) -> Any:
    """Return the array that a tensor of PyTorch's holds, anything else as it is."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(value, torch.Tensor):
        return value
    try:
        return value.detach().cpu().numpy()
    except TypeError as error:  # bfloat16, sparse
        reason = str(error).rstrip(".")
        raise ReprodError(f"inputs[{name!r}]: {reason}; give a NumPy array") from error


def _write(value: Any, name: str, arrays: dict[str, Any], modules: set[str]) -> str:
    """Return the expression of a value; its arrays are added by name."""

    def within(parts: Iterator[tuple[Any, Any]]) -> list[tuple[Any, str]]:
        return [(key, _write(one, f"{name}_{key}", arrays, modules)) for key, one in parts]

    value = _to_array(value, name)
    if isinstance(value, np.ndarray):
        arrays[name] = value
        return f"arrays[{name!r}]"
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    if type(value) is dict:
        parts = within(iter(value.items()))
        return "{" + ", ".join(f"{key!r}: {text}" for key, text in parts) + "}"
    if type(value) in (list, tuple):
        texts = [text for _, text in within(iter(enumerate(value)))]
        return (
            f"[{', '.join(texts)}]"
            if type(value) is list
            else f"({''.join(f'{one}, ' for one in texts)})"
        )
    kind = type(value)
    fields: Iterator[tuple[str, Any]] | None = None
    if dataclasses.is_dataclass(value):
        fields = ((one.name, getattr(value, one.name)) for one in dataclasses.fields(value))
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        fields = iter(zip(value._fields, value, strict=True))
    if fields is None:
        raise ReprodError(
            f"inputs[{name!r}]: expected arrays, numbers, dicts, lists or dataclasses, got a "
            f"{kind.__module__}.{kind.__qualname__}"
        )
    modules.add(kind.__module__)
    parts = within(fields)
    inside = ", ".join(f"{key}={text}" for key, text in parts)
    return f"{kind.__module__}.{kind.__qualname__}({inside})"


def compile_arrange(code: str) -> Arrange:
    """Return the function that `flatten_inputs` wrote."""
    space: dict[str, Any] = {}
    exec(code, space)
    arrange: Arrange = space["arrange"]
    return arrange


def rearrange(model: Any, arrange: Arrange) -> Any:
    """Return a model of either framework that is called with arrays by name."""
    forward = model.forward

    def call(**arrays: Any) -> Any:
        positional, named = arrange(arrays)
        return forward(*positional, **named)

    model.forward = call
    return model
