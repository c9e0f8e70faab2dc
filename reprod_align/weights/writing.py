"""Writes checkpoints of either framework, whole or in shards, tensor by tensor; all of it or nothing."""

import errno
import json
import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

from reprod_align.base.files import whole_file
from reprod_align.errors import WeightsError
from reprod_align.weights.paddle_file import CUT, NAMES, write_paddle_file
from reprod_align.weights.reading import INDEX, Checkpoint, open_checkpoint
from reprod_align.weights.safetensors_file import write_safetensors
from reprod_align.weights.stored import Load, TensorEntry
from reprod_align.weights.torch_file import write_torch_zip

_AT_ONCE: Final = 2**28  # bytes between two requests to the disk
_WAITING: Final = 4  # parts that wait to be written
_CANNOT: Final = (errno.EOPNOTSUPP, errno.EINVAL)  # reserve: what some file systems answer
KINDS: Final = {
    ".bin": "torch", ".pt": "torch", ".pth": "torch", ".ckpt": "torch", ".pdparams": "paddle",
    ".safetensors": "safetensors",
}  # fmt: skip
"""suffix -> format"""
_RESERVED: Final = {"safetensors": ("__metadata__",), "paddle": (NAMES, CUT), "torch": ()}
"""format -> names that mean something else in it"""
_FORMATS: Final = {"torch": "pt", "paddle": "pd"}  # what safetensors' metadata calls the frameworks


class SyncedFile:
    """A binary file opened for writing; one thread writes, another waits for the disk.

    Use it as a context: at its end everything is on the disk. What is written must not be changed
    afterwards. Raises OSError, at the end or at any write, if the disk is full.
    """

    def __init__(self, handle: BinaryIO, size: int = 0) -> None:
        """Take the file, and reserve room for `size` bytes: writing is twice as fast then."""
        _reserve(handle, size)
        self._handle, self._pending = handle, 0
        self._writer, self._syncer = ThreadPoolExecutor(1), ThreadPoolExecutor(1)
        self._parts: deque[Future[int]] = deque()
        self._sync: Future[None] | None = None

    def __enter__(self) -> "SyncedFile":
        """Return this file."""
        return self

    def __exit__(self, *error: object) -> None:
        """Wait for the disk, unless an error ends the writing anyway."""
        self._writer.shutdown(cancel_futures=error[0] is not None)
        self._syncer.shutdown()
        if error[0] is None:
            self._drain()
            self._check_sync()
            self._handle.flush()
            os.fsync(self._handle.fileno())

    def write(self, data: bytes | memoryview) -> int:
        """Write the bytes, a little later."""
        if len(self._parts) >= _WAITING:
            self._parts.popleft().result()
        self._parts.append(self._writer.submit(self._handle.write, data))
        self._pending += len(data)
        if self._pending > _AT_ONCE and (self._sync is None or self._sync.done()):
            self._check_sync()
            self._sync = self._syncer.submit(os.fdatasync, self._handle.fileno())
            self._pending = 0
        return len(data)

    def writelines(self, parts: Iterable[bytes | memoryview]) -> None:
        """Write several parts, each while the next is made."""
        for part in parts:
            self.write(part)

    def __getattr__(self, name: str) -> Any:
        """Return what the file itself has (seek, tell, flush), everything so far being written."""
        self._drain()
        return getattr(self._handle, name)

    def _drain(self) -> None:
        while self._parts:
            self._parts.popleft().result()

    def _check_sync(self) -> None:
        if self._sync is not None:
            self._sync.result()


def _reserve(handle: BinaryIO, size: int) -> None:
    """Raise OSError if the disk has no room; do nothing where room can't be reserved."""
    try:
        if size:
            os.posix_fallocate(handle.fileno(), 0, size)
    except OSError as error:
        if error.errno not in _CANNOT:
            raise


def find_kind(path: Path) -> str:
    """Return the format that a path's suffix asks for. Raises WeightsError for another suffix."""
    suffix = Path(path.name.removesuffix(INDEX)).suffix
    if suffix not in KINDS:
        raise WeightsError(f"{path}: expected a name that ends with {', '.join(KINDS)} or {INDEX}")
    return KINDS[suffix]


