"""Read pickled arrays without running anything the file asks for.

A pickle is a program for a small stack machine, and `pickle.load` lets that program call any
function. Here is a machine of our own that knows 38 of the 68 instructions, all of them passive:
it builds numbers, strings, bytes, lists, tuples, dicts and numpy arrays, and calls nothing that
the file names. It is written out, rather than made from `pickle.Unpickler` with its `find_class`
closed, because numpy's own `dtype.__setstate__` trusts its input (forged flags corrupt memory),
and because CPython's machine allocates a memo as large as the file asks for and overflows the C
stack when it hashes a deep tuple.

It reads what numpy (1.x and 2.x) and `paddle.save` write, pickle protocols 2 to 5.
"""

import pickletools
import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from reprod_align.errors import RecordError, one_line

import numpy as np
import numpy.typing as npt

_DEEPEST = 64  # containers inside containers; real records have two or three
_MOST_AXES = 64  # numpy's own limit
_DTYPE = re.compile(r"[biufc]\d{1,2}|[SU][1-9]\d{0,8}|O[48]?")
_CORES = ("numpy.core", "numpy._core")  # numpy 1.x and 2.x
_BUILTINS = ("builtins", "__builtin__")  # protocol 2 writes the names of Python 2

# What a file may name, and what the name stands for here. paddle.save writes a tensor inside a
# list as tuple((name, array)); protocol 2 has no instruction for bytes or complex numbers.
_KNOWN_NAMES = {
    ("numpy", "ndarray"): "ndarray",
    ("numpy", "dtype"): "dtype",
    ("_codecs", "encode"): "encode",
    ("collections", "OrderedDict"): "OrderedDict",
    **{(f"{core}.multiarray", "_reconstruct"): "_reconstruct" for core in _CORES},
    **{(f"{core}.multiarray", "scalar"): "scalar" for core in _CORES},
    **{(f"{core}.numeric", "_frombuffer"): "_frombuffer" for core in _CORES},
    **{(module, name): name for module in _BUILTINS for name in ("bytes", "complex", "tuple")},
}


class _Refused(Exception):
    """What is wrong with the file, as the end of a sentence that starts with its name."""


@dataclass(frozen=True)
class _Name:
    """A function that the file may name. It is never called: `_REDUCERS` has our own instead."""

    name: str


@dataclass
class _Dtype:
    """A dtype in the making: the code of its type, and its byte order."""

    code: str
    order: str = "="

    def build(self, state: Any) -> None:
        if not isinstance(state, tuple) or len(state) != 8:
            raise _Refused("holds a dtype with metadata, which a record never needs")
        version, order, subarray, names, fields, itemsize, _alignment, _flags = state
        if version != 3 or (subarray, names, fields) != (None, None, None):
            raise _Refused("holds a structured dtype, which a record never needs")
        if order not in ("<", ">", "=", "|") or itemsize not in (-1, self.resolved().itemsize):
            raise _Refused(f"is damaged: a dtype {self.code} in it is not well formed")
        self.order = order.replace("|", "=")

    def resolved(self) -> np.dtype[Any]:
        return np.dtype(self.order + self.code)


@dataclass
class _Pending:
    """An array between its creation and the BUILD instruction that fills it."""

    array: npt.NDArray[Any] | None = None


_RAW = (memoryview, _Name, _Dtype, _Pending)  # lives on the stack only, never in the result


def restricted_loads(data: bytes | memoryview, *, where: str) -> object:
    """Return the value pickled in `data`: plain containers, numbers, strings, bytes, numpy arrays.

    An OrderedDict comes back as a dict, in its order. Arrays are writable copies with a dtype of
    kind b, i, u, f, c, S, U, or O with such plain values inside. `where` names the file in errors.
    A `memoryview` of a mapped file is read without another copy of it in memory.
    Raises RecordError if the pickle is damaged or asks for anything else.
    """
    try:
        return _Machine(memoryview(data)).run()
    except _Refused as error:
        raise RecordError(f"{where} {error}") from None
    except (ArithmeticError, LookupError, MemoryError, TypeError, ValueError) as error:
        detail = one_line(str(error))[:120] or type(error).__name__
        raise RecordError(f"{where} is damaged: {detail}") from error


