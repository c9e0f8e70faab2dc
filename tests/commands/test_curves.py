"""`reprod-align curves`: two logs, a page, and a name map."""

import json
from pathlib import Path

from reprod_align.commands import curves
from reprod_align.errors import ReprodError
from tests.commands.asked import run

import pytest


def write_log(path: Path, factor: float = 1.0, name: str = "loss") -> Path:
    losses = [(step, (factor if step > 5 else 1.0) / (step + 1)) for step in range(20)]
    path.write_text("".join(json.dumps({"step": s, name: loss}) + "\n" for s, loss in losses))
    return path


def test_the_first_step_that_differs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logs = write_log(tmp_path / "a.jsonl"), write_log(tmp_path / "b.jsonl", 1.5)
    assert run(curves, logs[0], logs[0]) == 0
    capsys.readouterr()
    assert run(curves, *logs, "--json") == 1
    assert json.loads(capsys.readouterr().out)["first_step"] == 6


def test_names_are_mapped(tmp_path: Path) -> None:
    logs = write_log(tmp_path / "a.jsonl"), write_log(tmp_path / "b.jsonl", name="mse")
    names = tmp_path / "names.json"
    names.write_text('{"loss": "mse"}')
    assert run(curves, *logs, "--name-map", names) == 0
    names.write_text("[]")
    with pytest.raises(ReprodError, match="expected a JSON object"):
        run(curves, *logs, "--name-map", names)


def test_a_report_of_another_kind_is_refused_before_the_logs_are_read(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    with pytest.raises(ReprodError, match="report.docx"):
        run(curves, "no log", "no log", "--report", tmp_path / "report.docx")


def test_equal_logs_have_nothing_to_explain(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = write_log(tmp_path / "a.jsonl")
    assert run(curves, log, log, "--explain", tmp_path / "none.py") == 0
    assert "nothing to explain" in capsys.readouterr().err
