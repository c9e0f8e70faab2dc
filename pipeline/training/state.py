"""A checkpoint on disk: one `.safetensors` file, its facts as JSON in the metadata. Runs no code."""

import json
import os
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from reprod_align.base.files import write_tensors
from reprod_align.errors import ReprodError
from reprod_align.weights import read_tensors

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.generic]
Arrays = dict[str, Array]
Facts = dict[str, Any]

PROCESSES = "processes"  # the fact that says how many of them trained together
_KEY, _SUM = "reprod_align", "crc32"  # the metadata's entries


def write_state(path: Path, arrays: Mapping[str, Array], facts: Facts) -> None:
    """Write arrays and JSON facts to `path`, whole or not at all, without a second copy in memory."""
    told = json.dumps(facts)
    write_tensors(path, arrays, {_KEY: told, _SUM: _checksum(told, arrays)})


def read_state(path: Path) -> tuple[Arrays, Facts]:
    """Return the arrays and facts of `path`; ReprodError if it is damaged or of another program.

    facts["made_with"], if it is there, is a dict; `require_resumable` asks for more.
    """
    try:
        arrays, metadata = read_tensors(path)
        facts = json.loads(metadata[_KEY])
        # checkpoints of earlier versions have no checksum
        intact = metadata.get(_SUM, "") in ("", _checksum(metadata[_KEY], arrays))
    except (ReprodError, LookupError, RecursionError, ValueError) as error:
        raise ReprodError(f"{path} is damaged, or not a checkpoint of Step 5") from error
    if (
        not intact
        or not isinstance(facts, dict)
        or not isinstance(facts.get("made_with", {}), dict)
    ):
        raise ReprodError(f"{path} is damaged, or not a checkpoint of Step 5")
    return arrays, facts


def require_resumable(path: Path, arrays: Mapping[str, Array], facts: Facts) -> None:
    """Raise ReprodError unless a training can go on from a checkpoint: one written as `last`."""
    try:
        schedule = facts["learner"].get("schedule", {})
        rates = schedule.get("last_lr", 0.0), facts["learner"].get("scaler", {}).get("scale", 0.0)
        counts = *facts["position"], schedule.get("last_epoch", 0), facts["log_bytes"]
        sound = len(facts["position"]) == 3 and all(type(n) is int and n >= 0 for n in counts)
        sound = sound and all(type(rate) in (int, float) and rate >= 0 for rate in rates)
        sound = sound and all(f"curves/{name}" in arrays for name in facts["curves"])
    except (AttributeError, LookupError, TypeError):
        sound = False
    if not sound or not all(_fits_its_weight(name, arrays) for name in arrays):
        raise ReprodError(f"{path} lacks what a training needs to go on: --no-resume starts anew")


def _fits_its_weight(name: str, arrays: Mapping[str, Array]) -> bool:
    """Whether an average that the optimizer keeps is shaped as its weight; a count has one element."""
    kept = name.startswith("optimizer/")
    weight = arrays.get(name.split("/")[1]) if kept else None
    alike = weight is not None and (arrays[name].shape, arrays[name].dtype) == (
        weight.shape,
        weight.dtype,
    )
    return not kept or (weight is not None and (alike or arrays[name].size == 1))


def _checksum(facts: str, arrays: Mapping[str, Array]) -> str:
    """Return one number for all of a checkpoint's content, in hexadecimal digits."""
    total = zlib.crc32(facts.encode())
    for name in sorted(arrays):
        array = arrays[name]
        total = zlib.crc32(f"{name} {array.dtype} {array.shape}".encode("utf-8", "replace"), total)
        total = zlib.crc32(np.ascontiguousarray(array).data, total)
    return f"{total:08x}"


def keep_step(folder: Path, step: int, keep: int) -> None:
    """Let the last checkpoint, which is of `step`, stay beside the next ones; drop all but `keep`."""
    if keep:
        path = folder / f"step_{step}.safetensors"
        path.unlink(missing_ok=True)
        os.link(folder / "last.safetensors", path)  # the next one replaces the name, not the file
        for _, old in list(list_kept_steps(folder).items())[:-keep]:
            old.unlink()


def list_kept_steps(folder: Path) -> dict[int, Path]:
    """Return the checkpoints that were kept, by their steps, rising."""
    found = {path.stem.removeprefix("step_"): path for path in folder.glob("step_*.safetensors")}
    return {int(step): found[step] for step in sorted(filter(str.isdecimal, found), key=int)}


def model_weights(arrays: Mapping[str, Array]) -> Arrays:
    """Return the model's own arrays out of a checkpoint's."""
    return {name: array for name, array in arrays.items() if "/" not in name}


def select(arrays: Mapping[str, Array], prefix: str) -> Arrays:
    """Return what a checkpoint keeps as `prefix/name`, by `name`."""
    start = f"{prefix}/"
    return {name[len(start) :]: a for name, a in arrays.items() if name.startswith(start)}


def require_same(path: Path, found: Facts, wanted: Facts) -> None:
    """Raise ReprodError, saying what differs, unless a checkpoint was made as the command asks."""
    other = ", ".join(differences(found, wanted))
    if other:
        raise ReprodError(
            f"{path} was made with {other}: give what it was made with, "
            "another --output, or --no-resume to start anew"
        )


def differences(found: Facts, wanted: Facts) -> Iterator[str]:
    """Yield in words what a checkpoint was made with that is not as `wanted`."""
    written = json.loads(json.dumps(wanted))  # as a checkpoint would hold it: lists for tuples
    for name in dict.fromkeys([*written, *found]):
        mine, theirs = written.get(name), found.get(name)
        if mine != theirs:
            shown = name.startswith("--") or name == PROCESSES  # files have digests alone
            yield f"{name} {theirs} instead of {mine}" if shown else f"another {name}"
