"""A checkpoint on disk: one `.safetensors` file, its facts as JSON in the metadata. Runs no code."""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from reprod_align.atomic import whole_file
from reprod_align.errors import ReprodError

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.generic]
Arrays = dict[str, Array]
Facts = dict[str, Any]

PROCESSES = "processes"  # the fact that says how many of them trained together
_KEY = "reprod_align"  # the metadata's entry
_KINDS = {"float64": "F64", "float32": "F32", "int64": "I64", "int32": "I32", "bool": "BOOL"}


def write_state(path: Path, arrays: Mapping[str, Array], facts: Facts) -> None:
    """Write arrays and JSON facts to `path`, whole or not at all, without a second copy in memory."""
    header: dict[str, Any] = {"__metadata__": {_KEY: json.dumps(facts)}}
    end = 0
    for name, array in arrays.items():
        start, end = end, end + array.nbytes
        kind = _KINDS[array.dtype.name]
        header[name] = {"dtype": kind, "shape": array.shape, "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # the tensors start at a multiple of eight bytes
    with whole_file(path) as handle:
        handle.write(len(text).to_bytes(8, "little") + text)
        for array in arrays.values():
            handle.write(np.ascontiguousarray(array).data)


def read_state(path: Path) -> tuple[Arrays, Facts]:
    """Return the arrays and facts of `path`; ReprodError if it is damaged or none of ours."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            facts = json.loads((file.metadata() or {})[_KEY])
            return {name: file.get_tensor(name) for name in file.keys()}, facts
    except (SafetensorError, KeyError, ValueError) as error:
        raise ReprodError(f"{path} is damaged, or no checkpoint of Step 5") from error


def keep_step(folder: Path, step: int, keep: int) -> None:
    """Let the last checkpoint, which is of `step`, stay beside the next ones; drop all but `keep`."""
    if keep:
        path = folder / f"step_{step}.safetensors"
        path.unlink(missing_ok=True)
        os.link(folder / "last.safetensors", path)  # the next one replaces the name, not the file
        for _, old in list(kept_steps(folder).items())[:-keep]:
            old.unlink()


def kept_steps(folder: Path) -> dict[int, Path]:
    """Return the checkpoints that were kept, by their steps, rising."""
    found = {path.stem.removeprefix("step_"): path for path in folder.glob("step_*.safetensors")}
    return {int(step): found[step] for step in sorted(filter(str.isdecimal, found), key=int)}


def model_weights(arrays: Mapping[str, Array]) -> Arrays:
    """Return the model's own arrays out of a checkpoint's."""
    return {name: array for name, array in arrays.items() if "/" not in name}


def part(arrays: Mapping[str, Array], prefix: str) -> Arrays:
    """Return what a checkpoint keeps as `prefix/name`, by `name`."""
    start = f"{prefix}/"
    return {name[len(start) :]: a for name, a in arrays.items() if name.startswith(start)}


def digest(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def require_same(path: Path, found: Facts, wanted: Facts) -> None:
    """Raise ReprodError, saying what differs, unless a checkpoint was made as the command asks."""
    differences = list(_differences(found, json.loads(json.dumps(wanted))))
    if differences:
        raise ReprodError(
            f"{path} was made with {', '.join(differences)}: give what it was made with, "
            "another --output, or --no-resume to start anew"
        )


def _differences(found: Facts, wanted: Facts) -> Iterator[str]:
    for name in dict.fromkeys([*wanted, *found]):
        mine, theirs = wanted.get(name), found.get(name)
        if mine != theirs:
            told = name.startswith("--") or name == PROCESSES  # of a file there are only digests
            yield f"{name} {theirs} instead of {mine}" if told else f"another {name}"
