"""A file that is written, and goes to the disk, while more of it is made."""

import errno
import os
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, BinaryIO, Final

_AT_ONCE: Final = 2**28  # bytes between two requests to the disk
_WAITING: Final = 4  # parts that wait to be written
_CANNOT: Final = (errno.EOPNOTSUPP, errno.EINVAL)  # reserve: what some file systems answer


class SyncedFile:
    """A binary file opened for writing; one thread writes, another waits for the disk.

    Use it as a context: at its end everything is on the disk. What is written must not be changed
    afterwards. Raises OSError, at the end or at any write, if the disk is full.
    """

    def __init__(self, handle: BinaryIO, size: int = 0) -> None:
        """Take the file, and reserve room for `size` bytes: writing is twice as fast then."""
        _reserve(handle, size)
        self._handle, self._pending = handle, 0
        self._writer, self._syncer = ThreadPoolExecutor(1), ThreadPoolExecutor(1)
        self._parts: deque[Future[int]] = deque()
        self._sync: Future[None] | None = None

    def __enter__(self) -> "SyncedFile":
        """Return this file."""
        return self

    def __exit__(self, *error: object) -> None:
        """Wait for the disk, unless an error ends the writing anyway."""
        self._writer.shutdown(cancel_futures=error[0] is not None)
        self._syncer.shutdown()
        if error[0] is None:
            self._drain()
            self._check_sync()
            self._handle.flush()
            os.fsync(self._handle.fileno())

    def write(self, data: bytes | memoryview) -> int:
        """Write the bytes, a little later."""
        if len(self._parts) >= _WAITING:
            self._parts.popleft().result()
        self._parts.append(self._writer.submit(self._handle.write, data))
        self._pending += len(data)
        if self._pending > _AT_ONCE and (self._sync is None or self._sync.done()):
            self._check_sync()
            self._sync = self._syncer.submit(os.fdatasync, self._handle.fileno())
            self._pending = 0
        return len(data)

    def writelines(self, parts: Iterable[bytes | memoryview]) -> None:
        """Write several parts, each while the next is made."""
        for part in parts:
            self.write(part)

    def __getattr__(self, name: str) -> Any:
        """Return what the file itself has (seek, tell, flush), everything so far being written."""
        self._drain()
        return getattr(self._handle, name)

    def _drain(self) -> None:
        while self._parts:
            self._parts.popleft().result()

    def _check_sync(self) -> None:
        if self._sync is not None:
            self._sync.result()


def _reserve(handle: BinaryIO, size: int) -> None:
    """Raise OSError if the disk has no room; do nothing where room can't be reserved."""
    try:
        if size:
            os.posix_fallocate(handle.fileno(), 0, size)
    except OSError as error:
        if error.errno not in _CANNOT:
            raise