@contextmanager
def write_checkpoint(
    path: Path, framework: str, entries: Sequence[TensorEntry], load: Load, shard_size: int
) -> Iterator[Checkpoint]:
    """Write a checkpoint, and yield what can be read from it; it gets its names when the block ends well.

    path: a file, or an index, beside which the shards lie. shard_size: bytes of one at most, larger
    tensors alone. After an exception, or if the process is killed, nothing half-written has a final
    name. Raises WeightsError for what the format lacks, ReprodError if the disk is full.
    """
    _require_names(entries, find_kind(path))
    if not path.name.endswith(INDEX):
        with whole_file(path) as handle:
            yield _write_file(handle, path, framework, entries, load)
        return
    shards = split_entries(entries, shard_size)
    with ExitStack() as stack:
        index = stack.enter_context(whole_file(path))  # gets its name last
        handles = {name: stack.enter_context(whole_file(path.with_name(name)))
                   for name in name_files(path, entries, shard_size)[:-1]}  # fmt: skip
        written = [_write_file(handle, path, framework, held, load)
                   for handle, held in zip(handles.values(), shards, strict=True)]  # fmt: skip
        listed = {e.name: name for name, held in zip(handles, shards, strict=True) for e in held}
        index.write(_describe_shards(entries, listed, find_kind(path)))
        content = {name: held for shard in written for name, held in shard.content.items()}
        files = tuple(shard.path for shard in written)
        yield Checkpoint(path, written[0].kind, content, written[0].metadata, files)
        with suppress(FileNotFoundError):
            path.unlink()  # an old index must not list new shards


def _require_names(entries: Sequence[TensorEntry], kind: str) -> None:
    """Raise WeightsError for a name that the format cannot hold, or that two tensors have."""
    known = set[str]()
    for entry in entries:
        if entry.name in _RESERVED[kind] or not _is_text(entry.name):
            raise WeightsError(f"a {kind} file cannot hold a tensor named {entry.name!r}")
        if entry.name in known:
            raise WeightsError(f"two tensors would be named {entry.name}")
        known.add(entry.name)


def _is_text(name: str) -> bool:
    """Tell whether a name can be written as UTF-8: half of a surrogate pair can't."""
    return name.encode(errors="replace").decode() == name


def name_files(path: Path, entries: Sequence[TensorEntry], shard_size: int) -> list[str]:
    """Return the names of the files that `write_checkpoint` writes, an index last."""
    if not path.name.endswith(INDEX):
        return [path.name]
    return [*_name_shards(path, len(split_entries(entries, shard_size))), path.name]


def _write_file(
    handle: BinaryIO, path: Path, framework: str, entries: Sequence[TensorEntry], load: Load
) -> Checkpoint:
    kind = find_kind(path)
    size = sum(entry.nbytes for entry in entries if not entry.tied_to)
    with SyncedFile(handle, size) as synced:
        file = cast(BinaryIO, synced)
        if kind == "safetensors":
            write_safetensors(file, entries, load, {"format": _FORMATS[framework]})
        elif kind == "paddle":
            write_paddle_file(file, entries, load)
        else:
            write_torch_zip(file, entries, load)
    return open_checkpoint(Path(handle.name))


def split_entries(entries: Sequence[TensorEntry], size: int) -> list[list[TensorEntry]]:
    """Return the entries in shards of at most `size` bytes; what is tied lies in the same one."""
    shards: list[list[TensorEntry]] = [[]]
    place: dict[str, list[TensorEntry]] = {}
    filled = 0
    for entry in entries:
        if entry.tied_to:
            place[entry.tied_to].append(entry)
            continue
        if shards[-1] and filled + entry.nbytes > size:
            shards.append([])
            filled = 0
        shards[-1].append(entry)
        place[entry.name] = shards[-1]
        filled += entry.nbytes
    return shards


def _name_shards(index: Path, count: int) -> list[str]:
    """Return the names that both communities give shards: model-00001-of-00002.safetensors."""
    whole = Path(index.name.removesuffix(INDEX))
    return [f"{whole.stem}-{at:05}-of-{count:05}{whole.suffix}" for at in range(1, count + 1)]


def _describe_shards(entries: Sequence[TensorEntry], listed: dict[str, str], kind: str) -> bytes:
    if kind == "safetensors":
        listed = {entry.name: listed[entry.name] for entry in entries if not entry.tied_to}
    total = sum(entry.nbytes for entry in entries if not entry.tied_to)
    return json.dumps({"metadata": {"total_size": total}, "weight_map": listed}, indent=2).encode()
