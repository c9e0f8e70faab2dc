"""One report is made of those on the pieces; an interrupted run goes on from its file."""

import json
import math
from pathlib import Path
from typing import Any

from reprod_align import sections
from reprod_align.report import Check, Finding, NotJudged, Report
from reprod_align.sections.reports import StateFile, merge_reports
from tests.sections.small import judge_in_sections, places

import pytest


def finding(stage, name, message="wrong") -> Finding:  # type: ignore[no-untyped-def]
    return Finding(stage, name, name, message, 1.0, 0.0)


def check(what: str, relative: float, passed: bool = True, noise: float | None = None) -> Check:
    return Check("forward", what, relative, passed, noise)


def test_a_place_outside_the_sections_is_said_once() -> None:
    one = Report("diverges", [finding("forward", "model"), finding("backward", "first", "a")])
    two = Report("diverges", [finding("forward", "model"), finding("backward", "second", "b")])
    merged = merge_reports([one, two, Report()])
    named = [(found.stage, found.torch_name) for found in merged.findings]
    assert named == [("forward", "model"), ("backward", "second"), ("backward", "first")]
    assert merged.verdict == "diverges"


def test_the_worst_of_a_kind_of_check_is_kept() -> None:
    first = [check("outputs, eval mode", 1e-15), check("in float32, 1.5 x", 9e-7, True, 6e-7)]
    second = [
        check("outputs, eval mode", 1e-3, False),
        check("in float32, 2.0 x", 6e-7, True, 3e-7),
    ]
    outputs, rounding = merge_reports([Report(checks=first), Report(checks=second)]).checks
    assert outputs.what == "outputs by section, eval mode"
    assert outputs.relative == 1e-3 and not outputs.passed
    assert rounding.what == "in float32 by section, 2.0 x"


def test_float32_in_one_section_is_the_verdict_if_none_diverges() -> None:
    rounded = Report("agrees to float32", rounded=["a"], imprecise={"a": 1e-7})
    other = Report("agrees to float32", imprecise={"b": 2e-7})
    merged = merge_reports([Report(), rounded, other])
    assert (merged.verdict, merged.rounded) == ("agrees to float32", ["a"])
    assert [*merged.imprecise] == ["a", "b"]
    worse = merge_reports([rounded, Report("diverges", [finding("forward", "x")])])
    assert (worse.verdict, worse.rounded, worse.imprecise) == ("diverges", [], {})


def test_what_only_a_piece_lacks_is_not_remarked() -> None:
    text = "no parameter gets a gradient: the backward pass is not tested"
    assert merge_reports([Report(remarks=[text]), Report()]).remarks == []
    assert merge_reports([Report(remarks=[text])] * 2).remarks == [text]


def test_what_the_sections_leave_unjudged_is_said_once() -> None:
    one, other = NotJudged("output", "a"), NotJudged("state", "b")
    merged = merge_reports([Report(not_judged=[one]), Report(not_judged=[one, other])])
    assert merged.not_judged == [one, other]


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
