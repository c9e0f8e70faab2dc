"""The picture and the page on native runs."""

from pathlib import Path

from reprod_align.errors import ReprodError
from reprod_align.significance import compare_accuracies
from reprod_align.significance.plot import write_plot

import pytest

REPORT = compare_accuracies([0.88, 0.89], [0.87, 0.9])


@pytest.mark.parametrize(
    ("kind", "start"), [("html", b"<!DOCTYPE"), ("png", b"\x89PNG"), ("svg", b"<?xml")]
)
def test_each_kind_is_written(tmp_path: Path, kind: str, start: bytes) -> None:
    path = tmp_path / f"out.{kind}"
    write_plot(path, REPORT)
    assert path.read_bytes().startswith(start)
    if kind == "html":
        assert (
            f"native mode: {REPORT.verdict}" in path.read_text()
            and REPORT.words in path.read_text()
        )


def test_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ReprodError, match="must end in .html, .png, .svg"):
        write_plot(tmp_path / "out.pdf", REPORT)