class _Machine:
    """The stack, the marks and the memo of one pickle; `run` executes it."""

    def __init__(self, data: memoryview) -> None:
        self.data = data
        self.position = 0
        self.stack: list[Any] = []
        self.marks: list[list[Any]] = []
        self.memo: dict[int, Any] = {}
        self.depths: dict[int, tuple[object, int]] = {}  # id: (container, depth), keeps it alive
        self.sealed: set[int] = set()  # ids of the containers that lie inside another
        self.budget = 2 * len(data)

    def run(self) -> object:
        if len(self.data) and self.data[0] != 0x80:
            raise _Refused("does not hold a pickle of protocol 2 to 5")
        while (code := bytes(self.read(1))) != b".":
            _HANDLERS.get(code, _refuse_instruction)(self)
        if len(self.stack) != 1 or self.marks:
            raise _Refused("is damaged: its pickle ends in the middle of a value")
        if self.position != len(self.data):
            raise _Refused(f"has {len(self.data) - self.position} bytes after its end")
        return self.finished(self.stack.pop())

    def read(self, size: int) -> memoryview:
        """Return the next `size` bytes, uncopied."""
        start, end = self.position, self.position + size
        if not start <= end <= len(self.data):
            raise _Refused("is truncated: its pickle ends in the middle of a value")
        self.position = end
        return self.data[start:end]

    def number(self, layout: str) -> Any:
        return struct.unpack(layout, self.read(struct.calcsize(layout)))[0]

    def line(self) -> str:
        text = bytearray()
        while (char := bytes(self.read(1))) != b"\n":
            text += char
        return text.decode("ascii", "backslashreplace")

    def since_mark(self) -> list[Any]:
        if not self.marks:
            raise _Refused("is damaged: its pickle closes a group that it never opened")
        items, self.stack = self.stack, self.marks.pop()
        return items

    def finished(self, item: Any) -> Any:
        """Return `item` fit for the result: bytes copied out of the file, nothing half built."""
        if isinstance(item, memoryview):
            self.spend(len(item))
            return bytes(item)
        if isinstance(item, _RAW):
            raise _Refused("is damaged: a value in it is only half built")
        if isinstance(item, tuple) and any(isinstance(part, _RAW) for part in item):
            return tuple(self.finished(part) for part in item)
        return item

    def place(self, container: object, items: Sequence[Any]) -> None:
        """Note that `items` lie inside `container`, and refuse cycles and deep nesting.

        A pickler fills a container before it puts it into another. Holding a file to that leaves
        no container that contains itself, and makes the depth of each known at once.
        """
        deepest = 0
        for item in items:
            if _is_container(item):
                deepest = max(deepest, self.depths.setdefault(id(item), (item, 1))[1])
                self.sealed.add(id(item))
        if items and id(container) in self.sealed:
            raise _Refused("holds a container that contains itself")
        if deepest >= _DEEPEST:
            raise _Refused(f"nests containers more than {_DEEPEST} deep")
        _, before = self.depths.get(id(container), (container, 1))
        self.depths[id(container)] = (container, max(before, deepest + 1))

    def spend(self, size: int) -> None:
        """Refuse a file that grows in memory by using the same bytes again and again."""
        self.budget -= size
        if self.budget < 0:
            raise _Refused("asks for more memory than its size explains")

    def array(self, dtype: Any, shape: Any, data: Any, order: str = "C") -> npt.NDArray[Any]:
        """Return a new array with the bytes (or, of dtype object, the list) `data`."""
        if not isinstance(dtype, _Dtype) or not _is_shape(shape):
            raise _Refused("is damaged: an array in it has no proper shape and dtype")
        kind, length = dtype.resolved(), prod(shape)
        expected = list if kind.hasobject else memoryview
        size = length if kind.hasobject else length * kind.itemsize
        if not isinstance(data, expected) or len(data) != size:
            raise _Refused(f"is damaged: an array in it of shape {shape} has not the data for it")
        self.spend(size)
        if isinstance(data, list):
            return self.object_array(shape, data)
        return _array(shape, kind, data, order)

    def object_array(self, shape: tuple[int, ...], items: list[Any]) -> npt.NDArray[Any]:
        flat = np.empty(len(items), dtype=object)
        for index, item in enumerate(items):
            flat[index] = item
        array = flat.reshape(shape)
        self.place(array, items)
        return array


