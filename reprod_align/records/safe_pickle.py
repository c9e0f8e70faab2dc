"""Read pickled arrays without running anything the file asks for.

A pickle is a program for a small stack machine, and `pickle.load` lets that program call any
function. Here is a machine of our own that accepts 38 of the 68 instructions, all of them passive:
it builds numbers, strings, bytes, lists, tuples, dicts and numpy arrays, and calls nothing that
the file names. `pickle.Unpickler` with its `find_class` closed would not do: CPython's machine
allocates a memo as large as the file asks for, and overflows the C stack when it hashes a deep tuple.

It reads what numpy (1.x and 2.x) and `paddle.save` write, pickle protocols 2 to 5.
"""

import pickletools
import struct
from collections.abc import Callable, Mapping
from typing import Any

from reprod_align.errors import RecordError, one_line
from reprod_align.records.pickled import (
    KNOWN_NAMES,
    RAW,
    REDUCERS,
    Builder,
    Dtype,
    Name,
    Parts,
    Pending,
    Refused,
)

import numpy.typing as npt

# bytes: a place on the stack, a small object, one that can grow, a view of the file
_CHEAP, _OBJECT, _GROWING, _VIEW = 8, 64, 96, 192
_LONGEST_NAME = 500  # letters of a module and a function in it
_WIDEST_KEY = 64  # bits


def restricted_loads(
    data: bytes | memoryview, *, where: str, leave_from: int | None = None
) -> object:
    """Return the value pickled in `data`: plain containers, numbers, strings, bytes, numpy arrays.

    An OrderedDict comes back as a dict, in its order. Arrays are writable copies with a dtype of
    kind b, i, u, f, c, S, U, or O with such plain values inside. `where` names the file in errors.
    A `memoryview` of a mapped file is read without another copy of it in memory; arrays of numbers from
    `leave_from` bytes on stay in it: they are read-only, and may be unaligned.
    Raises RecordError if the pickle is damaged or asks for anything else.
    """
    try:
        return Machine(memoryview(data), Builder(len(data), leave_from)).run()
    except Refused as error:
        raise RecordError(f"{where} {error}") from None
    except (ArithmeticError, LookupError, MemoryError, TypeError, ValueError) as error:
        detail = one_line(str(error))[:120] or type(error).__name__
        raise RecordError(f"{where} is damaged: {detail}") from error


