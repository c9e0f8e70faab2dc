"""The files of a submission, from a folder or a zip archive, by their names in the guide's folder."""

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from reprod_align.base.text import shorten
from reprod_align.errors import ReprodError, explain_absence, one_line
from reprod_align.submission.layout import SIDES, STEPS, is_known
from reprod_align.submission.unzip import MOST_BYTES, MOST_FILES, unpack

GUIDE_FOLDER = "log_reprod"
_DEEPEST = 8


@dataclass(frozen=True)
class Submission:
    """What was handed in: the path that was given, and each file by its name ("strict/loss_torch.npy")."""

    source: Path
    files: Mapping[str, Path]
    outside: tuple[str, ...] = ()
    """files of an archive that are not in the submission's folder"""

    def find(self, *names: str) -> str:
        """Return the first of the names that is there, "" if all are missing."""
        return next((name for name in names if name in self.files), "")


@contextmanager
def open_submission(source: Path) -> Iterator[Submission]:
    """Yield the files of a folder or of a zip archive, which is unpacked into a temporary folder.

    Raises MissingInputError if there is nothing, ReprodError if it is unsafe or holds no submission.
    """
    if source.is_dir():
        yield Submission(source, list_files(find_root(source)))
        return
    if not source.is_file():
        raise explain_absence(source, ": expected a folder or a zip archive")
    with TemporaryDirectory(prefix="reprod_align_") as temporary:
        unpack(source, Path(temporary))
        root = find_root(Path(temporary), source)
        yield Submission(source, list_files(root), _list_outside(Path(temporary), root, source))


def _list_outside(folder: Path, root: Path, source: Path) -> tuple[str, ...]:
    """Return the files of an archive that are not below `root`. Raises ReprodError for another submission."""
    inside = root.relative_to(folder).parts
    names = [
        path for path in list_files(folder) if PurePosixPath(path).parts[: len(inside)] != inside
    ]
    records = {name for step in STEPS for side in SIDES for name in step.records(side)}
    others = sorted({str(PurePosixPath(name).parent) for name in names
                     if PurePosixPath(name).name in records})  # fmt: skip
    if others:
        both = shorten([root.relative_to(folder).as_posix(), *others], 2)
        raise ReprodError(f"{source} holds more than one submission: {both}")
    return tuple(names)


def find_root(folder: Path, source: Path | None = None) -> Path:
    """Return the folder with the records: this one, its log_reprod/, or that of one of its folders.

    Raises ReprodError, naming `source`, if there is none, or more than one.
    """
    inner = [Path(each) for each in os.scandir(folder) if each.is_dir(follow_symlinks=False)]
    names = [name for step in STEPS for side in SIDES for name in step.records(side)]
    levels = [[folder], [folder / GUIDE_FOLDER], [*inner, *(each / GUIDE_FOLDER for each in inner)]]
    for level in levels:
        found = [each for each in level if any(os.path.lexists(each / name) for name in names)]
        if len(found) > 1:
            both = shorten([each.relative_to(folder).as_posix() for each in sorted(found)], 2)
            raise ReprodError(f"{source or folder} holds more than one submission: {both}")
        if found:
            return found[0]
    raise ReprodError(
        f"{source or folder} holds no submission: expected records such as {names[0]} in it, "
        f"or in {GUIDE_FOLDER}/"
    )


def list_files(root: Path) -> dict[str, Path]:
    """Return every file below `root` by its name from there; ReprodError for links and what is too much."""
    files, size = {}, 0
    for path in _walk(root):
        kind = path.lstat()
        name = one_line(path.relative_to(root).as_posix())
        if not (stat.S_ISREG(kind.st_mode) or stat.S_ISDIR(kind.st_mode)):
            raise ReprodError(f"{root}: refused: {name} is a link or a device")
        if stat.S_ISREG(kind.st_mode):
            files[name] = path
            size += kind.st_size if is_known(name) else 0
        if len(files) > MOST_FILES or size > MOST_BYTES:
            raise ReprodError(
                f"{root}: refused: more than {MOST_FILES} files or {MOST_BYTES} bytes in it"
            )
    return files


def _walk(folder: Path, depth: int = 0) -> Iterator[Path]:
    """Yield what is below a folder; links are yielded, and never followed."""
    if depth > _DEEPEST:
        raise ReprodError(f"{folder}: refused: more than {_DEEPEST} folders inside each other")
    for entry in sorted(os.scandir(folder), key=lambda each: each.name):
        yield Path(entry)
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(Path(entry), depth + 1)
