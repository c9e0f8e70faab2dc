"""A file is there whole or not at all."""

import os
from pathlib import Path

from reprod_align.base.atomic import whole_file, write_text
from reprod_align.errors import ReprodError

import pytest


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_write_that_stops_leaves_the_old_file_and_nothing_else(
    error: type[BaseException], tmp_path: Path
) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    with pytest.raises(error):
        with whole_file(path) as handle:
            handle.write(b"new")
            raise error
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["a"]


def test_folders_are_made_and_links_stay_links(tmp_path: Path) -> None:
    target, link = tmp_path / "new" / "folder" / "a", tmp_path / "link"
    write_text(target, "é\ud800\n")
    assert target.read_bytes() == b"\xc3\xa9\\ud800\n"
    link.symlink_to(target)
    write_text(link, "b")
    assert link.is_symlink() and target.read_text() == "b"


@pytest.mark.parametrize("place", ["/dev/null", "."])
def test_devices_and_folders_are_not_replaced(place: str) -> None:
    with pytest.raises(ReprodError, match=f"cannot write {place}: it is not a regular file"):
        write_text(place, "")
    assert not Path(place).is_file()


def test_a_file_is_readable_as_the_umask_says(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        write_text(tmp_path / "a", "")
    finally:
        os.umask(before)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o644
