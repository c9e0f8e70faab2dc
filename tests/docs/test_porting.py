"""docs/porting.md: its commands run, in order, and print what the page shows."""

import re
import shlex
from pathlib import Path

from reprod_align.commands import main, parse
from tests.conftest import REPOSITORY
from tests.docs.pages import assert_both_show_the_same, blocks, commands, read
from tests.porting.paconvert import needs_paconvert

import pytest

PAGES = ("docs/porting.md", "docs/porting_cn.md")


def test_both_languages_show_the_same() -> None:
    assert_both_show_the_same(PAGES, "bash", "text")


@needs_paconvert
def test_the_commands_run_and_print_what_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("examples", "models"):
        (tmp_path / name).symlink_to(REPOSITORY / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    ported, proven, trained, proxied, _ = map(shlex.split, commands(PAGES[0]))
    assert [main(words[1:]) for words in (ported, proven, trained, proxied)] == [0, 0, 0, 0]
    assert parse(ported[1:]).style == "paddle"
    shown = capsys.readouterr().out
    assert blocks(PAGES[0], "text")[0].rstrip() in shown
    assert (
        shown.count("verdict: faithful") == 4
    )  # of `port` twice, of `pair`, of the source as it is
    assert "  loop      the same steps\n" in shown and "  loop      the same steps\n" in read(
        PAGES[0]
    )
    files = {path.name for path in (tmp_path / "port_bert").iterdir() if path.is_file()}
    assert files == {"pt_bert_paddle.py", "weights.pdparams", "pair.py", "inputs.npz", "report.md"}


@pytest.mark.parametrize("name", ["README.md", "README_cn.md"])
def test_the_readmes_command_works_as_typed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (shown,) = re.findall(r"^\| `reprod-align (port [^`]*)`", read(name), flags=re.MULTILINE)
    monkeypatch.syspath_prepend(REPOSITORY / "examples")
    monkeypatch.chdir(REPOSITORY)
    words = [str(tmp_path / word) if word == "ported" else word for word in shlex.split(shown)]
    assert name == "README_cn.md" or main(words) == 0
    assert shown == "port examples/pair_mlp.py -o ported"
