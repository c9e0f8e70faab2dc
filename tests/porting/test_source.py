"""The user's file: found, imported, and held against the call's module."""

from pathlib import Path

from reprod_align.errors import ReprodError
from reprod_align.porting.source import open_source

import pytest


def test_a_file_of_a_package_and_its_root(tmp_path: Path) -> None:
    (tmp_path / "mine_package").mkdir()
    path = tmp_path / "mine_package" / "net.py"
    path.write_text("Net = dict")
    source = open_source(path, "mine_package.net:Net(a=1)")
    assert (source.name, source.call, source.root) == ("mine_package.net", "Net(a=1)", tmp_path)
    given = open_source(path, f"{path}:Net(a=1)")
    assert (given.name, given.call, given.root) == ("net", "Net(a=1)", path.parent)
    init = tmp_path / "mine_package" / "__init__.py"
    init.write_text("")
    path.with_name("sub").mkdir()
    (path.with_name("sub") / "__init__.py").write_text("")
    assert open_source(path.with_name("sub") / "__init__.py", "mine_package.sub:x").root == tmp_path


@pytest.mark.parametrize(
    ("name", "words", "message"),
    [
        ("net.py", "net", "expected MODULE:CALL"),
        ("net.py", "json:Net()", "json is .*, expected .*net.py"),
        ("net.py", "sys:Net()", "sys is a part of Python, expected"),
        ("net.py", "mine_absent:Net()", "ModuleNotFoundError: No module named 'mine_absent'"),
        ("mine_broken.py", "mine_broken:Net()", "ValueError: broken"),
        ("mine_leaving.py", "mine_leaving:Net()", "SystemExit: 3"),
        ("absent.py", "absent:Net()", "absent.py is missing"),
        ("", "net:Net()", "is not a file"),
    ],
)
def test_what_is_wrong_is_one_line(tmp_path: Path, name: str, words: str, message: str) -> None:
    (tmp_path / "net.py").write_text("")
    (tmp_path / "mine_broken.py").write_text("raise ValueError('broken')")
    (tmp_path / "mine_leaving.py").write_text("raise SystemExit(3)")
    with pytest.raises(ReprodError, match=message):
        open_source(tmp_path / name, words)
