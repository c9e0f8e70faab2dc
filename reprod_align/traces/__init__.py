"""What the modules of one run computed, on disk: a `.safetensors` file whose metadata name each tensor.

Reading executes nothing and trusts nothing: every entry is checked against the data it names.
Knows numpy only; needs the package safetensors. `recorder` writes such files, `diff` compares two.
"""

import json
import math
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from reprod_align.base.blocks import Array, read_blocks
from reprod_align.base.files import write_tensors
from reprod_align.errors import ReprodError, explain_absence
from reprod_align.traces.sketch import LENGTH, LONG_LENGTH, PARTS, STATISTICS, group_rows

import numpy as np

VERSION = 3  # 1 and 2 have no checksum, and other sums in their sketches
PHASES = ("input", "output", "gradient", "parameter gradient", "buffer")
_KEY, _SUM = "reprod_align.trace", "reprod_align.trace.sha256"
# the format knows only one complex dtype
_PAIRS = {"complex64": "float32", "complex128": "float64"}
_STORED = {"bfloat16": "float32", **_PAIRS}
_COARSE = {
    "bfloat16": ("float32", 16), "float16": ("float16", 0), "float32": ("float32", 0),
    "complex64": ("float32", 0),
}  # fmt: skip
"""dtypes coarser than float64 -> numpy's dtype, and how many of its last bits they lack"""
_DTYPES = {
    "bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", *_STORED,
}  # fmt: skip
_EXTREMES = [STATISTICS.index("min"), STATISTICS.index("max")]  # elements of the tensor itself
_MOST_ELEMENTS = 1 << 62
_REPEATED = 256  # times that numbers of a file may be named: nested modules return the same ones
_MOST_RANKS = 2**16
_FREE = 2**24  # bytes that the entries of any file may name
_LARGE = 2**20  # bytes: what is smaller is not worth a mapped file


@dataclass(frozen=True)
class TraceTensor:
    """One tensor of a trace, whole or as a sketch."""

    module: str
    """dotted name of the module; of a parameter or buffer, its owner"""
    call: int
    """0 for the module's first call, 1 for its second, ...; 0 for a parameter or buffer"""
    order: int
    """place in the trace: inputs where calls begin, outputs where they end, then the backward pass"""
    leaf: str
    """where it stands in the arguments or outputs ("[0]"); a parameter's or buffer's own name"""
    phase: str
    """one of PHASES"""
    dtype: str
    """of the tensor itself; bfloat16 is stored as float32"""
    shape: tuple[int, ...]
    """of the tensor itself, in its framework's layout"""
    whole: bool
    """`values` is the tensor; else its sketch, float64 of shape (n,): see `traces.sketch.sketch`"""
    transposed: bool
    """lies transposed to PyTorch's layout: whole values too; sketches are of PyTorch's"""
    passed_on: bool
    """this output is one of the call's inputs itself: its gradient is that tensor's"""
    values: Array
    rows: Array | None = None
    """of a sketch: the signed sums of each row or group of rows, float32 (n, 4); None: not kept"""

    @property
    def name(self) -> str:
        """The full dotted name of a parameter or buffer."""
        return f"{self.module}.{self.leaf}" if self.module else self.leaf


_DESCRIBED = tuple(
    field.name for field in fields(TraceTensor) if field.name not in ("values", "rows")
)
_KINDS = {"call": int, "order": int, "whole": bool, "transposed": bool, "passed_on": bool}


@dataclass(frozen=True)
class Rank:
    """Which rank of a parallel run recorded a trace: rank = replica * tp + part."""

    number: int
    dp: int
    """replicas of the data, those of sharding included"""
    tp: int
    """ranks that share one replica's tensors"""
    others: str = ""
    """degrees of other kinds, in words: "pp=2" """


@dataclass(frozen=True)
class RecordedTrace:
    """What one model did, as recorded."""

    framework: str
    mode: str
    """"whole" or "sketch"; in a sketch, small tensors are whole all the same"""
    tensors: tuple[TraceTensor, ...]
    """by `order`"""
    rank: Rank | None = None
    """None: one process ran the whole model"""


