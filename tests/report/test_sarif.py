"""A report as SARIF: valid, with both places and the fix at the bytes that it replaces."""

import json
from pathlib import Path
from typing import Any

from reprod_align.report import Check, Finding, Report, Suggestion
from reprod_align.report.pages import render_sarif

import jsonschema
import pytest

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
