"""The result folder: refused where something is, whole or not there at all."""

from pathlib import Path

from reprod_align.errors import ReprodError
from reprod_align.porting.folder import require_new, whole_folder

import pytest


def test_a_folder_is_there_when_the_block_ended_well(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("new", "empty"):
        with whole_folder(tmp_path / name) as made:
            (made / "a").write_text("1")
            assert not (tmp_path / name / "a").exists()
        assert (tmp_path / name / "a").read_text() == "1"
    with pytest.raises(KeyboardInterrupt), whole_folder(tmp_path / "other") as made:
        (made / "a").write_text("1")
        raise KeyboardInterrupt
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "new"]


def test_what_is_there_stays(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a").write_text("1")
    (tmp_path / "file").write_text("1")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name, message in {"full": "holds files already", "file": "is not a folder",
                          "link": "is not a folder", "absent/x": "absent is missing"}.items():  # fmt: skip
        with pytest.raises(ReprodError, match=message):
            require_new(tmp_path / name)
