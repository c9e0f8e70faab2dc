"""A file that goes to the disk while more of it is made."""

import os
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, BinaryIO, Final

_AT_ONCE: Final = 2**27  # bytes between two requests


class SyncedFile:
    """A binary file opened for writing; a thread of its own waits for the disk.

    So the end of the writing need not wait for all of it. Use it as a context: at its end everything
    is on the disk. Raises OSError, then or at any write, if it is full.
    """

    def __init__(self, handle: BinaryIO) -> None:
        """Take the file."""
        self._handle, self._pending = handle, 0
        self._pool = ThreadPoolExecutor(1)
        self._running: Future[None] | None = None

    def __enter__(self) -> "SyncedFile":
        """Return this file."""
        return self

    def __exit__(self, *error: object) -> None:
        """Wait for the disk, unless an error ends the writing anyway."""
        self._pool.shutdown()
        if error[0] is None:
            self._check()
            self._handle.flush()
            os.fsync(self._handle.fileno())

    def __getattr__(self, name: str) -> Any:
        """Return what the file itself has: seek, tell, flush."""
        return getattr(self._handle, name)

    def write(self, data: bytes | memoryview) -> int:
        """Write the bytes."""
        self._pending += len(data)
        if self._pending > _AT_ONCE and (self._running is None or self._running.done()):
            self._check()
            self._handle.flush()
            self._running = self._pool.submit(os.fdatasync, self._handle.fileno())
            self._pending = 0
        return self._handle.write(data)

    def writelines(self, parts: Any) -> None:
        """Write several parts, each before the next is made."""
        for part in parts:
            self.write(part)

    def _check(self) -> None:
        if self._running is not None:
            self._running.result()
