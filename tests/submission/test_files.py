"""Hostile archives: each is refused in one line, and nothing of it is written."""

import os
import stat
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

from reprod_align.errors import ReprodError
from reprod_align.submission import files
from reprod_align.submission.files import unpack

import pytest

NAME = "log_reprod/forward_torch.npy"
Write = Callable[[zipfile.ZipFile], None]


def archive_of(path: Path, write: Write, compression: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", compression) as archive:
        write(archive)
    return path


def entry(name: str, mode: int = 0) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.external_attr = mode << 16
    return info


def named(*names: str, mode: int = 0) -> Write:
    def write(archive: zipfile.ZipFile) -> None:
        for name in names:
            archive.writestr(entry(name, mode), b"x")

    return write


def zeros(archive: zipfile.ZipFile) -> None:
    archive.writestr(NAME, bytes(65 * 2**20), zipfile.ZIP_DEFLATED)


HOSTILE: dict[str, tuple[Write, str]] = {
    "a path that climbs": (named("log_reprod/../../x.npy"), "climbs out"),
    "an absolute path": (named("/etc/x.npy"), "absolute path"),
    "a drive": (named("C:/x.npy"), "absolute path"),
    "a backslash": (named("log_reprod\\..\\x.npy"), "absolute path"),
    "a link": (named(NAME, mode=stat.S_IFLNK | 0o777), "is a link or a device"),
    "a device": (named(NAME, mode=stat.S_IFCHR | 0o666), "is a link or a device"),
    "an escape sequence": (named("log_reprod/\x1b[2Jx.npy"), "has a name that no submission has"),
    "a direction override": (named("log_reprod/\u202egol.x"), "has a name that no submission has"),
    "a long name": (named("x" * 300), "has a name that no submission has"),
    "names that differ in case": (named(NAME, NAME.upper()), "have one name"),
    "a file that is a folder": (named("a", "a/b"), "have one name"),
    "zeros": (zeros, "zip bomb"),
    "lzma": (lambda archive: archive.writestr(NAME, b"x", zipfile.ZIP_LZMA), "expected deflate"),
    "many entries": (named(*(f"{i}.npy" for i in range(2001))), "at most 2000"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_archive_is_refused(name: str, tmp_path: Path) -> None:
    write, words = HOSTILE[name]
    refused(archive_of(tmp_path / "x.zip", write), words)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_entries_of_one_name(tmp_path: Path) -> None:
    refused(archive_of(tmp_path / "x.zip", named(NAME, NAME)), "have one name")


def refused(path: Path, words: str) -> None:
    target = path.parent / "target"
    with pytest.raises(ReprodError, match=words) as caught:
        unpack(path, target)
    assert "nothing was unpacked" in str(caught.value)
    assert "\n" not in str(caught.value) and str(caught.value).isprintable()
    assert not target.exists()


def test_entries_that_share_bytes(tmp_path: Path) -> None:
    """The directory names the same compressed bytes under two names."""
    path = archive_of(tmp_path / "x.zip", named(NAME, "log_reprod/forward_paddle.npy"))
    data = bytearray(path.read_bytes())
    second = data.rfind(b"PK\x01\x02")
    data[second + 42 : second + 46] = struct.pack("<I", 0)
    path.write_bytes(data)
    refused(path, "share bytes")


def test_an_encrypted_entry(tmp_path: Path) -> None:
    path = archive_of(tmp_path / "x.zip", named(NAME))
    data = bytearray(path.read_bytes())
    data[data.rfind(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(data)
    refused(path, "is encrypted")


def test_more_than_may_be_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = archive_of(tmp_path / "x.zip", lambda each: each.writestr(NAME, os.urandom(1000)))
    monkeypatch.setattr(files, "MOST_BYTES", 999)
    refused(path, "the most is 999")


def test_a_long_table_of_contents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = archive_of(tmp_path / "x.zip", named(*(f"{i}.npy" for i in range(50))))
    monkeypatch.setattr(files, "MOST_FILES", 5)
    refused(path, "table of contents")


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04", b"x" * 1000], ids=["empty", "cut", "other"])
def test_what_is_no_archive(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.zip").write_bytes(data)
    refused(tmp_path / "x.zip", "not a zip archive")


def test_a_size_that_lies(tmp_path: Path) -> None:
    """An entry that is longer than announced is cut there, and its sum no longer fits."""
    path = archive_of(tmp_path / "x.zip", lambda each: each.writestr(NAME, b"x" * 10**6))
    data = bytearray(path.read_bytes())
    at = data.rfind(b"PK\x01\x02")
    data[at + 24 : at + 28] = struct.pack("<I", 10)
    path.write_bytes(data)
    with pytest.raises(ReprodError, match="damaged"):
        unpack(path, tmp_path / "target")
    written = list((tmp_path / "target").rglob("*.npy"))
    assert sum(each.stat().st_size for each in written) <= 10


def test_an_honest_archive(tmp_path: Path) -> None:
    unpack(archive_of(tmp_path / "x.zip", named("log_reprod/", NAME)), tmp_path / "target")
    assert (tmp_path / "target" / NAME).read_bytes() == b"x"


def test_a_zip64_end_record_is_refused_before_its_table_is_read(tmp_path: Path) -> None:
    """The plain end record says that there is little; zipfile would follow the other one."""
    path = archive_of(tmp_path / "many.zip", named(*(f"{number}.npy" for number in range(5000))))
    data = path.read_bytes()
    at = data.rindex(b"PK\x05\x06")
    count, size, offset = struct.unpack("<HLL", data[at + 10 : at + 20])
    record = b"PK\x06\x06" + struct.pack("<QHHLLQQQQ", 44, 45, 45, 0, 0, count, count, size, offset)
    locator = b"PK\x06\x07" + struct.pack("<LQL", 0, at, 1)
    end = data[at : at + 10] + struct.pack("<HLL", 3, 200, 0) + data[at + 20 :]
    path.write_bytes(data[:at] + record + locator + end)
    with pytest.raises(ReprodError, match="is in zip64 format"):  # the path says zip64, too
        unpack(path, tmp_path / "out")
    assert not (tmp_path / "out").exists()
