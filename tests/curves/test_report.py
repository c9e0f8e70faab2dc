"""The verdict on two logs, and which parts explain their gap: text and strict JSON.

Its page draws the curves that diverge first.
"""

import json
import math
from dataclasses import replace
from pathlib import Path

from reprod_align.curves import compare_curves
from reprod_align.curves.report import (
    MOST_CURVES,
    PARTS,
    Explanation,
    Replay,
    Swapped,
    choose_curves,
    make_page,
)
from reprod_align.errors import ReprodError
from reprod_align.page.html import render_page
from reprod_align.page.outputs import write_report
from tests.curves.runs import command, lines_of, run, said, write_lines

import pytest


def test_the_summary_starts_with_the_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = write_lines(tmp_path / "a.jsonl", run())
    second = write_lines(tmp_path / "b.jsonl", run(swapped=57))
    assert command(first, second, "--twin", write_lines(tmp_path / "t.jsonl", run(nudge=1))) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "verdict: loss leaves the noise band at step 57"
    assert lines[2].split("  ")[0] == "curve" and lines[3].split()[:2] == ["loss", "240"]
    assert lines[3].split()[-2:] == ["57", "parts"] and lines[4].split()[-1] == "agrees"
    assert any(line.startswith("band: 10 x the largest |reference - twin|") for line in lines)
    assert command(first, second) == 1
    assert "no noise was measured" in capsys.readouterr().out
    assert command(first, second, "--curve", "lr") == 0


def test_json_is_strict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = lines_of(tmp_path / "a", [1, 2], [1.0, math.nan])
    assert command(first, lines_of(tmp_path / "b", [1, 2], [1.0, 0.5]), "--json") == 1

    def refuse(name: str) -> None:
        raise AssertionError(name)

    result = json.loads(capsys.readouterr().out, parse_constant=refuse)
    assert result["first_step"] == 2 and result["curves"][0]["verdict"] == "parts at the end"


ROWS = tuple(Swapped(part, 1e-3, 0.0) for part in PARTS)
BLAMED = (Swapped("optimizer", 1e-12, 1e-3), *ROWS[:4], ROWS[5])
FOUND = Explanation(
    curve="loss",
    step=7,
    logged=1e-3,
    restored=0,
    begin=4,
    last=8,
    replays=(Replay("PyTorch", 0.0), Replay("Paddle", None)),
    replayed=1e-3,
    weights_apart=0.0,
    whole=1e-3,
    floor=1e-11,
    rows=BLAMED,
    together=1e-12,
    findings=("optimizer: eps",),
    remarks=(),
)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({}, "the optimizer explains it: with PyTorch's in its place 1.0e-12 of 1.0e-03 is left"),
        ({"together": 5e-4}, "the optimizer explains a part of it: "),
        ({"together": math.nan}, "the optimizer explains a part of it: "),
        ({"rows": ROWS}, "no part alone makes it, they do together"),
        (
            {"whole": 0.0, "replayed": 0.0},
            "no part explains it: replayed in float64, over steps 5 to 8",
        ),
        (
            {"whole": 0.0, "restored": 4},
            "it was made before: from PyTorch's state over steps 5 to 8",
        ),
        ({"whole": 0.0}, "the initial weights explain it: they differ by 0.0e+00"),
    ],
)
def test_the_sentence(changed: dict[str, object], words: str) -> None:
    assert replace(FOUND, **changed).sentence.startswith(words)


def test_a_gap_that_is_not_finite_comes_first() -> None:
    rows = (Swapped("data", 0.0, 1e-3), Swapped("loss", 0.0, math.nan))
    assert replace(FOUND, rows=rows).guilty == ("loss", "data")


def test_text_and_json() -> None:
    lines = FOUND.text().splitlines()
    assert lines[0] == "which part of a step makes loss differ at step 7?"
    assert lines[3].split() == ["optimizer", "1.0e-12", "1.0e-03", "<-", "makes", "it"]
    assert "Paddle's log has no loss of these steps to hold the replay against" in lines
    found = json.loads(json.dumps(replace(FOUND, logged=math.nan).to_json(), allow_nan=False))
    assert found["logged"] == "nan" and found["guilty"] == ["optimizer"]


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
