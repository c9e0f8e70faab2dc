"""Training logs of every format, read as curves; the content shows which format it is.

To add a format, write a module in this folder with a reader and its `Format`, which says how a run of it is
recognised, found in a folder and read, and what the pages say: every Format of every module here is known.
`python tools/log_formats.py` writes them into docs/curves.md and its Chinese twin. A format whose lines are
rows, {column: value}, is read with `read_rows`, which finds the column of steps.
"""

import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from itertools import chain, groupby, islice
from pathlib import Path
from pkgutil import iter_modules
from typing import Final

from reprod_align.base.text import count, shorten
from reprod_align.curves.log import CurveError, CurveLog, Points, read_count
from reprod_align.errors import MissingInputError

Runs = Iterable[Sequence[Path]]
"""for each run what its reader takes: its files, or its folder"""

_SHOWN: Final = 10  # runs of a folder, of which one must be chosen
_HEAD_BYTES: Final = 1 << 16  # bytes that show the format
STEP_NAMES: Final = (
    "step global_step globalstep trainer/global_step global_step/max_steps train_step steps "
    "current_steps iter iters iteration iterations it _step batch"
).split()
"""Names of a step column, the best first."""
EPOCH_NAMES: Final = ("epoch", "epochs", "progress_or_epoch", "train/epoch")
_HEAD: Final = 1000  # rows that tell which column is the step
_SPECIAL: Final = {"nan", "inf", "+inf", "-inf", "infinity", "-infinity", "+infinity"}
_OF_TOTAL: Final = re.compile(r"(\d+)\s*/\s*\d+")
LogLine = tuple[int, Mapping[str, object] | str]
"""The line's number, and its columns; or a text that says what is wrong with the line."""


@dataclass(frozen=True)
class Head:
    """The first bytes of a file."""

    data: bytes
    text: str
    """the same as text; "" if they are not UTF-8"""


@dataclass(frozen=True)
class Format:
    """One format of a training log; it has `recognise` if a run can be one file, `find_runs` if a folder."""

    name: str
    """in messages that list the formats"""
    read: Callable[..., CurveLog | None]
    """takes the file, or what `find_runs` found of one run; None if it turns out to be something else"""
    row: tuple[str, str]
    """what docs/curves.md says: the log, and remarks"""
    row_cn: tuple[str, str]
    """the same in Chinese"""
    recognise: Callable[[Head], bool] = lambda head: False
    """whether a file is of this format, by its first bytes"""
    find_runs: Callable[[Path, Sequence[Path]], Runs] = lambda folder, files: ()
    """takes a folder and all files in it and below; yields the runs of this format"""
    rank: int = 0
    """0 for a format with a signature; one that would also take another's files has a higher rank than it"""


def read_head(path: Path) -> Head:
    """Return the first bytes of a file."""
    with path.open("rb") as handle:
        data = handle.read(_HEAD_BYTES)
    text = data.decode("utf-8-sig", errors="replace")
    text = text.rstrip("\N{REPLACEMENT CHARACTER}")  # the head may end inside a character
    binary = "\0" in text or "\N{REPLACEMENT CHARACTER}" in text
    return Head(data, "" if binary else text)


@cache
def list_formats() -> tuple[Format, ...]:
    """Return the Formats of all modules in this folder, by rank: the first that fits reads a log."""
    modules = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]
    found = [each for module in modules for each in vars(module).values()]
    formats = dict.fromkeys(each for each in found if isinstance(each, Format))
    return tuple(sorted(formats, key=lambda each: each.rank))


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
    for each in list_formats():
        log = each.read(path) if each.recognise(head) else None
        if log is not None:
            return log
    known = ", ".join(each.name for each in list_formats())
    raise CurveError(f"{path}: unknown log format; known: {known}")