def save_trace(path: str | os.PathLike[str], trace: RecordedTrace) -> None:
    """Write `trace`, whole or not at all. Raises ReprodError if it is empty or cannot be written."""
    if not trace.tensors:
        raise ReprodError(f"the trace for {path} is empty: nothing was recorded")
    kept = (array for one in trace.tensors for array in (one.values, one.rows) if array is not None)
    arrays = {id(array): array for array in kept}  # some tensors share one
    numbers = {key: number for number, key in enumerate(arrays)}
    entries = [
        {name: getattr(one, name) for name in _DESCRIBED}
        | {"data": numbers[id(one.values)]}
        | ({} if one.rows is None else {"rows": numbers[id(one.rows)]})
        for one in trace.tensors
    ]
    content = {
        "version": VERSION,
        "framework": trace.framework,
        "mode": trace.mode,
        "tensors": entries,
    }
    if trace.rank is not None:
        content["rank"] = asdict(trace.rank)
    stored = {str(number): _to_stored(array) for number, array in enumerate(arrays.values())}
    text = json.dumps(content)
    write_tensors(path, stored, {_KEY: text, _SUM: _digest(text, stored)})


def _digest(text: str, arrays: Mapping[str, Array]) -> str:
    """Return the SHA-256 of all that a verdict reads: what each tensor is, and its numbers."""
    digest = sha256(text.encode())
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        for _, part in read_blocks(array):
            digest.update(np.ascontiguousarray(part).view(np.uint8).data)
    return digest.hexdigest()


def load_trace(path: str | os.PathLike[str]) -> RecordedTrace:
    """Read a trace; large tensors stay in the file, read-only.

    Raises MissingInputError if it is missing, ReprodError if it is damaged, foreign or of an older version.
    """
    if not Path(path).is_file():
        raise explain_absence(Path(path))
    from reprod_align.weights import read_tensors  # recording needs none of it

    arrays, metadata = read_tensors(Path(path), leave_from=_LARGE)
    try:
        return _read_trace(_check_content(metadata, arrays), arrays)
    except _Unfit as error:
        raise ReprodError(f"{path} is not a trace that can be read: {error}") from error


class _Unfit(Exception):
    """What is wrong with the content of a file."""


def _check_content(metadata: Mapping[str, str], arrays: Mapping[str, Array]) -> dict[str, Any]:
    if _KEY not in metadata:
        raise _Unfit(f'its metadata has no "{_KEY}"; record_trace writes it')
    try:
        content = json.loads(metadata[_KEY])
    except (ValueError, RecursionError) as error:
        raise _Unfit("its metadata is not JSON") from error
    if not isinstance(content, dict):
        raise _Unfit("its metadata is not a JSON object")
    version = content.get("version")
    if type(version) is not int or version != VERSION:
        older = ": record it again" if str(version) in ("1", "2") else ""
        raise _Unfit(f"format version {VERSION} expected, got {str(version)[:20]}{older}")
    if metadata.get(_SUM) != _digest(metadata[_KEY], arrays):
        raise _Unfit("its content is not what was written (the checksum differs): record it again")
    return content


def _read_trace(content: Mapping[str, Any], arrays: Mapping[str, Array]) -> RecordedTrace:
    framework, mode = content.get("framework"), content.get("mode")
    entries = content.get("tensors")
    if not isinstance(framework, str) or mode not in ("whole", "sketch"):
        raise _Unfit("its framework or mode is not given")
    if not isinstance(entries, list) or not entries:
        raise _Unfit("it lists no tensors")
    _require_explained(entries, arrays)
    tensors = [_read_tensor(number, entry, arrays) for number, entry in enumerate(entries)]
    places = Counter((one.phase, one.module, one.call, one.leaf) for one in tensors)
    if len(places) < len(tensors):
        phase, module, *_ = places.most_common(1)[0][0]
        raise _Unfit(f"it lists the same {phase} of {module or 'the model'} more than once")
    ordered = tuple(sorted(tensors, key=lambda one: one.order))
    return RecordedTrace(framework, mode, ordered, _read_rank(content.get("rank")))


def _read_rank(found: object) -> Rank | None:
    if found is None:
        return None
    kinds = {"number": int, "dp": int, "tp": int, "others": str}
    if not isinstance(found, dict) or {n: type(v) for n, v in found.items()} != kinds:
        raise _Unfit("its rank does not have the fields of a rank")
    rank = Rank(**found)
    if not (0 < rank.dp <= _MOST_RANKS and 0 < rank.tp <= _MOST_RANKS):
        raise _Unfit(f"its rank has a dp or tp outside of 1 to {_MOST_RANKS}")
    if not 0 <= rank.number < rank.dp * rank.tp:
        raise _Unfit(f"its rank is number {rank.number} of {rank.dp * rank.tp}")
    return rank


