"""What a row of the zoo was made from: versions, the pair's statement, and the files that define both models.

A row is judged anew where one of these has changed, as a build tool makes anew what depends on a file
that has changed. The judge itself is none of them: after a change of it, use --again.
"""

import inspect
import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from hashlib import blake2b
from pathlib import Path
from traceback import extract_tb
from types import FunctionType
from typing import Any, Final

from examples.zoo.environments import PACKAGES, find_python
from examples.zoo.mending import load_faults
from examples.zoo.pair import Pair
from examples.zoo.tables import Table

import numpy as np

STATEMENT: Final = "the pair's statement"
"""the key of the digest of what the tables say: settings, batch, what takes the known faults out"""
_ASK: Final = """
import importlib.metadata, json, sys
every = [*importlib.metadata.distributions()][::-1]  # the first on the path is imported: it comes last
found = {one.metadata["Name"].lower(): one.version for one in every}
own = {name: found[name].partition("+")[0] for name in sys.argv[1:] if name in found}
print(json.dumps(own))  # a build for CUDA runs the same code on a CPU
"""


def read_inputs(table: Table, pair: Pair, files: Iterable[str] = ()) -> dict[str, str]:
    """Return versions by package, the digest of the pair's statement, and digests by file.

    files: below a folder of packages on this interpreter's path. One that is gone has the digest "".
    """
    found = {}
    for environment, package in zip(table.environments, (table.torch, table.paddle), strict=True):
        own = package.partition(".")[0]  # this folder's own module is of torchvision's models
        names = {"torch", "paddlepaddle", "torchvision" if own == "examples" else own}
        names |= {text.partition("==")[0] for text in PACKAGES.get(environment, ())}
        found |= _find_versions(environment, tuple(sorted(names)))
    faults = [(one.module, one.edits, one.within)
              for one in load_faults().get(table.faults_key, ()) if one.shows_in(pair.name)]  # fmt: skip
    found[STATEMENT] = _digest(_spell((pair.torch, pair.paddle, pair.batch(), faults), set()))
    for file in sorted(files):
        paths = (Path(folder, file) for folder in sys.path)
        found[file] = next((_digest([p.read_bytes()]) for p in paths if p.is_file()), "")
    return found


def list_files(*models: Any, error: Exception | None = None) -> set[str]:
    """Return the files that define the classes of models, and those that an error passed through.

    The frameworks' own are left out: their version tells.
    """
    named = {type(part).__module__ for model in models for part in _walk(model)}
    known = [getattr(sys.modules.get(name), "__file__", None) for name in named]
    passed = [] if error is None else [frame.filename for frame in extract_tb(error.__traceback__)]
    split = [(file or "").rpartition("site-packages/") for file in [*known, *passed]]
    return {file for _, found, file in split
            if found and file.partition("/")[0] not in ("torch", "paddle")}  # fmt: skip


def list_changes(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return what has changed, in words; where nothing is known of before, that."""
    if not before:
        return ["what it was made from is not known"]
    changed = [key for key in {**before, **now} if before.get(key) != now.get(key)]
    return [
        f"{key} {before.get(key, 'none')} -> {now.get(key, 'none')}"
        if key != STATEMENT and not key.endswith(".py")
        else key
        for key in changed
    ]


def _walk(model: Any) -> Iterator[Any]:
    parts: Callable[[], Iterable[Any]] = getattr(model, "modules", None) or model.sublayers
    yield model
    yield from parts()


@cache
def _find_versions(environment: str, names: Sequence[str]) -> dict[str, str]:
    python = find_python(environment)
    if not python.exists():
        return {}
    asked = subprocess.run([str(python), "-c", _ASK, *names], capture_output=True, check=True)
    found: dict[str, str] = json.loads(asked.stdout)
    return found


def _digest(parts: Iterable[bytes]) -> str:
    return blake2b(b"\0".join(parts), digest_size=8).hexdigest()


def _spell(value: Any, seen: set[int]) -> Iterator[bytes]:
    """Yield what tells a value of a table from another: of a function its text, and what it holds."""
    if isinstance(value, FunctionType):
        if id(value) in seen or not value.__module__.startswith("examples.zoo"):
            yield value.__qualname__.encode()
            return
        seen.add(id(value))
        yield inspect.getsource(value).encode()
        held = [cell.cell_contents for cell in value.__closure__ or ()]
        used = [value.__globals__.get(name) for name in value.__code__.co_names]
        yield from _spell([*held, *(one for one in used if isinstance(one, FunctionType))], seen)
    elif isinstance(value, Mapping):
        yield from _spell([part for item in value.items() for part in item], seen)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _spell(part, seen)
    elif isinstance(value, np.ndarray):
        yield f"{value.dtype} {value.shape}".encode() + np.ascontiguousarray(value).tobytes()
    else:
        yield repr(value).encode()
