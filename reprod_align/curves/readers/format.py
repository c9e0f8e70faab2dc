"""What a log format consists of: its name, how it is recognised, how it is read.

To add one, write a module with a reader and its Format, and list that Format in `files.FORMATS`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from reprod_align.curves.log import CurveLog

_HEAD: Final = 1 << 16  # bytes that show the format


@dataclass(frozen=True)
class Head:
    """The first bytes of a file."""

    data: bytes
    text: str
    """the same as text; "" if they are not UTF-8"""


@dataclass(frozen=True)
class Format:
    """One format of a training log."""

    name: str
    """in messages that list the formats"""
    recognise: Callable[[Head], bool]
    read: Callable[..., CurveLog | None]
    """takes the file, or all files of a run; None if they turn out to be something else"""
    marker: str = ""
    """if a folder of files is one run: what the names of its files contain"""


def read_head(path: Path) -> Head:
    """Return the first bytes of a file."""
    with path.open("rb") as handle:
        data = handle.read(_HEAD)
    text = data.decode("utf-8-sig", errors="replace")
    text = text.rstrip("\N{REPLACEMENT CHARACTER}")  # the head may end inside a character
    binary = "\0" in text or "\N{REPLACEMENT CHARACTER}" in text
    return Head(data, "" if binary else text)
