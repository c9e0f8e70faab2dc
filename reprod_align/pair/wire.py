"""Messages between this process and a side's own: plain data and arrays, nothing of a framework.

Both ends are this package and belong to the same user, and the pipe is private. Arrays go as dtype,
shape and bytes, so that the two ends may have different versions of numpy; large ones one by one after
the message, so that neither end holds all of them twice.
"""

import pickle
from collections.abc import Callable, Mapping
from io import BytesIO
from multiprocessing.connection import Connection
from types import BuiltinFunctionType, FunctionType
from typing import Any, Final

from reprod_align.errors import ReprodError
from reprod_align.model.store import Array, keep_copy

import numpy as np

_PACKAGES: Final = ("reprod_align", "collections")
_BUILTINS: Final = ("bool", "complex", "float", "frozenset", "int", "range", "set", "slice", "str")
_EXACT: Final[Mapping[type, Callable[[Any], Any]]] = {
    int: int.__int__,
    float: float.__float__,
    str: str.__str__,
}
_LARGE: Final = 2**16  # bytes
_NAMED: Final = (type, FunctionType, BuiltinFunctionType)


class Wire:
    """One end of a pipe."""

    def __init__(self, connection: "Connection[Any, Any]") -> None:
        """Take one end."""
        self._connection = connection

    def send(self, message: object) -> None:
        """Send a message. Raises OSError if the other end is gone."""
        packed, large = BytesIO(), list[memoryview]()

        def within(buffer: pickle.PickleBuffer) -> bool:
            data = buffer.raw()
            if data.nbytes >= _LARGE:
                large.append(data)
            return data.nbytes < _LARGE

        _Pickler(packed, protocol=5, buffer_callback=within).dump(message)
        self._connection.send_bytes(len(large).to_bytes(8, "big"))
        self._connection.send_bytes(packed.getbuffer())
        for data in large:
            self._connection.send_bytes(data)

    def receive(self) -> Any:
        """Wait for a message and return it. Raises EOFError or OSError if the other end is gone."""
        count = int.from_bytes(self._connection.recv_bytes(), "big")
        packed = BytesIO(self._connection.recv_bytes())
        large = [self._array() for _ in range(count)]
        return _Unpickler(packed, buffers=large).load()

    def _array(self) -> Array:
        return keep_copy(np.frombuffer(self._connection.recv_bytes(), np.uint8))

    def close(self) -> None:
        """Close this end."""
        self._connection.close()


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, (np.ndarray, np.generic)):
            return _array if isinstance(value, np.ndarray) else _scalar, _packed(np.asarray(value))
        if _is_known(value):
            return NotImplemented
        for plain, exact in _EXACT.items():  # such as an enum's member
            if isinstance(value, plain):
                return plain, (exact(value),)
        return str, (repr(value),)


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        known = name in _BUILTINS if module == "builtins" else _package(module) in _PACKAGES
        if not known:
            raise ReprodError(f"a side sent {module}.{name}: expected plain data")
        return super().find_class(module, name)


def _is_known(value: Any) -> bool:
    """Tell whether the other end has the value's class, or the value itself if it is a name's."""
    named = value if isinstance(value, _NAMED) else type(value)
    module, name = named.__module__ or "", named.__qualname__
    return name in _BUILTINS if module == "builtins" else _package(module) in _PACKAGES


def _package(module: str) -> str:
    return module.partition(".")[0]


def _packed(array: Array) -> tuple[str, tuple[int, ...], pickle.PickleBuffer]:
    if array.dtype.kind not in "biufcSU":
        raise ReprodError(f"an array of {array.dtype} cannot be sent to the other process")
    return array.dtype.str, array.shape, pickle.PickleBuffer(np.ascontiguousarray(array).data)


def _array(dtype: str, shape: tuple[int, ...], data: bytes) -> Array:
    array: Array = np.ndarray(shape, dtype, data)
    return array if array.flags.writeable else array.copy()


def _scalar(dtype: str, shape: tuple[int, ...], data: bytes) -> Any:
    return _array(dtype, shape, data)[()]
