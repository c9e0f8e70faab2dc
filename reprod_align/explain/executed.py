"""Which lines of some files a run takes: an edit of another line changes nothing."""

import sys
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any


def note_lines(files: Iterable[str], run: Callable[[], object]) -> dict[str, frozenset[int]]:
    """Return the lines that `run` takes in each of the files. What it raises passes through."""
    taken: dict[str, set[int]] = {file: set() for file in files}

    def enter(frame: FrameType, event: str, value: Any) -> Any:
        lines = taken.get(frame.f_code.co_filename)
        if lines is None:
            return None

        def note(frame: FrameType, event: str, value: Any) -> Any:
            lines.add(frame.f_lineno)
            return note

        return note

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        run()
    finally:
        sys.settrace(before)
    return {file: frozenset(lines) for file, lines in taken.items()}
