"""Records: what one side of a port computed, as {name: array} in a .npy file.

The file holds one pickled dict, as reprod_log writes it, so that either tool reads the other's.
Reading one here executes nothing (see `safe_pickle`). `compare` judges two of them, `gate` logs it.
"""

import ast
import os
from collections import OrderedDict
from collections.abc import ItemsView, Mapping, ValuesView
from pathlib import Path
from typing import Any

from reprod_align.base.blocks import Array
from reprod_align.base.files import whole_file
from reprod_align.errors import MissingInputError, RecordError, one_line

import numpy as np
import numpy.typing as npt

NamedArrays = dict[str, Array]

_KINDS = "biufcSU"  # bool, integers, float, complex, bytes, text: what a record may hold
_MAGIC = b"\x93NUMPY"
_LENGTH_BYTES = {1: 2, 2: 4, 3: 4}  # width of the header's length, by version of the .npy format
_LONGEST_HEADER = 10_000  # numpy's own limit
_LARGE = 2**20  # bytes: an array of fewer is not worth a mapped file


def save_record(path: str | os.PathLike[str], record: Mapping[str, object]) -> Path:
    """Write `record` to `path` and return the path written; ".npy" is appended if missing.

    Values may be whatever `Recorder.add` takes. The file appears whole or not at all.
    Raises RecordError for a value that cannot be recorded, ReprodError if writing fails.
    """
    wrapped = np.empty((), dtype=object)
    wrapped[()] = {_check_key(key): _copy_as_array(key, value) for key, value in record.items()}
    target = Path(path)
    if target.suffix != ".npy":
        target = target.with_name(target.name + ".npy")
    with whole_file(target) as handle:
        np.lib.format.write_array(handle, wrapped, allow_pickle=True)
    return target


def load_record(path: str | os.PathLike[str]) -> dict[str, Array]:
    """Return the record in `path`: {name: array} in the order in which they were added.

    Arrays are writable and have a dtype of kind b, i, u, f, c, S or U; plain numbers come back as
    0-d arrays. Large ones stay in the file until they are asked for: see `Record`. Raises
    MissingInputError if there is no such file, and RecordError, naming the file and the reason, if it
    is not a record, is damaged, or asks to run code.
    """
    from reprod_align.records.safe_pickle import restricted_loads  # a Recorder never reads

    body = _find_body(_read(Path(path)), str(path))
    wrapped = restricted_loads(body, where=str(path), leave_from=_LARGE)
    if not isinstance(wrapped, np.ndarray) or wrapped.dtype != object or wrapped.shape != ():
        raise RecordError(f"{path} is damaged: its content does not match its header")
    content = wrapped[()]
    if not isinstance(content, dict):
        kind = type(content).__name__
        raise RecordError(f"{path} holds a {kind}, not a record (a dict of name: array)")
    return Record(
        (_check_loaded_key(key, path), _check_loaded(key, value, path))
        for key, value in content.items()
    )


class Record(dict[str, Array]):
    """A loaded record: {name: array}. A large array is read from its file when it is first asked for.

    The file is held open until then. Where it was written to since, ReprodError is raised; a file that
    was replaced by another (as `save_record` does) stays readable. `compare_records` reads large arrays
    in parts, and never whole.
    """

    def __getitem__(self, key: str) -> Array:
        """Return an array, writable; raises KeyError for an unknown name."""
        array = super().__getitem__(key)
        if not array.flags.writeable:
            from reprod_align.base.blocks import copy_array

            array = self[key] = copy_array(array)
        return array

    def get(self, key: str, default: Any = None) -> Any:
        """Return an array, or `default` for an unknown name."""
        return self[key] if key in self else default

    def items(self) -> ItemsView[str, Array]:  # type: ignore[override]
        """Return names and arrays."""
        return ItemsView(self)

    def values(self) -> ValuesView[Array]:  # type: ignore[override]
        """Return the arrays."""
        return ValuesView(self)

    def pop(self, key: str, *default: Any) -> Any:
        """Remove an array and return it, or `default` for an unknown name."""
        if key in self:
            self[key]
        return super().pop(key, *default)

    def __reduce__(self) -> Any:
        """Pickle as what any reader knows, numpy's too."""
        return OrderedDict, (), None, None, iter(self.items())