def _is_shape(shape: Any) -> bool:
    if not isinstance(shape, tuple) or len(shape) > _MOST_AXES:
        return False
    return all(isinstance(axis, int) and 0 <= axis < 2**63 for axis in shape)


def _array(
    shape: tuple[int, ...], dtype: np.dtype[Any], data: memoryview, order: str
) -> npt.NDArray[Any]:
    fortran = order == "F"
    view: npt.NDArray[Any] = np.ndarray(shape, dtype, data, order="F" if fortran else "C")
    array = view.copy("K")  # out of the file's bytes: writable, aligned
    _require_proper_content(array)
    return array


def _is_container(item: Any) -> bool:
    if isinstance(item, np.ndarray):
        return bool(item.dtype.hasobject)
    return isinstance(item, (list, dict, tuple)) and len(item) > 0


def _require_proper_content(array: npt.NDArray[Any]) -> None:
    """Refuse bytes that numpy takes on trust: booleans beyond 0 and 1, impossible letters."""
    if array.dtype.kind == "b" and array.size and array.view(np.uint8).max() > 1:
        raise _Refused("is damaged: a boolean in it is neither true nor false")
    if array.dtype.kind == "U" and array.size:
        letters = np.ascontiguousarray(array).reshape(-1).view(f"{array.dtype.byteorder}u4")
        if letters.max() > 0x10FFFF or ((letters >= 0xD800) & (letters < 0xE000)).any():
            raise _Refused("is damaged: a text in it has letters that do not exist")


# What REDUCE may do: our own functions, one for each name that a file may call.


def _reconstruct(machine: _Machine, kind: Any, shape: Any, code: Any) -> _Pending:
    if kind != _Name("ndarray") or shape != (0,) or code not in (b"b", "b"):
        raise _Refused("asks for an array type that a record never needs")
    return _Pending()


def _frombuffer(
    machine: _Machine, data: Any, dtype: Any, shape: Any, order: Any, axes: Any = None
) -> npt.NDArray[Any]:
    if order == "K":
        return machine.array(dtype, shape, data).transpose(axes)
    if order not in ("C", "F"):
        raise _Refused("is damaged: an array in it has an unknown memory order")
    return machine.array(dtype, shape, data, order)


def _scalar(machine: _Machine, dtype: Any, data: Any) -> Any:
    return machine.array(dtype, (), data)[()]


def _dtype(machine: _Machine, code: Any, align: Any, copy: Any) -> _Dtype:
    if not isinstance(code, str) or not _DTYPE.fullmatch(code):
        raise _Refused(f"holds the dtype {str(code)[:40]!r}, which a record never needs")
    return _Dtype(code)


def _encode(machine: _Machine, text: Any, encoding: Any) -> memoryview:
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1"):
        raise _Refused("asks to run _codecs.encode on something other than the bytes of an array")
    machine.spend(len(text))
    return memoryview(text.encode("latin1"))


def _tuple(machine: _Machine, items: Any) -> tuple[Any, ...]:
    if not isinstance(items, tuple):
        raise _Refused("is damaged: a tuple in it is made of something else")
    return items


