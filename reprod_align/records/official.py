"""The log that people submit: written by reprod_log itself, followed by lines of our own."""

import io
import logging
import math
import os
import sys
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from typing import Any

from reprod_align.base.blocks import Array, read_span
from reprod_align.base.difference import INEXACT, Difference, dtype_kind
from reprod_align.base.files import write_text
from reprod_align.errors import ReprodError, one_line
from reprod_align.records.verdict import Comparison, KeyResult

import numpy as np

Statistics = dict[str, Any]

_HIDDEN = math.inf  # the mean shown for a key that fails by a rule reprod_log doesn't have
_LARGEST = sys.float_info.max
_LARGE = 2**20  # elements


def write_log(
    path: str | os.PathLike[str],
    expected: Mapping[str, Array],
    actual: Mapping[str, Array],
    comparison: Comparison,
    threshold: float,
    extra_lines: Sequence[str],
) -> None:
    """Write to `path` what reprod_log reports on the two records, then `extra_lines`.

    `comparison` is our verdict on the same records {name: array}. The lines of reprod_log agree
    with it: a key that ours refuses, or fails in a way that a mean can't see, is shown as "check
    passed: False, value: inf". Nothing is printed, and the file appears whole or not at all.
    Raises ReprodError if reprod_log cannot be imported or the file cannot be written.
    """
    helper = _make_helper()
    helper.diff_dict = {}
    for result in comparison.results:
        statistics = _make_statistics(result, expected, actual, threshold)
        helper.diff_dict[one_line(result.key)] = statistics
    if not comparison.results:  # reprod_log calls two empty records aligned
        helper.diff_dict["(no keys)"] = _repeat(_HIDDEN)
    with _capture_root_logger() as text:
        # below _HIDDEN, also if threshold is inf or NaN: reprod_log fails what is `> threshold`
        limit = threshold if threshold < _LARGEST else _LARGEST
        helper.report(diff_method="mean", diff_threshold=limit, path=None)
    write_text(path, text.getvalue() + as_text(extra_lines))


def as_text(lines: Sequence[str]) -> str:
    """Return `lines` as reprod_log's logger writes them: each with its date, and a line end."""
    return "".join(f"{stamp(line)}\n" for line in lines)


def stamp(line: str) -> str:
    """Return `line` with the date and the name that reprod_log's logger puts before it."""
    return time.strftime("[%Y/%m/%d %H:%M:%S] root INFO: ") + line


def make_closing_line(reason: str) -> str:
    """Return the last line of a log: our verdict, with the `reason` unless that is ""."""
    return f"reprod_align: FAILED: {one_line(reason)}" if reason else "reprod_align: passed"


def _make_helper() -> Any:
    try:
        with warnings.catch_warnings():  # Paddle's, at import
            warnings.simplefilter("ignore")
            from reprod_log import ReprodDiffHelper
    except Exception as error:  # Paddle fails to import in many ways, an ImportError is only one
        raise ReprodError(
            f"reprod_log cannot be imported ({type(error).__name__}: {str(error)[:200]}): "
            "pip install -r requirements.txt"
        ) from error
    return ReprodDiffHelper()


def _make_statistics(
    result: KeyResult,
    expected: Mapping[str, Array],
    actual: Mapping[str, Array],
    threshold: float,
) -> Statistics:
    """Return reprod_log's numbers for a key, changed where they would contradict our verdict."""
    if result.difference is None:
        return _repeat(_HIDDEN)
    mean = measure_mean(result.difference, expected[result.key], actual[result.key])
    if result.passed and not mean <= threshold:
        mean = result.difference.mean_abs  # float64, where theirs was rounded
    if not result.passed and not mean > threshold:
        mean = _HIDDEN
    return _repeat(mean)


def measure_mean(difference: Difference, expected: Array, actual: Array) -> Any:
    """Return the mean difference as reprod_log does, in the arrays' own precision.

    To the last bit, unless that would take time: a large array's is rounded from our float64.
    """
    count = difference.size if difference.size <= _LARGE else 1
    ours, theirs = _make_subtractable(*(read_span(side, 0, count) for side in (expected, actual)))
    with np.errstate(all="ignore"):
        mean = np.abs(ours - theirs).mean()
        return mean if count == difference.size else mean.dtype.type(difference.mean_abs)


def _make_subtractable(expected: Array, actual: Array) -> tuple[Array, Array]:
    """Return the pair in a form that reprod_log can subtract without overflow or error.

    Integers and booleans in float64; a text as 0, and the other side's as 1 where it differs.
    float16 in float32, since its mean is rounded to three digits.
    """
    kind = dtype_kind(expected.dtype)
    if kind in INEXACT:
        wide = np.result_type(expected, actual, np.float32)
        return expected.astype(wide, copy=False), actual.astype(wide, copy=False)
    if kind in ("integer", "bool"):
        return expected.astype(np.float64), actual.astype(np.float64)
    # np.asarray: != of two single texts is a plain bool
    return np.zeros(expected.shape), np.asarray(expected != actual, dtype=np.float64)


def _repeat(value: float) -> Statistics:
    return {"mean": value, "max": value, "min": value}


@contextmanager
def _capture_root_logger() -> Iterator[io.StringIO]:
    """Catch what reprod_log's logger prints, and leave the root logger as it was found.

    reprod_log's logger is Python's root logger. It adds a handler for stdout that it never
    removes, sets the level to DEBUG, and would be heard by the handlers of the calling program.
    """
    root, text = logging.getLogger(), io.StringIO()
    handlers, level, disabled = root.handlers, root.level, root.manager.disable
    root.handlers, root.manager.disable = [], 0
    try:
        with redirect_stdout(text):
            yield text
    finally:
        for handler in root.handlers:
            handler.close()
        root.handlers, root.manager.disable = handlers, disabled
        root.setLevel(level)
