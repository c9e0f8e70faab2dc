"""Files and folders that are there whole or not at all, results as strict JSON, and `.safetensors` files.

Writing a `.safetensors` file, which holds named arrays and texts, copies no array; `weights` reads them.
"""

import json
import math
import os
import secrets
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import UnionType
from typing import Any, BinaryIO, Union, cast, get_args, get_origin, get_type_hints

from reprod_align.base.blocks import Array
from reprod_align.errors import ReprodError, explain_absence

import numpy as np


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Yield a binary handle; `path` gets its content only when the block ends well.

    Parent folders are created. On any exception, KeyboardInterrupt included, `path` keeps its
    old content and no temporary file stays. A symbolic link stays one: its target is replaced.
    Raises ReprodError if the file cannot be written, or is not a regular file (/dev/null, a folder).
    """
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        _require_replaceable(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        with open(temporary, "xb") as handle:  # not mkstemp: its files are closed to the group
            yield handle
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(temporary, target)
    except OSError as error:
        raise ReprodError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        with suppress(OSError):  # it is gone after success
            temporary.unlink()


def require_writable(folder: str | os.PathLike[str]) -> None:
    """Raise ReprodError if `folder` cannot hold a new file, or cannot be made.

    Asked by making one: a disk that is mounted read-only refuses root too.
    """
    place = Path(os.path.realpath(folder))
    while not place.exists() and place != place.parent:
        place = place.parent
    probe = place / f".{secrets.token_hex(8)}.tmp"
    try:
        probe.touch(exist_ok=False)
        probe.unlink()
    except OSError as error:
        raise ReprodError(f"cannot write in {folder}: {error.strerror or error}") from error


def require_new(folder: Path) -> None:
    """Raise ReprodError if the folder holds files already, or a file has its name."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise ReprodError(f"{folder} is not a folder: name one that does not exist yet")
    if folder.is_dir() and any(folder.iterdir()):
        raise ReprodError(f"{folder} holds files already: name a folder that does not exist yet")
    parent = folder.absolute().parent
    if not parent.is_dir():
        raise ReprodError(f"{parent} is missing: the folder of {folder.name} must exist")
    if not os.access(parent, os.W_OK):
        raise ReprodError(f"cannot write to {parent}")


@contextmanager
def whole_folder(target: Path) -> Iterator[Path]:
    """Yield an empty folder; it becomes `target` when the block ends well, and goes otherwise.

    Raises ReprodError if it cannot be written.
    """
    require_new(target)
    target = target.absolute()
    made = target.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        made.mkdir()
        yield made
        os.rename(made, target)
    except OSError as error:
        raise ReprodError(f"cannot write {target}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(made, ignore_errors=True)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write `text` in UTF-8, whole or not at all; raises ReprodError if that fails."""
    with whole_file(path) as handle:
        handle.write(text.encode("utf-8", "backslashreplace"))


def _require_replaceable(target: Path) -> None:
    """Raise OSError if `target` is a folder or a device: os.replace would put a file in its place.

    As root it really would: a log sent to /dev/null must not turn that into a file.
    """
    if target.exists() and not target.is_file():
        raise OSError("it is not a regular file")


def to_plain(value: Any) -> Any:
    """Return `value` as dicts with text keys, lists, texts, numbers, booleans and None.

    A dataclass becomes a dict of its fields, an array nested lists; NaN, infinities, complex
    numbers, bytes and paths become text. Raises TypeError for other objects.
    """
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()
    if value is None or isinstance(value, (str, int)):
        return value
    if isinstance(value, (float, np.floating)):  # a long double stays numpy's
        return float(value) if math.isfinite(value) else str(value)
    if isinstance(value, (complex, bytes, os.PathLike)):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): to_plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain(part) for part in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: to_plain(getattr(value, each.name)) for each in fields(value)}
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def as_json(value: Any, indent: int = 2, ensure_ascii: bool = True) -> str:
    """Return `value`, made plain, as JSON text."""
    plain = to_plain(value)
    return json.dumps(plain, indent=indent, ensure_ascii=ensure_ascii, allow_nan=False)


def write_json(path: str | os.PathLike[str], value: Any) -> None:
    """Write `value` as JSON to `path`, whole or not at all; ReprodError if that fails."""
    write_text(path, f"{as_json(value, indent=1)}\n")


def read_json(path: Path, fault: type[ReprodError] = ReprodError) -> Any:
    """Return what a JSON file holds. Raises MissingInputError, or `fault` if it cannot be read."""
    if not path.is_file():
        raise explain_absence(path)
    try:
        return parse_json(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError, MemoryError) as error:
        raise fault(f"{path} cannot be read as JSON: {str(error)[:200]}") from error


def parse_json(text: str | bytes) -> Any:
    """Return what JSON text holds. Raises ValueError also for a name that an object has twice."""
    return json.loads(text, object_pairs_hook=_require_distinct)


def _require_distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object, unless the second value of a name would replace the first."""
    made = dict(pairs)
    if len(made) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"an object has the name {twice[:80]!r} twice")
    return made


def from_plain(kind: Any, value: Any) -> Any:
    """Undo `to_plain`: return a value of the type `kind`, given what JSON kept of it.

    Raises TypeError, ValueError, KeyError or AttributeError if it is something else.
    """
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        kept = [one for one in inner if one is not type(None)]
        return None if value is None else from_plain(kept[0], value)
    if origin is tuple and inner[-1] is not Ellipsis:
        return tuple(from_plain(*pair) for pair in zip(inner, value, strict=True))
    if origin in (list, tuple, Sequence):
        parts = [from_plain(inner[0], part) for part in value]
        return parts if origin is list else tuple(parts)
    if origin in (Mapping, dict):
        return {key: from_plain(inner[1], part) for key, part in value.items()}
    if hasattr(kind, "_fields"):
        return kind(*map(from_plain, get_type_hints(kind).values(), value))
    if is_dataclass(kind):
        hints, make = get_type_hints(kind), cast(Any, kind)
        return make(**{name: from_plain(hints[name], part) for name, part in value.items()})
    return float(value) if kind is float else value


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
