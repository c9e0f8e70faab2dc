"""The edits as one unified diff, which `git apply` and `patch -p1` take."""

import os
from collections.abc import Iterator, Mapping
from difflib import unified_diff
from pathlib import Path

_NO_END = "\n\\ No newline at end of file\n"


def make_patch(before: Mapping[str, str], after: Mapping[str, str], root: Path) -> str:
    """Return the diff of files. before, after: file -> text; root: the folder that paths begin at.

    A file outside of `root` is named from the folder of installed packages, or by its name.
    """
    parts = (
        line
        for file, text in sorted(after.items())
        if text != before[file]
        for line in _diff(before[file], text, name_in_patch(file, root))
    )
    return "".join(parts)


def name_in_patch(file: str, root: Path) -> str:
    """Return what a patch calls a file."""
    path = Path(file).resolve()
    if path.is_relative_to(root.resolve()):
        return path.relative_to(root.resolve()).as_posix()
    _, installed, inside = str(path).rpartition(f"-packages{os.sep}")
    return Path(inside).as_posix() if installed else path.name


def _diff(before: str, after: str, name: str) -> Iterator[str]:
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    for line in unified_diff(old, new, f"a/{name}", f"b/{name}"):
        yield line if line.endswith("\n") else line + _NO_END
