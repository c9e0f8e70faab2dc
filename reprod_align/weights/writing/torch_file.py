"""Writes what `torch.load` reads (weights_only and mmap too): a zip archive, tensor by tensor."""

import secrets
import zipfile
from collections.abc import Iterable, Sequence
from math import prod
from typing import BinaryIO, Final

from reprod_align.weights.reading.torch_file import STORAGES
from reprod_align.weights.writing.entry import Entry, Load, dense_chunks
from reprod_align.weights.writing.opcodes import (
    EMPTY_DICT,
    EMPTY_TUPLE,
    FALSE,
    MARK,
    PERSISTENT,
    REDUCE,
    SET_ITEMS,
    STOP,
    TUPLE,
    begin,
    name,
    number,
    numbers,
    text,
)

_STORAGE: Final = {dtype: kind for kind, dtype in STORAGES.items() if kind != "UntypedStorage"}
_ALIGNMENT: Final = 64  # bytes: where PyTorch itself begins a storage
# bytes of an entry's header without its name; the second are its 64-bit sizes
_HEAD: Final = 30 + 20
_ROOT: Final = "archive"


def write_torch_zip(handle: BinaryIO, entries: Sequence[Entry], load: Load) -> None:
    """Write the file; what is tied shares one storage."""
    stored = [entry for entry in entries if not entry.tied_to]
    keys = {entry.name: str(at) for at, entry in enumerate(stored)}
    with zipfile.ZipFile(handle, "w", zipfile.ZIP_STORED) as archive:
        _write(archive, "data.pkl", [_pickle(entries, keys)])
        _write(archive, "byteorder", [b"little"])
        for entry in stored:
            _write(archive, f"data/{keys[entry.name]}", dense_chunks(load(entry.name)))
        _write(archive, "version", [b"3\n"])
        _write(archive, ".data/serialization_id", [secrets.token_hex(20).encode()])


def _write(archive: zipfile.ZipFile, inside: str, content: Iterable[bytes | memoryview]) -> None:
    """Write one entry whose content begins at a multiple of _ALIGNMENT."""
    info = zipfile.ZipInfo(f"{_ROOT}/{inside}")
    assert archive.fp is not None
    begins = archive.fp.tell() + _HEAD + len(info.filename)
    info.extra = _padding(-(begins + 4) % _ALIGNMENT)
    with archive.open(info, "w", force_zip64=True) as entry:
        for part in content:
            entry.write(part)


def _padding(size: int) -> bytes:
    """Return an extra field of zip that readers pass over, of `size` + 4 bytes."""
    return b"FB" + size.to_bytes(2, "little") + b"Z" * size


def _pickle(entries: Sequence[Entry], keys: dict[str, str]) -> bytes:
    parts = [begin(2), EMPTY_DICT, MARK]
    for entry in entries:
        parts += [text(entry.name), _tensor(entry, keys[entry.tied_to or entry.name])]
    return b"".join([*parts, SET_ITEMS, STOP])


def _tensor(entry: Entry, key: str) -> bytes:
    """Return the instructions that rebuild a tensor on its storage.

    A dtype without a storage class goes as bytes, and names itself at the end.
    """
    typed = entry.dtype in _STORAGE
    length = prod(entry.shape) if typed else entry.nbytes
    kind = ("torch", _STORAGE[entry.dtype]) if typed else ("torch.storage", "UntypedStorage")
    storage = (MARK + text("storage") + name(*kind) + text(key) + text("cpu") + number(length)
               + TUPLE + PERSISTENT)  # fmt: skip
    steps = tuple(max(1, prod(entry.shape[axis + 1 :])) for axis in range(len(entry.shape)))
    hooks = name("collections", "OrderedDict") + EMPTY_TUPLE + REDUCE
    end = b"" if typed else name("torch", entry.dtype)
    function = name("torch._utils", "_rebuild_tensor_v2" if typed else "_rebuild_tensor_v3")
    arguments = storage + number(0) + numbers(entry.shape) + numbers(steps) + FALSE + hooks + end
    return function + MARK + arguments + TUPLE + REDUCE
