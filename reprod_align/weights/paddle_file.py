"""Files of `paddle.save`, read and written tensor by tensor: pickles of numpy arrays. Paddle is not needed.

Written with protocol 4, as `paddle.save` does: its BINBYTES8 takes tensors of 4 GiB and more whole.
"""

from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from pickle import BUILD, EMPTY_DICT, MARK, REDUCE, SETITEMS, STOP, TUPLE
from typing import Any, BinaryIO, Final

from reprod_align.base.blocks import map_file
from reprod_align.errors import WeightsError
from reprod_align.records.pickled import Builder, Dtype, Refused
from reprod_align.records.safe_pickle import Machine
from reprod_align.weights.opcodes import (
    begin,
    memoize,
    push,
    push_bytes,
    push_name,
    push_tuple,
    recall,
)
from reprod_align.weights.stored import (
    DTYPES,
    TENSOR,
    FileSpan,
    Joined,
    Load,
    MemoryBytes,
    Stored,
    TensorEntry,
    find_fault,
    read_chunks,
)

import numpy as np

NAMES = "StructuredToParameterName@@"  # from the model's names to Paddle's internal ones
CUT = "UnpackBigParamInfor@@"  # protocols 2 and 3 cut what has more than 1 GiB
# from Paddle's arrays: uint16 is bfloat16 there
_ABSENT = ("uint16", "float8_e4m3fn", "float8_e5m2")
_TYPES = {np.dtype(code): name for name, code in DTYPES.items() if name not in _ABSENT}
_UNKNOWN: Final = ("uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2")
_EMPTY: Final = (  # numpy fills it next
    push_name("numpy.core.multiarray", "_reconstruct")
    + push_tuple(push_name("numpy", "ndarray"), push((0,)), push_bytes(1) + b"b")
    + REDUCE
)


class _LazyBuilder(Builder):
    """Makes a Stored of every numeric array whose bytes lie in the file as they are."""

    def __init__(self, path: Path, data: memoryview) -> None:
        super().__init__(len(data))
        self.path, self.base = path, _find_address(data)
        self.length = len(data)

    def array(self, dtype: Any, shape: Any, data: Any, order: str = "C") -> Any:
        """Return the array, unread."""
        if not isinstance(dtype, Dtype) or dtype.to_numpy() not in _TYPES:
            return super().array(dtype, shape, data, order)
        if not isinstance(data, memoryview) or not isinstance(shape, tuple):
            raise Refused("is damaged: an array in it has no data")
        self.pay(TENSOR)
        source = self.locate(data)
        strides: tuple[int, ...] = ()
        if order == "F" and len(shape) > 1:  # columns first
            strides = tuple(prod(shape[:axis]) for axis in range(len(shape)))
        tensor = Stored(_TYPES[dtype.to_numpy()], shape, source, strides=strides)
        fault = find_fault(tensor)
        if fault or tensor.nbytes != len(data):
            raise Refused(
                f"is damaged: an array in it of shape {shape} has too little or too much data"
            )
        return tensor

    def locate(self, data: memoryview) -> FileSpan | MemoryBytes:
        """Return where in the file the bytes lie; bytes that were decoded from a text are kept in memory."""
        offset = _find_address(data) - self.base if len(data) else 0
        if 0 <= offset <= self.length - len(data):
            return FileSpan(self.path, offset, len(data))
        self.spend(len(data))
        return MemoryBytes(bytes(data))


def read_paddle_file(path: Path) -> object:
    """Return what a file of `paddle.save` holds, its tensors unread. Raises Refused."""
    view = memoryview(map_file(path))
    return _simplify(Machine(view, _LazyBuilder(path, view)).run())


def _simplify(value: object, done: dict[int, Any] | None = None) -> object:
    """Return the value without Paddle's own entries, tensors in place of (name, tensor).

    done: what became of the dicts by their ids: one that stands in many places stays one.
    """
    done = {} if done is None else done
    match value:
        case (str(), Stored() as tensor):
            return tensor
        case dict() if id(value) not in done:
            joined = _join(value)
            inner = {name: _simplify(one, done) for name, one in joined.items() if name != NAMES}
            done[id(value)] = inner
    return done.get(id(value), value)


