"""One report is made of those on the pieces; an interrupted run goes on from its folder."""

import math
from pathlib import Path
from runpy import run_path
from typing import Any

from reprod_align.base.tasks import ResultFolder
from reprod_align.report import Check, Finding, NotJudged, Report
from reprod_align.sections import pieces, reports
from reprod_align.sections.pieces import judge_piece as JUDGE
from reprod_align.sections.reports import find_report, keep_report, merge_reports
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
    folder = ResultFolder(tmp_path)
    keep_report(folder, "piece", report)
    found = find_report(folder, "piece")
    assert found is not None and found.findings == report.findings
    assert str(found) == str(report)
    assert find_report(folder, "other") is None
    (tmp_path / "piece.json").write_text('{"verdict": "faithful", "findings": 3}')
    assert find_report(folder, "piece") is None


def stop_at(last: int, judged: list[str]) -> Any:
    """Return what judges a piece; it notes the name, and is interrupted at the piece of this number."""

    def judge_some(pair: Any, runs: Any, piece: Any, **options: Any) -> Any:
        if len(judged) == last:
            raise KeyboardInterrupt
        judged.append(piece.name)
        return JUDGE(pair, runs, piece, **options)

    return judge_some


def test_an_interrupted_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state, judged = tmp_path / "state", list[str]()
    monkeypatch.setattr(pieces, "judge_piece", stop_at(2, judged))
    with pytest.raises(KeyboardInterrupt):
        judge_in_sections(tmp_path, "code", state=state)
    assert judged == ["embed", "layers.0"]
    monkeypatch.setattr(pieces, "judge_piece", stop_at(-1, judged))
    monkeypatch.setattr(pieces, "run_side", None)  # the whole runs are kept
    gone_on = judge_in_sections(tmp_path, "code", state=state)
    assert judged == ["embed", "layers.0", "layers.1", "layers.2", "norm to head"]
    monkeypatch.undo()
    assert places(gone_on) == places(judge_in_sections(tmp_path, "code"))


@pytest.mark.parametrize("change", ["weights", "loss", "model", "judge"])
def test_what_has_changed_is_judged_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    state, judged = tmp_path / "state", list[str]()
    judge_in_sections(tmp_path, state=state)
    monkeypatch.setattr(pieces, "judge_piece", stop_at(-1, judged))
    judge_in_sections(tmp_path, state=state)
    assert judged == []
    given: dict[str, Any] = {"state": state}
    if change == "judge":
        monkeypatch.setattr(reports, "digest_judge", lambda: "another")
    elif change == "loss":
        path = tmp_path / "losses.py"
        path.write_text("def square(output):\n    return (output**2).mean()\n")
        square = run_path(str(path))["square"]
        given |= {"torch_loss": square, "paddle_loss": square}
    judge_in_sections(tmp_path, "head" if change == "model" else "", change == "weights", **given)
    assert len(judged) in (4, 5)
