"""An interrupted run goes on; what decides the reports decides whether they are taken again."""

import json
import math
from pathlib import Path
from typing import Any

from reprod_align import sections
from reprod_align.report import Check, Finding, Report
from reprod_align.sections.reports import StateFile
from tests.sections.small import judge_in_sections, places

import pytest


def test_a_report_comes_back_as_it_was(tmp_path: Path) -> None:
    report = Report(
        "diverges",
        [Finding("forward", "a", "b", "inf", math.inf, 0.0, places=("c", "d"))],
        checks=[Check("forward", "x", math.nan, False)],
        pairs={"a": "b"},
    )
    path = tmp_path / "state.json"
    StateFile(path, "one").add("piece", report)
    found = StateFile(path, "one").find("piece")
    assert found is not None and found.findings == report.findings
    assert str(found) == str(report)
    assert StateFile(path, "other").find("piece") is None
    path.write_text(path.read_text()[:-9])
    assert StateFile(path, "one").find("piece") is None


def test_an_interrupted_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state, judged, judge = tmp_path / "state.json", list[str](), sections._judge_piece

    def stop_at(last: int) -> Any:
        def judge_some(task: Any, runs: Any, piece: Any, **options: Any) -> Any:
            if len(judged) == last:
                raise KeyboardInterrupt
            judged.append(piece.name)
            return judge(task, runs, piece, **options)

        return judge_some

    monkeypatch.setattr(sections, "_judge_piece", stop_at(2))
    with pytest.raises(KeyboardInterrupt):
        judge_in_sections(tmp_path, "code", state=state)
    assert judged == ["embed", "layers.0"]
    monkeypatch.setattr(sections, "_judge_piece", stop_at(-1))
    gone_on = judge_in_sections(tmp_path, "code", state=state)
    assert judged == ["embed", "layers.0", "layers.1", "layers.2", "norm to head"]
    assert places(gone_on) == places(judge_in_sections(tmp_path, "code"))


def test_other_weights_are_judged_anew(tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    judge_in_sections(tmp_path, state=state)
    known = json.loads(state.read_text())["fingerprint"]
    judge_in_sections(tmp_path, tied=True, state=state)
    assert json.loads(state.read_text())["fingerprint"] != known
