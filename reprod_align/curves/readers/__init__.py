"""Training logs of every format, read as curves; the content shows which format it is."""

import os
from importlib import import_module
from itertools import groupby
from pathlib import Path
from pkgutil import iter_modules
from typing import Final

from reprod_align.base.text import shorten
from reprod_align.curves.log import CurveError, CurveLog
from reprod_align.curves.readers.format import Format, read_head
from reprod_align.errors import MissingInputError

_SHOWN: Final = 10  # runs of a folder, of which one must be chosen


def _list_formats() -> tuple[Format, ...]:
    """Return the Formats of all modules in this folder, by rank."""
    modules = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]
    found = [each for module in modules for each in vars(module).values()]
    formats = dict.fromkeys(each for each in found if isinstance(each, Format))
    return tuple(sorted(formats, key=lambda each: each.rank))


FORMATS: Final = _list_formats()
"""Every known format; the first that recognises a file reads it."""


def read_curves(path: str | os.PathLike[str]) -> CurveLog:
    """Return the curves in `path`: a log file, or the folder of a run.

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
    """Read the one run in a folder; a run of a lower rank goes before those of a higher one."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    for _, formats in groupby(FORMATS, key=lambda each: each.rank):
        runs = [(each, run) for each in formats for run in each.find_runs(folder, files)]
        if len(runs) > 1:
            places = [run[0] if run[0].is_dir() else run[0].parent for _, run in runs]
            names = shorten([str(place.relative_to(folder)) for place in places], _SHOWN)
            raise CurveError(f"{folder} holds {len(runs)} runs: give one of {names}")
        for found, run in runs:
            log = found.read(*run)
            if log is not None:
                return log
    known = ", ".join(each.name for each in FORMATS)
    raise CurveError(f"{folder} holds no run of a known format; known: {known}")
