"""Keep libraries' chatter off the screen: warnings and log lines about themselves, not the user's work.

`quieten` must run before a framework is imported.
"""

import logging
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

# Each is a warning that a pinned library raises about itself, not about the user's work.
KNOWN_CHATTER: Final = (
    "No ccache found",  # paddle, at import
    "Setuptools is replacing distutils",  # paddlenlp, at import
)
ENVIRONMENT: Final = {
    "GLOG_minloglevel": "2",
    "TORCH_CPP_LOG_LEVEL": "ERROR",
    "TRANSFORMERS_VERBOSITY": "error",
    "TOKENIZERS_PARALLELISM": "false",
    "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
}


def quieten() -> None:
    """Silence known warnings and log lines below ERROR of the frameworks and what comes with them."""
    for message in KNOWN_CHATTER:
        warnings.filterwarnings("ignore", message=message, category=UserWarning)
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    # paddlenlp sets its logger's level itself, at import: a filter survives that, a level doesn't
    logging.getLogger("PaddleNLP").addFilter(_is_error)


@contextmanager
def without_warnings() -> Iterator[None]:
    """Show no warning in the block, unless Python itself was told which to show (-W)."""
    if sys.warnoptions:
        yield
        return
    with warnings.catch_warnings(record=True):  # record: some libraries set filters of their own
        warnings.simplefilter("ignore")
        yield


def _is_error(line: logging.LogRecord) -> bool:
    return line.levelno >= logging.ERROR
