"""Opens a zip archive of someone else's. All that is wrong with it is found before anything is written.

Refused: names that climb out or say two things, links and devices, encrypted or unknown compression,
entries that share bytes, and more data than `MOST_BYTES` or than the archive's size explains.
"""

import stat
import unicodedata
import zipfile
from itertools import pairwise
from pathlib import Path, PurePosixPath

from reprod_align.errors import ReprodError, one_line

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
        raise _refusal(path, f"damaged: {error}") from error
    except OSError as error:
        raise ReprodError(f"{path} cannot be unpacked: {error.strerror or error}") from error
    except Exception as error:  # zlib.error; zipfile lets more through
        raise _refusal(path, f"damaged: {error}") from error


def _refusal(path: Path, why: str) -> ReprodError:
    return ReprodError(f"{path}: refused, nothing was unpacked: {why}")


def _check_directory(path: Path) -> None:
    """Refuse a table of contents too long to be read: zipfile would make an object of each line."""
    size = path.stat().st_size
    with path.open("rb") as handle:
        handle.seek(max(0, size - _END_SIZE - _LONGEST_COMMENT))
        tail = handle.read()
    at = tail.rfind(_END)
    if at < 0 or len(tail) < at + _END_SIZE:
        raise _refusal(path, "not a zip archive")
    if tail.rfind(_END_64, 0, at) >= 0 or _FULL in (
        tail[at + 10 : at + 12],
        tail[at + 12 : at + 14],
    ):
        raise _refusal(path, "its table of contents is in zip64 format, which no submission needs")
    length = int.from_bytes(tail[at + 12 : at + 16], "little")
    if length > MOST_FILES * _DIRECTORY_ENTRY:
        raise _refusal(path, f"its table of contents has {length} bytes")


def _check_entries(path: Path, entries: list[zipfile.ZipInfo]) -> None:
    if len(entries) > MOST_FILES:
        raise _refusal(path, f"{len(entries)} entries; a submission has at most {MOST_FILES}")
    for entry in entries:
        if fault := _find_fault(entry):
            raise _refusal(path, f"{one_line(entry.orig_filename)[:100]!r} {fault}")
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
        raise _refusal(path, "two of its entries have one name")


def _check_sizes(path: Path, entries: list[zipfile.ZipInfo]) -> None:
    whole = sum(entry.file_size for entry in entries)
    packed = sum(entry.compress_size for entry in entries)
    if whole > MOST_BYTES:
        raise _refusal(path, f"its content has {whole} bytes; the most is {MOST_BYTES}")
    if whole > max(_SMALL, _MOST_RATIO * packed):
        raise _refusal(path, f"{packed} bytes that grow to {whole}, as in a zip bomb")


def _check_overlap(path: Path, entries: list[zipfile.ZipInfo]) -> None:
    """Refuse entries that share bytes, which is how a bomb hides in a small file."""
    spans = sorted(
        (each.header_offset, each.header_offset + _LOCAL_HEADER + each.compress_size)
        for each in entries
    )
    if any(end > start for (_, end), (start, _) in pairwise(spans)):
        raise _refusal(path, "two of its entries share bytes, as in a zip bomb")


def _write(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, target: Path) -> None:
    """Write one entry; zipfile stops at the size that was announced, and checks the sum."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with archive.open(entry) as source, target.open("xb") as handle:
        while block := source.read(_BLOCK):
            handle.write(block)
