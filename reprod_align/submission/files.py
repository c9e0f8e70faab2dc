"""The files of a submission: what the guide asks for, and where they lie, in a folder or a zip archive.

The guide asks for ten records and five logs, under any of the names that it uses. All that is wrong with
an archive is found before anything is written. Refused: names that climb out or say two things, links and
devices, encrypted or unknown compression, entries that share bytes, and more data than `MOST_BYTES` or than
the archive's size explains.
"""

import os
import stat
import unicodedata
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Final

from reprod_align.base import FRAMEWORKS
from reprod_align.base.text import shorten
from reprod_align.errors import ReprodError, explain_absence, one_line

MANIFEST: Final = "manifest.json"
TRAINING: Final = "training/"
"""the folder of the training logs"""
MOST_BYTES = 2 * 2**30
MOST_FILES = 2000
_MOST_RATIO = 200  # zeros shrink to a thousandth, and a submission holds few
_SMALL = 64 * 2**20  # bytes that may shrink as they like
_LONGEST_NAME = 200
_DIRECTORY_ENTRY = 46 + _LONGEST_NAME  # bytes of the archive's table of contents
_END, _END_SIZE, _LONGEST_COMMENT = b"PK\x05\x06", 22, 2**16
_END_64, _FULL = b"PK\x06\x07", b"\xff\xff"
"""zip64 keeps the real numbers in another record, which zipfile follows wherever it points"""
_LOCAL_HEADER = 30
_ENCRYPTED = 0x1
_BLOCK = 2**20
GUIDE_FOLDER = "log_reprod"
_DEEPEST = 8


@dataclass(frozen=True)
class GuideStep:
    """One comparison of a submission: its names, and the largest mean difference."""

    number: int
    name: str
    threshold: float = 1e-6
    exact: bool = False
    """data and learning rates: equal to the last bit, and not among the fifteen files"""
    from_counts: bool = False
    """its single numbers are quotients of counts: equal ones are a good sign, not a bad one"""
    shows_place: bool = True
    """float32 and float64 stay together; a training's accuracy may flip by an example"""

    def records(self, side: str) -> tuple[str, ...]:
        """Return the names that the guide gives a side's record; the first that exists counts."""
        if self.exact:
            return (f"strict/{self.name}_{side}.npy",)
        own = f"{self.name}_{side}.npy"
        if self.name == "train_align" and side == "torch":  # or the paper's own figures
            return f"{self.name}_benchmark.npy", own
        return (own,)

    def name_twin(self, side: str) -> str:
        """Return the name of a side's float64 record."""
        return f"strict/{self.name}_{side}.npy"

    @property
    def logs(self) -> tuple[str, str]:
        """The names that the guide gives the log, in section 2.2.3 and in section 3."""
        return f"{self.name}_diff.log", f"{self.name}_diff_log.txt"

    @property
    def result(self) -> str:
        """The name of the verdict as JSON, which a check of ours writes."""
        return f"strict/{self.name}_diff.json"


STEPS: Final = (
    GuideStep(1, "forward"),
    GuideStep(2, "metric", from_counts=True),
    GuideStep(3, "loss"),
    GuideStep(4, "bp_align"),
    GuideStep(5, "train_align", threshold=0.0015, from_counts=True, shows_place=False),
)
EXTRA: Final = (GuideStep(2, "data", exact=True), GuideStep(4, "lr", exact=True))
"""what the pipeline compares beside them, where it is there"""


def is_known(name: str) -> bool:
    """Return whether a file, named as seen from the submission's folder, belongs to a submission."""
    return name in _KNOWN or name.startswith(TRAINING)


_KNOWN: Final = frozenset(
    name
    for step in (*STEPS, *EXTRA)
    for side in FRAMEWORKS
    for name in (*step.records(side), step.name_twin(side), *step.logs, step.result)
) | {MANIFEST}


def unpack(path: Path, folder: Path) -> None:
    """Write the files of the archive below `folder`; raises ReprodError, before writing, if it is unsafe."""
    try:
        _check_directory(path)
        with zipfile.ZipFile(path) as archive:
            entries = [entry for entry in archive.infolist() if not entry.is_dir()]
            _check_entries(path, archive.infolist())
            for entry in entries:
                _write(archive, entry, folder / entry.filename)
    except ReprodError:
        raise
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        raise _make_refusal(path, f"damaged: {error}") from error
    except OSError as error:
        raise ReprodError(f"{path} cannot be unpacked: {error.strerror or error}") from error
    except Exception as error:  # zlib.error; zipfile lets more through
        raise _make_refusal(path, f"damaged: {error}") from error


