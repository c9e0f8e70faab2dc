"""The picture and the web page."""

import math
from pathlib import Path

from reprod_align.curves import compare_curves
from reprod_align.curves.page import make_page
from reprod_align.errors import ReprodError
from reprod_align.page.outputs import write_report
from tests.curves.runs import command, run, said, write_lines

import pytest


@pytest.mark.parametrize("kind", ["html", "png", "svg"])
def test_reports(tmp_path: Path, kind: str) -> None:
    first = write_lines(tmp_path / "a$_<b>.jsonl", run())
    second = write_lines(tmp_path / "b.jsonl", run(swapped=57))
    path = tmp_path / f"out.{kind}"
    assert command(first, second, "--report", path) == 1
    head = {"html": b"<!DOCTYPE html>", "png": b"\x89PNG", "svg": b"<?xml"}[kind]
    assert path.read_bytes().startswith(head)
    if kind == "html":
        text = path.read_text()
        assert "leaves the noise band at step 57" in text and "a$_&lt;b&gt;.jsonl" in text
        assert text.count("<script") == 2 and "default-src 'none'" in text


def test_a_report_survives_whatever_is_in_the_log(tmp_path: Path) -> None:
    name = "<b>$x^$\n\x1b[31m"
    first = {name: [math.nan, 1.0, 0.0], "loss": [math.inf, -1e308, 1e308], "zero": [0.0] * 3}
    second = {name: [1.0, 1.0, 0.0], "loss": [math.inf, 1e308, 1e308], "zero": [0.0] * 3}
    for kind in ("html", "png", "svg"):
        report = compare_curves(first, second)
        write_report(tmp_path / f"out.{kind}", make_page(report))
    assert "\x1b" not in said(report) and "<b>" not in (tmp_path / "out.html").read_text()


def test_a_report_of_another_kind_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(ReprodError, match="must end in"):
        command(tmp_path / "none", tmp_path / "none", "--report", tmp_path / "out.pdf")
