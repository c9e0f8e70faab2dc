"""The staged pipeline: what its scripts share.

Importing it, before a framework, quietens the libraries, and makes Ctrl-C while they are being
imported a line.
"""

import sys
from typing import Any

from reprod_align.base.console import quieten


def _short_for_interrupts(kind: type[BaseException], error: BaseException, trace: Any) -> None:
    """Report Ctrl-C in a line, anything else as Python does."""
    if issubclass(kind, KeyboardInterrupt):
        print("interrupted", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, trace)


quieten()
sys.excepthook = _short_for_interrupts
