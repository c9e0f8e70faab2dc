"""The page of two logs and its pictures: the verdict, the curves that diverge first, a table."""

import math
from pathlib import Path

from reprod_align.curves import compare_curves
from reprod_align.curves.report import (
    MOST_CURVES,
    Explanation,
    Replay,
    Swapped,
    choose_curves,
    make_page,
)
from reprod_align.errors import ReprodError
from reprod_align.page.html import render_page
from reprod_align.page.outputs import write_report
from tests.curves.runs import command, run, said, write_lines

import pytest

STEPS = [1.0, 0.5, 0.25, 0.2, 0.15, 0.1, 0.1, 0.1]


def test_the_curve_that_parts_is_drawn_with_its_step() -> None:
    report = compare_curves(
        {"lr": STEPS, "loss": STEPS}, {"lr": STEPS, "loss": [*STEPS[:2], *[9.0] * 6]}
    )
    page = make_page(report)
    assert (page.verdict, page.passed) == ("parts", False)
    assert page.sentence == "loss leaves the noise band at step 3"
    assert [(curve.name, curve.first) for curve in page.curves] == [("loss", 3), ("lr", None)]
    assert page.tables[0].failed == {1} and any("parts at step 3" in text for text in page.remarks)
    assert "第 3 步" in render_page(page)


def test_of_many_curves_the_first_to_diverge_are_drawn() -> None:
    first = {f"c{n}": STEPS for n in range(MOST_CURVES + 3)}
    report = compare_curves(first, first | {"c14": [5.0] * 8})
    assert [one.name for one in choose_curves(report)][0] == "c14"
    page = make_page(report)
    assert len(page.curves) == MOST_CURVES
    assert f"{MOST_CURVES} of 15 curves are drawn, those that diverge first" in page.remarks


def test_who_makes_the_gap_is_a_table() -> None:
    swapped = (Swapped("data", 1.0, 0.0), Swapped("optimizer", 0.0, 1.0))
    replays = (Replay("PyTorch", None), Replay("Paddle", None))
    explanation = Explanation(
        "loss", 3, 1.0, 0, 0, 3, replays, 1.0, 0.0, 1.0, 1e-9, swapped, None, (), ()
    )
    page = make_page(compare_curves({"loss": STEPS}, {"loss": STEPS}), explanation)
    table = page.tables[1]
    assert table.title == "Which part of a step makes loss differ at step 3" and table.failed == {1}
    assert table.rows[1] == ("optimizer", "0.0e+00", "1.0e+00")


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
