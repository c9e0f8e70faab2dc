"""What a pickled record may hold (names, dtypes, arrays), built by code of our own, and what that may cost.

Nothing that a file names is ever called: REDUCERS has a function of ours for each name. numpy's own
`dtype.__setstate__` trusts its input (forged flags corrupt memory), so dtypes are parsed here.

A few bytes can name a value again, and each use can copy it, look through it or nest it. So everything
has a price, about the bytes of memory that it takes, and a file of n bytes may spend a multiple of n.
Time and memory are then linear in the file, whatever it asks for.
"""

import math
import re
from collections.abc import Callable, Sequence, Sized
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

DEEPEST = 64  # containers inside containers; real records have two or three
_FREE, _PER_BYTE = 2**20, 40  # records need 25 per byte; the densest content, lists of pairs, 36
_REPEATED = 16  # values that one byte may stand for, counted as often as they are reached
_PLACED = 100  # to remember where a container lies
_MOST_AXES = 64  # numpy's own limit
_DTYPE = re.compile(r"[biufc]\d{1,2}|[SU][1-9]\d{0,8}|O[48]?")
_CORES = ("numpy.core", "numpy._core")  # numpy 1.x and 2.x
_BUILTINS = ("builtins", "__builtin__")  # protocol 2 writes the names of Python 2
# What a file may name, and what the name stands for here. paddle.save writes a tensor inside a
# list as tuple((name, array)); protocol 2 has no instruction for bytes or complex numbers.
KNOWN_NAMES = {
    ("numpy", "ndarray"): "ndarray",
    ("numpy", "dtype"): "dtype",
    ("_codecs", "encode"): "encode",
    ("collections", "OrderedDict"): "OrderedDict",
    **{(f"{core}.multiarray", "_reconstruct"): "_reconstruct" for core in _CORES},
    **{(f"{core}.multiarray", "scalar"): "scalar" for core in _CORES},
    **{(f"{core}.numeric", "_frombuffer"): "_frombuffer" for core in _CORES},
    **{(module, name): name for module in _BUILTINS for name in ("bytes", "complex", "tuple")},
}


class Refused(Exception):
    """What is wrong with the file, as the end of a sentence that starts with its name."""


@dataclass(slots=True)
class _Container:
    """A container that holds others or lies in one; kept alive, so that its id stays its own."""

    container: object
    depth: int
    values: int
    """how many values it holds, at any depth, each counted as often as it is reached"""
    sealed: bool = False
    """lies inside another, so that nothing may be added to it"""


class Account:
    """What one file has left to spend."""

    def __init__(self, size: int) -> None:
        """Allow what a file of `size` bytes explains."""
        self._copied = 2 * size
        self._left = self._allowed = _FREE + _PER_BYTE * size
        self._most_values = _FREE + _REPEATED * size
        self._known: dict[int, _Container] = {}

    @property
    def paid(self) -> int:
        """What was paid so far: a count of steps and of bytes, the same on every machine."""
        return self._allowed - self._left

    def pay(self, price: int) -> None:
        """Refuse a file that makes more objects, or looks at them more often, than its size explains."""
        self._left -= price
        if self._left < 0:
            raise Refused("asks for more memory than its size explains")

    def spend(self, size: int) -> None:
        """Refuse a file that grows in memory by using the same bytes again and again."""
        self._copied -= size
        if self._copied < 0:
            raise Refused("asks for more memory than its size explains")

    def place(self, container: Sized, items: Sequence[Any]) -> None:
        """Note that `container` got `items` last; refuse cycles and deep nesting.

        A pickler fills a container before it puts it into another. A file that keeps to this cannot make a
        container that contains itself, and the depth of each is known at once.
        """
        self.pay(8 * len(items))
        inner = [self._seal(item) for item in items if _is_container(item)]
        known = self._known.get(id(container))
        if items and known is not None and known.sealed:
            raise Refused("holds a container that contains itself")
        if not inner and known is None:
            return  # it holds plain values alone: its length tells all
        known = known or self._know(container, count_items(container) - len(items))
        known.depth = max(known.depth, 1 + max((one.depth for one in inner), default=0))
        known.values += len(items) + sum(one.values for one in inner)
        if known.depth > DEEPEST:
            raise Refused(f"nests containers more than {DEEPEST} deep")
        if known.values > self._most_values:
            raise Refused("repeats its containers more often than its size explains")

    def _seal(self, item: Sized) -> _Container:
        known = self._known.get(id(item))
        if known is None and isinstance(item, tuple):
            # it can't grow, and holds plain values alone
            return _Container(item, 1, len(item), True)
        known = known or self._know(item, count_items(item))
        known.sealed = True
        return known

    def _know(self, container: Sized, values: int) -> _Container:
        self.pay(_PLACED)
        known = self._known[id(container)] = _Container(container, 1, values)
        return known


def count_items(container: Sized) -> int:
    """Return how many items a container has; an array, how many elements."""
    return container.size if isinstance(container, np.ndarray) else len(container)


def _is_container(item: Any) -> bool:
    """Tell whether an item holds others, or could later: an empty list is filled with what holds it."""
    if isinstance(item, np.ndarray):
        return bool(item.dtype.hasobject)
    return isinstance(item, (list, dict)) or (isinstance(item, tuple) and len(item) > 0)


@dataclass(frozen=True, slots=True)
class Name:
    """A function that the file may name. It is never called: `REDUCERS` has our own instead."""

    name: str


