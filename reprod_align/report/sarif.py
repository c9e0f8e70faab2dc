"""A report as SARIF 2.1.0, which code scanning shows at the lines of a pull request.

Specification: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
"""

import linecache
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from reprod_align.base.files import as_json
from reprod_align.errors import join_lines, one_line
from reprod_align.report import Report
from reprod_align.report.finding import Edit, Finding, Span, describe_finding

_SCHEMA: Final = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)


def render_sarif(report: Report, pair: Path) -> str:
    """Return the report as the text of a .sarif file.

    Each finding is a result at its line of the port, with PyTorch's line beside it. Its edit is a fix.
    Files below the working directory are named from there, as code scanning expects of a repository's
    root. Code scanning shows nothing that stands nowhere: a finding without a line is put at the first
    one of the pair's file.
    """
    from reprod_align import __version__

    of_codes = {finding.code: finding for finding in report.findings}
    driver = {
        "name": "reprod-align",
        "version": __version__,
        "rules": list(map(_describe_rule, of_codes.values())),
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_describe_result(finding, pair) for finding in report.findings],
    }
    return as_json({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}) + "\n"


def _describe_rule(finding: Finding) -> dict[str, Any]:
    """Return what its code means: in words, and for an entry of the table of APIs what shows it."""
    rule: dict[str, Any] = {"id": finding.code, "shortDescription": {"text": finding.rule[0]}}
    if finding.entries:
        rule["help"] = {"text": f"reprod-align api {finding.code}"}
    return rule


def _describe_result(finding: Finding, pair: Path) -> dict[str, Any]:
    notes = [f"{name}: {words}" for name, words in describe_finding(finding)]
    text = join_lines([f"{finding.stage}: {finding.place}: {finding.title}", *notes])
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "level": "error",
        "message": {"text": text},
    }
    place = finding.paddle_line or f"{pair}:1", finding.paddle_code, finding.paddle_span
    result["locations"] = [_describe_place(*place)]
    if finding.torch_line is not None:
        beside = _describe_place(finding.torch_line, finding.torch_code, finding.torch_span)
        result["relatedLocations"] = [{"id": 1, "message": {"text": "PyTorch"}, **beside}]
    if finding.edit is not None and finding.edit.last_line:
        result["fixes"] = [_describe_fix(finding.edit)]
    return result


def _describe_place(line: str, code: str, span: Span) -> dict[str, Any]:
    """Return a location: the file, the line, and the columns of what is meant, where they are known."""
    file, _, number = line.rpartition(":")
    region: dict[str, Any] = {"startLine": max(1, int(number))}
    start, stop = span if any(span) else (0, len(code))
    whole = linecache.getline(file, int(number))
    if code and (indent := whole.find(code)) >= 0:
        region |= {"startColumn": indent + start + 1, "endColumn": indent + stop + 1}
    if code:
        region["snippet"] = {"text": one_line(code)}
    return {"physicalLocation": {"artifactLocation": {"uri": _name_file(file)}, "region": region}}


def _describe_fix(edit: Edit) -> dict[str, Any]:
    region = {
        "startLine": edit.line,
        "startColumn": edit.column,
        "endLine": edit.last_line,
        "endColumn": edit.last_column,
    }
    change = {
        "artifactLocation": {"uri": _name_file(edit.file)},
        "replacements": [{"deletedRegion": region, "insertedContent": {"text": edit.after}}],
    }
    return {"description": {"text": one_line(str(edit))}, "artifactChanges": [change]}


def _name_file(file: str) -> str:
    """Return a file's URI: from the working directory where it lies below it, absolute elsewhere."""
    path = Path(file).absolute()
    if path.is_relative_to(Path.cwd()):
        return quote(path.relative_to(Path.cwd()).as_posix())
    return path.as_uri()
