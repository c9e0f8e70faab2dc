"""What a command prints, on a terminal: results in colour, long lines wrapped under their own column.

Elsewhere, and where rich is not installed, the text is printed as it is.
"""

import io
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final, TextIO

from reprod_align.base.console import without_progress

_WORD: Final = r"(?:(?<=  )|(?<=: )|^)(?:{})(?=$|  |[:,;])"  # a word that is a cell, or a verdict
_STYLES: Final = {
    "green": "ok|passed|faithful|aligned|verified|revealed|equal|agrees",
    "red": "DIFFERENT|FAILED|INVISIBLE|failed|different|diverges|NOT aligned|NOT verified",
    "yellow": "float32|agrees to float32|differs as described|not comparable",
}
_CODE: Final = r"^error\[[^\]]*\]"
_COLUMN: Final = re.compile(
    r"^ *(?:- |= \w+: |\d+\. )?|\S {2,}(?=\S)"
)  # where one begins, at its end
_INDENT: Final = 4  # of what follows a line without columns


@contextmanager
def show_output(quiet: bool = False, raw: bool = False, colour: bool = True) -> Iterator[None]:
    """Show on a terminal what the block prints; if quiet, show neither that nor progress.

    raw: the block prints JSON, or a table to paste: it is printed unchanged, also if quiet.
    """
    with without_progress() if quiet else nullcontext():
        if raw:
            yield
        elif quiet:
            with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
                yield
        elif _can_dress(sys.stdout):
            with _dress(sys.stdout, colour):
                yield
        else:
            yield


@contextmanager
def _dress(terminal: TextIO, colour: bool) -> Iterator[None]:
    screen = _Screen(terminal, colour)
    with redirect_stdout(screen):
        try:
            yield
        finally:
            screen.finish()


def _can_dress(stream: TextIO | None) -> bool:
    terminal = stream is not None and not stream.closed and stream.isatty()
    return terminal and find_spec("rich") is not None


class _Screen(io.TextIOBase):
    """Prints each line with rich as soon as it is whole."""

    def __init__(self, terminal: TextIO, colour: bool) -> None:
        rich = import_module("rich.console")
        wanted = colour and not os.environ.get("NO_COLOR")
        self._terminal, self._rest = terminal, ""
        self._console: Any = rich.Console(
            file=terminal, color_system="auto" if wanted else None, highlight=False, markup=False
        )

    def write(self, text: str) -> int:
        """Print the lines that end in the text; keep what follows them."""
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            for part in _lay_out(line, self._console):
                self._console.print(part, soft_wrap=True)
        return len(text)

    def flush(self) -> None:
        """Send on what is printed."""
        self._terminal.flush()

    def finish(self) -> None:
        """Print a last line that does not end."""
        if self._rest:
            self._terminal.write(self._rest)
        self.flush()

    def isatty(self) -> bool:
        """Return True."""
        return True

    def fileno(self) -> int:
        """Return the terminal's."""
        return self._terminal.fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The terminal's."""
        return self._terminal.encoding


def _lay_out(line: str, console: Any) -> Iterator[Any]:
    """Yield the line as painted lines that fit; all but the first begin where its last column does."""
    text, width = _paint(line), console.width
    if text.cell_len <= width:
        yield text
        return
    starts = [found.end() for found in _COLUMN.finditer(line) if found.end()]
    start = max((at for at in starts if text[:at].cell_len <= width * 0.6), default=_INDENT)
    margin = " " * text[:start].cell_len
    for number, part in enumerate(text[start:].wrap(console, width - len(margin))):
        part.rstrip()
        yield part.__class__.assemble(margin if number else text[:start], part)


def _paint(line: str) -> Any:
    text = import_module("rich.text").Text(line)
    for style, words in _STYLES.items():
        text.highlight_regex(_WORD.format(words), style)
    text.highlight_regex(_CODE, "bold red")
    return text
