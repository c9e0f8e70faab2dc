"""Keep libraries' chatter off the screen, so that what a script prints is what it found.

Must run before a framework is imported: the scripts import `pipeline` first.
"""

import logging
import os
import sys
import warnings
from typing import Any

# Each is a warning that a pinned library raises about itself, not about the user's work.
_KNOWN_CHATTER = (
    "No ccache found",  # paddle, at import
    "Setuptools is replacing distutils",  # paddlenlp, at import
)


def quieten() -> None:
    """Silence known warnings and log lines below ERROR of the libraries the pipeline uses."""
    for message in _KNOWN_CHATTER:
        warnings.filterwarnings("ignore", message=message, category=UserWarning)
    os.environ.setdefault("GLOG_minloglevel", "2")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("HF_DATASETS_DISABLE_PROGRESS_BARS", "1")
    sys.excepthook = _short_for_interrupts
    # paddlenlp sets its logger's level itself, at import: a filter survives that, a level doesn't
    logging.getLogger("PaddleNLP").addFilter(lambda line: line.levelno >= logging.ERROR)


def _short_for_interrupts(kind: type[BaseException], error: BaseException, trace: Any) -> None:
    """Report Ctrl-C while the frameworks are being imported in a line, anything else as Python does."""
    if issubclass(kind, KeyboardInterrupt):
        print("interrupted", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, trace)
