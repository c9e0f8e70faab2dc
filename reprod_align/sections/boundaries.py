"""What a model did as a whole, in a file: what crossed the sections' borders, and the outputs.

With it any piece can be judged in any process. Each array is kept once, by the digest of its bytes: what one
section returns the next one takes. What holds the tensors is spelled as JSON; nothing that is read is run.
"""

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import reduce
from pathlib import Path
from typing import Any, Final, cast

from reprod_align.base.blocks import Array
from reprod_align.base.files import parse_json, write_tensors
from reprod_align.base.tasks import digest
from reprod_align.model import Call, Leaf, Trace
from reprod_align.sections.crossing import Crossing, Crossings
from reprod_align.sections.stream import SideRun
from reprod_align.weights import open_checkpoint

import numpy as np

_KEY: Final = "run"
Note = Callable[[Array | None], str | None]
Find = Callable[[str | None], Any]
IsTensor = Callable[[object], bool]


def keep_run(path: Path, run: SideRun, is_tensor: IsTensor) -> None:
    """Write a run. Raises TypeError if a section returned what cannot be spelled."""
    arrays: dict[str, Array] = {}

    def note(array: Array | None) -> str | None:
        if array is None:
            return None
        if array.dtype.kind not in "buif":
            raise TypeError(f"an array of {array.dtype}")
        dense = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        name = digest(f"{array.dtype} {array.shape}", dense.tobytes())
        arrays[name] = array
        return name

    text = json.dumps(
        {
            "outputs": _spell_leaves(run.trace.outputs, note),
            "crossings": _spell_crossings(run.crossings, note, is_tensor),
            "asked_float32": run.asked_float32,
        }
    )
    write_tensors(path, arrays, {_KEY: text})


def read_run(path: Path, nothing: Any) -> SideRun:
    """Return what `keep_run` wrote; its arrays stay in the file, mapped.

    nothing: a tensor without content, which stands in what the sections return. Raises WeightsError, or
    an error that damaged JSON leads to.
    """
    file = open_checkpoint(path)
    held = parse_json(file.metadata[_KEY])
    tensors = file.tensors

    def find(name: str | None) -> Any:
        return None if name is None else tensors[name].map()

    trace = Trace([Call("", 0, None, outputs=_read_leaves(held["outputs"], find))])
    crossings = _read_crossings(held["crossings"], find, nothing)
    return SideRun(trace, crossings, bool(held["asked_float32"]))


def _spell_leaves(leaves: Mapping[str, Leaf], note: Note) -> dict[str, Any]:
    return {
        at: [note(leaf.array), leaf.differentiable, note(leaf.gradient)]
        for at, leaf in leaves.items()
    }


def _read_leaves(plain: Mapping[str, Any], find: Find) -> dict[str, Leaf]:
    return {
        at: Leaf(find(array), bool(differentiable), find(gradient))
        for at, (array, differentiable, gradient) in plain.items()
    }


def _spell_crossings(crossings: Crossings, note: Note, is_tensor: IsTensor) -> dict[str, Any]:
    return {
        section: [
            [
                _spell_leaves(call.inputs, note),
                _spell_leaves(call.outputs, note),
                spell(call.returned, is_tensor),
            ]
            for call in calls
        ]
        for section, calls in crossings.items()
    }


def _read_crossings(plain: Mapping[str, Any], find: Find, nothing: Any) -> Crossings:
    return {
        section: [
            Crossing(
                _read_leaves(inputs, find), _read_leaves(outputs, find), build(returned, nothing)
            )
            for inputs, outputs, returned in calls
        ]
        for section, calls in plain.items()
    }


# ---------------------------------------------------------------------- what holds the tensors


def spell(value: Any, is_tensor: IsTensor) -> Any:
    """Return as JSON holds it a value of tensors, plain values and containers; TypeError for others."""
    if is_tensor(value):
        return {"tensor": True}
    if value is None or type(value) in (bool, int, float, str):
        return {"value": value}
    kind = f"{type(value).__module__}:{type(value).__qualname__}"
    if _find_class(kind) is not type(value):
        raise TypeError(f"a value of {kind}")
    if isinstance(value, Mapping):
        if not all(type(key) is str for key in value):
            raise TypeError(f"a {kind} with keys that are no texts")
        parts = [[key, spell(part, is_tensor)] for key, part in value.items()]
    elif isinstance(value, (tuple, list)):
        parts = [["", spell(part, is_tensor)] for part in value]
    else:
        names = [one.name for one in fields(cast(Any, value))]
        parts = [[name, spell(getattr(value, name), is_tensor)] for name in names]
    return {"class": kind, "parts": parts}


def build(plain: Mapping[str, Any], nothing: Any) -> Any:
    """Undo `spell`; `nothing` stands for each tensor. Raises TypeError or ValueError for another text."""
    if "tensor" in plain:
        return nothing
    if "value" in plain:
        return plain["value"]
    kind = _find_class(plain["class"])
    named = [(name, build(part, nothing)) for name, part in plain["parts"]]
    if issubclass(kind, (tuple, list)):
        parts = [part for _, part in named]
        return kind(*parts) if hasattr(kind, "_fields") else kind(parts)
    if issubclass(kind, Mapping):
        return kind(**dict(named)) if is_dataclass(kind) else kind(named)  # type: ignore[call-arg]
    made = object.__new__(kind)
    for name, part in named:
        object.__setattr__(made, name, part)
    return made


def _find_class(kind: str) -> type:
    """Return a container's class among those that are imported. Raises TypeError if it is none."""
    module, _, name = kind.partition(":")
    try:
        found = reduce(getattr, name.split("."), sys.modules[module])
    except (KeyError, AttributeError):
        found = None
    if isinstance(found, type) and (
        issubclass(found, (tuple, list, Mapping)) or is_dataclass(found)
    ):
        return found
    raise TypeError(f"a value of {kind}")
