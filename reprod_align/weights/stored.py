"""A tensor in a file: one that is read on demand (`Stored`), one that is to be written (`TensorEntry`)."""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from reprod_align.base.blocks import Array, copy_tiles
from reprod_align.errors import WeightsError, one_line
from reprod_align.weights.remote import FileLocation, RemoteFile

import numpy as np

DTYPES: Final[Mapping[str, str]] = {
    "bool": "?", "uint8": "u1", "int8": "i1", "int16": "<i2", "int32": "<i4", "int64": "<i8",
    "uint16": "<u2", "uint32": "<u4", "uint64": "<u8", "float8_e4m3fn": "u1", "float8_e5m2": "u1",
    "bfloat16": "<u2", "float16": "<f2", "float32": "<f4", "float64": "<f8", "complex64": "<c8",
    "complex128": "<c16",
}  # fmt: skip
"""dtype -> numpy's code for its bits; what numpy lacks goes as unsigned integers"""

TENSOR: Final = 300
"""bytes that it takes to know of a tensor where it lies: what a file pays for each"""
_MOST_AXES: Final = 64  # numpy's own limit
_MOST_REPEATED: Final = 2**20  # elements; a tensor that was expanded may be larger than its storage
_STRIP: Final = 2**22  # bytes: small enough to be written from the cache
Load = Callable[[str], Array]
"""name of an entry -> its bits, of its shape; good until the next call"""


@dataclass(frozen=True, slots=True)
class FileSpan:
    """Bytes of a file, here or at an address: every tensor of a checkpoint is read through this."""

    path: FileLocation
    offset: int
    size: int

    def read(self, start: int, size: int, room: Array | None = None) -> Array:
        """Return a copy of `size` bytes from `start` on, (size,) uint8; `room`: memory to use."""
        found = np.empty(size, np.uint8) if room is None else room[:size]
        path, offset = self._find(start, size)
        with path.open("rb", buffering=0) as handle:
            handle.seek(offset)
            done = 0
            while done < size:  # a single call reads 2 GiB at most
                length = handle.readinto(found[done:].data)
                if not length:
                    raise WeightsError(
                        f"{self.path} is truncated: it was changed while it was read"
                    )
                done += length
        return found

    def map(self, start: int, size: int) -> Array:
        """Return the same bytes without reading them, read-only."""
        if not size:
            return np.empty(0, np.uint8)
        path, offset = self._find(start, size)
        return np.memmap(path, np.uint8, "r", offset, (size,))

    def _find(self, start: int, size: int) -> tuple[Path, int]:
        """Return the local file that holds the bytes, and where they begin in it."""
        begin = self.offset + start
        if isinstance(self.path, RemoteFile):
            return self.path.fetch(begin, size), 0
        return self.path, begin


@dataclass(frozen=True, eq=False)
class MemoryBytes:
    """Bytes in memory, where a file holds them in another form."""

    data: bytes

    @property
    def size(self) -> int:
        """How many bytes."""
        return len(self.data)

    def read(self, start: int, size: int, room: Array | None = None) -> Array:
        """Return `size` bytes from `start` on, (size,) uint8."""
        return np.frombuffer(self.data, np.uint8, size, start)

    map = read


@dataclass(frozen=True, slots=True)
class Joined:
    """Bytes that lie in several places, one after the other."""

    parts: tuple[FileSpan | MemoryBytes, ...]

    @property
    def size(self) -> int:
        """How many bytes."""
        return sum(part.size for part in self.parts)

    def read(self, start: int, size: int, room: Array | None = None) -> Array:
        """Return a copy of `size` bytes from `start` on, (size,) uint8; `room`: memory to use."""
        found = np.empty(size, np.uint8) if room is None else room[:size]
        done = 0
        for part in self.parts:
            length = max(0, min(part.size - start, size - done))
            if length:
                found[done : done + length] = part.read(start, length)
            done, start = done + length, max(0, start - part.size)
        return found

    map = read


