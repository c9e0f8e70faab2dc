"""Files read without a copy in memory: arrays lie in the mapped file, and comparisons read it in parts.

Touching a mapping whose file was cut short kills the process. So the parts are read from the file that is
held open; the mapping is touched only for single elements, and for arrays in another order than the file's.
Writers that rename (ours do) leave the open file as it is. One that writes into it is noticed.
"""

import mmap
import os
import weakref
from typing import Any

from reprod_align.errors import ReprodError

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class MappedFile(mmap.mmap):
    """A file mapped for reading, which is also held open."""

    path: str
    _descriptor: int
    _stamp: tuple[int, int]

    def find_offset(self, array: Array) -> int:
        """Return where in the file the first element of an array of it lies."""
        base: int = np.frombuffer(self, np.uint8).__array_interface__["data"][0]
        own: int = array.__array_interface__["data"][0]
        return own - base

    def read_into(self, buffer: Array, offset: int) -> None:
        """Fill a 1-D array with the bytes from `offset` on. Raises ReprodError where the file ends first."""
        count = os.preadv(self._descriptor, [buffer.view(np.uint8).data], offset)
        while count < buffer.nbytes:
            left = buffer.view(np.uint8).data[count:]
            more = os.preadv(self._descriptor, [left], offset + count)
            if not more:
                raise self._changed()
            count += more

    def require_unchanged(self) -> None:
        """Raise ReprodError if the file was written to since it was mapped."""
        if _stamp(self._descriptor) != self._stamp:
            raise self._changed()

    def _changed(self) -> ReprodError:
        return ReprodError(
            f"{self.path} was written to while it was in use: load it again when that is done"
        )


def map_file(path: str | os.PathLike[str]) -> MappedFile:
    """Map a file that is not empty. Raises OSError if that cannot be done."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    try:
        mapped = MappedFile(descriptor, 0, access=mmap.ACCESS_READ)
    except ValueError as error:  # it is empty
        os.close(descriptor)
        raise OSError(str(error)) from error
    except BaseException:
        os.close(descriptor)
        raise
    weakref.finalize(mapped, os.close, descriptor)
    mapped.path, mapped._descriptor, mapped._stamp = str(path), descriptor, _stamp(descriptor)
    return mapped


def _stamp(descriptor: int) -> tuple[int, int]:
    status = os.fstat(descriptor)
    return status.st_size, status.st_mtime_ns


def find_file(array: Array) -> MappedFile | None:
    """Return the mapped file in which an array lies; None if it lies in memory."""
    owner: object = array
    while isinstance(owner, np.ndarray):
        owner = owner.base
    if isinstance(owner, memoryview):
        owner = owner.obj
    return owner if isinstance(owner, MappedFile) else None


def copy_array(array: Array) -> Array:
    """Return an array in memory, writable and aligned, with the order of its axes kept."""
    file = find_file(array)
    if file is None:
        return array.copy("K")
    file.require_unchanged()
    copy = np.empty_like(array, order="K", subok=False)
    if array.flags.forc:
        file.read_into(copy.reshape(-1, order="A"), file.find_offset(array))
    else:
        copy[...] = array
    file.require_unchanged()
    return copy
