"""docs/convert.md: its commands run, in order, and print what the page shows."""

import re
import shlex
from pathlib import Path

from reprod_align.commands import main, parse
from tests.conftest import REPOSITORY, run_python
from tests.docs.pages import assert_both_show_the_same, blocks, commands

import pytest

PAGES = ("docs/convert.md", "docs/convert_cn.md")
AGREE = re.compile(r"agree to \S+")


def test_both_languages_show_the_same() -> None:
    assert_both_show_the_same(PAGES, "bash", "text")


def test_the_commands_run_and_print_what_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "examples").symlink_to(REPOSITORY / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (_, *words), *rest = map(shlex.split, commands(PAGES[0]))
    finished = run_python(*words, cwd=tmp_path)
    assert finished.returncode == 0, finished.stderr
    printed = []
    for command in rest:
        assert command[0] == "reprod-align" and parse(command[1:])
        assert main(command[1:]) == 0, command
        printed.append(capsys.readouterr().out)
    assert AGREE.sub("", printed[0]) == AGREE.sub("", blocks(PAGES[0], "text")[0])
    rules = (tmp_path / "mlp_map.json").read_text()
    assert all(line in rules for line in blocks(PAGES[0], "text")[1].splitlines()[:2])
