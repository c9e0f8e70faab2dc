"""The picture and the page on native runs."""

from pathlib import Path

from reprod_align.page.outputs import write_report
from reprod_align.significance import compare_accuracies
from reprod_align.significance.plot import make_page

import pytest

REPORT = compare_accuracies([0.88, 0.89], [0.87, 0.9])


@pytest.mark.parametrize(
    ("kind", "start"), [("html", b"<!DOCTYPE"), ("png", b"\x89PNG"), ("svg", b"<?xml")]
)
def test_each_kind_is_written(tmp_path: Path, kind: str, start: bytes) -> None:
    path = tmp_path / f"out.{kind}"
    write_report(path, make_page(REPORT))
    assert path.read_bytes().startswith(start)
    if kind == "html":
        assert (
            f"native mode: {REPORT.verdict}" in path.read_text()
            and REPORT.words in path.read_text()
        )
