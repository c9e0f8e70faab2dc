"""What this library raises: one root, one line each."""

import os
from collections.abc import Iterable
from pathlib import Path
from traceback import extract_tb
from typing import Protocol

_LONGEST = 2000  # characters of a message; names in it may come from a hostile file
_SHOW = "REPROD_ALIGN_TRACEBACK"


def one_line(text: str) -> str:
    """Return `text` with control characters and line breaks written as escapes.

    Names in a record come from a file: printed raw, one could forge a line of a log.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def join_lines(lines: Iterable[str]) -> str:
    """Return lines as one text, each of them one line whatever names stand in it: every summary ends so."""
    return "\n".join(map(one_line, lines))


class ReprodError(Exception):
    """Root of every error raised here; the message is one line: what is wrong, where, what to do.

    A line break in `message` is written as an escape, and the middle of a message without end is
    left out, so that the promise always holds.
    """

    def __init__(self, message: str) -> None:
        """Keep `message`, as one line."""
        line = one_line(message)
        half = _LONGEST // 2
        super().__init__(line if len(line) <= _LONGEST else f"{line[:half]} … {line[-half:]}")


class RecordError(ReprodError):
    """A record cannot be read, or a value cannot be recorded."""


class WeightsError(ReprodError):
    """Weights cannot be read, or do not fit a model."""


class RefusedError(ReprodError):
    """What was asked for does not fit what is there. Nothing was done: earlier results stay."""


class MissingNameError(ReprodError):
    """The framework's version lacks a private name, and what was asked for needs it."""


class MissingInputError(ReprodError):
    """A file that an earlier script should have written is not there."""


class _PathLike(Protocol):
    def exists(self) -> bool: ...


def explain_absence(path: _PathLike, then: str = "") -> ReprodError:
    """Return why `path` can't be read as a file: nothing is there, or a folder, a device or a pipe."""
    if path.exists():
        return ReprodError(f"{path} is not a file, but a folder, a device or a pipe{then}")
    return MissingInputError(f"{path} is missing{then}")


def describe_unexpected(error: Exception) -> str:
    """Return the line a command ends with for an error that no check foresaw: what, and where.

    Raises the error itself if the environment asks for the traceback.
    """
    if os.environ.get(_SHOW):
        raise error
    frames = extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    said = one_line(str(error))[:300]
    what = "out of memory" if isinstance(error, MemoryError) else "not foreseen"
    return f"{what}: {type(error).__name__}: {said}{place}; {_SHOW}=1 shows the traceback"


def describe_error(error: BaseException) -> str:
    """Return an error's class and what it says, in one line."""
    try:
        said = str(error)
    except Exception:  # the user's own class cannot say it
        said = ""
    return f"{type(error).__name__}: {first_line(said)}"


def first_line(text: str) -> str:
    """Return the first line of a message that says something; Paddle's begin with a stack."""
    lines = [line.strip() for line in text.splitlines()]
    telling = [
        line for line in lines if line and not line.startswith(("---", "C++", "Error Message"))
    ]
    return one_line(telling[0])[:300] if telling else "no message"
