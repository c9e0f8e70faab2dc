"""One report of several: every place once, each check at its worst, the backward pass in its order."""

from reprod_align.report import Check, Finding, NotJudged, Report
from reprod_align.sections.reports import merge_reports


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
