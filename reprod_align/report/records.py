"""The checks of the pipeline as a page: what `check` wrote as JSON, and what `align` found if one failed."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from reprod_align.base.difference import RELATIVE_TOLERANCE
from reprod_align.base.naming import parent
from reprod_align.base.text import count
from reprod_align.page.content import Case, CurvePlot, Fault, Figures, Layer, Page, Step, Table
from reprod_align.page.environment import describe_run
from reprod_align.records.verdict import OFFICIAL
from reprod_align.report import Report
from reprod_align.report.html import make_page as make_align_page

Result = Mapping[str, Any]
"""what `check` wrote as JSON for one gate"""
_NUMBERED: Final = re.compile(r"(\w*?[a-z])_(\d+)")
_GRADIENT: Final = re.compile(r"gradient_(\d+)\W(.+)")
_PRECISIONS: Final = (("official", "float32"), ("strict", "float64"))


def make_page(
    name: str,
    steps: Sequence[Step],
    results: Mapping[str, Result],
    found: Report | None = None,
    curves: Sequence[CurvePlot] = (),
) -> Page:
    """Return what the page holds.

    results: by the gates' names, in order. found: what `align` says of the models, if a check
    failed and it was asked. curves: beside those in the results.
    """
    if found is not None:
        page = make_align_page(found, name)
    else:
        page = Page(name, "", True, layers=collect_layers(results), limit=RELATIVE_TOLERANCE)
        page.facts = describe_run()
    page.passed = bool(steps) and all(step.state == "passed" for step in steps)
    page.verdict = "passed" if page.passed else "failed"
    page.steps, page.sentence = steps, _say_verdict(steps)
    page.faults = [*page.faults, *_list_failures(results)]
    page.curves = [*_collect_curves(results), *curves]
    page.tables = [_list_values(results), _list_keys(results), *page.tables]
    page.cases = list(_list_cases(results, steps))
    return page


def describe_step(name: str, result: Result | None, seconds: str = "") -> Step:
    """Return a gate's row; None: it did not run."""
    if result is None:
        return Step(name, "not run", "not run", "not run", seconds=seconds)
    if result["strict"] is None:
        return Step(
            name, "not compared", "not compared", "not compared", "", str(result["reason"]), seconds
        )
    official, strict = ("passed" if result[kind]["passed"] else "failed" for kind, _ in _PRECISIONS)
    if result["strict"]["rule"]["name"] == OFFICIAL:
        strict = "not judged"
    worst = result["strict"]["worst"] or {}
    difference = worst.get("max_rel", worst.get("reason", ""))
    shown = f"{difference:.1e}" if isinstance(difference, float) else str(difference)
    state = "passed" if result["passed"] else "failed"
    return Step(name, state, official, strict, str(worst.get("key", "")), shown, seconds)


def _say_verdict(steps: Sequence[Step]) -> str:
    failed = [step for step in steps if step.state != "passed"]
    if not failed:
        return f"all {count(len(steps), 'comparison')} passed"
    return f"{len(failed)} of {count(len(steps), 'comparison')} did not pass, the first is {failed[0].name}"


def _list_failures(results: Mapping[str, Result]) -> Iterator[Fault]:
    """Yield the first difference of each gate that failed."""
    for name, result in results.items():
        if not result["passed"]:
            compared = result["strict"] or {"keys": []}
            keys = [one for kind, _ in _PRECISIONS for one in (result[kind] or compared)["keys"]]
            first = next((one["key"] for one in keys if not one["passed"]), "")
            yield Fault(name, str(first) or "the records", str(result["reason"]), module=str(first))


def _read_keys(result: Result, kind: str) -> list[Mapping[str, Any]]:
    return [] if result[kind] is None else list(result[kind]["keys"])


