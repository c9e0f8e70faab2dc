"""The options of a command: what they refuse at once, and what they write."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from reprod_align.errors import ReprodError
from reprod_align.page import Page
from reprod_align.page.outputs import add_output_arguments, require_outputs, write_outputs
from tests.page.pages import make_page

import pytest


def parse(*words: object) -> Namespace:
    parser = ArgumentParser()
    add_output_arguments(parser)
    return parser.parse_args(list(map(str, words)))


def test_all_three_from_one_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = parse("--report", tmp_path / "a.html", "--junit", tmp_path / "a.xml", "--markdown")
    require_outputs(options)
    made: list[Page] = []
    write_outputs(options, lambda: made.append(make_page()) or made[0])  # type: ignore[func-returns-value]
    assert len(made) == 1 and capsys.readouterr().out.startswith("### ❌ `mine.py`")
    assert (tmp_path / "a.html").read_text().startswith("<!DOCTYPE html>")
    assert (tmp_path / "a.xml").read_text().startswith("<?xml")


def test_without_options_no_page_is_made() -> None:
    def fail() -> Page:
        raise AssertionError

    write_outputs(parse(), fail)
    write_outputs(parse("--json"), fail)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--report", "x.pdf"), r"--report x\.pdf: the name must end in \.html"),
        (("--report", f"{__file__}/such/x.html"), "test_outputs.py is not a folder"),
        (("--junit", "x.json"), r"--junit x\.json: the name must end in \.xml"),
        (("--junit", f"{__file__}/x.xml"), "test_outputs.py is not a folder"),
    ],
)
def test_what_cannot_be_written_is_refused_at_once(words: tuple[str, str], says: str) -> None:
    with pytest.raises(ReprodError, match=says):
        require_outputs(parse(*words))


def test_json_and_markdown_exclude_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse("--json", "--markdown")
    assert "not allowed with" in capsys.readouterr().err
