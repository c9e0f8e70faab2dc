"""The report as a page: complete, escaped, and whole or not at all."""

from pathlib import Path

from reprod_align.errors import ReprodError
from reprod_align.report import Check, Finding, Report
from reprod_align.report.html import make_page, write_page

import pytest

CHECKS = [Check("forward", "outputs, eval mode", 0.5, False), Check("loss", "loss", 0.0, True)]
HOSTILE = "<script>alert(1)</script>"


def test_the_page_has_every_part_of_the_report() -> None:
    finding = Finding("forward", "encoder", "encoder", HOSTILE, 0.5, 1e-9)
    page = make_page(
        Report("diverges", [finding], ["a remark"], CHECKS, {"": "", "a": "b"}), "my pair"
    )
    for part in ("my pair", "diverges", "a remark", "outputs, eval mode", "(the model)", "5.0e-01"):
        assert part in page, part
    assert HOSTILE not in page and "&lt;script&gt;" in page
    assert '<img src="data:image/svg+xml;base64,' in page
    assert page.startswith("<!DOCTYPE html>") and page.endswith("</html>\n")


def test_only_stages_that_were_compared_have_a_row() -> None:
    page = make_page(Report(checks=CHECKS), "my pair")
    assert "<tr><td>loss</td>" in page and "<tr><td>schedule</td>" not in page


def test_a_page_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ReprodError):
        write_page(tmp_path, Report(checks=CHECKS), "my pair")
    write_page(tmp_path / "page.html", Report(checks=CHECKS), "my pair")
    assert (tmp_path / "page.html").read_text().endswith("</html>\n")


def test_the_page_lists_every_place_of_a_finding() -> None:
    finding = Finding("forward", "a.0", "a.0", "differs", 1.0, 0.0, places=("a.1", "a.<2>"))
    page = make_page(Report(findings=[finding]), "pair.py")
    assert "a.1, a.&lt;2&gt;" in page
