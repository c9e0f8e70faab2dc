"""What records were made with: digests of their files, code and weights, versions, and the date.

A check writes it beside its verdict, so that a reader can tell whether five steps are of one run.
"""

import hashlib
import os
import platform
import time
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = (
    "numpy",
    "torch",
    "transformers",
    "paddlepaddle",
    "paddlepaddle-gpu",
    "paddlenlp",
    "reprod_log",
    "reprod-align",
)
_NAME_PARTS = 2  # of a source's path: weights/torch_weight.bin, wherever its home lies


def describe_making(
    records: Mapping[str, Path], sources: Mapping[str, Iterable[Path]]
) -> dict[str, Any]:
    """Return what the records {name: file} were made with, as plain values.

    sources: code and weights of each side; a file that is gone is left out. Raises OSError.
    """
    return {
        "date": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "versions": list_versions(),
        "records": {name: digest(path) for name, path in records.items()},
        "sources": {
            side: {name_source(path): digest(path) for path in paths if path.is_file()}
            for side, paths in sources.items()
        },
    }


def name_source(path: Path) -> str:
    """Return the name of a source wherever its home lies: weights/torch_weight.bin."""
    return "/".join(path.parts[-_NAME_PARTS:])


def digest(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file's content, in hexadecimal digits. Raises OSError."""
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def list_versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that decide numbers, the installed ones."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