def _measure(key: Mapping[str, Any]) -> Figures | None:
    """Return a key's figures, of a float tensor that was measured."""
    if "mean_abs" not in key or not str(key["expected_dtype"]).startswith("float"):
        return None
    mean, most, relative = (float(key[name]) for name in ("mean_abs", "max_abs", "max_rel"))
    if key["passed"] and key["rule"] == "strict":  # rounding around zero is no difference
        relative = min(relative, RELATIVE_TOLERANCE * float(key["exceed"]))
    return Figures(mean, most, relative)


def collect_layers(results: Mapping[str, Result]) -> list[Layer]:
    """Return the layers of the forward record in call order, with the first step's gradients."""
    layers: dict[str, Layer] = {}
    for kind, precision in _PRECISIONS[::-1]:
        for key in _read_keys(results.get("forward", {"official": None, "strict": None}), kind):
            figures = _measure(key)
            if figures is not None:
                layer = layers.setdefault(key["key"], Layer(key["key"], key["key"]))
                setattr(layer, "forward" if precision == "float64" else "rounded", figures)
                layer.failed |= not key["passed"]
    for key in _read_keys(results.get("bp_align", {"strict": None}), "strict"):
        found = _GRADIENT.fullmatch(key["key"])
        if found and found[1] == "0" and (figures := _measure(key)) is not None:
            _add_gradient(layers, parent(found[2]), figures)
    return list(layers.values())


def _add_gradient(layers: dict[str, Layer], module: str, figures: Figures) -> None:
    """Give a module, or a new one, the worst of its parameters' gradients."""
    layer = layers.setdefault(module, Layer(module, module))
    if layer.backward is None or not layer.backward.relative >= figures.relative:
        layer.backward = figures


def _collect_curves(results: Mapping[str, Result]) -> list[CurvePlot]:
    """Return the numbers that Step 4 records for each iteration."""
    points: dict[str, list[tuple[int, float, float]]] = {}
    for key in _read_keys(results.get("bp_align", {"strict": None}), "strict"):
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


def _list_values(results: Mapping[str, Result]) -> Table:
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


def _list_keys(results: Mapping[str, Result]) -> Table:
    """Return every tensor with its mean and largest difference in both precisions; failures first."""
    rows = [row for name, result in results.items() for row in _show_keys(name, result)]
    rows.sort(key=lambda row: row[0])
    failed = frozenset(at for at, (passed, _) in enumerate(rows) if not passed)
    figures = (f"{which} ({kind})" for kind in ("float64", "float32") for which in ("mean", "max"))
    headers = ("stage", "tensor", *figures, "result")
    return Table("Tensors", headers, [row for _, row in rows], failed)


def _show_keys(name: str, result: Result) -> Iterator[tuple[bool, tuple[str, ...]]]:
    official = {key["key"]: key for key in _read_keys(result, "official")}
    strict = {key["key"]: key for key in _read_keys(result, "strict")}
    for key in dict.fromkeys((*strict, *official)):
        both = [found for found in (strict.get(key), official.get(key)) if found is not None]
        failed = [found for found in both if not found["passed"]]
        cells = [
            cell for found in (strict.get(key), official.get(key)) for cell in _show_cells(found)
        ]
        yield not failed, (name, key, *cells, failed[0]["reason"] if failed else "ok")


def _show_cells(key: Mapping[str, Any] | None) -> Iterable[str]:
    figures = None if key is None else _measure(key)
    if figures is None:
        return "", ""
    return tuple("" if math.isnan(one) else f"{one:.1e}" for one in figures[:2])


def _list_cases(results: Mapping[str, Result], steps: Sequence[Step]) -> Iterator[Case]:
    """Yield every tensor in either precision, and the gates that compared nothing."""
    for name, result in results.items():
        for kind, precision in _PRECISIONS:
            for key in _read_keys(result, kind):
                yield Case(
                    name, f"{key['key']} ({precision})", bool(key["passed"]), str(key["reason"])
                )
        if result["strict"] is None:
            yield Case(name, "can be compared", False, str(result["reason"]))
    for step in steps:
        if step.state == "not run":
            yield Case("steps", step.name, False, "not run")
