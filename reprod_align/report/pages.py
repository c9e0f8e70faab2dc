"""The report of `align`, and two compared traces, as pages; a report as SARIF 2.1.0.

Code scanning shows a SARIF file at the lines of a pull request.
Specification: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
"""

import linecache
import math
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from reprod_align.base import FRAMEWORKS
from reprod_align.base.difference import RELATIVE_TOLERANCE
from reprod_align.base.files import as_json
from reprod_align.base.text import count, parent
from reprod_align.errors import join_lines, one_line
from reprod_align.page import (
    CodeLine,
    Diagnostic,
    Figures,
    JUnitCase,
    Layer,
    Page,
    Table,
    describe_run,
)
from reprod_align.report import DIFFERENT, Check, Details, Report, say_result
from reprod_align.report.finding import ColumnSpan, Finding, Suggestion, describe_finding
from reprod_align.traces.diff import TraceDiff

_WHOLE: Final = "the model"
_AROUND: Final = 3  # lines of source before and behind one
_BACKWARD = ("gradient", "parameter gradient")


def make_page(report: Report, title: str, editor: str = "") -> Page:
    """Return what the page holds. editor: the scheme of the links that open its lines, "vscode"."""
    return Page(
        title,
        report.verdict,
        report.passed,
        say_verdict(report),
        diagnostics=[show_finding(one, editor) for one in report.findings],
        meaning=report.consequences,
        layers=collect_layers(report),
        limit=RELATIVE_TOLERANCE,
        picture=report.details.picture,
        curves=report.details.curves,
        tables=[_list_checks(report), *_list_details(report.details), _list_pairs(report)],
        cases=[show_case(each, report) for each in report.checks]
        + [
            JUnitCase("findings", f"{one.code}: {one.place}", False, one.message)
            for one in report.findings
        ],
        remarks=report.remarks,
        unjudged=[one.what for one in report.not_judged],
        facts=list((dict(describe_run()) | dict(report.details.versions)).items()),
    )


def say_verdict(report: Report) -> str:
    """Return the verdict in one sentence."""
    found = len(report.findings)
    if found:
        return f"{count(found, 'finding')}; the first is where the two models diverge"
    if not report.passed:
        return "nothing was compared"
    return f"{count(len(report.checks), 'comparison')}, all within tolerance"


def show_finding(finding: Finding, editor: str = "") -> Diagnostic:
    """Return a finding as the page shows it."""
    figures = ""
    if math.isfinite(finding.difference):
        figures = f"difference {finding.difference:.3g}, tolerance {finding.tolerance:.3g}"
    sides = (
        (FRAMEWORKS[side], *finding.line_of(side)) for side in (finding.reference, finding.port)
    )
    lines = [
        CodeLine(side, place, code, span, *_read_around(place, code, editor))
        for side, place, code, span in sides
        if place is not None
    ]
    shown = (*FRAMEWORKS.values(), "also")
    notes = [note for note in describe_finding(finding) if note[0] not in shown]
    return Diagnostic(
        finding.stage, finding.place, finding.title, lines, figures, finding.places,
        finding.torch_name, finding.code, notes, finding.rule[1],
    )  # fmt: skip


def _read_around(place: str, code: str, editor: str) -> tuple[list[tuple[int, str]], str]:
    """Return the lines around "file.py:12", and the link that opens it in an editor, "" without one.

    Nothing where the file is not there, or holds another line than when it was judged.
    """
    name, _, number = place.rpartition(":")
    path = Path(name).resolve()
    every = [line.rstrip("\n") for line in linecache.getlines(str(path))]
    at = int(number) - 1 if number.isdigit() else -1
    if not code or not 0 <= at < len(every) or every[at].strip() != code:
        return [], ""
    first = max(at - _AROUND, 0)
    around = [(first + 1 + n, text) for n, text in enumerate(every[first : at + _AROUND + 1])]
    return around, f"{editor}://file{quote(str(path))}:{number}" if editor else ""


def collect_layers(report: Report) -> list[Layer]:
    """Return the layers in call order, with their shares and whether a finding is about them."""
    layers = {layer.torch_name: layer for layer in report.details.layers}
    for share in report.shares:
        layer = layers.setdefault(share.torch_name, Layer(share.torch_name, share.paddle_name))
        layer.introduced = _take_larger(layer.introduced, share.introduced)
        if not share.handed_to:  # what its own code passes on counts as its own
            layer.inherited = _take_larger(layer.inherited, share.inherited)
    for finding in report.findings:
        name = finding.torch_name
        while name and name not in layers:  # a parameter: its module
            name = parent(name)
        if name in layers and (name or not finding.torch_name):
            layers[name].failed = True
    return list(layers.values())


def show_case(check: Check, report: Report) -> JUnitCase:
    """Return a check as a test; what differs is a consequence of the findings, or float32 inside."""
    passed = say_result(check, report.passed) != DIFFERENT
    text = f"relative difference {check.relative:.1e}"
    return JUnitCase(check.stage, check.what, passed, text, consequence=bool(report.findings))


def _take_larger(known: float | None, other: float) -> float:
    return other if known is None or not known >= other else known


def _list_checks(report: Report) -> Table:
    words = [say_result(one, report.passed) for one in report.checks]
    rows = [
        (one.stage, one.what, f"{one.relative:.1e}", word)
        for one, word in zip(report.checks, words, strict=True)
    ]
    failed = frozenset(number for number, word in enumerate(words) if word == DIFFERENT)
    headers = ("stage", "what", "relative difference", "result")
    return Table("Checks", headers, rows, failed, paste=True)


