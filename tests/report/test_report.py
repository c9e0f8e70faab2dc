"""What a report says: its text, its JSON, and which modules it shows."""

import json
import math

from reprod_align.report import Check, Finding, ModuleShare, NotJudged, Report, show_factor

FINDING = Finding(
    "forward", "layers.0", "blocks.0", "its inputs agree and its output does not", 0.5, 1e-9
)


def diverging() -> Report:
    checks = [
        Check("forward", "outputs, eval mode", 0.5, False),
        Check("loss", "loss", 1e-16, True),
    ]
    return Report("diverges", [FINDING], ["a remark"], checks, {"layers.0": "blocks.0"})


def test_the_text_has_the_verdict_the_checks_the_findings_and_the_remarks() -> None:
    text = str(diverging())
    assert text.startswith("verdict: diverges\n")
    assert "  forward    outputs, eval mode                             5.0e-01  DIFFERENT" in text
    assert (
        "\nerror[module]: forward: layers.0 (Paddle: blocks.0): its inputs agree and its output does not"
        in text
    )
    assert text.endswith("remarks:\n  - a remark")


def test_what_was_not_judged_ends_the_text_and_stands_in_the_json() -> None:
    report = Report(not_judged=[NotJudged("output", "the output cache")])
    assert str(report).endswith("not judged:\n  - the output cache")
    plain = json.loads(report.to_json())
    assert plain["not_judged"] == [{"kind": "output", "what": "the output cache"}]


def test_a_report_passes_only_with_checks_and_without_findings() -> None:
    assert not Report().passed
    assert not diverging().passed
    assert Report(checks=[Check("loss", "loss", 0.0, True)]).passed


def test_a_faithful_report_calls_nothing_different() -> None:
    """Where float32 inside is all that differs, the float64 checks fail and the port is faithful."""
    report = Report("agrees to float32", checks=[Check("forward", "outputs", 1e-7, False)])
    assert report.passed
    assert "DIFFERENT" not in str(report)
    assert str(report).splitlines()[2].endswith("1.0e-07  float32")


def test_what_float32_makes_stays_float32_beside_a_fault() -> None:
    rounds = Check("forward", "outputs", 1e-7, False, float32=True)
    finding = Finding("optimizer", "", "", "lr: too large", 1.0, 1e-9)
    report = Report("diverges", [finding], checks=[rounds, Check("optimizer", "updates", 1, False)])
    words = [line.split()[-1] for line in str(report).splitlines()[2:4]]
    assert words == ["float32", "DIFFERENT"]


def test_a_factor_has_few_digits() -> None:
    shown = [show_factor(each) for each in (12.3, 9999, 818287281609679.0, float("inf"))]
    assert shown == ["x12", "x9999", ">x10000", ">x10000"]


def test_json_is_strict_and_has_infinities_as_text() -> None:
    report = diverging()
    report.checks.append(Check("forward", "the port runs", math.inf, False))
    plain = json.loads(report.to_json())
    assert plain["checks"][2]["relative"] == "inf"
    assert plain["findings"][0]["torch_name"] == "layers.0"
    assert plain["passed"] is False


def test_the_worst_check_is_a_nan_and_none_against_noise() -> None:
    report = diverging()
    report.checks += [
        Check("forward", "float32", 9.0, True, 8.0),
        Check("loss", "gradient", math.nan, False),
    ]
    assert report.worst is not None and report.worst.what == "gradient"


def test_modules_that_introduce_or_amplify_are_shown_and_the_model() -> None:
    quiet = ModuleShare("quiet", "quiet", 0, 1e-3, 0.0, 1e-3, 1e-3)
    loud = ModuleShare("loud", "loud", 0, 1e-3, 0.0, 0.5, 0.5)
    maker = ModuleShare("maker", "maker", 0, 0.0, 0.2, 0.0, 0.2, handed_to="maker.inner")
    model = ModuleShare("", "", 0, 0.0, 0.0, 0.2, 0.2)
    report = Report(shares=[maker, quiet, loud, model])
    assert report.list_telling_shares() == [maker, loud, model]
    assert "x500" in str(report) and "maker -> inner" in str(report)
