"""Text for people: tables, long lists made short, counted nouns."""

import os
from collections.abc import Sequence

from reprod_align.errors import one_line


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return `rows` of cells as lines, every column as wide as its widest cell, two spaces between."""
    rows = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


def shorten(names: Sequence[str], most: int, separator: str = ", ") -> str:
    """Return "a, b, c and 4 more": the first `most` names, each in one line, and how many follow."""
    shown = separator.join(map(one_line, names[:most]))
    return shown + and_more(names, most)


def shorten_lines(lines: Sequence[str], most: int, indent: str = "") -> list[str]:
    """Return the first `most` lines, and "... and 4 more" after `indent` if there are more."""
    more = and_more(lines, most)
    return [*lines[:most], f"{indent}...{more}"] if more else list(lines)


def and_more(items: Sequence[object], most: int) -> str:
    """Return " and 4 more" for 4 items beyond `most`, "" without any."""
    return f" and {len(items) - most} more" if len(items) > most else ""


def shorten_path(path: str | os.PathLike[str]) -> str:
    """Return `path` as the user would type it here: relative if it lies below this folder."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith(os.pardir) else relative


def count(number: int, noun: str, plural: str = "") -> str:
    """Return "1 tensor", "3 tensors"; `plural` where it is not the noun and an s."""
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"
