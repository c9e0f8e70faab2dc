"""`reprod-align new`: a folder to start from, and what to run in it."""

from pathlib import Path

from reprod_align.commands import new
from reprod_align.errors import ReprodError
from tests.commands.asked import run

import pytest


def test_it_says_what_to_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(new, tmp_path / "mine") == 0
    assert f"cd {tmp_path / 'mine'} && python run_all.py" in capsys.readouterr().out
    assert (tmp_path / "mine" / "run_all.py").is_file()


def test_a_folder_in_use_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("mine")
    with pytest.raises(ReprodError, match="exists already"):
        run(new, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes"]
