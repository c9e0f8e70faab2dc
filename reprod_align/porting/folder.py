"""The result folder: there whole or not at all."""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from reprod_align.errors import ReprodError


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
