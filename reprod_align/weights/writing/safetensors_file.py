"""Writes `.safetensors`, tensor by tensor. Tied tensors stand once: the format knows no second names."""

import json
from collections.abc import Iterable, Sequence
from typing import Any, BinaryIO

from reprod_align.errors import WeightsError
from reprod_align.weights.reading.safetensors_file import CODES
from reprod_align.weights.writing.entry import Entry, Load, dense_chunks

_CODE = {dtype: code for code, dtype in CODES.items()}


def write_safetensors(
    handle: BinaryIO, entries: Sequence[Entry], load: Load, metadata: dict[str, str]
) -> None:
    """Write the file. Raises WeightsError for complex128, which the format lacks."""
    stored = [entry for entry in entries if not entry.tied_to]
    header = _header(stored, metadata)
    handle.write(len(header).to_bytes(8, "little") + header)
    for entry in stored:
        handle.writelines(dense_chunks(load(entry.name)))


def _header(entries: Iterable[Entry], metadata: dict[str, str]) -> bytes:
    """Return the format's JSON header, padded so that the tensors start at a multiple of 8 bytes."""
    header: dict[str, Any] = {"__metadata__": metadata}
    end = 0
    for entry in entries:
        if entry.dtype not in _CODE:
            raise WeightsError(f"{entry.name} is {entry.dtype}, which .safetensors lacks")
        begin, end = end, end + entry.nbytes
        header[entry.name] = {
            "dtype": _CODE[entry.dtype],
            "shape": list(entry.shape),
            "data_offsets": [begin, end],
        }
    text = json.dumps(header).encode()
    return text + b" " * (-len(text) % 8)
