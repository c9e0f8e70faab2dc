"""Pages stand alone: no script, no network, every text escaped."""

import sys
from pathlib import Path

from reprod_align.base import web_page
from reprod_align.base.web_page import encode_figure, render_page, require_kind, write_report
from reprod_align.errors import ReprodError

import pytest


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    folder = tmp_path / "package_of_a_page"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "page.html").write_text("<h1>{{ name }}</h1>\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, folder.name, raising=False)
    return folder.name


def test_the_body_stands_in_the_frame_and_texts_are_escaped(package: str) -> None:
    page = render_page(package, title="a<b", width="9rem", name="<script>\x1b&")
    assert page.startswith("<!DOCTYPE html>\n") and page.endswith("</body>\n</html>\n")
    assert "<title>a&lt;b</title>" in page and "max-width: 9rem" in page
    assert "<h1>&lt;script&gt;\\x1b&amp;</h1>" in page
    assert "default-src 'none'" in page


def test_a_value_that_is_missing_is_an_error(package: str) -> None:
    with pytest.raises(Exception, match="'name' is undefined"):
        render_page(package, title="", width="")


def test_the_name_decides_what_is_written(tmp_path: Path) -> None:
    figure = web_page.Figure(figsize=(1, 1))
    for name, start in (("a.html", b"page"), ("a.PNG", b"\x89PNG"), ("a.svg", b"<?xml")):
        write_report(tmp_path / name, lambda kind: encode_figure(figure, kind), lambda: "page")
        assert (tmp_path / name).read_bytes().startswith(start)
    with pytest.raises(ReprodError, match=r"--report a\.pdf: the name must end in \.html"):
        require_kind("a.pdf")


def test_a_picture_has_no_date() -> None:
    figure = web_page.Figure(figsize=(1, 1))
    assert b"<dc:date>" not in encode_figure(figure)
    assert web_page.data_address(b"a") == "data:image/svg+xml;base64,YQ=="
