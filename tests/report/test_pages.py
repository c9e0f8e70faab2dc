"""The pages of a report and of two traces: findings, layers with their shares, and tables.

A report as SARIF is valid.
"""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from reprod_align.errors import ReprodError
from reprod_align.page import Figures, Layer
from reprod_align.page.html import render_page
from reprod_align.page.outputs import render_junit, render_markdown
from reprod_align.report import (
    Check,
    Details,
    Finding,
    ModuleShare,
    Report,
    Setting,
    Suggestion,
    Weight,
)
from reprod_align.report.pages import (
    collect_layers,
    make_page,
    make_trace_page,
    render_sarif,
    say_verdict,
)
from reprod_align.traces.diff import TensorDifference, TraceDiff

import jsonschema
import pytest

CHECKS = [Check("forward", "outputs, eval mode", 0.5, False), Check("loss", "loss", 0.0, True)]
HOSTILE = "<script>alert(1)</script>"
FINDING = Finding("forward", "encoder.1", "encoder.1", HOSTILE, 0.5, 1e-9, "a.py:3", "b.py:4", "one()",
                  "two()", places=("a.1", "a.<2>"))  # fmt: skip


def diverging() -> Report:
    layers = [
        Layer(name, name, "Linear", forward=Figures(0.1, 0.2, 0.3))
        for name in ("", "encoder.0", "encoder.1")
    ]
    details = Details(
        layers, weights=[Weight("w", "v", (2, 3), "transposed"), Weight("x", "", (1,), "not paired")],
        settings=[Setting("encoder.1", "encoder.1", "eps", "1e-5", "1e-3", True)],
        inputs=[("ids", "int64", (8, 12))],
    )  # fmt: skip
    shares = [
        ModuleShare("encoder.1", "encoder.1", 0, 0.0, 0.25, 0.0, 0.25),
        ModuleShare("encoder.1", "encoder.1", 1, 0.0, 0.5, 0.125, 0.5),
        ModuleShare("", "", 0, 0.0, 0.0625, 9.0, 0.3, "encoder.1"),
    ]
    return Report("diverges", [FINDING], ["a remark"], CHECKS, {"": ""}, ["3 of 8 predictions flip"],
                  shares, details=details)  # fmt: skip


def test_the_page_has_every_part_of_the_report() -> None:
    page = render_page(make_page(diverging(), "my pair"))
    for part in (
        "my pair", "diverges", "a remark", "outputs, eval mode", "a.py:3", "one()", "b.py:4", "two()",
        "3 of 8 predictions flip", "(8, 12)", "transposed", "not paired", "changes the numbers",
        "difference 0.5, tolerance 1e-09", "a.&lt;2&gt;", "5.0e-01",
    ):  # fmt: skip
        assert part in page, part
    assert HOSTILE not in page and "&lt;script&gt;" in page
    assert page.startswith("<!DOCTYPE html>") and page.endswith("</html>\n")


def test_a_layer_takes_the_worst_share_of_its_calls() -> None:
    layers = {layer.torch_name: layer for layer in collect_layers(diverging())}
    assert (layers["encoder.1"].introduced, layers["encoder.1"].inherited) == (0.5, 0.125)
    assert (layers[""].introduced, layers[""].inherited) == (0.0625, None)
    assert [name for name, layer in layers.items() if layer.failed] == ["encoder.1"]


def test_a_finding_about_a_parameter_marks_its_module() -> None:
    report = diverging()
    report.findings = [Finding("backward", "encoder.0.weight", "", "differs", 1.0, 0.0)]
    assert [one.torch_name for one in collect_layers(report) if one.failed] == ["encoder.0"]


def test_versions_of_other_interpreters_take_the_place_of_this_ones() -> None:
    report = diverging()
    report.details.versions = {"torch": "1.2.3"}
    assert dict(make_page(report, "x").facts)["torch"] == "1.2.3"


def test_a_faithful_page_calls_nothing_different() -> None:
    """Where float32 inside is all that differs, the float64 checks fail and the port is faithful."""
    page = make_page(
        Report("agrees to float32", checks=[Check("forward", "outputs", 1e-7, False)]), "x"
    )
    (checks, *_) = page.tables
    assert checks.rows[0][-1] == "float32" and not checks.failed
    assert page.passed and all(case.passed for case in page.cases)


def test_the_verdict_in_a_sentence() -> None:
    assert say_verdict(diverging()).startswith("1 finding; the first is")
    assert say_verdict(Report(checks=CHECKS[1:])) == "1 comparison, all within tolerance"
    assert say_verdict(Report()) == "nothing was compared"


def test_modules_are_listed_where_the_port_did_not_run() -> None:
    report = Report(checks=CHECKS, pairs={"a": "b"})
    titles = [table.title for table in make_page(report, "x").tables if table.rows]
    assert titles == ["Checks", "Pairs of modules"]


def test_a_report_saves_itself(tmp_path: Path) -> None:
    report = diverging()
    report.save_html(tmp_path / "page.html", "mine")
    text = (tmp_path / "page.html").read_text()
    assert len(json.loads(re.findall(r'id="data">(.*?)</script>', text)[0])["tree"]) == 4
    with pytest.raises(ReprodError, match=r"must end in \.html"):
        report.save_html(tmp_path / "page.pdf")
    report.save_html(tmp_path / "new" / "page.html")
    assert (tmp_path / "new" / "page.html").is_file()


