"""Keeps copies of arrays: in memory while there is room, beyond that in temporary files.

Every array is a copy that nothing writes to, so that one array may stand for several tensors.
"""

import ctypes
import errno
import math
import mmap
import os
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from weakref import WeakSet, finalize

from reprod_align.base.blocks import Array
from reprod_align.errors import ReprodError

import numpy as np

_UNKNOWN = 2**32  # bytes to work with where the system does not tell
_GROUPS = Path("/sys/fs/cgroup")
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of glibc's mallopt
# bytes: the largest threshold that it takes, and its own after freeing such a block
_LARGEST = 2**25
_MOST = 2**31 - 1


@contextmanager
def reuse_freed() -> Iterator[None]:
    """Let glibc keep freed memory for the next array in the block; afterwards it is given back.

    Fresh memory comes page by page, which costs as much as a copy. Other allocators stay as they are.
    """
    _set_malloc(_LARGEST, _MOST)
    try:
        yield
    finally:
        _set_malloc(_LARGEST, 2 * _LARGEST)
        give_back_freed()


def give_back_freed() -> None:
    """Give the system the memory that is free inside this process; glibc alone keeps some."""
    trim = getattr(_find_c(), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _set_malloc(mapped: int, kept: int) -> None:
    """Set from which size on a block is mapped alone, and how much free memory is kept."""
    mallopt = getattr(_find_c(), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, mapped)
        mallopt(_TRIM_THRESHOLD, kept)


def _find_c() -> ctypes.CDLL | None:
    """Return the functions that this process has loaded; Windows has no such list."""
    return None if os.name == "nt" else ctypes.CDLL(None)


def read_own() -> int:
    """Return the bytes of memory that this process alone holds; 0 where the system does not tell."""
    try:
        _, resident, shared, *_ = Path("/proc/self/statm").read_text().split()
    except OSError:
        return 0
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")


def read_free() -> int:
    """Return the bytes that a process can still take: of the machine, and of its group's limit."""
    return min([_read_free_of_machine(), *_read_free_of_groups()])


def _read_free_of_machine() -> int:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return _UNKNOWN
    found = (int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    return next(found, _UNKNOWN)


def _read_free_of_groups() -> Iterator[int]:
    """Yield what each control group around this process has left; version 2, then version 1."""
    for folder in (_GROUPS, *_find_own_groups()):
        for limit, usage in (
            ("memory.max", "memory.current"),
            ("memory.limit_in_bytes", "memory.usage_in_bytes"),
        ):
            most, taken = _read_number(folder / limit), _read_number(folder / usage)
            if most is not None and taken is not None:
                yield max(0, most - taken + _read_cached(folder))


def _find_own_groups() -> Iterator[Path]:
    """Yield the folders of this process' control groups, the innermost first."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, kinds, path = line.split(":", 2)
        if kinds in ("", "memory"):
            own = _GROUPS / kinds / path.lstrip("/")
            yield from (folder for folder in (own, *own.parents) if folder.is_relative_to(_GROUPS))


def _read_number(path: Path) -> int | None:
    """Return the number in a file; None without such a file, or for "max"."""
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def _read_cached(folder: Path) -> int:
    """Return the bytes of cached files in a group's usage, which the system frees for others.

    Those that were read twice ("active") too: after an installation they are gigabytes.
    """
    try:
        lines = (folder / "memory.stat").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith(_CACHED))


_CACHED = ("inactive_file ", "active_file ")
_LARGE = 2**20  # bytes; a smaller copy stays in memory
_SMALL = 2**12  # bytes; not worth looking whether the same is kept already
_SHARE = 8  # this part of the memory is left for what a model's own run takes
_LEAST = 2**30  # bytes that stay free on the machine, for all processes
_MANY_ROWS = 2**10
_SAMPLE = 2**6  # rows that are looked at first
_RECENT = 0.25  # seconds for which the figures of the system are taken to hold
_POPULATE_READ = 22  # of Linux: Python's mmap does not name it
_mapped: "WeakSet[mmap.mmap]" = WeakSet()


@dataclass
class Store:
    """Counts what is kept of large arrays, and tells whether there is room for more."""

    limit: int
    """bytes of memory that this process may take before arrays go to files"""
    kept: int = 0
    """bytes in memory now"""
    most: int = 0
    """the most bytes that were in memory at a time"""
    written: int = 0
    """bytes that went to temporary files"""
    full: ReprodError | None = None
    """why an array found room neither in memory nor on the disk"""
    _free: int = 0
    """bytes that were free when it was last asked for, less what was kept since"""
    _asked: float = -math.inf

    def has_room(self, size: int) -> bool:
        """Tell whether an array of so many bytes can be kept in memory."""
        now = time.monotonic()
        if now - self._asked > _RECENT:
            self._asked, self._free = now, self._read_room()
            if size > self._free:
                give_back_freed()
                self._free = self._read_room()
        return size <= self._free

    def _read_room(self) -> int:
        own = read_own() or self.kept
        return min(self.limit - own, read_free() - _LEAST)

    def count(self, array: Array, size: int) -> Array:
        """Return the array; so many bytes of it count as kept until it is gone."""
        self.kept += size
        self._free -= size
        self.most = max(self.most, self.kept)
        finalize(array, self._forget, size).atexit = False
        return array

    def _forget(self, size: int) -> None:
        self.kept -= size


_stores: list[Store] = []


def _find_store() -> Store:
    """Return what counts at present; where no limit is set, this process may take what is free now."""
    if not _stores:
        _stores.append(Store(_choose_limit(None)))
    return _stores[-1]


def _choose_limit(memory: int | None) -> int:
    whole = read_own() + read_free() if memory is None else memory
    return whole - whole // _SHARE


@contextmanager
def limit_memory(memory: int | None) -> Iterator[Store]:
    """Let this process take at most `memory` bytes (None: what is free now); yield the Store that counts.

    A part of it is left for the models' own runs: only copies that are kept count, and go to files.
    """
    store = Store(_choose_limit(memory))
    _stores.append(store)
    try:
        with reuse_freed():
            yield store
    finally:
        _stores.remove(store)


def keep_copy(array: Array) -> Array:
    """Return a copy of `array`. A large one lies in a file, mapped, if there is no room in memory.

    The file has no name and goes with the array. Raises ReprodError where the disk has no room for it.
    """
    if array.nbytes < _LARGE:
        return np.array(array)
    store = _find_store()
    if store.has_room(array.nbytes):
        return store.count(np.array(array), array.nbytes)
    return _keep_in_file(array, store)


def keep_own(array: Array) -> Array:
    """Return an array that nothing else uses: itself where memory has room, else as `keep_copy` does.

    A large array with few rows that are not zero takes memory for these rows alone.
    """
    if array.nbytes < _LARGE:
        return array
    thin = _keep_thin(array)
    if thin is not None:
        return thin
    store = _find_store()
    return store.count(array, array.nbytes) if store.has_room(0) else _keep_in_file(array, store)


def _keep_thin(array: Array) -> Array | None:
    """Return a copy whose zero rows take no memory, None if half of the rows are not zero.

    Memory that was mapped and never written to reads as zeros and is not there.
    """
    if array.ndim != 2 or len(array) < _MANY_ROWS or not array.flags.c_contiguous:
        return None
    some = array[:: len(array) // _SAMPLE]
    if 2 * np.count_nonzero(some.any(axis=1)) > len(some):
        return None
    rows = np.flatnonzero(array.any(axis=1))
    if 2 * rows.size > len(array):
        return None
    pages = _map_nothing(array.nbytes)
    whole = np.frombuffer(pages, array.dtype)
    copy = _find_store().count(whole, rows.size * array[0].nbytes).reshape(array.shape)
    copy[rows] = array[rows]
    if sys.platform == "linux":
        with suppress(OSError):  # of old kernels; one call in place of a fault for each page
            pages.madvise(_POPULATE_READ)
    return copy


def _map_nothing(size: int) -> mmap.mmap:
    """Return memory that this process alone maps: pages that are only read are all one page of zeros."""
    if sys.platform == "win32":
        return mmap.mmap(-1, size)
    return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


def _keep_in_file(array: Array, store: Store) -> Array:
    whole = np.ascontiguousarray(array)
    try:
        with tempfile.TemporaryFile(buffering=0) as file:
            _write(file, whole.reshape(-1).view(np.uint8))
            pages = mmap.mmap(file.fileno(), whole.nbytes)
    except OSError as error:
        store.full = ReprodError(
            f"no room to keep {whole.nbytes:,} bytes: the memory allowed ({store.limit:,} bytes) is taken, "
            f"and no temporary file can be written ({error.strerror or error}): set TMPDIR to a folder "
            "with room, or allow more memory"
        )
        raise store.full from error
    store.written += whole.nbytes
    _mapped.add(pages)
    return np.frombuffer(pages, whole.dtype).reshape(whole.shape)


def require_room() -> None:
    """Raise the ReprodError of the array that found no room, if there was one.

    Paddle turns what a hook raises in the backward pass into an error of its own.
    """
    store = _find_store()
    full, store.full = store.full, None
    if full is not None:
        raise full


def unload() -> None:
    """Let go of the memory in which arrays of files have been read; they are read again if needed."""
    if sys.platform == "win32":  # there the system must see to it
        return
    for pages in list(_mapped):
        pages.madvise(mmap.MADV_DONTNEED)


def _write(file: Any, data: Array) -> None:
    """Write all of it: an unbuffered file takes at most 2 GiB at a time. Raises OSError if it takes none."""
    while data.size:
        taken = file.write(data)
        if not taken:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        data = data[taken:]


class Shelf:
    """Keeps copies of arrays, of equal arrays one: what a module returns is often another's input."""

    def __init__(self) -> None:
        """Begin with an empty one."""
        self._kept: dict[Hashable, list[Array]] = defaultdict(list)

    def keep(self, array: Array) -> Array:
        """Return a copy of `array`, the same one as before if an equal one was kept."""
        if array.nbytes < _SMALL:
            return np.array(array)
        sample = array.flat[:: array.size // 16].tobytes()
        alike = self._kept[array.shape, array.dtype.str, sample]
        for other in alike:
            if _same_bytes(array, other):
                return other
        alike.append(keep_copy(array))
        return alike[-1]


def _same_bytes(array: Array, other: Array) -> bool:
    """Tell whether two arrays of one shape and dtype are equal to the bit: -0.0 is not 0.0."""
    ours, theirs = (np.ascontiguousarray(one).reshape(-1).view(np.uint8) for one in (array, other))
    if array.nbytes % 8 == 0:
        ours, theirs = ours.view(np.uint64), theirs.view(np.uint64)
    return bool((ours == theirs).all())


@dataclass(frozen=True, eq=False)
class OriginalValues(Mapping[str, Array]):
    """What tensors hold that nothing writes to while work goes on in copies of them."""

    view: Callable[[Any], Array]
    tensors: Mapping[str, Any]
    dtype: str | None
    """of floats, real or complex, when they are read; None: each tensor's own"""

    def __getitem__(self, name: str) -> Array:
        """Return a tensor's values. Raises KeyError for a name that the model lacks."""
        values = self.view(self.tensors[name])
        if self.dtype is None or values.dtype.kind not in "fc":
            return values
        wide = np.result_type(self.dtype, np.complex64) if values.dtype.kind == "c" else self.dtype
        return values.astype(wide, copy=False)

    def __contains__(self, name: object) -> bool:
        """Tell whether the model has the tensor, without reading it."""
        return name in self.tensors

    def __iter__(self) -> Iterator[str]:
        """Yield the names."""
        return iter(self.tensors)

    def __len__(self) -> int:
        """Return the number of tensors."""
        return len(self.tensors)


def read_narrow(values: Mapping[str, Array]) -> Mapping[str, Array]:
    """Return the same values, each in its tensor's own dtype where that is known: it is widened later."""
    return replace(values, dtype=None) if isinstance(values, OriginalValues) else values
