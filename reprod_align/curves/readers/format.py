"""What a log format is: how a run of it is recognised, found in a folder and read, and what the pages say.

To add one, write a module in this folder with a reader and its Format: every Format of every module here is
known. `python tools/log_formats.py` writes them into docs/curves.md and its Chinese twin.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from reprod_align.curves.log import CurveLog

Runs = Iterable[Sequence[Path]]
"""for each run what its reader takes: its files, or its folder"""

_HEAD: Final = 1 << 16  # bytes that show the format


@dataclass(frozen=True)
class Head:
    """The first bytes of a file."""

    data: bytes
    text: str
    """the same as text; "" if they are not UTF-8"""


def _recognise_none(head: Head) -> bool:
    return False


def _find_none(folder: Path, files: Sequence[Path]) -> Runs:
    return ()


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
    recognise: Callable[[Head], bool] = _recognise_none
    """whether a file is of this format, by its first bytes"""
    find_runs: Callable[[Path, Sequence[Path]], Runs] = _find_none
    """takes a folder and all files in it and below; yields the runs of this format"""
    rank: int = 0
    """0 for a format with a signature; one that would also take another's files has a higher rank than it"""


def read_head(path: Path) -> Head:
    """Return the first bytes of a file."""
    with path.open("rb") as handle:
        data = handle.read(_HEAD)
    text = data.decode("utf-8-sig", errors="replace")
    text = text.rstrip("\N{REPLACEMENT CHARACTER}")  # the head may end inside a character
    binary = "\0" in text or "\N{REPLACEMENT CHARACTER}" in text
    return Head(data, "" if binary else text)
