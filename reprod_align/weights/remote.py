"""A file of weights at an address, as https://HOST/model.safetensors: what is asked for is read, and kept.

Each range that is read is a file of the user's cache, there whole or not at all, in a folder for the address
and its version. fsspec reads the ranges; its own cache of blocks notes a block as read before it has come, so
that a request that fails is zeros from then on, and is not used.
"""

import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

from reprod_align.base.files import whole_file
from reprod_align.base.tasks import INSTALL
from reprod_align.errors import MissingInputError, WeightsError, describe_error

_AT_ONCE: Final = 2**26  # bytes of a request
_VERSIONS: Final = (
    "ETag",
    "etag",
    "Last-Modified",
    "last_modified",
    "LastModified",
    "md5Hash",
    "mtime",
)
"""what filesystems of fsspec call what changes with a file"""
_NO_RANGES: Final = "its server sends no ranges of it: download the file, and name that"


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file at an address; it has those methods of a Path that reading weights needs."""

    address: str

    def __str__(self) -> str:
        """Return the address without what may be secret in it: the query, a password."""
        parts = urlsplit(self.address)
        host = parts.netloc.rpartition("@")[2]
        return urlunsplit((parts.scheme, host, parts.path, "", ""))

    @property
    def name(self) -> str:
        """The last part of the path."""
        return PurePosixPath(urlsplit(self.address).path).name

    def with_name(self, name: str) -> "RemoteFile":
        """Return the file of this name beside it."""
        parts = urlsplit(self.address)
        path = PurePosixPath(parts.path).with_name(name)
        return RemoteFile(urlunsplit(parts._replace(path=str(path))))

    def is_dir(self) -> bool:
        """Return False: what an address holds cannot be listed."""
        return False

    def is_file(self) -> bool:
        """Tell whether it is there. Raises WeightsError if its server does not say."""
        try:
            return self.size >= 0
        except MissingInputError:
            return False

    exists = is_file

    @property
    def size(self) -> int:
        """How many bytes it has. Raises MissingInputError, or WeightsError if its server does not say."""
        return _open(self).size

    @property
    def version(self) -> str:
        """What changes when the file does; "" if its server does not say."""
        return _open(self).version

    def fetch(self, offset: int, size: int) -> Path:
        """Return a local file with `size` bytes from `offset` on: they are read once.

        Raises WeightsError if they can't be.
        """
        opened = _open(self)
        path = opened.folder / f"{offset}-{offset + size}"
        if not path.is_file():
            with whole_file(path) as handle:
                for start in range(offset, offset + size, _AT_ONCE):
                    handle.write(self._read(opened, start, min(_AT_ONCE, offset + size - start)))
        return path

    def _read(self, opened: "_OpenedFile", offset: int, size: int) -> bytes:
        with _name(self):
            try:
                opened.handle.seek(offset)
                found: bytes = opened.handle.read(size)
            except ValueError as error:
                raise WeightsError(f"{self}: {_NO_RANGES}") from error
        if len(found) != size:
            raise WeightsError(
                f"{self} is truncated: {len(found):,} of {size:,} bytes came from byte {offset:,} on"
            )
        return found


FileLocation = Path | RemoteFile
"""where a file of weights lies"""


def locate(place: str | Path | RemoteFile) -> FileLocation:
    """Return a file at an address, where a text is one (https://...), or else a path."""
    if isinstance(place, str) and "://" in place:
        return RemoteFile(place)
    return Path(place) if isinstance(place, str) else place


def measure(place: FileLocation) -> int:
    """Return how many bytes a file has."""
    return place.size if isinstance(place, RemoteFile) else place.stat().st_size


@dataclass(frozen=True)
class _OpenedFile:
    handle: Any
    size: int
    version: str
    folder: Path


@cache
def _open(file: RemoteFile) -> _OpenedFile:
    """Ask a server for a file's size and version, once."""
    try:
        import fsspec
    except ImportError as error:
        raise WeightsError(f"{file} needs the package fsspec: {INSTALL}") from error
    with _name(file):
        system, path = fsspec.core.url_to_fs(file.address)
        told = system.info(path)
        size = told.get("size")
        if size is None or told.get("partial") is False:
            raise WeightsError(f"{file}: {_NO_RANGES}")
        # `none`: what is read is what was asked for, no block around it
        handle = system.open(path, "rb", cache_type="none", size=size)
    version = " ".join(str(told[one]) for one in _VERSIONS if told.get(one))
    return _OpenedFile(handle, size, version, _choose_folder(file, version, size))


@contextmanager
def _name(file: RemoteFile) -> Iterator[None]:
    """Turn what a filesystem of fsspec raises in the block into an error that names the file."""
    try:
        yield
    except WeightsError:
        raise
    except Exception as error:
        # fsspec says of every failure that the file was not found
        cause = error.__cause__ or error
        status = getattr(cause, "status", None)
        if status == 404 or (isinstance(cause, FileNotFoundError) and cause is error):
            raise MissingInputError(f"{file} is missing") from error
        said = f"{status} {getattr(cause, 'message', '')}".strip() if status else ""
        raise WeightsError(f"cannot read {file}: {said or describe_error(cause)}") from error


def _choose_folder(file: RemoteFile, version: str, size: int) -> Path:
    """Return where ranges are kept: of a file without a version for as long as this process runs."""
    if not version:
        return Path(tempfile.mkdtemp(dir=_make_temporary().name))
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    name = hashlib.sha256(f"{file.address}\0{version}\0{size}".encode()).hexdigest()
    return home / "reprod_align" / "weights" / name[:40]


@cache
def _make_temporary() -> "tempfile.TemporaryDirectory[str]":
    return tempfile.TemporaryDirectory(prefix="reprod_align_weights_")
