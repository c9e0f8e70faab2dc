"""The options of a command and what they write; what cannot be written is refused at once."""

from argparse import ArgumentParser, Namespace
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

from reprod_align.errors import ReprodError
from reprod_align.page import JUnitCase, Page, outputs
from reprod_align.page.outputs import (
    PAGE_OR_PICTURE,
    add_output_arguments,
    render_junit,
    require_outputs,
    require_place,
    require_report,
    write_outputs,
    write_report,
)
from reprod_align.page.plots import Figure, encode_figure
from tests.page.pages import HOSTILE, make_page

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


def test_a_place_that_will_do(tmp_path: Path) -> None:
    require_report(tmp_path / "a.html")
    require_report(tmp_path / "a.PNG", PAGE_OR_PICTURE)
    require_report(tmp_path / "new" / "folder" / "a.html")  # made with the file
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("x.pdf", r"--report .*x\.pdf: the name must end in \.html$"),
        ("file/x.html", r"file is not a folder$"),
        ("file/new/x.html", r"file is not a folder$"),
        ("taken.html", r"this is a folder: give the name of a file"),
        (f"{'a' * 5000}/x.html", "File name too long"),
    ],
)
def test_a_place_that_will_not(tmp_path: Path, name: str, says: str) -> None:
    (tmp_path / "taken.html").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(ReprodError, match=says) as caught:
        require_report(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_a_folder_that_takes_no_file() -> None:
    with pytest.raises(ReprodError, match="^cannot write in /proc: "):
        require_place("/proc/x.html", (".html",), "--report")


def test_the_option_is_named(tmp_path: Path) -> None:
    with pytest.raises(ReprodError, match=r"^--junit .*must end in \.xml$"):
        require_place(tmp_path / "a.html", (".xml",), "--junit")


def test_a_library_that_is_missing_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(name: str) -> None:
        raise ModuleNotFoundError("No module named 'jinja2'", name="jinja2")

    monkeypatch.setattr(outputs, "import_module", fail)
    with pytest.raises(ReprodError, match="--report needs jinja2: python -m pip install"):
        require_report(tmp_path / "a.html")


def test_the_name_decides_what_is_written(tmp_path: Path) -> None:
    own = Page("a", "b", True, plots=[partial(encode_figure, Figure(figsize=(1, 1)))])
    for page in (make_page(), own):
        for name, start in (
            ("a.html", b"<!DOCTYPE html>"),
            ("a.PNG", b"\x89PNG"),
            ("a.svg", b"<?xml"),
        ):
            path = tmp_path / name
            write_report(path, page)
            assert path.read_bytes().startswith(start)
    with pytest.raises(ReprodError, match="must end in .html, .png, .svg"):
        write_report(tmp_path / "out.pdf", own)


def read(page: Page) -> ElementTree.Element:
    return ElementTree.fromstring(render_junit(page).encode())


def test_each_comparison_is_a_test_and_the_verdict_too() -> None:
    cases = [
        JUnitCase("forward", "outputs", True),
        JUnitCase("loss", "loss", False, "differs by 1"),
    ]
    root = read(Page("a.py", "diverges", False, "1 finding", cases=cases))
    assert (root.get("tests"), root.get("failures"), root.get("skipped")) == ("3", "1", "1")
    verdict = root.find(".//testcase[@name='diverges']/skipped")
    assert verdict is not None and "as a consequence" in (verdict.get("message") or "")
    assert [suite.get("name") for suite in root] == ["forward", "loss", "verdict"]
    failure = root.find(".//testcase[@name='loss']/failure")
    assert failure is not None and failure.get("message") == "differs by 1"
    assert root.find(".//testcase[@name='outputs']/failure") is None


def test_a_page_that_failed_without_a_failing_case_fails_by_its_verdict() -> None:
    root = read(Page("a", "not compared", False, cases=[JUnitCase("x", "y", True)]))
    assert root.get("failures") == "1"
    assert read(Page("a", "faithful", True)).get("failures") == "0"


def test_one_cause_is_one_failure_and_its_consequences_are_listed() -> None:
    """Of eight comparisons that differ, seven follow from the eighth."""
    rows = [
        JUnitCase("forward", f"row {number}", False, "1.0", consequence=True) for number in range(7)
    ]
    rows.append(JUnitCase("forward", "fine", True, consequence=True))
    root = read(
        Page("a", "diverges", False, cases=[*rows, JUnitCase("findings", "norm", False, "eps")])
    )
    assert (root.get("tests"), root.get("failures"), root.get("skipped")) == ("10", "1", "8")
    said = [one.get("message") or "" for one in root.iter("skipped")]
    assert len(said) == 8 and all("consequence of what failed: " in one for one in said)


def test_hostile_names_are_text() -> None:
    root = read(
        Page(
            HOSTILE, "v", False, cases=[JUnitCase(HOSTILE, HOSTILE + "\x00\ud800", False, HOSTILE)]
        )
    )
    name = root.findall(".//testcase")[0].get("name") or ""
    assert "</script>" in name and "\\x1b" in name and "\\x00\\ud800" in name
