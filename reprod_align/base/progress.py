"""Tells what is being done, in one line that is written over: for a person at a terminal."""

import sys
from collections.abc import Callable

from reprod_align.errors import one_line

Tell = Callable[[str], None]
_START_OF_LINE = "\r\x1b[K"


def tell(text: str) -> None:
    """Show `text` in place of what was shown before, "" nothing; only if stderr is a terminal."""
    if sys.stderr is not None and sys.stderr.isatty():  # None: closed from the start
        sys.stderr.write(_START_OF_LINE + one_line(text)[:100])
        sys.stderr.flush()
