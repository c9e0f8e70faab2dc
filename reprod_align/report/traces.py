"""Two compared traces as a page."""

import math
from collections.abc import Iterable

from reprod_align.page.content import Case, Fault, Figures, Layer, Page, Table
from reprod_align.page.environment import describe_run
from reprod_align.traces.diff import Row, TraceDiff

_BACKWARD = ("gradient", "parameter gradient")


def make_page(result: TraceDiff, name: str) -> Page:
    """Return what the page holds; name: of the two traces."""
    return Page(
        name,
        "aligned" if result.passed else "NOT aligned",
        result.passed,
        result.headline,
        faults=[] if result.first is None else [_show_first(result, result.first)],
        layers=_collect_layers(result),
        limit=max((row.limit for row in result.rows), default=0.0),
        tables=[_list_rows(result), _list_unpaired(result)],
        cases=[*map(_show_case, result.rows), *_list_unpaired_cases(result)],
        facts=describe_run(),
    )  # fmt: skip


def _list_rows(result: TraceDiff) -> Table:
    rows = [(row.phase, row.place, f"{row.relative:.1e}", f"{row.limit:.0e}", row.words or _judge(row))
            for row in result.rows]  # fmt: skip
    failed = frozenset(at for at, row in enumerate(result.rows) if not row.passed)
    headers = ("phase", "tensor", "relative difference", "limit", "result")
    return Table("Pairs of tensors", headers, rows, failed)


def _show_case(row: Row) -> Case:
    return Case(row.phase, row.place, row.passed, row.amount)


def _judge(row: Row) -> str:
    return "ok" if row.passed else "DIFFERENT"


def _show_first(result: TraceDiff, first: Row) -> Fault:
    stage = "backward" if first.phase in _BACKWARD else "forward"
    return Fault(stage, first.place, result.headline, module=first.module)


def _collect_layers(result: TraceDiff) -> list[Layer]:
    """Return the modules in the order of the rows, each with the worst of its outputs and gradients."""
    layers: dict[str, Layer] = {}
    for row in result.rows:
        if row.phase != "output" and row.phase not in _BACKWARD:
            continue
        layer = layers.setdefault(row.module, Layer(row.module, row.module))
        which = "forward" if row.phase == "output" else "backward"
        known, found = getattr(layer, which), Figures(math.nan, math.nan, row.relative)
        if known is None or not known.relative >= found.relative:
            setattr(layer, which, found)
        layer.calls = max(layer.calls, row.call + 1)
        layer.failed |= row is result.first
    return list(layers.values())


def _list_unpaired(result: TraceDiff) -> Table:
    rows = [*((text, "PyTorch") for text in result.only_expected),
            *((text, "Paddle") for text in result.only_actual)]  # fmt: skip
    failed = frozenset() if result.allow_unpaired else frozenset(range(len(rows)))
    return Table("Only in one trace", ("tensor", "trace"), rows, failed)


def _list_unpaired_cases(result: TraceDiff) -> Iterable[Case]:
    for text in (*result.only_expected, *result.only_actual):
        yield Case("unpaired", text, result.allow_unpaired, "it has no partner in the other trace")
