"""Messages between this process and a side's own: plain data and arrays, nothing of a framework.

Both ends are this package, and the pipe is private; what a model's process sends is read as data all the
same. Arrays go as dtype, shape and bytes, so that the two ends may have different versions of numpy; large
ones one by one after the message, so that neither end holds all of them twice.
"""

from multiprocessing.connection import Connection
from typing import Any, Final

from reprod_align.errors import ReprodError
from reprod_align.model.store import Array, keep_copy
from reprod_align.pair.plain import pack, unpack

import numpy as np

_LARGE: Final = 2**16  # bytes
_TOO_LONG: Final = (
    "bad message length"  # multiprocessing's, of a piece that is longer than asked for
)
_OTHER_SIZE: Final = "a side sent an array of another size than it says"


class Wire:
    """One end of a pipe.

    A message is its header, the sizes of its arrays, the small ones in one piece, and each large one.
    """

    def __init__(self, connection: "Connection[Any, Any]") -> None:
        """Take one end."""
        self._connection = connection

    def send(self, message: object) -> None:
        """Send a message. Raises OSError if the other end is gone."""
        header, arrays = pack(message)
        views = [array.reshape(-1).view(np.uint8) for array in arrays]
        sizes = np.array([view.size for view in views], "<i8")
        small = [view for view in views if view.size < _LARGE]
        self._connection.send_bytes(header)
        self._connection.send_bytes(sizes.tobytes())
        self._connection.send_bytes(np.concatenate(small).data if small else b"")
        for view in views:
            if view.size >= _LARGE:
                self._connection.send_bytes(view.data)

    def receive(self) -> Any:
        """Wait for a message and return it.

        Raises EOFError or OSError if the other end is gone, ReprodError for what is not plain data.
        """
        header, sizes, small = (self._receive() for _ in range(3))
        if len(sizes) % 8:
            raise ReprodError(f"a side sent {len(sizes)} bytes as a list of sizes, 8 bytes each")
        return unpack(header, self._arrays(np.frombuffer(sizes, "<i8").tolist(), small))

    def _arrays(self, sizes: list[int], small: bytes) -> list[Array]:
        if any(size < 0 for size in sizes) or sum(n for n in sizes if n < _LARGE) != len(small):
            raise ReprodError(_OTHER_SIZE)
        arrays, at = [], 0
        for size in sizes:
            if size >= _LARGE:
                arrays.append(self._large(size))
            else:
                arrays.append(np.frombuffer(small, np.uint8, size, at).copy())
                at += size
        return arrays

    def _large(self, size: int) -> Array:
        found = keep_copy(np.frombuffer(self._receive(size), np.uint8))
        if found.size != size:
            raise ReprodError(_OTHER_SIZE)
        return found

    def _receive(self, most: int | None = None) -> bytes:
        """Return the next piece. Raises ReprodError for one above `most` bytes or beyond memory."""
        try:
            return self._connection.recv_bytes(most)
        except (MemoryError, OverflowError) as error:
            raise ReprodError("a side announced a message that is larger than memory") from error
        except OSError as error:
            if str(error) == _TOO_LONG:
                raise ReprodError(_OTHER_SIZE) from error
            raise

    def close(self) -> None:
        """Close this end."""
        self._connection.close()
