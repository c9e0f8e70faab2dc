"""Where in a user's file an error came from."""

import os
from pathlib import Path
from traceback import walk_tb

from reprod_align.errors import ReprodError, describe_error
from reprod_align.model.side import ModelFailure


def locate_error(error: BaseException, path: Path) -> ReprodError:
    """Return the error as a ReprodError that names the file, and the line if the file's code raised it.

    A ModelFailure stays one: its place is a note.
    """
    place = _find_place(error, path)
    if isinstance(error, ModelFailure):
        if place and not hasattr(error, "__notes__"):
            error.add_note(place)
        return error
    if isinstance(error, ReprodError):
        return ReprodError(f"{place}: {error}") if place else error
    return ReprodError(f"{place or path}: {_describe(error)}")


def explain_error(error: BaseException, path: Path) -> ReprodError:
    """Return the error with its place in the message, for a command to end with."""
    said = locate_error(error, path)
    return ReprodError(": ".join([*getattr(said, "__notes__", []), str(said)]))


def _find_place(error: BaseException, path: Path) -> str:
    """Return the file and the line in it through which the error came, "" if it did not."""
    file = os.path.realpath(path)  # unlike resolve(), it does not mind a ring of links
    for seen in _list_causes(error):
        if isinstance(seen, SyntaxError) and Path(seen.filename or "").is_file():
            shown = path if seen.filename == file else seen.filename
            return f"{shown}, line {seen.lineno}"
        frames = walk_tb(seen.__traceback__)
        lines = [n for frame, n in frames if os.path.realpath(frame.f_code.co_filename) == file]
        if lines:
            return f"{path}, line {lines[-1]}"
    return ""


def _list_causes(error: BaseException) -> list[BaseException]:
    """Return the error, what it was raised from, and so on; the chain may be a ring."""
    chain: list[BaseException] = []
    seen: BaseException | None = error
    while seen is not None and seen not in chain:
        chain.append(seen)
        seen = seen.__cause__
    return chain


def _describe(error: BaseException) -> str:
    if isinstance(error, SyntaxError):  # str() repeats the place
        return f"{type(error).__name__}: {error.msg}"
    return describe_error(error)
