"""The log of a training: JSON lines, as `reprod-align curves` reads them, VisualDL and TensorBoard."""

import fcntl
import json
import os
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from pipeline.training.options import TrainingOptions
from reprod_align.errors import MissingInputError, ReprodError


class Log(Protocol):
    """Somewhere to write numbers to."""

    def write(self, step: int, epoch: int, numbers: dict[str, float]) -> None:
        """Add what is known of a step."""

    def close(self) -> None:
        """Write what is left."""


class JsonLines:
    """A file of lines {"step": 1, "epoch": 0, "loss": ...}, in full precision. One run at a time."""

    def __init__(self, path: Path, length: int = 0) -> None:
        """Go on after the first `length` bytes; ReprodError if there are fewer, or it is in use."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._handle = path.open("ab")
        try:
            self._take(path, length)
        except ReprodError:
            self._handle.close()
            raise

    def write(self, step: int, epoch: int, numbers: dict[str, float]) -> None:
        """Add a line, and let readers see it."""
        line = json.dumps({"step": step, "epoch": epoch, **numbers})
        self._handle.write(f"{line}\n".encode())
        self._handle.flush()

    def sync(self) -> int:
        """Return the length in bytes, all of them on the disk."""
        os.fsync(self._handle.fileno())
        return self._handle.seek(0, os.SEEK_END)

    def close(self) -> None:
        """Close the file, and let another run have it."""
        self._handle.close()

    def _take(self, path: Path, length: int) -> None:
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ReprodError(f"{path.parent} is another run's, which is still training") from error
        found = self._handle.seek(0, os.SEEK_END)
        if found < length:
            raise ReprodError(
                f"{path} has {found} bytes, its checkpoint knows {length}: --no-resume starts anew"
            )
        self._handle.truncate(length)


class Board:
    """VisualDL's or TensorBoard's event file: a scalar for every number, under its own name."""

    def __init__(self, writer: Any) -> None:
        """Take the writer of either package; both have add_scalar(tag, value, step) and close()."""
        self._writer = writer

    def write(self, step: int, epoch: int, numbers: dict[str, float]) -> None:
        """Add the step's numbers."""
        for name, value in numbers.items():
            self._writer.add_scalar(name, value, step)

    def close(self) -> None:
        """Write what is left."""
        self._writer.close()


def open_boards(options: TrainingOptions, run: Path) -> list[Log]:
    """Return what --visualdl and --tensorboard ask for, in their folders' sub-folder `run`.

    Raises MissingInputError if the package is not installed.
    """
    found: list[Log] = []
    if options.visualdl:
        writer = _import_package("visualdl", "visualdl").LogWriter
        found.append(Board(writer(logdir=str(options.visualdl / run))))
    if options.tensorboard:
        writer = _import_package("tensorboard", "tensorboard.summary").Writer
        found.append(Board(writer(str(options.tensorboard / run))))
    return found


def _import_package(name: str, module: str) -> Any:
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise MissingInputError(
            f"--{name} needs the package {error.name}: python -m pip install {name}"
        ) from error
