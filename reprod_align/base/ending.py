"""How a command ends: whatever is in the way is one line on stderr and an exit code."""

import io
import os
import sys
from collections.abc import Callable
from contextlib import suppress

from reprod_align.base.intact import Intact
from reprod_align.errors import ReprodError, one_line, unexpected

CANNOT = 2  # be done, or be compared
INTERRUPTED, PIPE_CLOSED = 130, 141  # as the shell has it: 128 and the signal's number


def ended(name: str, work: Callable[[], int | None]) -> int:
    """Run `work`, the command `name`; return its exit code, None being 0.

    2 and a line on stderr for an error of any kind, 130 for Ctrl-C, 141 if whoever reads stdout has
    seen enough. SystemExit passes.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # names need not fit its encoding
    try:
        return _ended(name, work)
    except BrokenPipeError:
        _discard_output()
        return PIPE_CLOSED


def _ended(name: str, work: Callable[[], int | None]) -> int:
    try:
        try:
            with Intact():  # where it ran the user's code: what follows must be able to tell
                return work() or 0
        finally:
            _flush()
    except ReprodError as error:
        return _failed(name, str(error), CANNOT)
    except KeyboardInterrupt:
        return _failed(name, "interrupted", INTERRUPTED)
    except BrokenPipeError:
        raise
    except OSError as error:  # a full disk, a name that is too long
        _discard_output()
        return _failed(name, f"{error.filename or 'output'}: {error.strerror or error}", CANNOT)
    except Exception as error:
        return _failed(name, unexpected(error), CANNOT)


def _failed(name: str, words: str, code: int) -> int:
    with suppress(OSError, ValueError):  # closed by the user's code: the exit code still tells
        print(one_line(f"{name}: {words}"), file=sys.stderr)
    return code


def _flush() -> None:
    """Write out what is still kept; at the interpreter's exit it is too late for an error line."""
    if sys.stdout is not None:  # it is None if it was closed from the start
        sys.stdout.flush()


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
