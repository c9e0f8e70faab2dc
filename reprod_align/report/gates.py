"""What a check script does with its gates: it compares them, and shows what `check` wrote as one page."""

import json
import re
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any, Final

from reprod_align.base.difference import RELATIVE_TOLERANCE
from reprod_align.base.files import from_plain
from reprod_align.base.text import count, parent
from reprod_align.page import (
    CurvePlot,
    Diagnostic,
    Figures,
    JUnitCase,
    Layer,
    Page,
    StepResult,
    Table,
    describe_run,
)
from reprod_align.page.outputs import require_outputs, show_cells, write_outputs
from reprod_align.records.compare import OFFICIAL
from reprod_align.records.gate import Gate, check
from reprod_align.report import Report
from reprod_align.report.pages import make_page

GateResult = Mapping[str, Any]
"""what `check` wrote as JSON for one gate"""
_NUMBERED: Final = re.compile(r"(\w*?[a-z])_(\d+)")
_GRADIENT: Final = re.compile(r"gradient_(\d+)\W(.+)")
_PRECISIONS: Final = (("official", "float32"), ("strict", "float64"))


def judge_gates(
    options: Namespace,
    gates: Sequence[Gate],
    kept: Mapping[str, Path],
    collect_page: Callable[[], Page] | None = None,
) -> int:
    """Compare each gate's files; return the worst exit code. Writes --report, --markdown and --junit.

    kept: by the gates' names, where what `align` found after a failure is kept as JSON; earlier ones
    are removed. collect_page: another page than that of these gates alone. Raises ReprodError if a file
    cannot be written, before anything is compared.
    """
    require_outputs(options)
    for path in kept.values():
        path.unlink(missing_ok=True)
    with redirect_stdout(sys.stderr) if options.markdown else nullcontext():
        code = max(check(gate) for gate in gates)
    write_outputs(options, collect_page or partial(_collect_page, gates, kept))
    return code


def read_results(files: Mapping[str, Path]) -> dict[str, Mapping[str, Any]]:
    """Return what gates wrote as JSON, by their names; those that wrote nothing are left out."""
    found = {name: _read(path) for name, path in files.items()}
    return {name: result for name, result in found.items() if result is not None}


def read_found(files: Iterable[Path]) -> Report | None:
    """Return the first report of `align` in these files; None if there is none."""
    kept = map(_read, files)
    return next((from_plain(Report, plain) for plain in kept if plain is not None), None)


def _collect_page(gates: Sequence[Gate], kept: Mapping[str, Path]) -> Page:
    results = read_results({gate.name: Path(gate.result_file) for gate in gates})
    steps = [describe_step(gate.name, results.get(gate.name)) for gate in gates]
    found = read_found(kept[name] for name in results if name in kept)
    return make_steps_page(Path(sys.argv[0]).name, steps, results, found)


def _read(path: Path) -> Mapping[str, Any] | None:
    try:
        result: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return result


def make_steps_page(
    name: str,
    steps: Sequence[StepResult],
    results: Mapping[str, GateResult],
    found: Report | None = None,
    curves: Sequence[CurvePlot] = (),
) -> Page:
    """Return what the page holds.

    results: by the gates' names, in order. found: what `align` says of the models, if a check
    failed and it was asked. curves: beside those in the results.
    """
    if found is not None:
        page = make_page(found, name)
    else:
        page = Page(name, "", True, layers=collect_layers(results), limit=RELATIVE_TOLERANCE)
        page.facts = describe_run()
    failed, every = [one for one in steps if one.state != "passed"], count(len(steps), "comparison")
    page.sentence = f"all {every} passed"
    if failed:
        page.sentence = f"{len(failed)} of {every} did not pass, the first is {failed[0].name}"
    page.passed, page.steps = bool(steps) and not failed, steps
    page.verdict = "passed" if page.passed else "failed"
    page.diagnostics = [*page.diagnostics, *_list_failures(results)]
    page.curves = [*_collect_curves(results), *curves]
    page.tables = [_list_values(results), _list_keys(results), *page.tables]
    page.cases = list(_list_cases(results, steps))
    return page


def describe_step(name: str, result: GateResult | None, seconds: str = "") -> StepResult:
    """Return a gate's row; None: it did not run."""
    if result is None:
        return StepResult(name, "not run", "not run", "not run", seconds=seconds)
    if result["strict"] is None:
        return StepResult(
            name, "not compared", "not compared", "not compared", "", str(result["reason"]), seconds
        )
    official, strict = ("passed" if result[kind]["passed"] else "failed" for kind, _ in _PRECISIONS)
    if result["strict"]["rule"]["name"] == OFFICIAL:
        strict = "not judged"
    worst = result["strict"]["worst"] or {}
    difference = worst.get("max_rel", worst.get("reason", ""))
    shown = f"{difference:.1e}" if isinstance(difference, float) else str(difference)
    state = "passed" if result["passed"] else "failed"
    return StepResult(name, state, official, strict, str(worst.get("key", "")), shown, seconds)


def _list_failures(results: Mapping[str, GateResult]) -> Iterator[Diagnostic]:
    """Yield the first difference of each gate that failed."""
    for name, result in results.items():
        if not result["passed"]:
            compared = result["strict"] or {"keys": []}
            keys = [one for kind, _ in _PRECISIONS for one in (result[kind] or compared)["keys"]]
            first = next((str(one["key"]) for one in keys if not one["passed"]), "")
            yield Diagnostic(name, first or "the records", str(result["reason"]), module=first)


