"""Where a report goes is refused in one line before the work begins."""

from functools import partial
from pathlib import Path

from reprod_align.errors import ReprodError
from reprod_align.page import Page, outputs
from reprod_align.page.outputs import PAGE_OR_PICTURE, require_place, require_report, write_report
from reprod_align.page.plots import Figure, encode_figure
from tests.page.pages import make_page

import pytest


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
