"""Reads a training log of any known format; the content shows which one it is."""

import os
from pathlib import Path
from typing import Final

from reprod_align.curves.log import CurveError, CurveLog
from reprod_align.curves.readers import events, json, records, tables, text
from reprod_align.curves.readers.format import Format, read_head
from reprod_align.errors import MissingInputError

FORMATS: Final[tuple[Format, ...]] = (
    records.RECORD,
    events.TENSORBOARD,
    events.VISUALDL,
    json.JSON,
    tables.TABLE,
    text.PRINTED_LINES,
)
"""Every known format; the first that recognises a file reads it."""


def read_curves(path: str | os.PathLike[str]) -> CurveLog:
    """Return the curves in `path`, a log file or the folder of a TensorBoard, VisualDL or Trainer run.

    Raises MissingInputError if `path` does not exist, and CurveError, naming file and line, if it is
    damaged before its end, empty, or of an unknown format. A last line cut off by a killed run is
    left out, with a remark.
    """
    place = Path(path)
    try:
        if place.is_dir():
            return _read_folder(place)
        if not place.exists():
            raise MissingInputError(f"{path} is missing")
        if not place.is_file():
            raise CurveError(f"{path} is a device or a pipe, not a log")
        return _read_file(place)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise CurveError(f"{path} cannot be read: {error}") from error
    except MemoryError as error:
        raise CurveError(f"{path} does not fit into memory") from error


def _read_file(path: Path) -> CurveLog:
    head = read_head(path)
    if not head.data.strip():
        raise CurveError(f"{path} is empty: nothing was logged")
    for each in FORMATS:
        log = each.read(path) if each.recognise(head) else None
        if log is not None:
            return log
    known = ", ".join(each.name for each in FORMATS)
    raise CurveError(f"{path}: unknown log format; known: {known}")


def _read_folder(folder: Path) -> CurveLog:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    runs: dict[tuple[Path, Format], list[Path]] = {}
    for path in files:
        for each in FORMATS:
            if each.marker and each.marker in path.name and each.recognise(read_head(path)):
                runs.setdefault((path.parent, each), []).append(path)
    if len(runs) > 1:
        names = ", ".join(str(place.relative_to(folder)) for place, _ in runs)
        raise CurveError(f"{folder} holds {len(runs)} runs: give one of {names}")
    for (_, found), paths in runs.items():
        log = found.read(*paths)
        if log is not None:
            return log
    return _read_state(folder, files)


def _read_state(folder: Path, files: list[Path]) -> CurveLog:
    """Read a Trainer's output folder: its own state, else that of its latest checkpoint."""
    states = [path for path in files if path.name == json.STATE]
    if not states:
        kinds = " or ".join(each.name for each in FORMATS if each.marker)
        raise CurveError(f"{folder} holds no {kinds} files and no {json.STATE}")
    return json.read_json(max(states, key=_checkpoint_number))


def _checkpoint_number(state: Path) -> tuple[bool, int]:
    number = state.parent.name.rpartition("-")[2]
    return "checkpoint-" not in state.parent.name, int(number) if number.isdecimal() else 0
