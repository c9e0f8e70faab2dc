"""`.safetensors` files: named arrays and texts. Writing copies no array, reading executes nothing."""

import json
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO

from reprod_align.base.blocks import Array
from reprod_align.base.files import whole_file
from reprod_align.errors import ReprodError

import numpy as np

_NUMBERS = re.compile("([UIF])([0-9]+)")
_CODES = {"b": "BOOL", "u": "U", "i": "I", "f": "F"}


def write_tensors(
    path: str | os.PathLike[str], arrays: Mapping[str, Array], metadata: Mapping[str, str]
) -> None:
    """Write arrays of bool, integers or floats, any shape, whole or not at all.

    One array at a time is made contiguous; the package's own save_file would want all at once, and
    leave half a file where it is interrupted. Raises ReprodError if the file cannot be written.
    """
    tensors = []
    for name, array in arrays.items():
        bits = "" if array.dtype.kind == "b" else 8 * array.dtype.itemsize
        tensors.append((name, f"{_CODES[array.dtype.kind]}{bits}", array.shape, array.nbytes))
    with whole_file(path) as handle:
        write_header(handle, tensors, metadata)
        for array in arrays.values():
            dense = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
            handle.write(dense.reshape(-1).view(np.uint8).data)


def write_header(
    handle: BinaryIO,
    tensors: Sequence[tuple[str, str, tuple[int, ...], int]],
    metadata: Mapping[str, str],
) -> None:
    """Write the header of tensors: name, the format's code of the dtype, shape, bytes.

    It is padded so that the tensors, which follow it in this order, start at a multiple of 8 bytes.
    """
    header: dict[str, Any] = {"__metadata__": metadata}
    end = 0
    for name, code, shape, size in tensors:
        begin, end = end, end + size
        header[name] = {"dtype": code, "shape": list(shape), "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    handle.write(len(text).to_bytes(8, "little") + text)


def read_tensors(
    path: str | os.PathLike[str], leave_from: int | None = None
) -> tuple[dict[str, Array], dict[str, str]]:
    """Return the arrays and the metadata of a file. Raises ReprodError if it is damaged.

    Numbers of `leave_from` bytes and more stay in the file, mapped: they are read-only, and may be
    unaligned.
    """
    try:
        from safetensors import safe_open
    except ImportError as error:
        raise ReprodError("safetensors cannot be imported: pip install safetensors") from error
    try:
        with safe_open(path, framework="np") as handle:  # it checks the header
            left = {} if leave_from is None else _map_large(path, leave_from)
            small = [name for name in handle.keys() if name not in left]
            return left | {name: handle.get_tensor(name) for name in small}, handle.metadata() or {}
    except Exception as error:  # its own, and numpy's for dtypes that numpy lacks
        raise ReprodError(f"{path} is damaged or not a .safetensors file ({error})") from error


def _map_large(path: str | os.PathLike[str], leave_from: int) -> dict[str, Array]:
    """Return the arrays of numbers from `leave_from` bytes on, as they lie in the file."""
    if os.stat(path).st_size < leave_from:
        return {}
    from reprod_align.base.blocks import map_file

    file = map_file(path)
    begin = 8 + int.from_bytes(file[:8], "little")
    found: dict[str, Array] = {}
    for name, entry in json.loads(file[8:begin]).items():
        if name != "__metadata__" and (code := _NUMBERS.fullmatch(entry["dtype"])):
            kind = np.dtype(f"<{code[1].lower()}{int(code[2]) // 8}")
            first, end = (begin + offset for offset in entry["data_offsets"])
            if end - first >= leave_from:
                found[name] = np.ndarray(entry["shape"], kind, memoryview(file)[first:end])
    return found
