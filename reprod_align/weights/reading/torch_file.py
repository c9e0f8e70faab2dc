"""Files of `torch.save`, both its zip archive and the format before PyTorch 1.6; PyTorch is not needed."""

import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from reprod_align.records.cost import Refused
from reprod_align.weights.reading.unpickle import CheckpointMachine, Opaque
from reprod_align.weights.stored import DTYPES, TENSOR, Span, Stored, find_fault, is_dense, map_file

import numpy as np

STORAGES: Final[Mapping[str, str]] = {
    "BoolStorage": "bool", "ByteStorage": "uint8", "CharStorage": "int8", "ShortStorage": "int16",
    "IntStorage": "int32", "LongStorage": "int64", "BFloat16Storage": "bfloat16",
    "HalfStorage": "float16", "FloatStorage": "float32", "DoubleStorage": "float64",
    "ComplexFloatStorage": "complex64", "ComplexDoubleStorage": "complex128",
    "UntypedStorage": "uint8",
}  # fmt: skip
"""torch's classes -> the dtype of their elements; an UntypedStorage counts bytes"""

_MAGIC: Final = 0x1950A86A20F9469CFC6C  # of the format before 1.6
_LONGEST_KEY: Final = 100  # letters of a storage's name
_HEAD: Final = 30  # bytes of a zip entry's own header, before its name


@dataclass(frozen=True)
class _Class:
    """A class or function of PyTorch that a file may name."""

    name: str


@dataclass
class _Storage:
    """What several tensors may share."""

    dtype: str
    source: Span


Find = Callable[[str, str, int], Span]
"""key, dtype, number of elements -> where the storage lies"""


class _TorchMachine(CheckpointMachine):
    """Makes a Stored of every tensor; `find` places a storage."""

    def __init__(self, data: memoryview, find: Find) -> None:
        super().__init__(data)
        self.find = find

    def find_name(self, module: str, name: str) -> Any:
        """Return PyTorch's classes and functions as such."""
        known = name in _REBUILD or name in STORAGES or name in DTYPES
        if module.partition(".")[0] == "torch" and known:
            return _Class(name)
        return super().find_name(module, name)

    def call(self, function: Any, arguments: tuple[Any, ...]) -> Any:
        """Rebuild a tensor, without its numbers."""
        if isinstance(function, _Class):
            self.builder.pay(TENSOR)
            return _REBUILD[function.name](*arguments)
        return super().call(function, arguments)

    def find_persistent(self, key: Any) -> Any:
        """Return a storage: key is ("storage", class, key, device, number of elements, ...)."""
        match key:
            case ("storage", _Class(kind), str(name), _, int(count), *_) if kind in STORAGES:
                return _Storage(STORAGES[kind], self.find(name, STORAGES[kind], count))
        raise Refused("is damaged: a storage in it is not well formed")


def _rebuild(
    storage: Any, start: Any, shape: Any, strides: Any, *rest: Any, dtype: str = ""
) -> Stored:
    if not isinstance(storage, _Storage) or not isinstance(shape, tuple):
        raise Refused("is damaged: a tensor in it has no storage or shape")
    kind = dtype or storage.dtype
    tensor = Stored(kind, shape, storage.source, start, strides if shape else ())
    fault = find_fault(tensor)
    if fault:
        raise Refused(f"is damaged: of a tensor in it, {fault}")
    dense = bool(shape) and is_dense(shape, strides)
    return Stored(kind, shape, storage.source, start) if dense else tensor


def _rebuild_typed(*arguments: Any) -> Stored:
    """Rebuild a tensor of a dtype without a storage class of its own."""
    *before, dtype = arguments[:7]
    if not isinstance(dtype, _Class) or dtype.name not in DTYPES:
        raise Refused("is damaged: a tensor in it has no dtype")
    return _rebuild(*before, dtype=dtype.name)


_REBUILD: Mapping[str, Callable[..., Any]] = {
    "_rebuild_tensor": _rebuild,
    "_rebuild_tensor_v2": _rebuild,
    "_rebuild_tensor_v3": _rebuild_typed,
    "_rebuild_parameter": lambda tensor, *rest: tensor,
    "_rebuild_parameter_with_state": lambda tensor, *rest: tensor,
    "device": lambda *words: Opaque("torch.device"),
    "Size": lambda sizes=(): sizes,
}