_REDUCERS: dict[str, Callable[..., Any]] = {
    "OrderedDict": lambda machine: {},
    "_frombuffer": _frombuffer,
    "_reconstruct": _reconstruct,
    "bytes": lambda machine: memoryview(b""),
    "complex": lambda machine, real, imag: complex(real, imag),
    "dtype": _dtype,
    "encode": _encode,
    "scalar": _scalar,
    "tuple": _tuple,
}


# The instructions.


def _refuse_instruction(machine: _Machine) -> None:
    at = machine.position - 1
    for op in pickletools.opcodes:
        if op.code == chr(machine.data[at]):
            raise _Refused(f"uses the pickle instruction {op.name}, which a record never needs")
    raise _Refused(f"is damaged: byte {at} of its pickle is no instruction")


def _protocol(machine: _Machine) -> None:
    if not 2 <= machine.number("<B") <= 5:
        raise _Refused("does not hold a pickle of protocol 2 to 5")


def _frame(machine: _Machine) -> None:
    size = machine.number("<Q")
    if size > len(machine.data) - machine.position:
        raise _Refused("is truncated: its pickle announces more bytes than there are")


def _constant(value: Any) -> Callable[[_Machine], None]:
    return lambda machine: machine.stack.append(value)


def _number(layout: str) -> Callable[[_Machine], None]:
    return lambda machine: machine.stack.append(machine.number(layout))


def _sized(layout: str, convert: Callable[[memoryview], Any]) -> Callable[[_Machine], None]:
    return lambda machine: machine.stack.append(convert(machine.read(machine.number(layout))))


def _text(data: memoryview) -> str:
    return str(data, "utf-8")


def _long(data: memoryview) -> int:
    return int.from_bytes(data, "little", signed=True)


def _mark(machine: _Machine) -> None:
    machine.marks.append(machine.stack)
    machine.stack = []


def _push_tuple(machine: _Machine, items: list[Any]) -> None:
    # Arguments of REDUCE and BUILD are tuples of raw parts; a tuple inside a tuple is a value.
    made = tuple(machine.finished(item) if isinstance(item, tuple) else item for item in items)
    if made:
        machine.place(made, made)
    machine.stack.append(made)


def _tuple_of(length: int) -> Callable[[_Machine], None]:
    def push(machine: _Machine) -> None:
        if len(machine.stack) < length:
            raise _Refused("is damaged: its pickle takes a value that is not there")
        items = machine.stack[-length:]
        del machine.stack[-length:]
        _push_tuple(machine, items)

    return push


def _append(machine: _Machine, items: list[Any]) -> None:
    target = machine.stack[-1]
    if not isinstance(target, list):
        raise _Refused("is damaged: its pickle appends to something that is no list")
    done = [machine.finished(item) for item in items]
    target.extend(done)
    machine.place(target, done)


def _set_items(machine: _Machine, items: list[Any]) -> None:
    target = machine.stack[-1]
    if not isinstance(target, dict) or len(items) % 2:
        raise _Refused("is damaged: its pickle fills something that is no dict")
    done = [machine.finished(item) for item in items]
    for key, value in zip(done[::2], done[1::2], strict=True):
        if not isinstance(key, (str, bytes, int, float)):  # hashing a deep tuple overflows C
            raise _Refused(f"has a dict with a key of type {type(key).__name__}")
        target[key] = value
    machine.place(target, done[1::2])


def _one_item(machine: _Machine) -> None:
    value = machine.stack.pop()
    _append(machine, [value])


def _one_pair(machine: _Machine) -> None:
    value, key = machine.stack.pop(), machine.stack.pop()
    _set_items(machine, [key, value])


def _put(machine: _Machine, index: int) -> None:
    machine.memo[index] = machine.stack[-1]


def _get(machine: _Machine, index: int) -> None:
    value = machine.memo[index]
    built = value.array if isinstance(value, _Pending) else None
    machine.stack.append(value if built is None else built)


def _named(machine: _Machine, module: Any, name: Any) -> None:
    if not isinstance(module, str) or not isinstance(name, str):
        raise _Refused("is damaged: its pickle names a function by something that is no text")
    known = _KNOWN_NAMES.get((module, name))
    if known is None:
        raise _Refused(f"asks to run {module}.{name}"[:120] + ": refused, nothing was run")
    machine.stack.append(_Name(known))


