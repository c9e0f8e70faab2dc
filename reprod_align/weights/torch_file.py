"""Files of `torch.save`, read and written tensor by tensor; PyTorch is not needed.

Read: its zip archive and the format before PyTorch 1.6. What a checkpoint holds beside tensors and plain
values (an argparse.Namespace, a scheduler) becomes an `Opaque`: it is named, never made. Written: the zip
archive, which `torch.load` reads with weights_only and with mmap.
"""

import secrets
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from pickle import BINPERSID, EMPTY_DICT, MARK, REDUCE, SETITEMS, STOP
from typing import Any, BinaryIO, Final

from reprod_align.base.blocks import map_file
from reprod_align.errors import one_line
from reprod_align.records.pickled import KNOWN_NAMES, Builder, Refused
from reprod_align.records.safe_pickle import HANDLERS, Machine
from reprod_align.weights.opcodes import begin, push, push_name, push_tuple
from reprod_align.weights.stored import (
    DTYPES,
    TENSOR,
    FileSpan,
    Load,
    Stored,
    TensorEntry,
    find_fault,
    is_dense,
    read_chunks,
)

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
FindStorage = Callable[[str, str, int], FileSpan]
"""key, dtype, number of elements -> where the storage lies"""
_STORAGE: Final = {dtype: kind for kind, dtype in STORAGES.items() if kind != "UntypedStorage"}
_ALIGNMENT: Final = 64  # bytes: where PyTorch itself begins a storage
_LONG_SIZES: Final = 20  # bytes after an entry's name: its sizes in 64 bits
_ROOT: Final = "archive"


@dataclass(frozen=True)
class Opaque:
    """Something that is neither a tensor nor plain data: the name of its class or maker."""

    name: str


class CheckpointMachine(Machine):
    """A machine that knows what training scripts pickle; see records.safe_pickle for its rules."""

    def __init__(self, data: memoryview, builder: Builder | None = None) -> None:
        """Take the bytes of the pickle."""
        super().__init__(data, builder)
        self.handlers = _HANDLERS

    def find_name(self, module: str, name: str) -> Any:
        """Return what stands for a name; an unknown one is opaque."""
        if (module, name) in KNOWN_NAMES:
            return super().find_name(module, name)
        return Opaque(one_line(f"{module}.{name}"[:120]))

    def call(self, function: Any, arguments: tuple[Any, ...]) -> Any:
        """Return what stands for the result."""
        return function if isinstance(function, Opaque) else super().call(function, arguments)

    def set_state(self, target: Any, state: Any) -> Any:
        """Return the object; what is opaque keeps no state."""
        return target if isinstance(target, Opaque) else super().set_state(target, state)

    def find_persistent(self, key: Any) -> Any:
        """Return what stands for an object that lies outside the pickle."""
        raise Refused("refers to data outside its pickle")

    def pop(self) -> Any:
        """Return the top of the stack."""
        if not self.stack:
            raise Refused("is damaged: its pickle takes a value that is not there")
        return self.stack.pop()


def _add_top(code: bytes, taken: int) -> Callable[[Any], None]:
    """Return the instruction that adds so many values to the object below them; an opaque one drops them."""

    def run(machine: CheckpointMachine) -> None:
        if len(machine.stack) > taken and isinstance(machine.stack[-1 - taken], Opaque):
            del machine.stack[-taken:]
        else:
            HANDLERS[code](machine)

    return run


def _add_group(code: bytes) -> Callable[[Any], None]:
    """Return the instruction that adds what follows the last mark to the object below it, as `_add_top`."""

    def run(machine: CheckpointMachine) -> None:
        below = machine.marks[-1] if machine.marks else []
        if below and isinstance(below[-1], Opaque):
            machine.stack = machine.marks.pop()
        else:
            HANDLERS[code](machine)

    return run


def _push_persistent(machine: CheckpointMachine) -> None:
    machine.stack.append(machine.find_persistent(machine.pop()))


def _make_object(machine: CheckpointMachine) -> None:
    """Make an object without calling its class."""
    arguments, kind = machine.pop(), machine.pop()
    machine.stack.append(machine.call(kind, arguments) if isinstance(arguments, tuple) else kind)


def _make_object_with_keywords(machine: CheckpointMachine) -> None:
    machine.pop()
    _make_object(machine)


def _frozen(machine: CheckpointMachine) -> None:
    machine.since_mark()
    machine.stack.append(Opaque("frozenset"))


def _make_text_reader(layout: str) -> Callable[[Any], None]:
    """Return the instruction that reads a string of Python 2."""
    return lambda machine: machine.stack.append(str(machine.read(machine.number(layout)), "latin1"))


_HANDLERS: Mapping[bytes, Callable[[Any], None]] = {
    **HANDLERS,
    b"a": _add_top(b"a", 1),  # APPEND
    b"e": _add_group(b"e"),  # APPENDS
    b"s": _add_top(b"s", 2),  # SETITEM: key and value
    b"u": _add_group(b"u"),  # SETITEMS
    b"Q": _push_persistent,  # BINPERSID
    b"\x81": _make_object,  # NEWOBJ
    b"\x92": _make_object_with_keywords,  # NEWOBJ_EX
    b"\x8f": lambda machine: machine.stack.append(Opaque("set")),  # EMPTY_SET
    b"\x90": _add_group(b"e"),  # ADDITEMS
    b"\x91": _frozen,  # FROZENSET
    b"T": _make_text_reader("<i"),  # BINSTRING
    b"U": _make_text_reader("<B"),  # SHORT_BINSTRING
}


