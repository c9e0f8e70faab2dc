"""Steps counted, so that a test of speed gives the same on a loaded machine: lines of our code that ran."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

OURS = "reprod_align"


def count_steps(work: Callable[[], object]) -> int:
    """Return how many lines of this library `work` runs; what it raises is dropped."""
    steps = 0

    def hear(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal steps
        if OURS not in frame.f_code.co_filename:
            return None
        steps += event == "line"
        return hear

    before = sys.gettrace()
    sys.settrace(hear)
    try:
        work()
    except Exception:  # what a damaged file ends in is another test's
        pass
    finally:
        sys.settrace(before)
    return steps