def _require_explained(entries: list[Any], arrays: Mapping[str, Array]) -> None:
    """Refuse entries that name the same numbers again and again: each is looked at anew."""
    named = Counter(str(entry.get("data")) for entry in entries if isinstance(entry, dict))
    asked = sum(times * arrays[name].nbytes for name, times in named.items() if name in arrays)
    if asked > _REPEATED * sum(array.nbytes for array in arrays.values()) + _FREE:
        raise _Unfit("its entries name the same numbers more often than nested modules return them")


def _read_tensor(number: int, entry: object, arrays: Mapping[str, Array]) -> TraceTensor:
    if not isinstance(entry, dict) or entry.keys() - {"rows"} != {*_DESCRIBED, "data"}:
        raise _Unfit(f"entry {number} does not have the fields of a tensor")
    for name in _DESCRIBED:
        if name != "shape" and type(entry[name]) is not _KINDS.get(name, str):
            raise _Unfit(f"entry {number}: {name} is a {type(entry[name]).__name__}")
    described = {**entry, "shape": _read_shape(number, entry["shape"])}
    key, rows = str(described.pop("data")), described.pop("rows", None)
    if entry["phase"] not in PHASES or entry["dtype"] not in _DTYPES:
        raise _Unfit(f"entry {number}: its phase or dtype is unknown")
    if key not in arrays:
        raise _Unfit(f"entry {number}: its data are missing")
    tensor = TraceTensor(**described, values=arrays[key])
    found = None if rows is None else _find_rows(number, tensor, arrays.get(str(rows)))
    return replace(tensor, values=_restore(number, tensor), rows=found)


def _find_rows(number: int, tensor: TraceTensor, rows: Array | None) -> Array:
    groups = group_rows(tensor.shape[::-1] if tensor.transposed else tensor.shape)
    fits = rows is not None and rows.shape == (groups, PARTS) and rows.dtype == np.float32
    if tensor.whole or rows is None or not fits:
        raise _Unfit(f"entry {number}: its rows are not those of its shape")
    return rows


def _read_shape(number: int, shape: object) -> tuple[int, ...]:
    sound = isinstance(shape, list) and all(type(length) is int and length >= 0 for length in shape)
    if not isinstance(shape, list) or not sound or len(shape) > 64:
        raise _Unfit(f"entry {number}: its shape must be a list of lengths")
    if math.prod(shape) > _MOST_ELEMENTS:
        raise _Unfit(f"entry {number}: its shape has too many elements")
    return tuple(shape)


def _restore(number: int, tensor: TraceTensor) -> Array:
    """Return the stored array as it was before `_to_stored`, checked against what the entry says."""
    shape, dtype = tensor.shape, _STORED.get(tensor.dtype, tensor.dtype)
    if tensor.dtype in _PAIRS:
        shape = (*shape, 2)
    if not tensor.whole:
        length = LONG_LENGTH if tensor.values.size == LONG_LENGTH else LENGTH
        shape, dtype = (length,), "float64"
    if tensor.values.shape != shape or tensor.values.dtype != np.dtype(dtype):
        raise _Unfit(
            f"entry {number}: {dtype} of shape {shape} expected, "
            f"got {tensor.values.dtype} of shape {tensor.values.shape}"
        )
    if not _holds(tensor.dtype, tensor.values if tensor.whole else tensor.values[_EXTREMES]):
        raise _Unfit(
            f"entry {number}: its values are finer than {tensor.dtype}, the dtype that it names"
        )
    paired = tensor.whole and tensor.dtype in _PAIRS
    return tensor.values.view(tensor.dtype)[..., 0] if paired else tensor.values


def _holds(dtype: str, values: Array) -> bool:
    """Tell whether the dtype holds the values exactly: naming a coarser one would widen the tolerance."""
    if dtype not in _COARSE or not values.size:
        return True
    kind, spare = _COARSE[dtype]
    for _, part in read_blocks(values):
        with np.errstate(over="ignore", invalid="ignore"):
            narrow = part.astype(kind)
        bits = narrow.view(f"u{narrow.itemsize}") & ((1 << spare) - 1)
        if bits[np.isfinite(part)].any() or not ((narrow == part) | np.isnan(part)).all():
            return False
    return True


def _to_stored(array: Array) -> Array:
    """Return the array as the format holds it: complex as pairs."""
    real = _PAIRS.get(array.dtype.name)
    if real is None:
        return array
    return np.ascontiguousarray(array[..., None], array.dtype.name).view(real)
