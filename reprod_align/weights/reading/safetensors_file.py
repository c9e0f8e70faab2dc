"""`.safetensors` files, read tensor by tensor; the package is not needed."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from reprod_align.records.cost import Refused
from reprod_align.weights.stored import Span, Stored, find_fault

CODES: Final[Mapping[str, str]] = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "I16": "int16", "I32": "int32", "I64": "int64",
    "U16": "uint16", "U32": "uint32", "U64": "uint64", "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2", "BF16": "bfloat16", "F16": "float16", "F32": "float32",
    "F64": "float64", "C64": "complex64",
}  # fmt: skip
"""the format's dtypes -> ours"""

_LONGEST: Final = 100_000_000  # bytes of a header, as the format has it


def is_safetensors(head: bytes) -> bool:
    """Tell whether a file that begins so is one: a length, then a JSON object."""
    return len(head) > 8 and head[8:9] == b"{" and 1 < int.from_bytes(head[:8], "little") < _LONGEST


def read_safetensors(path: Path) -> tuple[dict[str, Stored], dict[str, str]]:
    """Return the tensors, unread, and the metadata. Raises Refused, ValueError."""
    length = path.stat().st_size
    with path.open("rb") as handle:
        size = int.from_bytes(handle.read(8), "little")
        if not 1 < size <= min(_LONGEST, length - 8):
            raise Refused("is truncated: its header ends behind the file")
        header = json.loads(handle.read(size), object_pairs_hook=_require_distinct)
    if not isinstance(header, dict):
        raise Refused("is damaged: its header is not a JSON object")
    metadata = header.pop("__metadata__", {})
    begin = 8 + size
    tensors = {name: _entry(name, made, path, begin, length) for name, made in header.items()}
    return tensors, metadata if isinstance(metadata, dict) else {}


def _require_distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object. Raises Refused if it has a name twice: the second would replace the first."""
    made = dict(pairs)
    if len(made) < len(pairs):
        raise Refused("is damaged: its header has a name twice")
    return made


def _entry(name: str, made: Any, path: Path, begin: int, length: int) -> Stored:
    match made:
        case {"dtype": str(code), "shape": list(shape), "data_offsets": [int(first), int(end)]}:
            pass
        case _:
            raise Refused(f"is damaged: the entry of {name} is not well formed"[:200])
    if code not in CODES:
        raise Refused(f"holds {name} as {code}, a dtype that is not known here"[:200])
    if not 0 <= first <= end <= length - begin:
        raise Refused(f"is truncated: {name} ends behind the file"[:200])
    tensor = Stored(CODES[code], tuple(shape), Span(path, begin + first, end - first))
    if find_fault(tensor) or math.prod(shape) * tensor.bits.itemsize != end - first:
        raise Refused(f"is damaged: {name} has not the size of its shape {tuple(shape)}"[:200])
    return tensor
