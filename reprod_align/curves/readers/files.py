"""Reads a training log as curves, whatever wrote it; the format is told by the content.

Understood: JSON lines, a Trainer's trainer_state.json, CSV and TSV, the text that a training script
prints, TensorBoard and VisualDL (a file or its folder), and records of this library (.npy).
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from reprod_align.curves.log import CurveError, CurveLog
from reprod_align.curves.readers.events import read_tensorboard, read_visualdl
from reprod_align.curves.readers.json import read_json
from reprod_align.curves.readers.records import read_record
from reprod_align.curves.readers.tables import has_step_column, read_table
from reprod_align.curves.readers.text import read_text
from reprod_align.errors import MissingInputError

_HEAD: Final = 1 << 16  # bytes that tell the format
_STATE: Final = "trainer_state.json"
_NAMES: Final = (
    "JSON lines, trainer_state.json, CSV or TSV with a step column, printed lines with a step, "
    "TensorBoard, VisualDL, or a record (.npy)"
)


def read_curves(path: str | os.PathLike[str]) -> CurveLog:
    """Return the curves in `path`, a log file or the folder of a TensorBoard, VisualDL or Trainer run.

    Raises MissingInputError if there is nothing, and CurveError, naming file and line, if it is
    damaged before its end, empty, or no log of a known kind. A last line cut off by a killed run
    is left out, with a remark.
    """
    place = Path(path)
    try:
        if place.is_dir():
            return _read_folder(place)
        if not place.exists():
            raise MissingInputError(f"{path} is missing: no such log")
        if not place.is_file():
            raise CurveError(f"{path} is a device or a pipe, not a log")
        return _reader(place)([place])
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise CurveError(f"{path} cannot be read: {error}") from error
    except MemoryError as error:
        raise CurveError(f"{path} does not fit into memory") from error


Reader = Callable[[list[Path]], CurveLog]


def _reader(path: Path) -> Reader:
    with path.open("rb") as handle:
        head = handle.read(_HEAD)
    if not head.strip():
        raise CurveError(f"{path} is empty: nothing was logged")
    return _binary_reader(head) or _text_reader(path, head)


def _binary_reader(head: bytes) -> Reader | None:
    if head.startswith(b"\x93NUMPY"):
        return lambda paths: read_record(paths[0])
    if b"brain.Event" in head[:64]:
        return read_tensorboard
    if b"meta_data_tag" in head[:64]:
        return read_visualdl
    return None


def _text_reader(path: Path, head: bytes) -> Reader:
    text = head.decode("utf-8-sig", errors="replace")
    broken = text.rstrip("\N{REPLACEMENT CHARACTER}")  # the head may end inside a character
    if "\0" in broken or "\N{REPLACEMENT CHARACTER}" in broken:
        raise CurveError(f"{path} is neither text nor a known log; understood: {_NAMES}")
    start = "".join(text.split())[:2]
    if start[:1] == "{" or start in ("[{", "[]"):
        return lambda paths: read_json(paths[0])
    if has_step_column(text):
        return lambda paths: read_table(paths[0])
    return lambda paths: read_text(paths[0], _NAMES)


def _read_folder(folder: Path) -> CurveLog:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    groups: dict[Path, tuple[Reader, list[Path]]] = {}
    for path in files:
        reader = _event_reader(path)
        if reader is not None:
            groups.setdefault(path.parent, (reader, []))[1].append(path)
    if len(groups) == 1:
        reader, paths = next(iter(groups.values()))
        return reader(paths)
    if groups:
        names = ", ".join(str(place.relative_to(folder)) for place in groups)
        raise CurveError(f"{folder} holds {len(groups)} runs: give one of {names}")
    return _read_state(folder, [path for path in files if path.name == _STATE])


def _event_reader(path: Path) -> Reader | None:
    """Return what reads `path` if it is an event file; told by name first, so as to open few."""
    if "tfevents" not in path.name and "vdlrecords" not in path.name:
        return None
    with path.open("rb") as handle:
        return _binary_reader(handle.read(_HEAD))


def _read_state(folder: Path, states: list[Path]) -> CurveLog:
    """Read a Trainer's output folder: its own state, else that of its latest checkpoint."""
    if not states:
        raise CurveError(f"{folder} holds no TensorBoard or VisualDL files and no {_STATE}")
    return read_json(max(states, key=_checkpoint_number))


def _checkpoint_number(state: Path) -> tuple[bool, int]:
    number = state.parent.name.rpartition("-")[2]
    return "checkpoint-" not in state.parent.name, int(number) if number.isdecimal() else 0
