"""How a command behaves on a terminal: its exit code, its progress, and libraries' chatter kept off it.

An error becomes one line on stderr and an exit code. Progress is shown on a terminal where tqdm is installed;
a program that follows the work sets REPROD_ALIGN_PROGRESS=lines, and each step of it is a line on stderr.
`quieten` must run before a framework is imported.
"""

import ctypes
import io
import logging
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final, TypeVar

from reprod_align.errors import ReprodError, describe_unexpected, one_line

CANNOT = 2  # be done, or be compared
_PACKAGES = {
    "torch": "torch",
    "paddle": "paddlepaddle",
    "scipy": "scipy",
    "jinja2": "jinja2 matplotlib",
    "matplotlib": "jinja2 matplotlib",
}
"""what brings a module that may be missing"""
INTERRUPTED, PIPE_CLOSED = 130, 141  # as shells count: 128 and the signal's number
PROGRESS, LINES = "REPROD_ALIGN_PROGRESS", "lines"
MARK = "progress: "
"""what such a line begins with"""
Item = TypeVar("Item")
_silenced: list[None] = []  # an item for each block that wants none
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


def run_command(name: str, work: Callable[[], int | None]) -> int:
    """Run `work`, the command `name`; return its exit code, 0 for None.

    An error of any kind becomes 2 and a line on stderr; Ctrl-C 130; a reader that closed the pipe of
    stdout 141. SystemExit passes.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # its encoding may lack a name's letters
    try:
        return _run(name, work)
    except BrokenPipeError:
        _discard_output()
        return PIPE_CLOSED


def _run(name: str, work: Callable[[], int | None]) -> int:
    try:
        try:
            return work() or 0
        finally:
            if sys.stdout is not None:  # None: closed from the start
                sys.stdout.flush()  # at the interpreter's exit it is too late for an error line
    except ReprodError as error:
        return _fail(name, str(error))
    except KeyboardInterrupt:
        return _fail(name, "interrupted", INTERRUPTED)
    except BrokenPipeError:
        raise
    except OSError as error:  # a full disk, a name that is too long
        _discard_output()
        return _fail(name, f"{error.filename or 'output'}: {error.strerror or error}")
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in _PACKAGES:
            return _fail(name, describe_unexpected(error))
        remedy = f"python -m pip install {_PACKAGES[package]}"
        return _fail(name, f"{package} is not installed: {remedy}")
    except Exception as error:
        return _fail(name, describe_unexpected(error))


def outlive(name: str) -> None:
    """Go on in a copy of this process; this one waits for it, and ends with its exit code.

    A kernel that crashes, or a system without memory, ends a process without a word: that becomes exit
    code 2 and a line on stderr. Where processes cannot be copied, nothing is done.
    """
    if not hasattr(os, "fork"):
        return
    child = os.fork()
    if not child:
        end_with_parent()
        return
    on_terminal = sys.stdin is not None and sys.stdin.isatty()  # Ctrl-C reaches both there
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        ignored = on_terminal and number == signal.SIGINT
        signal.signal(number, signal.SIG_IGN if ignored else lambda one, _: os.kill(child, one))
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code < 0:
        code = _tell_of_signal(name, signal.Signals(-code))
    os._exit(code)


def end_with_parent() -> None:
    """Let this process end with the one that started it."""
    with suppress(AttributeError, OSError):  # of another system than Linux
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def _tell_of_signal(name: str, number: signal.Signals) -> int:
    """Say what ended a command, unless it was asked to end; return its exit code."""
    if number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        return 128 + number
    why = "a kernel of PyTorch or Paddle crashed, on the given batch or on one derived from it"
    if number == signal.SIGKILL:
        why = "the system had no memory left, or someone ended it"
    return _fail(name, f"ended by {number.name} without a verdict: {why}")


def _fail(name: str, words: str, code: int = CANNOT) -> int:
    with suppress(OSError, ValueError):  # stderr may be closed: the exit code still tells
        print(one_line(f"{name}: {words}"), file=sys.stderr)
    return code


def _discard_output() -> None:
    """Send stdout and stderr nowhere if they can't be written to: their last flush would complain."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except ValueError:  # it is closed
            continue
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def tell(text: str) -> None:
    """Show `text` in place of what was shown before; "" clears the line."""
    if os.environ.get(PROGRESS) == LINES:
        if text and not _silenced and sys.__stderr__ is not None:
            print(f"{MARK}{one_line(text)[:100]}", file=sys.__stderr__, flush=True)
    elif _can_show():
        _make_line().set_description_str(one_line(text)[:100])


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
def _make_line() -> Any:
    return import_module("tqdm").tqdm(bar_format="{desc}", leave=False)


def quieten() -> None:
    """Silence known warnings and log lines below ERROR of the frameworks and what comes with them."""
    for message in KNOWN_CHATTER:
        warnings.filterwarnings("ignore", message=message, category=UserWarning)
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    # paddlenlp sets its logger's level itself, at import: a filter survives that, a level doesn't
    logging.getLogger("PaddleNLP").addFilter(lambda line: line.levelno >= logging.ERROR)


@contextmanager
def without_warnings() -> Iterator[None]:
    """Show no warning in the block, unless Python itself was told which to show (-W)."""
    if sys.warnoptions:
        yield
        return
    with warnings.catch_warnings(record=True):  # record: some libraries set filters of their own
        warnings.simplefilter("ignore")
        yield