@dataclass(frozen=True)
class _Class:
    """A class or function of PyTorch that a file may name."""

    name: str


@dataclass
class _Storage:
    """What several tensors may share."""

    dtype: str
    source: FileSpan


class _TorchMachine(CheckpointMachine):
    """Makes a Stored of every tensor; `find` places a storage."""

    def __init__(self, data: memoryview, find: FindStorage) -> None:
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

        def find(key: str, dtype: str, count: int) -> FileSpan:
            if len(key) > _LONGEST_KEY:
                raise Refused(f"is damaged: it names a storage with {len(key)} letters")
            entry = entries.get(f"data/{key}")
            if entry is None or entry.compress_type != zipfile.ZIP_STORED:
                raise Refused(f"is damaged: it has no plain entry data/{key}"[:120])
            handle.seek(entry.header_offset)
            head = handle.read(_HEAD)
            names = int.from_bytes(head[26:28], "little") + int.from_bytes(head[28:30], "little")
            span = FileSpan(path, entry.header_offset + _HEAD + names, entry.file_size)
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

    def count(key: str, dtype: str, length: int) -> FileSpan:
        counted[key] = dtype, length
        return FileSpan(path, 0, length * np.dtype(DTYPES[dtype]).itemsize)

    view = memoryview(map_file(path))
    _, keys, end = _run_legacy(view, count)
    spans = _place_storages(path, view, counted, keys, end)
    return _run_legacy(view, lambda key, dtype, length: spans[key])[0]


def _run_legacy(data: memoryview, find: FindStorage) -> tuple[object, object, int]:
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
) -> dict[str, FileSpan]:
    if not isinstance(keys, list) or set(keys) != set(counted):
        raise Refused("is damaged: its storages are not those that its tensors name")
    spans = {}
    for key in keys:
        dtype, length = counted[key]
        size = length * np.dtype(DTYPES[dtype]).itemsize
        if int.from_bytes(data[end : end + 8], "little") != length or end + 8 + size > len(data):
            raise Refused("is truncated: a tensor in it ends behind the file")
        spans[key] = FileSpan(path, end + 8, size)
        end += 8 + size
    return spans


def write_torch_zip(handle: BinaryIO, entries: Sequence[TensorEntry], load: Load) -> None:
    """Write the file; what is tied shares one storage."""
    stored = [entry for entry in entries if not entry.tied_to]
    keys = {entry.name: str(at) for at, entry in enumerate(stored)}
    with zipfile.ZipFile(handle, "w", zipfile.ZIP_STORED) as archive:
        _write(archive, "data.pkl", [_pickle(entries, keys)])
        _write(archive, "byteorder", [b"little"])
        for entry in stored:
            _write(archive, f"data/{keys[entry.name]}", read_chunks(load(entry.name)))
        _write(archive, "version", [b"3\n"])
        _write(archive, ".data/serialization_id", [secrets.token_hex(20).encode()])


def _write(archive: zipfile.ZipFile, inside: str, content: Iterable[bytes | memoryview]) -> None:
    """Write one entry whose content begins at a multiple of _ALIGNMENT."""
    info = zipfile.ZipInfo(f"{_ROOT}/{inside}")
    assert archive.fp is not None
    begins = archive.fp.tell() + _HEAD + len(info.filename) + _LONG_SIZES
    padding = -(begins + 4) % _ALIGNMENT  # in an extra field of zip, which readers pass over
    info.extra = b"FB" + padding.to_bytes(2, "little") + b"Z" * padding
    with archive.open(info, "w", force_zip64=True) as entry:
        for part in content:
            entry.write(part)


def _pickle(entries: Sequence[TensorEntry], keys: dict[str, str]) -> bytes:
    parts = [begin(2), EMPTY_DICT, MARK]
    for entry in entries:
        parts += [push(entry.name), _push_tensor(entry, keys[entry.tied_to or entry.name])]
    return b"".join([*parts, SETITEMS, STOP])


def _push_tensor(entry: TensorEntry, key: str) -> bytes:
    """Return the instructions that rebuild a tensor on its storage.

    A dtype without a storage class goes as bytes, and names itself at the end.
    """
    typed = entry.dtype in _STORAGE
    length = prod(entry.shape) if typed else entry.nbytes
    kind = ("torch", _STORAGE[entry.dtype]) if typed else ("torch.storage", "UntypedStorage")
    place = push("storage"), push_name(*kind), push(key), push("cpu")
    storage = push_tuple(*place, push(length)) + BINPERSID
    steps = tuple(max(1, prod(entry.shape[axis + 1 :])) for axis in range(len(entry.shape)))
    hooks = push_name("collections", "OrderedDict") + push(()) + REDUCE
    end = b"" if typed else push_name("torch", entry.dtype)
    function = push_name("torch._utils", "_rebuild_tensor_v2" if typed else "_rebuild_tensor_v3")
    layout = push(0), push(entry.shape), push(steps), push(False)
    return function + push_tuple(storage, *layout, hooks, end) + REDUCE