def _read_folder(folder: Path) -> CurveLog:
    """Read the one run in a folder; a run of a lower rank goes before those of a higher one."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    for _, formats in groupby(list_formats(), key=lambda each: each.rank):
        runs = [(each, run) for each in formats for run in each.find_runs(folder, files)]
        if len(runs) > 1:
            places = [run[0] if run[0].is_dir() else run[0].parent for _, run in runs]
            names = shorten([str(place.relative_to(folder)) for place in places], _SHOWN)
            raise CurveError(f"{folder} holds {len(runs)} runs: give one of {names}")
        for found, run in runs:
            log = found.read(*run)
            if log is not None:
                return log
    known = ", ".join(each.name for each in list_formats())
    raise CurveError(f"{folder} holds no run of a known format; known: {known}")


def read_rows(path: Path, kind: str, rows: Iterable[LogLine]) -> CurveLog:
    """Return every number of every row at the row's step; `kind`: the format in words.

    Raises CurveError if no row has a step, or for a damaged line before the last. Left out with a
    remark: a damaged last line, and rows without the step column, such as a summary at the end.
    """
    points = Points(str(path))
    stream = _take_whole_rows(points, rows)
    head = list(islice(stream, _HEAD))
    column = find_step_column([name for _, row in head for name in row])
    if column is None:
        names = ", ".join(dict.fromkeys(name for _, row in head[:5] for name in row))[:120]
        raise CurveError(f"{points.source} has no step: it has {names or 'no columns'}")
    passed_over, counter = 0, _StepCounter()
    for line, row in chain(head, stream):
        if row.get(column) is not None:
            _add_row(points, row, column, counter, line)
        else:
            passed_over += any(parse_number(value) is not None for value in row.values())
    if counter.restarted:
        points.remarks.append(f"{column!r} starts again with every epoch: its steps are added up")
    if passed_over:
        points.remarks.append(f"passed over: {count(passed_over, 'row')} without {column!r}")
    return points.build_log(kind)


def _take_whole_rows(
    points: Points, rows: Iterable[LogLine]
) -> Iterator[tuple[int, Mapping[str, object]]]:
    """Yield the rows; a damaged one is an error if a line follows it, else it was cut off."""
    damaged = ""
    for line, row in rows:
        if damaged:
            raise CurveError(damaged)
        if isinstance(row, str):
            damaged = f"{points.source}, line {line} is damaged: {row}"
        else:
            yield line, row
    if damaged:
        points.remarks.append(f"the last line ({line}) was cut off and is left out")


def find_step_column(names: Iterable[str]) -> str | None:
    """Return the one of `names` that counts the steps, else the epochs; None if none does."""
    known = {name.strip().lower(): name for name in names}
    return next((known[name] for name in (*STEP_NAMES, *EPOCH_NAMES) if name in known), None)


def parse_number(value: object) -> float | None:
    """Return `value` as a float if it is one, or the text of a NaN or an infinity; else None."""
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    if isinstance(value, str) and value.strip().lower() in _SPECIAL:
        return float(value)
    return None


def _add_row(
    points: Points, row: Mapping[str, object], column: str, counter: "_StepCounter", line: int
) -> None:
    epoch = next((parse_number(row[name]) for name in row if name.lower() in EPOCH_NAMES), None)
    step = counter.count(_parse_step(row[column], points.source, line), epoch)
    if epoch is not None and column.lower() not in EPOCH_NAMES:
        points.add_epoch(step, epoch)
    for name, value in row.items():
        known = parse_number(value)
        if known is not None and name != column and name.lower() not in EPOCH_NAMES:
            points.add(step, name, known)


class _StepCounter:
    """Adds up the steps of a log that counts them anew in every epoch."""

    def __init__(self) -> None:
        self.base, self.restarted = 0, False
        self.last_step, self.last_epoch = -1, math.inf

    def count(self, step: int, epoch: float | None) -> int:
        """Return the step counted over all epochs.

        If the step falls and the epoch rises, the count has started again. If the epoch does not
        rise, the run was resumed.
        """
        if epoch is None:
            return step + self.base
        if step < self.last_step and epoch > self.last_epoch:
            self.base += self.last_step
            self.restarted = True
        self.last_step, self.last_epoch = step, epoch
        return step + self.base


def _parse_step(value: object, source: str, line: int) -> int:
    if isinstance(value, str):
        share = _OF_TOTAL.fullmatch(value.strip())
        value = read_count(share[1]) if share else value
    known = parse_number(value)
    if known is None or not math.isfinite(known) or known != math.floor(known):
        raise CurveError(
            f"{source}, line {line}: expected a step, a whole number, got {str(value)[:40]!r}"
        )
    return int(known)
