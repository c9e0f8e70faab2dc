"""Messages between this process and a side's own: plain data and arrays, nothing of a framework.

Both ends are this package, and the pipe is private; what a model's process sends is read as data all the
same. Arrays go as dtype, shape and bytes, so that the two ends may have different versions of numpy; large
ones one by one after the message, so that neither end holds all of them twice.

The rest of a message is its header: JSON, in which nothing is code. It is a table of nodes. A node is a
list that begins with its kind; what stands in it is a number, text, True, False or None, or [n], which is
node n. So an object that stands in two places arrives as one, and rings and long chains do no harm. Of
classes, dataclasses of this package pass, and those in OTHERS: an instance is made without calling
anything of it.
"""

import json
import re
import sys
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from importlib import import_module
from multiprocessing.connection import Connection
from types import FunctionType, MethodType
from typing import Any, Final, NamedTuple

from reprod_align.base.blocks import Array
from reprod_align.errors import ReprodError
from reprod_align.model.store import keep_copy
from reprod_align.records.pickled import DEEPEST, Refused, require_proper_content

import numpy as np

OTHERS: Final = ("Counterparts", "EndPins", "NoWayBack", "ReferencePins", "_NoPins")
"""classes of this package that are no dataclasses and hold data alone"""

_MODULE: Final = re.compile(r"reprod_align(\.[a-z0-9]\w*)*")
_DTYPE: Final = re.compile(r"[<>|]([biufc]|[SU](?!0))\d{1,9}")
_EXACT: Final[Mapping[type, Callable[[Any], Any]]] = {
    int: int.__int__,
    float: float.__float__,
    str: str.__str__,
}
_GROUPS: Final[Mapping[str, type]] = {
    kind.__name__: kind for kind in (list, tuple, set, frozenset, dict, Counter, OrderedDict)
}
_BEGUN_EMPTY: Final = (
    "array", "scalar", "error", "instance", "list", "dict", "set", "Counter", "OrderedDict",
)  # fmt: skip
_WIDEST: Final = 2**62  # larger integers go as text
_FREE, _PER_BYTE = 2**20, 4  # steps a header may ask for: real ones need less than one per byte
_STEP: Final = 64  # letters that are hashed and compared in one step
_OTHER_SIZE: Final = "a side sent an array of another size than it says"
_ALIKE: Final = 64  # keys of one dict that may have the same hash, each compared with all others


def pack(message: object) -> tuple[bytes, list[Array]]:
    """Return the header, and the arrays that it refers to by number, each dense.

    What the other end cannot know, such as a framework's dtype, becomes its text. Raises ReprodError for
    an array that is not of numbers or text, and for other classes of this package.
    """
    packer = _Packer()
    table = [packer.refer(message)]
    # a loop: operations refer to each other in long chains
    while len(packer.waiting) > len(table) - 1:
        table.append(packer.describe(packer.waiting[len(table) - 1]))
    return json.dumps(table).encode(), packer.arrays


class _Packer:
    def __init__(self) -> None:
        self.waiting: list[Any] = []
        self.arrays: list[Array] = []
        self._numbers: dict[int, int] = {}

    def refer(self, value: Any) -> Any:
        """Return what stands for the value: itself, or its node."""
        if value is None or isinstance(value, bool):
            return value
        for kind, exact in _EXACT.items():  # an enum's member too; numpy's numbers keep their dtype
            if isinstance(value, kind) and not isinstance(value, np.generic):
                plain = exact(value)
                if kind is not int or -_WIDEST < plain < _WIDEST:
                    return plain
        if id(value) not in self._numbers:
            self._numbers[id(value)] = len(self.waiting)
            self.waiting.append(value)
        return [self._numbers[id(value)]]

    def describe(self, value: Any) -> list[Any]:
        """Return the node of a value."""
        if isinstance(value, (np.ndarray, np.generic)):
            array = np.asarray(value)
            if array.dtype.kind not in "biufcSU":
                raise ReprodError(f"an array of {array.dtype} cannot be sent to the other process")
            self.arrays.append(np.ascontiguousarray(array))
            kind = "array" if isinstance(value, np.ndarray) else "scalar"
            return [kind, array.dtype.str, list(array.shape), len(self.arrays) - 1]
        name = type(value).__name__
        if isinstance(value, Mapping) and _GROUPS.get(name, dict) is dict:
            name = "dict"
        if isinstance(value, Mapping):
            return [name, *(self.refer(one) for pair in value.items() for one in pair)]
        if isinstance(value, (list, tuple, set, frozenset)) and _GROUPS.get(name) is type(value):
            return [name, *(self.refer(one) for one in value)]
        if isinstance(value, (range, slice)):
            return [name, *(self.refer(part) for part in (value.start, value.stop, value.step))]
        if isinstance(value, complex):
            return ["complex", value.real, value.imag]
        if isinstance(value, int):
            return ["int", hex(value)]
        if isinstance(value, (bytes, bytearray)):
            return ["bytes", bytes(value).hex()]
        if isinstance(value, ReprodError):
            own = type(value) if _is_ours(type(value)) else ReprodError
            return [
                "error",
                f"{own.__module__}:{own.__name__}",
                str(value),
                self.refer(vars(value)),
            ]
        return self._describe_instance(value)

    def _describe_instance(self, value: Any) -> list[Any]:
        kind = type(value)
        if not _is_ours(kind):
            return ["text", repr(value)]
        if not _holds_data(kind):
            raise ReprodError(f"a {kind.__qualname__} cannot be sent to the other process")
        state = {name: part for name, part in vars(value).items()
                 if not _is_function(part) and name != "__orig_class__"}  # fmt: skip
        return ["instance", f"{kind.__module__}:{kind.__name__}", self.refer(state)]


