"""The collector of findings."""

import math

from reprod_align.alignment import note_rounded
from reprod_align.alignment.findings import OUTPUTS_IN_EVAL, Findings
from reprod_align.base.difference import Gap
from reprod_align.report import Report


def test_a_check_of_several_tensors_has_the_largest_and_fails_with_any() -> None:
    findings = Findings()
    findings.check_gaps("forward", "x", [Gap(1e-12, 1e-9, 1.0), Gap(1e-3, 1e-9, 1.0)])
    findings.check_gaps("forward", "nothing to compare", [], passed=False)
    findings.check_gaps("forward", "no tensors", [])
    relative = [check.relative for check in findings.report.checks]
    assert [check.passed for check in findings.report.checks] == [False, False, True]
    assert math.isclose(relative[0], 1e-3) and relative[1:] == [math.inf, 0.0]


def test_remarks_and_places_with_float32_are_noted_once() -> None:
    findings = Findings()
    for _ in range(2):
        findings.remark("a remark")
        findings.note_float32("encoder", 1e-7)
    assert findings.float32_inside and findings.report.remarks == ["a remark"]
    assert findings.report.imprecise == {"encoder": 1e-7}


def test_places_with_float32_are_one_remark() -> None:
    for places, words in (
        ({"a": 2e-7}, "a loses precision (relative 2.0e-07)"),
        ({"a": 2e-7, "b": 3e-7, "c": 1e-7},
         "3 places lose precision, from a to c (relative 3.0e-07 at most)"),
    ):  # fmt: skip
        report = Report(imprecise=places)
        note_rounded(report)
        assert report.remarks == [f"agrees to float32 only: {words}"]


def test_findings_are_found_by_place_and_stage_and_can_be_extended() -> None:
    findings = Findings()
    findings.add("forward", "a", "b", "it differs", kind="module")
    findings.add("backward", "a", "b", "its gradient differs", kind="gradient")
    for settings in ("p", "q"):
        findings.add_settings(findings.at("a", "b")[0], settings)
    findings.put_first(findings.at_stage("backward"))
    texts = [finding.message for finding in findings.report.findings]
    assert texts == [
        "its gradient differs",
        "Settings differ: p; q. it differs",
        "its gradient differs",
    ]
    assert findings.at("a", "c") == [] and len(findings.at_stage("forward", "backward")) == 3


def test_eval_agrees_only_after_that_check_has_passed() -> None:
    findings = Findings()
    findings.check("forward", OUTPUTS_IN_EVAL, 1.0, False)
    assert not findings.eval_agrees
    findings.check("forward", OUTPUTS_IN_EVAL, 0.0, True)
    assert findings.eval_agrees
