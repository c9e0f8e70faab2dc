"""Shows on a terminal what is being done. Nothing is shown elsewhere, or where tqdm is not installed.

A program that follows the work sets REPROD_ALIGN_PROGRESS=lines: then each piece of it is a line on stderr.
"""

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeVar

from reprod_align.errors import one_line

PROGRESS, LINES = "REPROD_ALIGN_PROGRESS", "lines"
MARK = "progress: "
"""what such a line begins with"""
Item = TypeVar("Item")
_silenced: list[None] = []  # an item for each block that wants none


def tell(text: str) -> None:
    """Show `text` in place of what was shown before; "" clears the line."""
    if os.environ.get(PROGRESS) == LINES:
        if text and not _silenced and sys.__stderr__ is not None:
            print(f"{MARK}{one_line(text)[:100]}", file=sys.__stderr__, flush=True)
    elif _can_show():
        _line().set_description_str(one_line(text)[:100])


def track(items: Sequence[Item], what: str) -> Iterable[Item]:
    """Return the items; a bar counts them while they are taken."""
    if not _can_show():
        return items
    bar: Iterable[Item] = import_module("tqdm").tqdm(items, desc=what)
    return bar


@contextmanager
def without_progress() -> Iterator[None]:
    """Show nothing in the block."""
    _silenced.append(None)
    try:
        yield
    finally:
        _silenced.pop()


def _can_show() -> bool:
    if _silenced:
        return False
    terminal = sys.stderr is not None and sys.stderr.isatty()  # None: closed from the start
    return terminal and find_spec("tqdm") is not None


@cache
def _line() -> Any:
    return import_module("tqdm").tqdm(bar_format="{desc}", leave=False)
