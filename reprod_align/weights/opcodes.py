"""Writes pickles of protocol 2 piece by piece, so that memory holds one tensor at a time.

Arrays need one instruction more: BINBYTES8 of protocol 4 where they have 4 GiB and more.
"""

EMPTY_DICT, MARK, SET_ITEMS, TUPLE, EMPTY_TUPLE = b"}", b"(", b"u", b"t", b")"
REDUCE, BUILD, PERSISTENT, STOP, TRUE, FALSE = b"R", b"b", b"Q", b".", b"\x88", b"\x89"
NONE, TUPLE1, TUPLE2 = b"N", b"\x85", b"\x86"


def begin(protocol: int) -> bytes:
    """Return the first instruction of a pickle."""
    return b"\x80" + bytes([protocol])


def push_text(words: str) -> bytes:
    """Return the instruction that pushes a string."""
    data = words.encode("utf-8", "surrogatepass")
    return b"X" + len(data).to_bytes(4, "little") + data


def push_number(value: int) -> bytes:
    """Return the instruction that pushes a whole number of at most 255 bytes."""
    if 0 <= value < 256:
        return b"K" + bytes([value])
    if -(2**31) <= value < 2**31:
        return b"J" + value.to_bytes(4, "little", signed=True)
    size = value.bit_length() // 8 + 1
    return b"\x8a" + bytes([size]) + value.to_bytes(size, "little", signed=True)


def push_numbers(values: tuple[int, ...]) -> bytes:
    """Return the instructions that push a tuple of whole numbers."""
    return push_tuple(*map(push_number, values))


def push_tuple(*items: bytes) -> bytes:
    """Return the instructions that push a tuple of what these instructions push."""
    return MARK + b"".join(items) + TUPLE


def push_name(module: str, what: str) -> bytes:
    """Return the instruction that pushes a function or class."""
    return f"c{module}\n{what}\n".encode("ascii")


def push_bytes(size: int) -> bytes:
    """Return the instruction that pushes `size` bytes, which follow it."""
    return (
        b"B" + size.to_bytes(4, "little") if size < 2**32 else b"\x8e" + size.to_bytes(8, "little")
    )


def memoize(index: int) -> bytes:
    """Return the instruction that remembers the top of the stack."""
    return b"r" + index.to_bytes(4, "little")


def recall(index: int) -> bytes:
    """Return the instruction that pushes what was remembered."""
    return b"j" + index.to_bytes(4, "little")
