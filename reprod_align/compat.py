"""reprod_log's two classes with our verdict: an existing script changes one import line.

    from reprod_align.compat import ReprodDiffHelper, ReprodLogger

Needs neither reprod_log nor Paddle. What differs from reprod_log: a comparison that it lets
through (NaN, transposed, broadcast, one wrong element among many) fails, loading executes nothing,
`report` returns the verdict, and a script whose report failed exits with status 1.
"""

import atexit
import logging
import math
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from reprod_align.base.blocks import Array
from reprod_align.base.files import write_text
from reprod_align.errors import ReprodError, one_line
from reprod_align.records import Recorder, load_record, unread_items
from reprod_align.records.compare import Comparison, KeyResult, compare_records
from reprod_align.records.gate import as_text, make_closing_line

import numpy as np

__all__ = ["ReprodDiffHelper", "ReprodLogger"]

ReprodLogger = Recorder

_METHODS = {"min": "min_abs", "max": "max_abs", "mean": "mean_abs"}


class ReprodDiffHelper:
    """Loads two records, compares them and reports, as reprod_log's class of this name does."""

    def __init__(self) -> None:
        """Start with nothing to report."""
        self._infos: tuple[Mapping[str, Any], Mapping[str, Any]] | None = None

    def load_info(self, path: str | os.PathLike[str]) -> dict[str, Array]:
        """Return the record {name: array} in `path`; raises as `load_record` does."""
        return load_record(path)

    def compare_info(self, info1: Mapping[str, Any], info2: Mapping[str, Any]) -> None:
        """Take two records {name: array} (dicts inside are joined to "outer.inner") for `report`.

        Never raises on keys, shapes or dtypes that do not match: those fail the report.
        """
        self._infos = _flatten(info1), _flatten(info2)

    def report(
        self,
        diff_method: str | Sequence[str] = "mean",
        diff_threshold: float = 1e-6,
        path: str | os.PathLike[str] | None = "./diff.txt",
    ) -> bool:
        """Print the report, write it to `path` (unless None) and return True if all keys passed.

        A key passes if it passes our rules under `diff_threshold` and each statistic of
        `diff_method` ("mean", "max", "min", "all", or a list of them) is within the threshold.
        Called from a script's own file, a failed report makes that script exit with status 1.
        Raises ReprodError for an unknown method, before compare_info, or if writing fails.
        """
        if self._infos is None:
            raise ReprodError("report: nothing was compared yet; call compare_info(a, b) first")
        methods = _check_methods(diff_method)
        comparison = compare_records(*self._infos, diff_threshold)
        lines, reason = _report(comparison, methods, diff_threshold)
        print(as_text(lines), end="")
        if reason and sys._getframe(1).f_globals.get("__name__") == "__main__":
            _failed_reports.append(reason)
        if path is not None:
            write_text(path, as_text(lines))
        return not reason


def _flatten(info: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in unread_items(info):
        name = f"{prefix}{key}"
        inner = {name: value}
        if isinstance(value, Mapping):  # an empty one holds nothing to compare, which fails
            inner = _flatten(value, f"{name}.") or {name: np.empty(0)}
        for inner_name, array in inner.items():
            while inner_name in flat:  # "a.b" beside {"a": {"b": ...}}: both are compared
                inner_name += "'"
            flat[inner_name] = array
    return flat


def _check_methods(diff_method: str | Sequence[str]) -> list[str]:
    """Return the statistics asked for, in the order in which reprod_log shows them."""
    asked = [diff_method] if isinstance(diff_method, str) else list(diff_method)
    for method in asked:
        if method not in (*_METHODS, "all"):
            raise ReprodError(f"report: diff_method {method!r} must be mean, max, min or all")
    if not asked:
        raise ReprodError("report: diff_method is empty; give mean, max, min or all")
    return list(_METHODS) if "all" in asked else asked


def _report(
    comparison: Comparison, methods: Sequence[str], threshold: float
) -> tuple[list[str], str]:
    """Return reprod_log's lines followed by ours, and the reason of failure ("" if passed)."""
    lines, reason = [], comparison.reason
    for result in comparison.results:
        lines.append(f"{one_line(result.key)}: ")
        for method, value in _list_statistics(result, methods, threshold).items():
            ok = value <= threshold
            lines.append(f"\t{method} diff: check passed: {ok}, value: {value}")
            if not ok and not reason:
                name = one_line(result.key)
                reason = f"{name}: {method} difference {value:.1e}; threshold {threshold:.1e}"
    lines.append(f"diff check {'failed' if reason else 'passed'}")
    lines += [one_line(f"{failed.key}: {failed.reason}") for failed in comparison.failures]
    lines += [one_line(f"remark: {remark}") for remark in comparison.remarks]
    return [*lines, make_closing_line(reason)], reason


def _list_statistics(
    result: KeyResult, methods: Sequence[str], threshold: float
) -> dict[str, float]:
    """Return the numbers to show for a key: inf where they alone would let a failed key pass."""
    hidden = dict.fromkeys(methods, math.inf)
    if result.difference is None:
        return hidden
    shown = {method: float(getattr(result.difference, _METHODS[method])) for method in methods}
    looks_passed = all(value <= threshold for value in shown.values())
    return hidden if looks_passed and not result.passed else shown


_failed_reports: list[str] = []  # reasons of the failed reports of the running script


@atexit.register
def _exit_with_failure() -> None:
    """Make the process exit with status 1 if a report of the script failed.

    Scripts written for reprod_log ignore what `report` returns, and end with status 0. Python has
    settled its exit status by the time exit handlers run, and raising here only prints: os._exit
    is the one way left to change it. It skips what would still come, so the streams are flushed
    first. Handlers run last in, first out: registered at import, this one runs after the script's.
    """
    if not _failed_reports:
        return
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1)