@dataclass(slots=True)
class Dtype:
    """A dtype in the making: the code of its type, and its byte order."""

    code: str
    order: str = "="

    def build(self, state: Any) -> None:
        """Take the byte order from the state that numpy pickles."""
        if not isinstance(state, tuple) or len(state) != 8:
            raise Refused("holds a dtype with metadata, which a record never needs")
        version, order, subarray, names, fields, itemsize, _alignment, _flags = state
        if version != 3 or (subarray, names, fields) != (None, None, None):
            raise Refused("holds a structured dtype, which a record never needs")
        if order not in ("<", ">", "=", "|") or itemsize not in (-1, self.to_numpy().itemsize):
            raise Refused(f"is damaged: a dtype {self.code} in it is not well formed")
        self.order = order.replace("|", "=")

    def to_numpy(self) -> np.dtype[Any]:
        """Return numpy's dtype."""
        return np.dtype(self.order + self.code)


@dataclass(slots=True)
class Pending:
    """An array between its creation and the BUILD instruction that fills it."""

    array: npt.NDArray[Any] | None = None


class Parts(tuple[Any, ...]):
    """A tuple with a raw part: the arguments of a function, or the state of an array."""


RAW = (memoryview, Name, Dtype, Pending, Parts)  # lives on the stack only, never in the result


class Builder(Account):
    """Makes arrays, and accounts for what a file may cost."""

    def __init__(self, size: int, leave_from: int | None = None) -> None:
        """Allow what `size` bytes explain; numbers from `leave_from` bytes on stay in the file's memory."""
        super().__init__(size)
        self._leave_from = math.inf if leave_from is None else leave_from

    def array(self, dtype: Any, shape: Any, data: Any, order: str = "C") -> npt.NDArray[Any]:
        """Return a new array with the bytes (or, of dtype object, the list) `data`."""
        if not isinstance(dtype, Dtype) or not _is_shape(shape):
            raise Refused("is damaged: an array in it has no proper shape and dtype")
        kind, length = dtype.to_numpy(), prod(shape)
        expected = list if kind.hasobject else memoryview
        size = length if kind.hasobject else length * kind.itemsize
        if not isinstance(data, expected) or len(data) != size:
            raise Refused(
                f"is damaged: an array in it of shape {shape} has too little or too much data"
            )
        self.spend(size)
        if isinstance(data, list):
            return self._make_object_array(shape, data)
        leave = kind.kind in "iufc" and len(data) >= self._leave_from
        return _make_array(shape, kind, data, order, leave)

    def _make_object_array(self, shape: tuple[int, ...], items: list[Any]) -> npt.NDArray[Any]:
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


def _make_array(
    shape: tuple[int, ...], dtype: np.dtype[Any], data: memoryview, order: str, leave: bool
) -> npt.NDArray[Any]:
    fortran = order == "F"
    view: npt.NDArray[Any] = np.ndarray(shape, dtype, data, order="F" if fortran else "C")
    if leave:  # any bytes are numbers
        view.flags.writeable = False
        return view
    array = view.copy("K")  # out of the file's bytes: writable, aligned
    require_proper_content(array)
    return array


def require_proper_content(array: npt.NDArray[Any]) -> None:
    """Refuse bytes that numpy takes on trust: booleans beyond 0 and 1, impossible letters."""
    if array.dtype.kind == "b" and array.size and array.view(np.uint8).max() > 1:
        raise Refused("is damaged: a boolean in it is neither true nor false")
    if array.dtype.kind == "U" and array.size:
        letters = np.ascontiguousarray(array).reshape(-1).view(f"{array.dtype.byteorder}u4")
        if letters.max() > 0x10FFFF or ((letters >= 0xD800) & (letters < 0xE000)).any():
            raise Refused("is damaged: a text in it has letters that do not exist")


# What REDUCE may do: our own functions, one for each name that a file may call.


def _reconstruct(builder: Builder, kind: Any, shape: Any, code: Any) -> Pending:
    if kind != Name("ndarray") or shape != (0,) or code not in (b"b", "b"):
        raise Refused("asks for an array type that a record never needs")
    return Pending()


def _frombuffer(
    builder: Builder, data: Any, dtype: Any, shape: Any, order: Any, axes: Any = None
) -> npt.NDArray[Any]:
    if order == "K" and axes is not None:
        return builder.array(dtype, shape, data).transpose(axes)
    if order not in ("C", "F"):
        raise Refused("is damaged: an array in it has an unknown memory order")
    return builder.array(dtype, shape, data, order)


def _scalar(builder: Builder, dtype: Any, data: Any) -> Any:
    return builder.array(dtype, (), data)[()]


def _dtype(builder: Builder, code: Any, align: Any, copy: Any) -> Dtype:
    if not isinstance(code, str) or not _DTYPE.fullmatch(code):
        shown = repr(code[:40]) if isinstance(code, str) else f"of type {type(code).__name__}"
        raise Refused(f"holds the dtype {shown}, which a record never needs")
    return Dtype(code)


def _encode(builder: Builder, text: Any, encoding: Any) -> memoryview:
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1"):
        raise Refused("asks to run _codecs.encode on something other than the bytes of an array")
    builder.spend(len(text))
    return memoryview(text.encode("latin1"))


def _tuple(builder: Builder, items: Any) -> tuple[Any, ...]:
    if not isinstance(items, tuple):
        raise Refused("is damaged: a tuple in it is made of something else")
    return items


REDUCERS: dict[str, Callable[..., Any]] = {
    "OrderedDict": lambda builder: {},
    "_frombuffer": _frombuffer,
    "_reconstruct": _reconstruct,
    "bytes": lambda builder: memoryview(b""),
    "complex": lambda builder, real, imag: complex(real, imag),
    "dtype": _dtype,
    "encode": _encode,
    "scalar": _scalar,
    "tuple": _tuple,
}