def unread_items(record: Mapping[str, Any]) -> ItemsView[str, Any]:
    """Return names and values; those of a `Record` as they lie in its file: read-only, maybe unaligned."""
    return dict.items(record) if isinstance(record, Record) else record.items()


def read_arrays(record: Mapping[Any, npt.ArrayLike]) -> dict[str, Array]:
    """Return a record's arrays by name, unread. The key 1 beside "1" is named "1 (int)".

    A tensor of either framework becomes an array; any other value becomes an array of dtype object.
    """
    items = unread_items(record)
    texts = {key for key, _ in items if isinstance(key, str)}
    found: dict[str, Array] = {}
    for key, value in items:
        hidden = not isinstance(key, str) and str(key) in texts
        try:
            array = np.asarray(on_host(value))
        except (NotImplementedError, RuntimeError, TypeError, ValueError):
            array = np.empty((), dtype=object)
        found[f"{key} ({type(key).__name__})" if hidden else str(key)] = array
    return found


def _read(path: Path) -> memoryview:
    """Return a file's bytes, mapped if they are many."""
    if path.exists() and not path.is_file():
        raise RecordError(f"{path} is a folder or a device, not a record")
    try:
        if path.stat().st_size < _LARGE:
            return memoryview(path.read_bytes())
        from reprod_align.base.blocks import map_file

        return memoryview(map_file(path))
    except FileNotFoundError:
        raise MissingInputError(f"{path} is missing: first run the script that writes it") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise RecordError(f"{path} cannot be read: {error}") from error
    except MemoryError as error:
        size = path.stat().st_size
        raise RecordError(f"{path} has {size} bytes, more than fit into memory") from error


def _find_body(data: memoryview, where: str) -> memoryview:
    """Return what follows the header of a .npy file, if that announces a single object."""
    start = len(_MAGIC) + 2
    begins = bytes(data[: start + 4])
    version = begins[len(_MAGIC)] if len(begins) > len(_MAGIC) else 1
    if not begins:
        raise RecordError(f"{where} is empty (0 bytes): run the script that writes it again")
    if begins[: len(_MAGIC)] != _MAGIC[: len(begins)] or version not in _LENGTH_BYTES:
        kind = "a .npz archive or a torch file" if begins[:2] == b"PK" else "not a .npy file"
        raise RecordError(f"{where} is {kind}, not a record: write it with Recorder.save")
    width = _LENGTH_BYTES[version]
    length = int.from_bytes(begins[start : start + width], "little")
    body = start + width + length
    if len(data) < body:
        raise RecordError(f"{where} is truncated: it ends inside its header")
    if length > _LONGEST_HEADER:
        raise RecordError(f"{where} is damaged: its header is {length} bytes long")
    _require_object_header(bytes(data[start + width : body]), where)
    return data[body:]


def _require_object_header(header: bytes, where: str) -> None:
    try:
        fields = ast.literal_eval(header.decode("latin1").strip())
        descr, shape = fields["descr"], fields["shape"]
    except (LookupError, MemoryError, RecursionError, SyntaxError, TypeError, ValueError):
        raise RecordError(f"{where} is damaged: its header cannot be read") from None
    if (descr, shape) != ("|O", ()):
        text = one_line(f"dtype {descr}, shape {shape}")[:80]
        raise RecordError(f"{where} holds a plain array ({text}), not a record {{name: array}}")


def _check_loaded_key(key: object, path: str | os.PathLike[str]) -> str:
    if type(key) is not str:
        raise RecordError(f"{path}: every key must be text, got {str(key)[:40]!r}")
    return key