def _make_refusal(path: Path, why: str) -> ReprodError:
    return ReprodError(f"{path}: refused, nothing was unpacked: {why}")


def _check_directory(path: Path) -> None:
    """Refuse a table of contents too long to be read: zipfile would make an object of each line."""
    size = path.stat().st_size
    with path.open("rb") as handle:
        handle.seek(max(0, size - _END_SIZE - _LONGEST_COMMENT))
        tail = handle.read()
    at = tail.rfind(_END)
    if at < 0 or len(tail) < at + _END_SIZE:
        raise _make_refusal(path, "not a zip archive")
    if tail.rfind(_END_64, 0, at) >= 0 or _FULL in (
        tail[at + 10 : at + 12],
        tail[at + 12 : at + 14],
    ):
        raise _make_refusal(
            path, "its table of contents is in zip64 format, which no submission needs"
        )
    length = int.from_bytes(tail[at + 12 : at + 16], "little")
    if length > MOST_FILES * _DIRECTORY_ENTRY:
        raise _make_refusal(path, f"its table of contents has {length} bytes")


def _check_entries(path: Path, entries: list[zipfile.ZipInfo]) -> None:
    if len(entries) > MOST_FILES:
        raise _make_refusal(path, f"{len(entries)} entries; a submission has at most {MOST_FILES}")
    for entry in entries:
        if fault := _find_fault(entry):
            raise _make_refusal(path, f"{one_line(entry.orig_filename)[:100]!r} {fault}")
    _check_names(path, entries)
    _check_sizes(path, entries)
    _check_overlap(path, entries)


def _find_fault(entry: zipfile.ZipInfo) -> str:
    """Return why an entry is unsafe, as the end of a sentence; "" if it is not."""
    name, kind = entry.filename, stat.S_IFMT(entry.external_attr >> 16)
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        return "is a link or a device"
    if entry.flag_bits & _ENCRYPTED:
        return "is encrypted"
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return f"is compressed by method {entry.compress_type}; expected deflate"
    if (
        not name
        or len(name) > _LONGEST_NAME
        or not name.isprintable()
        or name != entry.orig_filename
    ):
        return "has a name that no submission has"
    if "\\" in name or ":" in name or PurePosixPath(name).is_absolute():
        return "is an absolute path"
    if any(part in ("..", ".", "") for part in name.rstrip("/").split("/")):
        return "climbs out of its folder"
    return ""


def _check_names(path: Path, entries: list[zipfile.ZipInfo]) -> None:
    """Refuse two entries of one name (to some file system), and a file that is also a folder."""
    folded = [unicodedata.normalize("NFC", each.filename).casefold() for each in entries]
    files = {name for name in folded if not name.endswith("/")}
    folders = {str(parent) for name in folded for parent in PurePosixPath(name).parents}
    if len(set(folded)) < len(folded) or files & folders:
        raise _make_refusal(path, "two of its entries have one name")


def _check_sizes(path: Path, entries: list[zipfile.ZipInfo]) -> None:
    whole = sum(entry.file_size for entry in entries)
    packed = sum(entry.compress_size for entry in entries)
    if whole > MOST_BYTES:
        raise _make_refusal(path, f"its content has {whole} bytes; the most is {MOST_BYTES}")
    if whole > max(_SMALL, _MOST_RATIO * packed):
        raise _make_refusal(path, f"{packed} bytes that grow to {whole}, as in a zip bomb")


def _check_overlap(path: Path, entries: list[zipfile.ZipInfo]) -> None:
    """Refuse entries that share bytes, which is how a bomb hides in a small file."""
    spans = sorted(
        (each.header_offset, each.header_offset + _LOCAL_HEADER + each.compress_size)
        for each in entries
    )
    if any(end > start for (_, end), (start, _) in pairwise(spans)):
        raise _make_refusal(path, "two of its entries share bytes, as in a zip bomb")


def _write(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, target: Path) -> None:
    """Write one entry; zipfile stops at the size that was announced, and checks the sum."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with archive.open(entry) as source, target.open("xb") as handle:
        while block := source.read(_BLOCK):
            handle.write(block)


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
    records = {name for step in STEPS for side in FRAMEWORKS for name in step.records(side)}
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
    names = [name for step in STEPS for side in FRAMEWORKS for name in step.records(side)]
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