def is_torch_zip(head: bytes) -> bool:
    """Tell whether a file that begins so is a zip archive."""
    return head.startswith(b"PK\x03\x04")


def read_torch_zip(path: Path) -> object:
    """Return what a zip archive of `torch.save` holds. Raises Refused, zipfile.BadZipFile."""
    with zipfile.ZipFile(path) as archive, path.open("rb") as handle:
        entries = {entry.filename.partition("/")[2]: entry for entry in archive.infolist()}
        if "data.pkl" not in entries:
            raise Refused("is a zip archive without data.pkl: not a file of torch.save")
        if "constants.pkl" in entries:
            raise Refused("is a TorchScript program: save the model's state_dict() instead")
        if "byteorder" in entries and _read_plain(archive, entries["byteorder"]) != b"little":
            raise Refused("was written on a big-endian machine")
        content = _read_plain(archive, entries["data.pkl"])

        def find(key: str, dtype: str, count: int) -> Span:
            if len(key) > _LONGEST_KEY:
                raise Refused(f"is damaged: it names a storage with {len(key)} letters")
            entry = entries.get(f"data/{key}")
            if entry is None or entry.compress_type != zipfile.ZIP_STORED:
                raise Refused(f"is damaged: it has no plain entry data/{key}"[:120])
            handle.seek(entry.header_offset)
            head = handle.read(_HEAD)
            names = int.from_bytes(head[26:28], "little") + int.from_bytes(head[28:30], "little")
            span = Span(path, entry.header_offset + _HEAD + names, entry.file_size)
            if span.offset + span.size > path.stat().st_size:
                raise Refused("is truncated: a tensor in it ends behind the file")
            if count * np.dtype(DTYPES[dtype]).itemsize != span.size:
                raise Refused(f"is damaged: its entry data/{key} has another size"[:120])
            return span

        return _TorchMachine(memoryview(content), find).run()


def _read_plain(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    """Return an entry that is not compressed: a megabyte could unfold to a thousand of them."""
    if entry.compress_type != zipfile.ZIP_STORED or entry.file_size != entry.compress_size:
        raise Refused(f"has a compressed {entry.filename[:80]}: torch.save compresses nothing")
    return archive.read(entry)


def read_torch_legacy(path: Path) -> object:
    """Return what a file of `torch.save` before PyTorch 1.6 holds. Raises Refused.

    It is five pickles (two numbers, a dict, the value, the keys of its storages), and then each
    storage: its length and its elements. Where a storage lies is known at the end, so the pickles are
    read twice.
    """
    counted: dict[str, tuple[str, int]] = {}

    def count(key: str, dtype: str, length: int) -> Span:
        counted[key] = dtype, length
        return Span(path, 0, length * np.dtype(DTYPES[dtype]).itemsize)

    view = map_file(path)
    _, keys, end = _run_legacy(view, count)
    spans = _place_storages(path, view, counted, keys, end)
    return _run_legacy(view, lambda key, dtype, length: spans[key])[0]


def _run_legacy(data: memoryview, find: Find) -> tuple[object, object, int]:
    """Return the value, the keys of its storages, and where the first storage begins."""
    machine = _TorchMachine(data, find)
    if machine.run_next() != _MAGIC:
        raise Refused("is not a file of torch.save")
    _version, system = machine.run_next(), machine.run_next()
    if isinstance(system, dict) and system.get("little_endian") is False:
        raise Refused("was written on a big-endian machine")
    machine.memo.clear()
    value = machine.run_next()
    machine.memo.clear()
    return value, machine.run_next(), machine.position


def _place_storages(
    path: Path, data: memoryview, counted: Mapping[str, tuple[str, int]], keys: object, end: int
) -> dict[str, Span]:
    if not isinstance(keys, list) or set(keys) != set(counted):
        raise Refused("is damaged: its storages are not those that its tensors name")
    spans = {}
    for key in keys:
        dtype, length = counted[key]
        size = length * np.dtype(DTYPES[dtype]).itemsize
        if int.from_bytes(data[end : end + 8], "little") != length or end + 8 + size > len(data):
            raise Refused("is truncated: a tensor in it ends behind the file")
        spans[key] = Span(path, end + 8, size)
        end += 8 + size
    return spans
