"""Opens checkpoints of either framework, whole or in shards: every tensor is found, none is read yet.

Neither framework is needed, and nothing that a file holds is run.
"""

import math
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from reprod_align.base.blocks import Array, map_file
from reprod_align.base.files import parse_json
from reprod_align.errors import WeightsError, explain_absence
from reprod_align.records.pickled import Refused
from reprod_align.weights.paddle_file import read_paddle_file
from reprod_align.weights.remote import FileLocation, RemoteFile, locate, measure
from reprod_align.weights.safetensors_file import is_safetensors, read_safetensors
from reprod_align.weights.stored import FileSpan, Stored, name_all
from reprod_align.weights.torch_file import is_torch_zip, read_torch_legacy, read_torch_zip

import numpy as np

_LEGACY = b"\x80\x02\x8a\x0a\x6c\xfc\x9c"  # torch's magic number, pickled
INDEX: Final = ".index.json"
_REPEATED: Final = 4  # times the file that its tensors may take: views share their numbers
_FREE: Final = 2**24  # bytes that any file may ask for
_FREE_ITEMS: Final = 2**16  # values that any file may hold
_WHOLE = ("model.safetensors", "pytorch_model.bin", "model_state.pdparams")


@dataclass(frozen=True)
class Checkpoint:
    """What a checkpoint holds."""

    path: FileLocation
    kind: str
    """"safetensors", "torch" or "paddle": the format of its files"""
    content: Mapping[str, object]
    """name -> Stored; or what a training script wrapped: dicts in dicts, and other values"""
    metadata: Mapping[str, str]
    files: tuple[FileLocation, ...]

    @property
    def framework(self) -> str:
        """Whose layout the tensors have: "torch" or "paddle"; "" if the format does not tell."""
        if self.kind != "safetensors":
            return self.kind
        return {"pt": "torch", "pd": "paddle", "np": "paddle"}.get(
            self.metadata.get("format", ""), ""
        )

    @property
    def tensors(self) -> dict[str, Stored]:
        """The tensors that stand in it by name, not those inside further dicts."""
        return {name: held for name, held in self.content.items() if isinstance(held, Stored)}


def open_checkpoint(place: str | FileLocation) -> Checkpoint:
    """Open a file, the index of a sharded checkpoint, or a folder with either.

    place: a path; or an address, as https://HOST/model.safetensors, of which only what is used is read.
    Raises MissingInputError if it is not there, WeightsError if it is damaged, truncated, in an unknown
    format or without content.
    """
    path = locate(place)
    if isinstance(path, Path) and path.is_dir():
        path = _find_in_folder(path)
    if not path.is_file():
        raise explain_absence(path)
    return _open_shards(path) if path.name.endswith(INDEX) else _open_file(path)


def _find_in_folder(folder: Path) -> Path:
    indexes = sorted(folder.glob(f"*{INDEX}"))
    whole = [folder / name for name in _WHOLE if (folder / name).is_file()]
    found = indexes or whole
    if len(found) != 1:
        names = ", ".join(path.name for path in found) or "neither an index nor a file of weights"
        raise WeightsError(f"{folder}: expected one checkpoint, got {names}: name the file")
    return found[0]


def _open_file(path: FileLocation) -> Checkpoint:
    head = _read(path, 16)
    metadata: dict[str, str] = {}
    content: object
    with _describe(path):
        if is_safetensors(head):
            kind = "safetensors"
            content, metadata = read_safetensors(path, head)
        elif isinstance(path, RemoteFile):
            raise Refused(
                "is neither a .safetensors file nor an index of such files: download it, and name the "
                "local file"
            )
        elif is_torch_zip(head):
            kind, content = "torch", read_torch_zip(path)
        elif head.startswith(_LEGACY):
            kind, content = "torch", read_torch_legacy(path)
        elif head[:1] == b"\x80":
            kind, content = "paddle", read_paddle_file(path)
        else:
            raise Refused("is not a file of weights: .bin, .pth, .pt, .safetensors or .pdparams")
    if not isinstance(content, Mapping) or not content:
        raise WeightsError(f"{path} holds no state dict (a dict of named tensors)")
    _require_explained(path, content)
    named = name_all(content, str(path))
    return Checkpoint(path, kind, named, metadata, (path,))


def _read(path: FileLocation, most: int | None = None) -> bytes:
    """Return the first bytes of a file, all where `most` is None."""
    size = measure(path)
    length = size if most is None else min(most, size)
    return FileSpan(path, 0, length).read(0, length).tobytes()


