"""Files of `paddle.save`: pickles of numpy arrays. Paddle is not needed; arrays stay in the file."""

from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

from reprod_align.records.cost import Refused
from reprod_align.records.pickled import Builder, Dtype
from reprod_align.records.safe_pickle import Machine
from reprod_align.weights.stored import DTYPES, Held, Span, Stored, find_fault, map_file

import numpy as np

NAMES = "StructuredToParameterName@@"  # from the model's names to Paddle's internal ones
CUT = "UnpackBigParamInfor@@"  # protocols 2 and 3 cut what has more than 1 GiB
_ABSENT = (
    "uint16",
    "float8_e4m3fn",
    "float8_e5m2",
)  # from Paddle's arrays: uint16 is bfloat16 there
_TYPES = {np.dtype(code): name for name, code in DTYPES.items() if name not in _ABSENT}


class _LazyBuilder(Builder):
    """Makes a Stored of every numeric array whose bytes lie in the file as they are."""

    def __init__(self, path: Path, data: memoryview) -> None:
        super().__init__(len(data))
        self.path, self.base = path, _address(data)
        self.length = len(data)

    def array(self, dtype: Any, shape: Any, data: Any, order: str = "C") -> Any:
        """Return the array, unread."""
        if not isinstance(dtype, Dtype) or dtype.to_numpy() not in _TYPES:
            return super().array(dtype, shape, data, order)
        if not isinstance(data, memoryview) or not isinstance(shape, tuple):
            raise Refused("is damaged: an array in it has no data")
        source = self.locate(data)
        strides = _columns_first(shape) if order == "F" and len(shape) > 1 else ()
        tensor = Stored(_TYPES[dtype.to_numpy()], shape, source, strides=strides)
        fault = find_fault(tensor)
        if fault or tensor.nbytes != len(data):
            raise Refused(f"is damaged: an array in it of shape {shape} has not the data for it")
        return tensor

    def locate(self, data: memoryview) -> Span | Held:
        """Return where the bytes lie; those that a text stood for are kept."""
        offset = _address(data) - self.base if len(data) else 0
        if 0 <= offset <= self.length - len(data):
            return Span(self.path, offset, len(data))
        self.spend(len(data))
        return Held(bytes(data))


def read_paddle_file(path: Path) -> object:
    """Return what a file of `paddle.save` holds, its tensors unread. Raises Refused."""
    view = map_file(path)
    return _simplify(Machine(view, _LazyBuilder(path, view)).run())


def _simplify(value: object) -> object:
    """Return the value without Paddle's own entries, tensors in place of (name, tensor)."""
    match value:
        case (str(), Stored() as tensor):
            return tensor
        case dict():
            joined = _join(value)
            return {name: _simplify(held) for name, held in joined.items() if name != NAMES}
    return value


def _join(state: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return a state dict with the tensors whole that were cut into slices."""
    cut = state.get(CUT)
    if not isinstance(cut, Mapping):
        return dict(state)
    whole = {name: _glue(name, made, state) for name, made in cut.items()}
    slices = {part for made in cut.values() for part in made["slices"]}
    return {n: v for n, v in state.items() if n not in slices and n != CUT} | whole


def _glue(name: str, made: Mapping[str, Any], state: Mapping[str, Any]) -> Stored:
    parts, shape = [state[part] for part in made["slices"]], tuple(made["OriginShape"])
    if not all(isinstance(part, Stored) for part in parts) or not parts:
        raise Refused(f"is damaged: {name} is cut into slices that are not there")
    if prod(shape) != sum(part.size for part in parts):
        raise Refused(f"is damaged: the slices of {name} have not the size of the whole")
    data = b"".join(part.read().tobytes() for part in parts)
    return Stored(parts[0].dtype, shape, Held(data))


def _columns_first(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(prod(shape[:axis]) for axis in range(len(shape)))


def _address(data: memoryview) -> int:
    return int(np.frombuffer(data, np.uint8).ctypes.data) if len(data) else 0