class Machine:
    """The stack, the marks and the memo of one pickle; `run` executes it.

    A subclass may know further instructions (`handlers`), and mean something else by a name
    (`find_name`, `call`) or by an array (`builder`).
    """

    def __init__(self, data: memoryview, builder: Builder | None = None) -> None:
        """Take the bytes of the file; `builder`: makes the arrays."""
        self.data = data
        self.position = 0
        self.stack: list[Any] = []
        self.marks: list[list[Any]] = []
        self.memo: list[Any] = []
        self.builder = builder or Builder(len(data))
        self.handlers: Mapping[bytes, Callable[[Any], None]] = HANDLERS

    def run(self) -> object:
        """Return what the pickle makes. Raises Refused, or what `restricted_loads` turns into it."""
        made = self.run_next()
        if self.position != len(self.data):
            raise Refused(f"has {len(self.data) - self.position} bytes after its end")
        return made

    def run_next(self) -> object:
        """Return what the pickle at the present position makes; more may follow it."""
        if bytes(self.data[self.position : self.position + 1]) not in (b"\x80", b""):
            raise Refused("does not hold a pickle of protocol 2 to 5")
        while (code := bytes(self.read(1))) != b".":
            self.builder.pay(PRICES.get(code, _CHEAP))
            self.handlers.get(code, _refuse_instruction)(self)
        if len(self.stack) != 1 or self.marks:
            raise Refused("is damaged: its pickle ends in the middle of a value")
        return self.finish(self.stack.pop())

    def find_name(self, module: str, name: str) -> Any:
        """Return what stands for a function or class that the pickle names. Raises Refused."""
        known = KNOWN_NAMES.get((module, name))
        if known is None:
            raise Refused(f"asks to run {module}.{name}"[:120] + ": refused, nothing was run")
        return Name(known)

    def call(self, function: Any, arguments: tuple[Any, ...]) -> Any:
        """Return what stands for the function's result; the function itself never runs."""
        if not isinstance(function, Name):
            raise Refused("is damaged: its pickle calls something other than a function")
        if function.name not in REDUCERS:
            raise Refused(f"asks to run numpy.{function.name}: refused, nothing was run")
        return REDUCERS[function.name](self.builder, *arguments)

    def set_state(self, target: Any, state: Any) -> Any:
        """Return the object with its state."""
        if isinstance(target, Dtype):
            target.build(state)
        elif isinstance(target, Pending):
            target.array = _fill(self, state)
            return target.array
        elif not isinstance(target, dict):
            kind = type(target).__name__
            raise Refused(f"sets the state of a {kind}, which a record never needs")
        return target  # attributes of an OrderedDict (torch's _metadata) are dropped

    def read(self, size: int) -> memoryview:
        """Return the next `size` bytes, uncopied."""
        start, end = self.position, self.position + size
        if not start <= end <= len(self.data):
            raise Refused("is truncated: its pickle ends in the middle of a value")
        self.position = end
        return self.data[start:end]

    def number(self, layout: str) -> Any:
        """Return the next number, packed as `layout` says."""
        return struct.unpack(layout, self.read(struct.calcsize(layout)))[0]

    def line(self) -> str:
        """Return the rest of the line."""
        text = bytearray()
        while (char := bytes(self.read(1))) != b"\n":
            text += char
        return text.decode("ascii", "backslashreplace")

    def since_mark(self) -> list[Any]:
        """Return what was pushed since the last mark."""
        if not self.marks:
            raise Refused("is damaged: its pickle closes a group that it never opened")
        items, self.stack = self.stack, self.marks.pop()
        return items

    def finish(self, item: Any) -> Any:
        """Return `item` fit for the result: bytes copied out of the file, nothing half built."""
        if isinstance(item, memoryview):
            self.builder.spend(len(item))
            return bytes(item)
        if isinstance(item, Parts):
            self.builder.pay(_OBJECT + 8 * len(item))
            made = tuple(self.finish(part) for part in item)
            self.builder.place(made, made)
            return made
        if isinstance(item, RAW):
            raise Refused("is damaged: a value in it is only half built")
        return item


# The instructions.


def _refuse_instruction(machine: Machine) -> None:
    at = machine.position - 1
    for op in pickletools.opcodes:
        if op.code == chr(machine.data[at]):
            raise Refused(f"uses the pickle instruction {op.name}, which a record never needs")
    raise Refused(f"is damaged: byte {at} of its pickle is not an instruction")


def _check_protocol(machine: Machine) -> None:
    if not 2 <= machine.number("<B") <= 5:
        raise Refused("does not hold a pickle of protocol 2 to 5")


def _check_frame(machine: Machine) -> None:
    size = machine.number("<Q")
    if size > len(machine.data) - machine.position:
        raise Refused("is truncated: its pickle announces more bytes than there are")


def _constant(value: Any) -> Callable[[Machine], None]:
    return lambda machine: machine.stack.append(value)


def _read_number(layout: str) -> Callable[[Machine], None]:
    return lambda machine: machine.stack.append(machine.number(layout))


def _read_sized(layout: str, convert: Callable[[memoryview], Any]) -> Callable[[Machine], None]:
    def push(machine: Machine) -> None:
        data = machine.read(machine.number(layout))
        if convert is _decode_text:
            machine.builder.pay(4 * len(data))  # a letter may take 4 bytes
        machine.stack.append(convert(data))

    return push


def _decode_text(data: memoryview) -> str:
    return str(data, "utf-8")


def _decode_long(data: memoryview) -> int:
    return int.from_bytes(data, "little", signed=True)


def _mark(machine: Machine) -> None:
    machine.marks.append(machine.stack)
    machine.stack = []


