"""Files and folders that are there whole or not at all."""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from reprod_align.errors import ReprodError


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
    """Raise ReprodError if no file can be made in `folder`, or where it would be made itself.

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
    """Raise ReprodError if the folder cannot be made: it holds files, or is none."""
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