def _read_keys(result: GateResult | None, kind: str) -> list[Mapping[str, Any]]:
    return [] if result is None or result[kind] is None else list(result[kind]["keys"])


def _measure(key: Mapping[str, Any]) -> Figures | None:
    """Return a key's figures, of a float tensor that was measured."""
    if "mean_abs" not in key or not str(key["expected_dtype"]).startswith("float"):
        return None
    mean, most, relative = (float(key[name]) for name in ("mean_abs", "max_abs", "max_rel"))
    if key["passed"] and key["rule"] == "strict":  # rounding around zero is no difference
        relative = min(relative, RELATIVE_TOLERANCE * float(key["exceed"]))
    return Figures(mean, most, relative)


def collect_layers(results: Mapping[str, GateResult]) -> list[Layer]:
    """Return the layers of the forward record in call order, with the first step's gradients."""
    layers: dict[str, Layer] = {}
    for kind, precision in _PRECISIONS[::-1]:
        for key in _read_keys(results.get("forward"), kind):
            figures = _measure(key)
            if figures is not None:
                layer = layers.setdefault(key["key"], Layer(key["key"], key["key"]))
                setattr(layer, "forward" if precision == "float64" else "rounded", figures)
                layer.failed |= not key["passed"]
    for key in _read_keys(results.get("bp_align"), "strict"):
        found = _GRADIENT.fullmatch(key["key"])
        if found and found[1] == "0" and (figures := _measure(key)) is not None:
            module = parent(found[2])
            layers.setdefault(module, Layer(module, module)).keep_worse("backward", figures)
    return list(layers.values())


def _collect_curves(results: Mapping[str, GateResult]) -> list[CurvePlot]:
    """Return the numbers that Step 4 records for each iteration."""
    points: dict[str, list[tuple[int, float, float]]] = {}
    for key in _read_keys(results.get("bp_align"), "strict"):
        found = _NUMBERED.fullmatch(key["key"])
        if found and _is_number(key):
            pair = float(key["expected_value"]), float(key["actual_value"])
            points.setdefault(found[1], []).append((int(found[2]), *pair))
    names = {"loss": "loss of Step 4", "lr": "learning rate of Step 4"}
    return [
        CurvePlot(names.get(name, name), *map(list, zip(*rows, strict=True)))  # type: ignore[arg-type]
        for name, rows in points.items()
        if len(rows) > 1
    ]


def _is_number(key: Mapping[str, Any]) -> bool:
    return _measure(key) is not None and key["size"] == 1


def _list_values(results: Mapping[str, GateResult]) -> Table:
    """Return the single numbers of the submitted records: metrics, losses, accuracy."""
    rows: list[tuple[str, ...]] = []
    failed = set()
    for name, result in results.items():
        for key in _read_keys(result, "official"):
            if _is_number(key) and not _NUMBERED.fullmatch(key["key"]):
                if not key["passed"]:
                    failed.add(len(rows))
                values = (float(key["expected_value"]), float(key["actual_value"]))
                rows.append(
                    (name, key["key"], *(f"{one:.10g}" for one in values), f"{key['max_abs']:.1e}")
                )
    headers = ("stage", "name", "PyTorch", "Paddle", "difference")
    return Table("Values", headers, rows, frozenset(failed), paste=True)


def _list_keys(results: Mapping[str, GateResult]) -> Table:
    """Return every tensor with its mean and largest difference in both precisions; failures first."""
    rows: list[tuple[bool, tuple[str, ...]]] = []
    for name, result in results.items():
        strict, official = ({key["key"]: key for key in _read_keys(result, kind)}
                            for kind in ("strict", "official"))  # fmt: skip
        for key in dict.fromkeys((*strict, *official)):
            both = strict.get(key), official.get(key)
            figures = [None if found is None else _measure(found) for found in both]
            cells = [cell for one in figures for cell in show_cells(one)]
            reasons = [str(found["reason"]) for found in both if found and not found["passed"]]
            rows.append((not reasons, (name, key, *cells, reasons[0] if reasons else "ok")))
    rows.sort(key=lambda row: row[0])
    failed = frozenset(at for at, (passed, _) in enumerate(rows) if not passed)
    numbers = (f"{which} ({kind})" for kind in ("float64", "float32") for which in ("mean", "max"))
    headers = ("stage", "tensor", *numbers, "result")
    return Table("Tensors", headers, [row for _, row in rows], failed)


def _list_cases(
    results: Mapping[str, GateResult], steps: Sequence[StepResult]
) -> Iterator[JUnitCase]:
    """Yield every tensor in either precision, and the gates that compared nothing."""
    for name, result in results.items():
        for kind, precision in _PRECISIONS:
            for key in _read_keys(result, kind):
                yield JUnitCase(
                    name, f"{key['key']} ({precision})", bool(key["passed"]), str(key["reason"])
                )
        if result["strict"] is None:
            yield JUnitCase(name, "can be compared", False, str(result["reason"]))
    for step in steps:
        if step.state == "not run":
            yield JUnitCase("steps", step.name, False, "not run")
