"""The verdict on two logs as text and JSON."""

import json
import math
from pathlib import Path

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