def _require_explained(path: FileLocation, content: Mapping[Any, object]) -> None:
    """Raise WeightsError if what the file holds is far larger than the file: references repeat it.

    Each set of numbers counts once, however many names it has; a dict as often as it is reached.
    """
    size = measure(path)
    tensors: set[Stored] = set()
    if _count_reached(content, tensors) > _REPEATED * size + _FREE_ITEMS:
        raise WeightsError(
            f"{path} repeats its dicts and lists far more often than its size explains"
        )
    asked = sum(one.nbytes for one in tensors)
    if asked > _REPEATED * size + _FREE:
        raise WeightsError(
            f"{path} asks for {asked:,} bytes of tensors, far more than its size explains"
        )


def _count_reached(
    value: object, tensors: set[Stored], counted: dict[int, int] | None = None
) -> int:
    """Return how many values a walk through all of it meets; each container is looked at once.

    tensors: gets each set of numbers. counted: what was met in the containers before, by their ids.
    """
    counted = {} if counted is None else counted
    if isinstance(value, Stored):
        tensors.add(value)
    if not isinstance(value, (Mapping, list, tuple)):
        return 1
    if id(value) not in counted:
        inner = value.values() if isinstance(value, Mapping) else value
        counted[id(value)] = 1 + sum(_count_reached(one, tensors, counted) for one in inner)
    return counted[id(value)]


def read_tensors(
    path: Path, leave_from: float = math.inf
) -> tuple[dict[str, Array], dict[str, str]]:
    """Return the arrays and the metadata of a `.safetensors` file. Raises WeightsError if it is damaged.

    Numbers of `leave_from` bytes and more stay in the file, mapped: they are read-only, and may be
    unaligned.
    """
    with _describe(path):
        head = _read(path, 16)
        if not is_safetensors(head):
            raise Refused("is damaged or not a .safetensors file")
        tensors, metadata = read_safetensors(path, head)
        file = memoryview(map_file(path))
        arrays = {name: _take(one, file, leave_from) for name, one in tensors.items()}
        return arrays, metadata


def _take(tensor: Stored, file: memoryview, leave_from: float) -> Array:
    """Return a tensor's array, left in the file if it is large and any bytes are numbers of its dtype."""
    if tensor.bits.kind not in "uif" or tensor.bits.name != tensor.dtype:
        return tensor.values()
    assert isinstance(tensor.source, FileSpan)
    mapped: Array = np.ndarray(tensor.shape, tensor.bits, file[tensor.source.offset :])
    return mapped if tensor.nbytes >= leave_from else mapped.copy()


def _open_shards(path: FileLocation) -> Checkpoint:
    """Open every file that the index names. Raises WeightsError if they do not hold what it lists."""
    listed = _read_index(path)
    shards = {name: _open_shard(path, name) for name in dict.fromkeys(listed.values())}
    content = {}
    for name, shard in listed.items():
        if name not in shards[shard].tensors:
            raise WeightsError(
                f"{path.with_name(shard)}: {path.name} promises {name}, which is missing"
            )
        content[name] = shards[shard].tensors[name]
    for shard, held in shards.items():
        for name in sorted(held.content):
            if listed.get(name) != shard:
                lists = f"lists in {listed[name]}" if name in listed else "lacks"
                raise WeightsError(
                    f"{path.with_name(shard)} holds {name}, which {path.name} {lists}"
                )
    kinds = sorted({shard.framework or shard.kind for shard in shards.values()})
    if len(kinds) > 1:
        raise WeightsError(f"{path}: its files are of different frameworks: {', '.join(kinds)}")
    first = next(iter(shards.values()))
    files = tuple(shard.path for shard in shards.values())
    return Checkpoint(path, first.kind, content, first.metadata, files)


def _read_index(path: FileLocation) -> Mapping[str, str]:
    with _describe(path):
        index = parse_json(_read(path).decode("utf-8-sig"))
    listed = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(listed, dict) or not listed:
        raise WeightsError(f'{path}: expected {{"weight_map": {{"tensor": "file", ...}}}}')
    for shard in listed.values():
        if not isinstance(shard, str) or Path(shard).name != shard or shard in ("", ".."):
            raise WeightsError(
                f"{path}: expected names of files beside it, got {str(shard)[:80]!r}"
            )
    return listed


def _open_shard(index: FileLocation, name: str) -> Checkpoint:
    path = index.with_name(name)
    with _describe(index):  # a name may be too long
        there = path.is_file()
    if not there:
        raise explain_absence(path, f": {index.name} lists it")
    return _open_file(path)


@contextmanager
def _describe(path: FileLocation) -> Iterator[None]:
    """Turn what a damaged file raises in the block into a WeightsError that names it."""
    try:
        yield
    except Refused as error:
        raise WeightsError(f"{path} {error}") from None
    except (ArithmeticError, LookupError, TypeError, ValueError, AttributeError, MemoryError,
            RuntimeError, EOFError, zipfile.BadZipFile) as error:  # fmt: skip
        detail = str(error)[:120] or type(error).__name__
        raise WeightsError(f"{path} is damaged: {detail}") from error
    except OSError as error:
        raise WeightsError(f"cannot read {path}: {error.strerror or error}") from error
