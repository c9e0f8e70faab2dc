"""Writes pickles of protocol 2 piece by piece, so that memory holds one tensor at a time.

Arrays need one instruction more: BINBYTES8 of protocol 4 where they have 4 GiB and more.
"""

import io
import pickle

Plain = str | int | bool | None


def begin(protocol: int) -> bytes:
    """Return the first instruction of a pickle."""
    return pickle.PROTO + bytes([protocol])


def push(value: Plain | tuple[Plain, ...]) -> bytes:
    """Return the instructions that push a plain value."""
    written = io.BytesIO()
    pickler = pickle.Pickler(written, 2)
    pickler.fast = True  # remembers nothing: `memoize` has numbers of its own
    pickler.dump(value)
    return written.getvalue()[2:-1]  # between the protocol and STOP


def push_tuple(*items: bytes) -> bytes:
    """Return the instructions that push a tuple of what these instructions push."""
    return pickle.MARK + b"".join(items) + pickle.TUPLE


def push_name(module: str, what: str) -> bytes:
    """Return the instruction that pushes a function or class."""
    return pickle.GLOBAL + f"{module}\n{what}\n".encode("ascii")


def push_bytes(size: int) -> bytes:
    """Return the instruction that pushes `size` bytes, which follow it."""
    if size < 2**32:
        return pickle.BINBYTES + size.to_bytes(4, "little")
    return pickle.BINBYTES8 + size.to_bytes(8, "little")


def memoize(index: int) -> bytes:
    """Return the instruction that remembers the top of the stack."""
    return pickle.LONG_BINPUT + index.to_bytes(4, "little")


def recall(index: int) -> bytes:
    """Return the instruction that pushes what was remembered."""
    return pickle.LONG_BINGET + index.to_bytes(4, "little")
