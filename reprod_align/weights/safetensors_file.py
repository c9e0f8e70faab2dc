"""`.safetensors` files, read and written tensor by tensor; the package is not needed.

Tied tensors are written once: the format knows no second names.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO, Final

from reprod_align.base.files import parse_json, write_header
from reprod_align.errors import WeightsError
from reprod_align.records.pickled import Refused
from reprod_align.weights.remote import FileLocation, measure
from reprod_align.weights.stored import FileSpan, Load, Stored, TensorEntry, find_fault, read_chunks

CODES: Final[Mapping[str, str]] = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "I16": "int16", "I32": "int32", "I64": "int64",
    "U16": "uint16", "U32": "uint32", "U64": "uint64", "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2", "BF16": "bfloat16", "F16": "float16", "F32": "float32",
    "F64": "float64", "C64": "complex64",
}  # fmt: skip
"""the format's dtypes -> ours"""

_LONGEST: Final = 100_000_000  # bytes of a header, as the format has it
_CODE = {dtype: code for code, dtype in CODES.items()}


def is_safetensors(head: bytes) -> bool:
    """Tell whether a file that begins so is one: a length, then a JSON object."""
    return len(head) > 8 and head[8:9] == b"{" and 1 < int.from_bytes(head[:8], "little") < _LONGEST


def read_safetensors(path: FileLocation, head: bytes) -> tuple[dict[str, Stored], dict[str, str]]:
    """Return the tensors, unread, and the metadata; head: its first bytes. Raises Refused, ValueError."""
    length, size = measure(path), int.from_bytes(head[:8], "little")
    if not 1 < size <= min(_LONGEST, length - 8):
        raise Refused("is truncated: its header ends behind the file")
    header = parse_json(FileSpan(path, 8, size).read(0, size).tobytes())
    if not isinstance(header, dict):
        raise Refused("is damaged: its header is not a JSON object")
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(t, str) for t in metadata.values()):
        raise Refused("is damaged: its metadata are not texts")
    begin = 8 + size
    tensors = {name: _read_entry(name, made, path, begin, length) for name, made in header.items()}
    _require_covered(tensors, begin, length)
    return tensors, metadata


def _require_covered(tensors: Mapping[str, Stored], begin: int, length: int) -> None:
    """Refuse tensors that share bytes, and bytes that belong to no tensor: the format has neither."""
    for at, size, name in sorted(_list_spans(tensors)):
        if at != begin:
            fault = "shares bytes with another tensor" if at < begin else "does not follow the last"
            raise Refused(f"is damaged: {name} {fault}"[:200])
        begin += size
    if tensors and begin != length:
        raise Refused(f"is damaged: {length - begin} bytes at its end belong to no tensor")


def _list_spans(tensors: Mapping[str, Stored]) -> Iterator[tuple[int, int, str]]:
    for name, tensor in tensors.items():
        assert isinstance(tensor.source, FileSpan)
        yield tensor.source.offset, tensor.source.size, name


def _read_entry(name: str, made: Any, path: FileLocation, begin: int, length: int) -> Stored:
    match made:
        case {"dtype": str(code), "shape": list(shape), "data_offsets": [int(first), int(end)]}:
            pass
        case _:
            raise Refused(f"is damaged: the entry of {name} is not well formed"[:200])
    if code not in CODES:
        raise Refused(f"holds {name} as {code}, a dtype that is not known here"[:200])
    if not 0 <= first <= end <= length - begin:
        raise Refused(f"is truncated: {name} ends behind the file"[:200])
    tensor = Stored(CODES[code], tuple(shape), FileSpan(path, begin + first, end - first))
    if find_fault(tensor) or math.prod(shape) * tensor.bits.itemsize != end - first:
        size = f"{end - first} bytes, not the size of its shape {tuple(shape)}"
        raise Refused(f"is damaged: {name} has {size}"[:200])
    return tensor


def write_safetensors(
    handle: BinaryIO, entries: Sequence[TensorEntry], load: Load, metadata: dict[str, str]
) -> None:
    """Write the file. Raises WeightsError for complex128, which the format lacks."""
    stored = [entry for entry in entries if not entry.tied_to]
    for entry in stored:
        if entry.dtype not in _CODE:
            raise WeightsError(f"{entry.name} is {entry.dtype}, which .safetensors lacks")
    tensors = [(entry.name, _CODE[entry.dtype], entry.shape, entry.nbytes) for entry in stored]
    write_header(handle, tensors, metadata)
    for entry in stored:
        handle.writelines(read_chunks(load(entry.name)))