def _stack_global(machine: _Machine) -> None:
    name, module = machine.stack.pop(), machine.stack.pop()
    _named(machine, module, name)


def _reduce(machine: _Machine) -> None:
    arguments, function = machine.stack.pop(), machine.stack.pop()
    if not isinstance(function, _Name) or not isinstance(arguments, tuple):
        raise _Refused("is damaged: its pickle calls something that is no function")
    if function.name not in _REDUCERS:
        raise _Refused(f"asks to run numpy.{function.name}: refused, nothing was run")
    machine.stack.append(_REDUCERS[function.name](machine, *arguments))


def _build(machine: _Machine) -> None:
    state, target = machine.stack.pop(), machine.stack[-1]
    if isinstance(target, _Dtype):
        target.build(state)
    elif isinstance(target, _Pending):
        target.array = machine.stack[-1] = _filled(machine, state)
    elif not isinstance(target, dict):  # attributes of an OrderedDict (torch's _metadata): dropped
        raise _Refused(f"sets the state of a {type(target).__name__}, which a record never needs")


def _filled(machine: _Machine, state: Any) -> npt.NDArray[Any]:
    if not isinstance(state, tuple) or len(state) != 5 or state[0] != 1:
        raise _Refused("is damaged: the state of an array in it is not well formed")
    _version, shape, dtype, is_fortran, data = state
    return machine.array(dtype, shape, data, "F" if is_fortran else "C")


_BY_NAME: dict[str, Callable[[_Machine], None]] = {
    "PROTO": _protocol,
    "FRAME": _frame,
    "NONE": _constant(None),
    "NEWTRUE": _constant(True),
    "NEWFALSE": _constant(False),
    "EMPTY_TUPLE": _constant(()),
    "EMPTY_LIST": lambda machine: machine.stack.append([]),
    "EMPTY_DICT": lambda machine: machine.stack.append({}),
    "BININT": _number("<i"),
    "BININT1": _number("<B"),
    "BININT2": _number("<H"),
    "BINFLOAT": _number(">d"),
    "LONG1": _sized("<B", _long),
    "LONG4": _sized("<i", _long),
    "SHORT_BINUNICODE": _sized("<B", _text),
    "BINUNICODE": _sized("<I", _text),
    "BINUNICODE8": _sized("<Q", _text),
    "SHORT_BINBYTES": _sized("<B", memoryview),
    "BINBYTES": _sized("<I", memoryview),
    "BINBYTES8": _sized("<Q", memoryview),
    "BYTEARRAY8": _sized("<Q", memoryview),
    "MARK": _mark,
    "TUPLE": lambda machine: _push_tuple(machine, machine.since_mark()),
    "TUPLE1": _tuple_of(1),
    "TUPLE2": _tuple_of(2),
    "TUPLE3": _tuple_of(3),
    "APPEND": _one_item,
    "APPENDS": lambda machine: _append(machine, machine.since_mark()),
    "SETITEM": _one_pair,
    "SETITEMS": lambda machine: _set_items(machine, machine.since_mark()),
    "MEMOIZE": lambda machine: _put(machine, len(machine.memo)),
    "BINPUT": lambda machine: _put(machine, machine.number("<B")),
    "LONG_BINPUT": lambda machine: _put(machine, machine.number("<I")),
    "BINGET": lambda machine: _get(machine, machine.number("<B")),
    "LONG_BINGET": lambda machine: _get(machine, machine.number("<I")),
    "GLOBAL": lambda machine: _named(machine, machine.line(), machine.line()),
    "STACK_GLOBAL": _stack_global,
    "REDUCE": _reduce,
    "BUILD": _build,
}
_HANDLERS = {
    op.code.encode("latin1"): _BY_NAME[op.name] for op in pickletools.opcodes if op.name in _BY_NAME
}