def _list_details(details: Details) -> list[Table]:
    settings = [
        (one.torch_name or _WHOLE, one.setting, one.torch_value, one.paddle_value,
         "changes the numbers" if one.conclusive else "may have no effect here")
        for one in details.settings
    ]  # fmt: skip
    marked = frozenset(at for at, one in enumerate(details.settings) if one.conclusive)
    weights = [
        (one.torch_name, one.paddle_name, str(one.shape), one.how or "as it is")
        for one in details.weights
    ]
    left = frozenset(at for at, one in enumerate(details.weights) if one.how == "not paired")
    inputs = [(name, dtype, str(shape)) for name, dtype, shape in details.inputs]
    return [
        Table("Settings that differ", ("module", "setting", "PyTorch", "Paddle", "effect"), settings, marked),
        Table("Inputs", ("name", "dtype", "shape"), inputs),
        Table("Weights", ("PyTorch", "Paddle", "shape", "how"), weights, left),
    ]  # fmt: skip


def _list_pairs(report: Report) -> Table:
    """Return the pairs of modules where no layer shows them: the port did not run."""
    rows = [(ours or _WHOLE, theirs or _WHOLE) for ours, theirs in report.pairs.items()]
    return Table("Pairs of modules", ("PyTorch", "Paddle"), [] if report.details.layers else rows)


def make_trace_page(result: TraceDiff, name: str) -> Page:
    """Return what the page holds; name: of the two traces."""
    first, diagnostics = result.first, []
    if first is not None:
        stage = "backward" if first.phase in _BACKWARD else "forward"
        diagnostics = [Diagnostic(stage, first.place, result.headline, module=first.module)]
    cases = [JUnitCase(row.phase, row.place, row.passed, row.amount) for row in result.rows]
    cases += [
        JUnitCase("unpaired", text, result.allow_unpaired, "it has no partner in the other trace")
        for text in (*result.only_expected, *result.only_actual)
    ]
    return Page(
        name,
        "aligned" if result.passed else "NOT aligned",
        result.passed,
        result.headline,
        diagnostics=diagnostics,
        layers=_collect_layers(result),
        limit=max((row.limit for row in result.rows), default=0.0),
        tables=[_list_rows(result), _list_unpaired(result)],
        cases=cases,
        facts=describe_run(),
    )  # fmt: skip


def _list_rows(result: TraceDiff) -> Table:
    rows = [
        (
            row.phase,
            row.place,
            f"{row.relative:.1e}",
            f"{row.limit:.0e}",
            row.words or ("ok" if row.passed else DIFFERENT),
        )
        for row in result.rows
    ]
    failed = frozenset(at for at, row in enumerate(result.rows) if not row.passed)
    headers = ("phase", "tensor", "relative difference", "limit", "result")
    return Table("Pairs of tensors", headers, rows, failed)


def _collect_layers(result: TraceDiff) -> list[Layer]:
    """Return the modules in the order of the rows, each with the worst of its outputs and gradients."""
    layers: dict[str, Layer] = {}
    for row in result.rows:
        if row.phase != "output" and row.phase not in _BACKWARD:
            continue
        layer = layers.setdefault(row.module, Layer(row.module, row.module))
        found = Figures(math.nan, math.nan, row.relative)
        layer.keep_worse("forward" if row.phase == "output" else "backward", found)
        layer.calls = max(layer.calls, row.call + 1)
        layer.failed |= row is result.first
    return list(layers.values())


def _list_unpaired(result: TraceDiff) -> Table:
    rows = [*((text, "PyTorch") for text in result.only_expected),
            *((text, "Paddle") for text in result.only_actual)]  # fmt: skip
    failed = frozenset() if result.allow_unpaired else frozenset(range(len(rows)))
    return Table("Only in one trace", ("tensor", "trace"), rows, failed)


_SCHEMA: Final = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)


def render_sarif(report: Report, pair: Path) -> str:
    """Return the report as the text of a .sarif file.

    Each finding is a result at its line of the port, with the reference's line beside it. Its edit is a fix.
    Files below the working directory are named from there, as code scanning expects of a repository's
    root. Code scanning shows nothing that stands nowhere: a finding without a line is put at the first
    one of the pair's file.
    """
    from reprod_align import __version__

    rules: dict[str, dict[str, Any]] = {}
    for one in report.findings:
        rules[one.code] = {"id": one.code, "shortDescription": {"text": one.rule[0]}}
        if one.entries:  # of the table of APIs, which shows more
            rules[one.code]["help"] = {"text": f"reprod-align api {one.code}"}
    driver = {"name": "reprod-align", "version": __version__, "rules": list(rules.values())}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_describe_result(finding, pair) for finding in report.findings],
    }
    return as_json({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}) + "\n"


def _describe_result(finding: Finding, pair: Path) -> dict[str, Any]:
    notes = [f"{name}: {words}" for name, words in describe_finding(finding)]
    text = join_lines([f"{finding.stage}: {finding.place}: {finding.title}", *notes])
    result: dict[str, Any] = {"ruleId": finding.code, "level": "error", "message": {"text": text}}
    line, code, span = finding.line_of(finding.port)
    result["locations"] = [_describe_place(line or f"{pair}:1", code, span)]
    line, code, span = finding.line_of(finding.reference)
    if line is not None:
        name = FRAMEWORKS[finding.reference]
        beside = _describe_place(line, code, span)
        result["relatedLocations"] = [{"id": 1, "message": {"text": name}, **beside}]
    if finding.edit is not None and finding.edit.last_line:
        result["fixes"] = [_describe_fix(finding.edit)]
    return result


def _describe_place(line: str, code: str, span: ColumnSpan) -> dict[str, Any]:
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


def _describe_fix(edit: Suggestion) -> dict[str, Any]:
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