def _push_tuple(machine: Machine, items: list[Any]) -> None:
    # Arguments of REDUCE and BUILD are tuples of raw parts; a tuple inside a tuple is a value.
    machine.builder.pay(_OBJECT + 8 * len(items))
    made = tuple(machine.finish(item) if isinstance(item, Parts) else item for item in items)
    if any(isinstance(item, RAW) for item in made):
        made = Parts(made)
    elif made:
        machine.builder.place(made, made)
    machine.stack.append(made)


def _tuple_of(length: int) -> Callable[[Machine], None]:
    def push(machine: Machine) -> None:
        if len(machine.stack) < length:
            raise Refused("is damaged: its pickle takes a value that is not there")
        items = machine.stack[-length:]
        del machine.stack[-length:]
        _push_tuple(machine, items)

    return push


def _append(machine: Machine, items: list[Any]) -> None:
    target = machine.stack[-1]
    if not isinstance(target, list):
        raise Refused("is damaged: its pickle appends to something other than a list")
    done = [machine.finish(item) for item in items]
    target.extend(done)
    machine.builder.place(target, done)


def _set_items(machine: Machine, items: list[Any]) -> None:
    target = machine.stack[-1]
    if not isinstance(target, dict) or len(items) % 2:
        raise Refused("is damaged: its pickle fills something other than a dict")
    done = [machine.finish(item) for item in items]
    for key, value in zip(done[::2], done[1::2], strict=True):
        _require_new_key(machine.builder, key, target)
        target[key] = value
    machine.builder.place(target, done[1::2])


def _require_new_key(builder: Builder, key: Any, target: dict[Any, Any]) -> None:
    """Refuse keys that take long to look up, and one that would replace another's value."""
    if isinstance(key, (str, bytes)):
        builder.pay(len(key))  # two equal texts are compared letter by letter
    elif not isinstance(key, (int, float)):  # hashing a deep tuple overflows C
        raise Refused(f"has a dict with a key of type {type(key).__name__}")
    elif isinstance(key, int) and key.bit_length() > _WIDEST_KEY:  # many such can share a hash
        raise Refused(f"has a dict with an integer key of {key.bit_length()} bits")
    if key in target:
        raise Refused(f"has a dict with the same key twice: {one_line(f'{key!r:.40}')}")


def _one_pair(machine: Machine) -> None:
    value, key = machine.stack.pop(), machine.stack.pop()
    _set_items(machine, [key, value])


def _put(machine: Machine, index: int) -> None:
    if index > len(machine.memo):
        raise Refused("is damaged: its pickle numbers its values out of order")
    machine.memo[index : index + 1] = [machine.stack[-1]]


def _get(machine: Machine, index: int) -> None:
    value = machine.memo[index]
    built = value.array if isinstance(value, Pending) else None
    machine.stack.append(value if built is None else built)


def _push_name(machine: Machine, module: Any, name: Any) -> None:
    if not isinstance(module, str) or not isinstance(name, str):
        raise Refused("is damaged: its pickle names a function by something other than text")
    if len(module) + len(name) > _LONGEST_NAME:
        raise Refused(f"names a function with {len(module) + len(name)} letters")
    machine.stack.append(machine.find_name(module, name))


def _stack_global(machine: Machine) -> None:
    name, module = machine.stack.pop(), machine.stack.pop()
    _push_name(machine, module, name)


def _reduce(machine: Machine) -> None:
    arguments, function = machine.stack.pop(), machine.stack.pop()
    if not isinstance(arguments, tuple):
        raise Refused("is damaged: its pickle calls something other than a function")
    machine.builder.pay(8 * len(arguments))
    machine.stack.append(machine.call(function, arguments))


def _build(machine: Machine) -> None:
    state = machine.stack.pop()
    machine.stack[-1] = machine.set_state(machine.stack[-1], state)


