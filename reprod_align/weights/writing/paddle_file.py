"""Writes what `paddle.load` reads: a pickle of numpy arrays, tensor by tensor.

Protocol 4, as `paddle.save` writes it: its BINBYTES8 takes tensors of 4 GiB and more whole.
"""

from collections.abc import Sequence
from typing import BinaryIO, Final

from reprod_align.errors import WeightsError
from reprod_align.weights.stored import DTYPES
from reprod_align.weights.writing.entry import Entry, Load, dense_chunks
from reprod_align.weights.writing.opcodes import (
    BUILD,
    EMPTY_DICT,
    FALSE,
    MARK,
    REDUCE,
    SET_ITEMS,
    STOP,
    TRUE,
    TUPLE,
    begin,
    data_head,
    keep,
    name,
    number,
    numbers,
    recall,
    text,
)

import numpy as np

_ABSENT: Final = ("uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2")
_ARRAY: Final = name("numpy.core.multiarray", "_reconstruct") + MARK + name("numpy", "ndarray")
_EMPTY: Final = _ARRAY + numbers((0,)) + data_head(1) + b"b" + TUPLE + REDUCE  # numpy fills it next
_NONE: Final = b"N"


def write_paddle_file(handle: BinaryIO, entries: Sequence[Entry], load: Load) -> None:
    """Write the file. Raises WeightsError for a dtype that Paddle lacks."""
    for entry in entries:
        if entry.dtype in _ABSENT:
            raise WeightsError(f"{entry.name} is {entry.dtype}, which a .pdparams file cannot hold")
    places = {entry.name: number for number, entry in enumerate(entries)}
    handle.write(begin(4) + EMPTY_DICT + MARK)
    for entry in entries:
        handle.write(text(entry.name))
        if entry.tied_to:
            handle.write(recall(places[entry.tied_to]))
        else:
            _write_array(handle, entry, load)
            handle.write(keep(places[entry.name]))
    handle.write(SET_ITEMS + STOP)


def _write_array(handle: BinaryIO, entry: Entry, load: Load) -> None:
    """Write an array as numpy pickles it: made empty, then given version, shape, dtype, order, data."""
    state = MARK + number(1) + numbers(entry.shape) + _dtype(entry.dtype) + FALSE
    handle.write(_EMPTY + state + data_head(entry.nbytes))
    handle.writelines(dense_chunks(load(entry.name)))
    handle.write(TUPLE + BUILD)


def _dtype(dtype: str) -> bytes:
    """Return the instructions that push numpy's dtype."""
    bits = np.dtype(DTYPES[dtype])
    order = "|" if bits.itemsize == 1 else "<"
    made = name("numpy", "dtype") + MARK + text(bits.str[1:]) + FALSE + TRUE + TUPLE + REDUCE
    state = number(3) + text(order) + 3 * _NONE + number(-1) + number(-1) + number(0)
    return made + MARK + state + TUPLE + BUILD