@dataclass(frozen=True, slots=True)
class Stored:
    """A dense tensor in a checkpoint. Two that are equal are the same bytes of one file: tied tensors."""

    dtype: str
    """a key of DTYPES"""
    shape: tuple[int, ...]
    source: FileSpan | MemoryBytes | Joined
    start: int = 0
    """its first element in the source, in elements"""
    strides: tuple[int, ...] = ()
    """in elements; () means row by row"""

    @property
    def bits(self) -> np.dtype[Any]:
        """The dtype of what `read` returns."""
        return np.dtype(DTYPES[self.dtype])

    @property
    def size(self) -> int:
        """How many elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """How many bytes it takes as a dense array."""
        return self.size * self.bits.itemsize

    def read(self, room: Array | None = None) -> Array:
        """Return the bits as a dense array of this shape: bfloat16 as uint16, float8 as uint8.

        room: memory to use, uint8, of `span` bytes at least; what is read there next replaces it.
        Raises WeightsError if the file was cut meanwhile, or a boolean is stored as neither 0 nor 1.
        """
        return self._lay(self.source.read(*self._find_extent(), room))

    @property
    def span(self) -> int:
        """How many bytes it spans in its source."""
        return self._find_extent()[1]

    def map(self) -> Array:
        """Return the same, read-only, as a mapping of the file: pages are read as they are used."""
        return self._lay(self.source.map(*self._find_extent()))

    def values(self) -> Array:
        """Return numbers that numpy computes with: bfloat16 as float32, else as `read`.

        Raises WeightsError for float8, which numpy cannot widen.
        """
        if self.dtype.startswith("float8"):
            raise WeightsError(f"expected a dtype that numpy computes with, got {self.dtype}")
        bits = self.read()
        return widen(bits) if self.dtype == "bfloat16" else bits

    def _find_extent(self) -> tuple[int, int]:
        """Return where its bytes begin in the source, and how many they span."""
        length = self.size
        if self.strides and length:
            length = 1 + sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True))
        return self.start * self.bits.itemsize, length * self.bits.itemsize

    def _lay(self, data: Array) -> Array:
        if self.dtype == "bool" and data.size and data.max() > 1:
            raise WeightsError(f"a boolean is stored as the byte {data.max()}: expected 0 or 1")
        flat = data.view(self.bits)
        if not self.strides or not self.size:
            return flat.reshape(self.shape)
        steps = tuple(step * self.bits.itemsize for step in self.strides)
        laid = np.lib.stride_tricks.as_strided(flat, self.shape, steps, writeable=False)
        return np.ascontiguousarray(laid)


def widen(bits: Array) -> Array:
    """Return bfloat16, given as uint16, as float32."""
    wide = np.empty(bits.shape, np.uint32)
    np.left_shift(bits, 16, out=wide, dtype=np.uint32)
    return wide.view(np.float32)


def find_fault(tensor: Stored) -> str:
    """Return why a tensor cannot lie where a file says it does, "" if it can."""
    if len(tensor.shape) > _MOST_AXES:
        return f"it has {len(tensor.shape)} axes"
    if tensor.strides and len(tensor.strides) != len(tensor.shape):
        return f"it has {len(tensor.shape)} axes and {len(tensor.strides)} strides"
    counts = (*tensor.shape, *tensor.strides, tensor.start)
    if not all(type(count) is int and 0 <= count < 2**63 for count in counts):
        return "its shape, strides or offset are not natural numbers"
    if math.prod(length for length in tensor.shape if length) >= 2**63 // tensor.bits.itemsize:
        return "its shape is beyond any array's"  # also where an axis without elements hides it
    held = tensor.source.size // tensor.bits.itemsize
    start, length = (part // tensor.bits.itemsize for part in tensor._find_extent())
    if start + length > held:
        return f"it ends beyond its storage of {held} elements"
    if tensor.size > max(held, _MOST_REPEATED):
        return f"its shape {tensor.shape} asks for more memory than its storage explains"
    return ""


def name_all(content: Mapping[Any, object], where: str) -> dict[str, object]:
    """Return the content with every key as text. Raises WeightsError if two keys become one: "1" and 1."""
    named = {str(name): held for name, held in content.items()}
    if len(named) < len(content):
        texts = Counter(str(name) for name in content)
        twice = one_line(texts.most_common(1)[0][0])[:80]
        raise WeightsError(
            f"{where}: two of its keys read {twice}, one as text and one as a number"
        )
    return named


def is_dense(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Tell whether strides in elements are those of an array laid row by row."""
    expected = 1
    for length, step in zip(reversed(shape), reversed(strides), strict=True):
        if length != 1 and step != expected:
            return False
        expected *= length
    return True


class ArraysOnDemand(Mapping[str, Array]):
    """Arrays by name, each read when it is asked for."""

    def __init__(self, names: Collection[str], read: Callable[[str], Array]) -> None:
        """Take the names, and what reads an array."""
        self._names, self._read = names, read

    def __getitem__(self, name: str) -> Array:
        """Read an array. Raises KeyError for an unknown name."""
        if name not in self._names:
            raise KeyError(name)
        return self._read(name)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names."""
        return iter(self._names)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._names)


@dataclass(frozen=True)
class TensorEntry:
    """A tensor of the checkpoint to be written."""

    name: str
    dtype: str
    """a key of stored.DTYPES"""
    shape: tuple[int, ...]
    tied_to: str = ""
    """the entry before it that holds the same tensor; "" if it has numbers of its own"""

    @property
    def nbytes(self) -> int:
        """How many bytes its numbers take."""
        return math.prod(self.shape) * np.dtype(DTYPES[self.dtype]).itemsize


def read_chunks(array: Array) -> Iterator[memoryview]:
    """Yield the bytes of an array, row by row of its axes, in parts with memory of their own.

    A transposed matrix is laid strip by strip. The array may change once its last part is taken.
    """
    turned = array.ndim == 2 and array.flags.f_contiguous and not array.flags.c_contiguous
    rows = array if turned else np.ascontiguousarray(array).reshape(-1, 1)
    height = max(1, _STRIP // (rows.shape[1] * array.itemsize))
    for top in range(0, len(rows), height):
        part = rows[top : top + height]
        strip = np.empty(part.shape, array.dtype)
        if turned:
            copy_tiles(strip, part)
        else:
            strip[:] = part
        yield strip.reshape(-1).view(np.uint8).data
