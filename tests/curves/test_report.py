"""The verdict on two logs, and which parts explain their gap: text and strict JSON."""

import json
import math
from dataclasses import replace
from pathlib import Path

from reprod_align.curves.report import PARTS, Explanation, Replay, Swapped
from tests.curves.runs import command, lines_of, run, write_lines

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