def _join(state: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """Return a state dict with the tensors whole that were cut into slices, each used once."""
    if CUT not in state:
        return state
    if not isinstance(state[CUT], Mapping):
        raise Refused(f"is damaged: its {CUT} is a {type(state[CUT]).__name__}, not a dict")
    left = {name: held for name, held in state.items() if name != CUT}
    whole = {
        name: _glue(f"is damaged: {name}"[:200], made, left) for name, made in state[CUT].items()
    }
    for name in whole:
        if name in left:
            raise Refused(f"is damaged: {name}"[:200] + " is there both whole and in slices")
    return left | whole


def _glue(what: str, made: object, left: dict[Any, Any]) -> Stored:
    """Return a tensor that lies in slices, unread; they are taken out of `left`.

    what: the beginning of a sentence. Raises Refused if the slices do not fill its shape.
    """
    match made:
        case {"OriginShape": tuple() | list() as shape, "slices": list() as slices} if slices:
            parts = [_take_slice(what, name, left) for name in slices]
        case _:
            raise Refused(f"{what} is cut into slices, but its shape or its slices are not listed")
    for part in parts:
        if part.dtype != parts[0].dtype:
            raise Refused(f"{what} is cut into slices of {parts[0].dtype} and of {part.dtype}")
    # none is made of slices itself
    source = Joined(tuple(p.source for p in parts if not isinstance(p.source, Joined)))
    tensor = Stored(parts[0].dtype, tuple(shape), source)
    fault = find_fault(tensor)
    if not fault and tensor.nbytes != source.size:
        fault = (
            f"its shape {tensor.shape} is not that of {sum(part.size for part in parts)} elements"
        )
    if fault:
        raise Refused(f"{what} is cut into slices that do not fit: {fault}"[:400])
    return tensor


def _take_slice(what: str, name: object, left: dict[Any, Any]) -> Stored:
    """Return a slice, which no other tensor can then take: a file could name one again and again."""
    part = left.pop(name, None) if isinstance(name, str) else None
    if not isinstance(part, Stored) or len(part.shape) != 1:
        raise Refused(
            f"{what} needs the slice {name}"[:400] + ", which is missing, used twice or not flat"
        )
    return part


def _find_address(data: memoryview) -> int:
    return int(np.frombuffer(data, np.uint8).ctypes.data) if len(data) else 0


def write_paddle_file(handle: BinaryIO, entries: Sequence[TensorEntry], load: Load) -> None:
    """Write the file. Raises WeightsError for a dtype that Paddle lacks."""
    for entry in entries:
        if entry.dtype in _UNKNOWN:
            raise WeightsError(f"{entry.name} is {entry.dtype}, which a .pdparams file cannot hold")
    places = {entry.name: number for number, entry in enumerate(entries)}
    handle.write(begin(4) + EMPTY_DICT + MARK)
    for entry in entries:
        handle.write(push(entry.name))
        if entry.tied_to:
            handle.write(recall(places[entry.tied_to]))
        else:
            _write_array(handle, entry, load)
            handle.write(memoize(places[entry.name]))
    handle.write(SETITEMS + STOP)


def _write_array(handle: BinaryIO, entry: TensorEntry, load: Load) -> None:
    """Write an array as numpy pickles it: made empty, then given version, shape, dtype, order, data."""
    state = MARK + push(1) + push(entry.shape) + _push_dtype(entry.dtype) + push(False)
    handle.write(_EMPTY + state + push_bytes(entry.nbytes))
    handle.writelines(read_chunks(load(entry.name)))
    handle.write(TUPLE + BUILD)


def _push_dtype(dtype: str) -> bytes:
    """Return the instructions that push numpy's dtype."""
    bits = np.dtype(DTYPES[dtype])
    order = "|" if bits.itemsize == 1 else "<"
    made = push_name("numpy", "dtype") + push((bits.str[1:], False, True)) + REDUCE
    return made + push((3, order, None, None, None, -1, -1, 0)) + BUILD