def test_the_lines_around_are_read_where_the_file_still_holds_the_line(tmp_path: Path) -> None:
    path = tmp_path / "net work.py"
    path.write_text("".join(f"line({number})\n" for number in range(1, 11)))
    finding = Finding("forward", "a", "a", "b", 0.5, 1e-9, None, f"{path}:2", "", "line(2)")
    ((line,),) = (
        one.lines for one in make_page(Report("diverges", [finding]), "x", "vscode").diagnostics
    )
    assert [number for number, _ in line.around] == [1, 2, 3, 4, 5] and line.around[1][
        1
    ] == "line(2)"
    assert line.link == f"vscode://file{tmp_path}/net%20work.py:2"
    ((line,),) = (one.lines for one in make_page(Report("diverges", [finding]), "x").diagnostics)
    assert line.link == "" and line.around
    changed = replace(finding, paddle_code="line(3)")
    ((line,),) = (
        one.lines for one in make_page(Report("diverges", [changed]), "x", "vscode").diagnostics
    )
    assert line.link == "" and not line.around


ROWS = (
    TensorDifference(0.0, 1e-9, False, True, phase="input", module="fc", call=0, leaf=""),
    TensorDifference(1e-12, 1e-9, False, True, phase="output", module="fc", call=0, leaf=""),
    TensorDifference(0.5, 1e-9, False, False, "sign", phase="output", module="fc", call=1, leaf=""),
    TensorDifference(0.25, 1e-9, False, False, "", phase="output", module="", call=0, leaf=""),
    TensorDifference(
        0.125,
        1e-9,
        False,
        False,
        "",
        phase="parameter gradient",
        module="fc",
        call=0,
        leaf="weight",
    ),
)


def test_a_module_has_the_worst_of_its_calls() -> None:
    page = make_trace_page(TraceDiff(ROWS, ("output of x",), (), False), "a | b")
    layers = {layer.torch_name: layer for layer in page.layers}
    assert layers["fc"].forward is not None and layers["fc"].forward.relative == 0.5
    assert layers["fc"].backward is not None and layers["fc"].backward.relative == 0.125
    assert layers["fc"].failed and not layers[""].failed and layers["fc"].calls == 2
    assert page.diagnostics[0].module == "fc" and "first the output of fc" in page.sentence
    assert page.tables[0].failed == {2, 3, 4} and page.tables[1].failed == {0}
    assert not page.passed and "fc" in render_page(page) and "fc" in render_markdown(page)
    assert 'failures="4"' in render_junit(page)


def test_traces_that_agree() -> None:
    page = make_trace_page(TraceDiff(ROWS[:2], (), ("output of y",), True), "a | b")
    assert page.passed and not page.diagnostics and page.verdict == "aligned"
    assert not page.tables[1].failed and 'failures="0"' in render_junit(page)


SCHEMA = json.loads(Path(__file__).with_name("sarif_schema.json").read_text())
PORT = "def run(x):\n    é = 1; return x * scale\n"


def read(*findings: Finding) -> dict[str, Any]:
    report = Report("diverges", list(findings), checks=[Check("loss", "", 1.0, False)])
    text = render_sarif(report, Path("pair.py"))
    made: dict[str, Any] = json.loads(text)
    jsonschema.validate(made, SCHEMA)
    return made["runs"][0]  # type: ignore[no-any-return]


def write_port(folder: Path, name: str = "my port.py") -> Finding:
    (folder / name).write_text(PORT, encoding="utf-8")
    edit = Suggestion(str(folder / name), 2, "scale", "2 * scale", "reference", "tried", 23, 2, 28)
    code = "é = 1; return x * scale"
    return Finding(
        "forward", "a", "b", "far apart", 0.5, 1e-9, "net.py:7", f"{name}:2", "return x * 2", code,
        edit=edit, paddle_span=(14, 23), cause="too small (see `reprod-align api layer-norm-epsilon`)",
    )  # fmt: skip


def test_a_result_has_its_rule_both_places_and_the_fix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = read(write_port(tmp_path))
    (result,) = run["results"]
    assert result["ruleId"] == "layer-norm-epsilon" == run["tool"]["driver"]["rules"][0]["id"]
    assert result["message"]["text"].startswith("forward: a (Paddle: b): too small\n")
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "my%20port.py"
    region = place["region"]
    line = PORT.splitlines()[region["startLine"] - 1]
    assert line[region["startColumn"] - 1 : region["endColumn"] - 1] == "x * scale"
    beside = result["relatedLocations"][0]["physicalLocation"]
    assert beside["artifactLocation"]["uri"] == "net.py" and beside["region"]["startLine"] == 7
    (change,) = result["fixes"][0]["artifactChanges"][0]["replacements"]
    gone = change["deletedRegion"]
    assert line[gone["startColumn"] - 1 : gone["endColumn"] - 1] == "scale"
    assert change["insertedContent"]["text"] == "2 * scale"


def test_a_file_elsewhere_has_its_whole_uri_and_a_finding_without_a_line_stands_at_the_pair(
    tmp_path: Path,
) -> None:
    elsewhere = write_port(tmp_path)
    run = read(
        Finding("loss", "", "", "another loss", 1.0, 0.0, kind="loss"),
        Finding("forward", "a", "a", "x", 1.0, 0.0, paddle_line=f"{tmp_path / 'my port.py'}:2"),
        elsewhere,
    )
    first, second, _ = run["results"]
    place = first["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "pair.py"}, "region": {"startLine": 1}}
    uri = second["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri == (tmp_path / "my port.py").as_uri()
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == [
        "loss", "module", "layer-norm-epsilon",
    ]  # fmt: skip


def test_a_faithful_report_has_no_results() -> None:
    assert read()["results"] == []


def test_a_name_with_line_breaks_stays_in_its_line() -> None:
    (result,) = read(Finding("forward", "a\nb", "a\nb", "x", 1.0, 0.0))["results"]
    assert "\n" not in result["message"]["text"].partition("evidence")[0].strip()