def _fill(machine: Machine, state: Any) -> npt.NDArray[Any]:
    if not isinstance(state, tuple) or len(state) != 5 or state[0] != 1:
        raise Refused("is damaged: the state of an array in it is not well formed")
    _version, shape, dtype, is_fortran, data = state
    return machine.builder.array(dtype, shape, data, "F" if is_fortran else "C")


_BY_NAME: dict[str, Callable[[Machine], None]] = {
    "PROTO": _check_protocol,
    "FRAME": _check_frame,
    "NONE": _constant(None),
    "NEWTRUE": _constant(True),
    "NEWFALSE": _constant(False),
    "EMPTY_TUPLE": _constant(()),
    "EMPTY_LIST": lambda machine: machine.stack.append([]),
    "EMPTY_DICT": lambda machine: machine.stack.append({}),
    "BININT": _read_number("<i"),
    "BININT1": _read_number("<B"),
    "BININT2": _read_number("<H"),
    "BINFLOAT": _read_number(">d"),
    "LONG1": _read_sized("<B", _decode_long),
    "LONG4": _read_sized("<i", _decode_long),
    "SHORT_BINUNICODE": _read_sized("<B", _decode_text),
    "BINUNICODE": _read_sized("<I", _decode_text),
    "BINUNICODE8": _read_sized("<Q", _decode_text),
    "SHORT_BINBYTES": _read_sized("<B", memoryview),
    "BINBYTES": _read_sized("<I", memoryview),
    "BINBYTES8": _read_sized("<Q", memoryview),
    "BYTEARRAY8": _read_sized("<Q", memoryview),
    "MARK": _mark,
    "TUPLE": lambda machine: _push_tuple(machine, machine.since_mark()),
    "TUPLE1": _tuple_of(1),
    "TUPLE2": _tuple_of(2),
    "TUPLE3": _tuple_of(3),
    "APPEND": lambda machine: _append(machine, [machine.stack.pop()]),
    "APPENDS": lambda machine: _append(machine, machine.since_mark()),
    "SETITEM": _one_pair,
    "SETITEMS": lambda machine: _set_items(machine, machine.since_mark()),
    "MEMOIZE": lambda machine: _put(machine, len(machine.memo)),
    "BINPUT": lambda machine: _put(machine, machine.number("<B")),
    "LONG_BINPUT": lambda machine: _put(machine, machine.number("<I")),
    "BINGET": lambda machine: _get(machine, machine.number("<B")),
    "LONG_BINGET": lambda machine: _get(machine, machine.number("<I")),
    "GLOBAL": lambda machine: _push_name(machine, machine.line(), machine.line()),
    "STACK_GLOBAL": _stack_global,
    "REDUCE": _reduce,
    "BUILD": _build,
}
HANDLERS = {
    op.code.encode("latin1"): _BY_NAME[op.name] for op in pickletools.opcodes if op.name in _BY_NAME
}

# What an instruction costs: about the bytes that its object takes, its place on the stack included.
_PRICES = {
    "EMPTY_LIST": _GROWING, "EMPTY_DICT": _GROWING, "MARK": _GROWING,
    "BININT": 40, "BININT2": 40, "BINFLOAT": 40, "LONG1": 40, "LONG4": 40,
    "SHORT_BINUNICODE": _OBJECT, "BINUNICODE": _OBJECT, "BINUNICODE8": _OBJECT,
    "SHORT_BINSTRING": _OBJECT, "BINSTRING": _OBJECT,
    "SHORT_BINBYTES": _VIEW, "BINBYTES": _VIEW, "BINBYTES8": _VIEW, "BYTEARRAY8": _VIEW,
    "GLOBAL": _OBJECT, "STACK_GLOBAL": _OBJECT, "REDUCE": _OBJECT, "BUILD": _OBJECT,
    "NEWOBJ": _OBJECT, "NEWOBJ_EX": _OBJECT, "BINPERSID": _VIEW, "EMPTY_SET": _VIEW, "FROZENSET": _VIEW,
}  # fmt: skip
PRICES = {
    op.code.encode("latin1"): _PRICES[op.name] for op in pickletools.opcodes if op.name in _PRICES
}