def _is_function(value: object) -> bool:
    return isinstance(value, (FunctionType, MethodType))


def _is_ours(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == "reprod_align" and "." not in kind.__qualname__


def _holds_data(kind: type) -> bool:
    return is_dataclass(kind) or kind.__name__ in OTHERS


# ---------------------------------------------------------------------- and back


def unpack(header: bytes, arrays: list[Array]) -> Any:
    """Return the message; `arrays`: the bytes of each, uint8. Raises ReprodError if it is not well formed."""
    try:
        root, *table = json.loads(header)
        return _Unpacker(table, arrays, len(header)).resolve(root)
    except Refused as error:
        raise ReprodError(f"a side sent a message that {error}") from error
    except (ArithmeticError, AttributeError, LookupError, MemoryError, RuntimeError, SystemError, TypeError,
            ValueError) as error:  # fmt: skip
        raise ReprodError(f"a side sent what is not well formed: {str(error)[:200]}") from error


class _Extent(NamedTuple):
    """What hashing a value costs, or walking through its tuples: how deep they nest, and how many steps."""

    depth: int
    steps: int


class _Unpacker:
    """Makes every node: first empty, then what instances hold, then lists, then what needs hashes."""

    def __init__(self, table: list[list[Any]], arrays: list[Array], size: int) -> None:
        """Make what the table describes; size: bytes of the header, which pay for what it asks."""
        self._table, self._read_arrays = table, arrays
        self._made: dict[int, Any] = {}
        self._most = self._left = _FREE + _PER_BYTE * size
        self._extents: dict[tuple[int, bool], _Extent] = {}
        for number in self._filled(*_BEGUN_EMPTY):
            self._made[number] = self._begin(table[number])
        for number in self._filled("error", "instance"):
            self._set_state(self._made[number], table[number])
        for number in self._filled("list"):
            self._made[number] += [self.resolve(one) for one in table[number][1:]]
        for number in self._filled("set", "dict", "Counter", "OrderedDict"):
            self._fill(self._made[number], table[number][1:])

    def resolve(self, token: Any) -> Any:
        """Return what a token stands for."""
        if not isinstance(token, list):
            return token
        (number,) = token
        if number not in self._made:
            self._measure(token)
            self._made[number] = self._make(self._table[number])
        return self._made[number]

    def _measure(self, token: Any, hashed: bool = False, depth: int = 0) -> _Extent:
        """Return what lies in a token's tuples; hashed: in all that its hash looks through.

        Raises Refused where that has no end: a tuple may hold another twice, and C hashes by recursion.
        """
        if not isinstance(token, list):
            return _Extent(0, 1 + (len(token) // _STEP if isinstance(token, str) else 0))
        key = token[0], hashed
        if key not in self._extents:
            own, parts = self._list_parts(token[0], hashed)
            if depth > DEEPEST:
                raise Refused(f"nests tuples more than {DEEPEST} deep")
            inner = [self._measure(part, hashed, depth + 1) for part in parts]
            deepest = max((one.depth for one in inner), default=0)
            self._extents[key] = _Extent(deepest + 1, own + sum(one.steps for one in inner))
        found = self._extents[key]
        if found.depth > DEEPEST:
            raise Refused(f"nests tuples more than {DEEPEST} deep")
        if found.steps > self._most:
            raise Refused("repeats its tuples more often than its size explains")
        return found

    def _list_parts(self, number: int, hashed: bool) -> tuple[int, list[Any]]:
        """Return a node's own steps, and the tokens that are looked at with it."""
        kind, *rest = self._table[number]
        if kind in ("tuple", "frozenset", "range", "slice"):
            return 1, rest
        if kind == "instance" and hashed and not _is_hashed_by_identity(type(self._made[number])):
            return 1, self._table[rest[1][0]][2::2]
        return 1 + (len(rest[0]) // _STEP if kind in ("int", "bytes", "text") else 0), []

    def _hashable(self, tokens: list[Any]) -> list[Any]:
        """Return what the tokens stand for, when it is known that hashing all of it ends soon."""
        self._left -= sum(self._measure(one, hashed=True).steps for one in tokens)
        if self._left < 0:
            raise Refused("asks for more hashing than its size explains")
        found = [self.resolve(one) for one in tokens]
        if len(found) > _ALIKE and max(Counter(map(hash, found)).values()) > _ALIKE:
            raise Refused(f"has more than {_ALIKE} keys with the same hash in a dict or set")
        return found

    def _filled(self, *kinds: str) -> Iterator[int]:
        return (number for number, node in enumerate(self._table) if node[0] in kinds)

    def _begin(self, node: list[Any]) -> Any:
        """Return a node without what it refers to."""
        kind, *rest = node
        if kind in ("array", "scalar"):
            array = self._read_array(*rest)
            return array if kind == "array" else array[()]
        if kind == "error":
            made = _find_class(rest[0])
            error = made.__new__(made)
            ReprodError.__init__(error, str(rest[1]))  # one line, as every message
            return error
        return object.__new__(_find_class(rest[0])) if kind == "instance" else _GROUPS[kind]()

    def _read_array(self, dtype: str, shape: list[int], number: int) -> Array:
        if not _DTYPE.fullmatch(dtype):
            raise ReprodError(f"a side sent an array of {dtype[:40]!r}: expected numbers or text")
        if not all(type(length) is int and length >= 0 for length in shape):
            raise ReprodError("a side sent an array without a proper shape")
        array: Array = np.ndarray(tuple(shape), dtype, self._read_arrays[number].data)
        if array.nbytes != self._read_arrays[number].nbytes:
            raise ReprodError(_OTHER_SIZE)
        require_proper_content(array)
        return array

    def _set_state(self, made: Any, node: list[Any]) -> None:
        (number,) = node[-1]
        kind, *items = self._table[number]
        if kind != "dict":
            raise ReprodError(f"a side sent a {kind} as the state of {node[1]}")
        state = vars(made)
        if is_dataclass(made):  # functions stay at home: their fields are as if nothing was given
            state.update(
                {one.name: one.default for one in fields(made) if _is_function(one.default)}
            )
        for name, value in zip(items[::2], items[1::2], strict=True):
            state[str(name)] = self.resolve(value)

    def _fill(self, made: Any, items: list[Any]) -> None:
        if isinstance(made, set):
            made.update(self._hashable(items))
            return
        keys, values = self._hashable(items[::2]), [self.resolve(one) for one in items[1::2]]
        for key, value in zip(keys, values, strict=True):
            made[key] = value
        if len(made) < len(keys):
            raise Refused("has a dict with the same key twice")

    def _make(self, node: list[Any]) -> Any:
        """Return what cannot be changed later, and so is made of what it refers to."""
        kind, *rest = node
        match kind:
            case "tuple":
                return tuple(self.resolve(one) for one in rest)
            case "frozenset":
                return frozenset(self._hashable(rest))
            case "range" | "slice":
                make = range if kind == "range" else slice
                return make(*(self.resolve(one) for one in rest))
            case "complex":
                return complex(*rest)
            case "int":
                return int(rest[0], 16)
            case "bytes":
                return bytes.fromhex(rest[0])
            case "text":
                return str(rest[0])
        raise ReprodError(f"a side sent a {str(kind)[:40]!r}: expected plain data")


def _find_class(words: str) -> Any:
    """Return a class of this package that holds data, named as "module:Name"; nothing else is reached."""
    module, _, name = words.partition(":")
    if not _MODULE.fullmatch(module) or not name.isidentifier():
        raise ReprodError(f"a side sent {words[:120]}: expected plain data")
    try:
        found = vars(sys.modules.get(module) or import_module(module)).get(name)
    except ImportError:
        found = None
    if isinstance(found, type) and found.__module__ == module:
        if issubclass(found, ReprodError) or _holds_data(found):
            return found
    raise ReprodError(f"a side sent {words[:120]}: expected plain data")


def _is_hashed_by_identity(kind: type) -> bool:
    inherited: object = object.__hash__
    return kind.__hash__ is inherited


_LARGE: Final = 2**16  # bytes
_TOO_LONG: Final = "bad message length"  # multiprocessing's, of a piece longer than asked for


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
        return unpack(header, self._read_arrays(np.frombuffer(sizes, "<i8").tolist(), small))

    def _read_arrays(self, sizes: list[int], small: bytes) -> list[Array]:
        if any(size < 0 for size in sizes) or sum(n for n in sizes if n < _LARGE) != len(small):
            raise ReprodError(_OTHER_SIZE)
        arrays, at = [], 0
        for size in sizes:
            if size >= _LARGE:
                found = keep_copy(np.frombuffer(self._receive(size), np.uint8))
                if found.size != size:
                    raise ReprodError(_OTHER_SIZE)
                arrays.append(found)
            else:
                arrays.append(np.frombuffer(small, np.uint8, size, at).copy())
                at += size
        return arrays

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
