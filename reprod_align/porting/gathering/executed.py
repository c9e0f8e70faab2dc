"""Which functions a run reaches."""

import os
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

Place = tuple[str, int]
"""a file, and the first line of a function in it, its decorators included"""


def list_executed(work: Callable[[], object]) -> frozenset[Place]:
    """Return the functions of Python files that are called while `work` runs."""
    called: set[tuple[str, int]] = set()

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            called.add((frame.f_code.co_filename, frame.f_code.co_firstlineno))

    before = sys.getprofile()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
        threading.setprofile(None)  # what it is without a profiler
    return frozenset((os.path.realpath(file), line) for file, line in called)
