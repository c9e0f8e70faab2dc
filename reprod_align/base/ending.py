"""How a command ends: an error becomes one line on stderr and an exit code."""

import io
import os
import sys
from collections.abc import Callable
from contextlib import suppress

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