def _check_loaded(key: object, value: object, path: str | os.PathLike[str]) -> Array:
    if isinstance(value, (bool, int, float, complex, np.generic)):
        value = np.asarray(value)
    if not isinstance(value, np.ndarray):
        kind = type(value).__name__
        raise RecordError(f"{path} holds a {kind} under {key!r}, where an array should be")
    if value.dtype.kind not in _KINDS:
        raise RecordError(f"{path} holds an array of dtype {value.dtype} under {key!r}")
    return value


def _check_key(key: object) -> str:
    if not isinstance(key, str):
        raise RecordError(f"a record's key must be a str, got {type(key).__name__} {key!r:.40}")
    if not key.isascii():
        try:
            key.encode()
        except UnicodeEncodeError:
            raise RecordError(f"the key {key!r} cannot be written in UTF-8") from None
    return str(key)  # numpy's own text type would be pickled as such


def _copy_as_array(key: object, value: object) -> Array:
    """Return a copy of `value` as an array in C order: nothing done to `value` later changes it."""
    try:
        array = np.array(on_host(value), order="C", copy=True)
    except (NotImplementedError, RuntimeError, TypeError, ValueError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise RecordError(f"cannot record {key!r}: {reason}") from error
    if array.dtype.kind not in _KINDS:
        kind = type(value).__name__
        raise RecordError(
            f"cannot record {key!r}: a {kind} of dtype {array.dtype}; give an array or numbers"
        )
    return array


def on_host(value: Any) -> Any:
    """Return a torch or Paddle tensor as a numpy array, anything else as it is.

    Told by their methods, so that this module imports neither framework. A float type that numpy
    lacks (bfloat16, float8) is widened to float32, which holds each of its values exactly;
    Paddle's own numpy() would give the bits as integers.
    """
    if not (hasattr(value, "detach") and hasattr(value, "numpy")):
        return value
    tensor = value.detach().cpu()
    name = str(tensor.dtype).rpartition(".")[2]
    if name.startswith("bfloat") or name.startswith("float8"):
        # Paddle's astype takes a name, torch has no astype
        tensor = tensor.astype("float32") if hasattr(tensor, "astype") else tensor.float()
    return tensor.numpy()


class Recorder:
    """Collects named arrays and writes them as a record; a drop-in for reprod_log.ReprodLogger."""

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        """Start an empty record; `path` is where `save` will write it."""
        self.path = path
        self._data: dict[str, Array] = {}

    @property
    def data(self) -> dict[str, Array]:
        """The arrays recorded so far, by name, in the order of their first `add`."""
        return self._data

    def add(self, key: str, val: object) -> None:
        """Record a copy of `val` under `key`, in place of what stood there.

        `val`: a numpy array or scalar, a Python number, bool or str, a list of numbers, or a
        tensor of torch or Paddle on any device (bfloat16 and float8 are widened to float32).
        Raises RecordError for anything else.
        """
        self._data[_check_key(key)] = _copy_as_array(key, val)

    def add_all(self, values: Mapping[str, object]) -> None:
        """Record each of `values`, as `add` does."""
        for key, value in values.items():
            self.add(key, value)

    def remove(self, key: str) -> None:
        """Forget what stands under `key`; an unknown key is printed and ignored."""
        if key in self._data:
            self._data.pop(key)
        else:
            print(f"{key} is not in {self._data.keys()}")

    def clear(self) -> None:
        """Forget everything recorded."""
        self._data.clear()

    def save(self, path: str | os.PathLike[str] | None = None) -> Path:
        """Write the record to `path`, or to the path given at creation; return the path written.

        Raises RecordError if neither was given, ReprodError if the file cannot be written.
        """
        target = self.path if path is None else path
        if target is None:
            raise RecordError("no path to save the record to: give one to Recorder() or to save()")
        return save_record(target, self._data)
