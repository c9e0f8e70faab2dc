"""A gate of the pipeline: compare what two scripts saved, write the log, return the exit code.

The log is the one that people submit: reprod_log itself writes it, and lines of our own follow. Beside its
verdict a gate writes what the records were made with (digests of their files, code and weights, versions,
the date), so that a reader can tell whether five steps are of one run.
"""

import hashlib
import io
import json
import logging
import math
import os
import platform
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reprod_align.base import FRAMEWORKS, find_version
from reprod_align.base.blocks import Array, read_span
from reprod_align.base.difference import INEXACT, Difference, dtype_kind
from reprod_align.base.files import write_json, write_text
from reprod_align.base.text import shorten_path
from reprod_align.errors import MissingInputError, ReprodError, describe_error, join_lines, one_line
from reprod_align.records import NamedArrays, load_record, unread_items
from reprod_align.records.compare import (
    OFFICIAL,
    STRICT,
    Comparison,
    KeyResult,
    Rule,
    compare_records,
)

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
    result: KeyResult, expected: Mapping[str, Array], actual: Mapping[str, Array], threshold: float
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


PACKAGES = (
    "numpy",
    "torch",
    "transformers",
    "paddlepaddle",
    "paddlepaddle-gpu",
    "paddlenlp",
    "reprod_log",
    "reprod-align",
)
_NAME_PARTS = 2  # of a source's path: weights/torch_weight.bin, wherever its home lies
ALIGNED, DIFFERENT, NOT_COMPARABLE = 0, 1, 2
Provenance = Mapping[str, Any]


def describe_making(
    records: Mapping[str, Path], sources: Mapping[str, Iterable[Path]]
) -> dict[str, Any]:
    """Return what the records {name: file} were made with, as plain values.

    sources: code and weights of each side; a file that is gone is left out. Raises ReprodError for
    one that cannot be read.
    """
    return {
        "date": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "versions": list_versions(),
        "records": {name: _digest(path) for name, path in records.items()},
        "sources": {
            side: {name_source(path): _digest(path) for path in paths if path.is_file()}
            for side, paths in sources.items()
        },
    }


def name_source(path: Path) -> str:
    """Return the name of a source wherever its home lies: weights/torch_weight.bin."""
    return "/".join(path.parts[-_NAME_PARTS:])


def digest(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file's content, in hexadecimal digits. Raises OSError."""
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def list_versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that decide numbers, the installed ones."""
    found = {name: find_version(name) for name in PACKAGES}
    return {"python": platform.python_version(), **{n: one for n, one in found.items() if one}}


@dataclass(frozen=True)
class Gate:
    """One comparison of the pipeline: which files, by which rules, into which log."""

    name: str
    """"forward": begins the report and the name of the JSON result"""
    official: tuple[Path, Path]
    """the records that are submitted (torch, paddle), judged by official_rule(threshold)"""
    strict: tuple[Path, Path]
    """their float64 twins, judged by strict_rule; the same files where there are none"""
    log: Path
    first_run: str
    """what to run if a file is missing: "python pipeline/Step1/pt_forward_bert.py" """
    threshold: float = 1e-6
    strict_rule: Rule = STRICT
    expect_noise: bool = False
    """remark on bit-identical floats: the two sides come from different frameworks"""
    unit: str = "tensor"
    """what a key is: "layer", "gradient"; for "first layer that differs: ..." """

    sources: tuple[tuple[Path, ...], tuple[Path, ...]] = ((), ())
    """what each side's records were made with: a record of other ones is stale"""
    required: tuple[str, ...] = ()
    """keys that the official records must have: both may not lack them alike"""
    required_twin: str = ""
    """a key that the strict records must hold in place of the required ones"""
    explanation: Callable[[], Sequence[str]] | None = None
    """asked, if the sides differ, for lines that say where and why"""

    @property
    def is_strict(self) -> bool:
        """Whether anything is judged by more than the official rule."""
        return self.strict_rule.name != OFFICIAL

    @property
    def result_file(self) -> Path:
        """Where the result goes as JSON."""
        return Path(self.log).parent / "strict" / f"{self.name}_diff.json"


@dataclass(frozen=True)
class _GateVerdict:
    """Both comparisons of a gate, and the records that reprod_log shall see."""

    records: tuple[NamedArrays, NamedArrays]
    official: Comparison
    strict: Comparison

    @property
    def reason(self) -> str:
        if not self.official.passed:
            return f"official: {self.official.reason}"
        return "" if self.strict.passed else f"strict: {self.strict.reason}"

    @property
    def judge(self) -> Comparison:
        """The comparison that says where the sides diverge: the finer one, if it failed."""
        return self.official if self.strict.passed else self.strict

    @property
    def remarks(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.official.remarks + self.strict.remarks))


def check(gate: Gate) -> int:
    """Compare the files of `gate`; return 0 if aligned, 1 if different, 2 if not comparable.

    Writes the log and the JSON result (an old one is removed first), prints a summary, or one
    line on stderr if a file is missing or damaged; then the log says why, and ends in failure.
    If the sides differ, what `gate.explanation` returns is printed too.
    """
    made = _read_making(gate.result_file)
    try:
        _remove_old(gate.log, gate.result_file)
        verdict = _compare(gate, made)
        _write_results(gate, verdict)
    except ReprodError as error:
        return _refuse(gate, str(error), made)
    print(join_lines(_summarize(gate, verdict)), flush=True)
    if not verdict.reason:
        return ALIGNED
    print("".join(f"  {one_line(line)}\n" for line in _explain(gate)), end="")
    return DIFFERENT


def _explain(gate: Gate) -> Sequence[str]:
    """Return the lines that say where and why; an error becomes a line, and the verdict stands."""
    try:
        return gate.explanation() if gate.explanation is not None else []
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        said = str(error) if isinstance(error, ReprodError) else describe_error(error)
        return [f"where and why could not be found: {said}"]


def _remove_old(*paths: Path) -> None:
    for path in paths:
        try:
            Path(path).unlink(missing_ok=True)
        except OSError as error:
            raise ReprodError(f"cannot replace {shorten_path(path)}: {error.strerror}") from error


def _read_making(result: Path) -> Provenance:
    """Return what the last result says its records were made with, {} without one."""
    try:
        made = json.loads(result.read_text(encoding="utf-8"))["made"]
        sides = [made["sources"][side] for side in FRAMEWORKS]
        return made if all(isinstance(one, dict) for one in (made["records"], *sides)) else {}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}


def _compare(gate: Gate, made: Provenance) -> _GateVerdict:
    _require_files(gate, made)
    records = _load_pair(gate.official)
    _require_keys(gate, records)
    twins = records if gate.strict == gate.official else _load_pair(gate.strict)
    _require_same_step(gate, twins)
    noise = gate.expect_noise
    official = compare_records(*records, gate.threshold, expect_noise=noise)
    if twins is records:
        strict = compare_records(*twins, rule=gate.strict_rule, expect_noise=noise, known=official)
    else:
        strict = compare_records(*twins, rule=gate.strict_rule, expect_noise=noise)
    return _GateVerdict(records, official, strict)


def _require_files(gate: Gate, made: Provenance) -> None:
    wanted = dict.fromkeys((*gate.official, *gate.strict))
    missing = [shorten_path(path) for path in wanted if not Path(path).exists()]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        names = ", ".join(missing)
        raise MissingInputError(f"{names} {verb} missing: first run {gate.first_run}")
    for pair in (gate.official, gate.strict):
        for path, side, sources in zip(pair, FRAMEWORKS, gate.sources, strict=True):
            if made and made["records"].get(_name_record(gate, path)) == _digest(path):
                _require_same(Path(path), made["sources"][side], sources, gate.first_run)
            else:
                _require_fresh(Path(path), sources, gate.first_run)


def _require_same(
    record: Path, made: Mapping[str, Any], sources: tuple[Path, ...], first_run: str
) -> None:
    """Raise MissingInputError if a script or input is not the one that the record was made with.

    The last result says so by digests: a copy of a finished folder, whose files have new times, is as good.
    """
    for source in sources:
        wanted = made.get(name_source(source))
        if wanted is not None and source.is_file() and wanted != _digest(source):
            raise MissingInputError(
                f"{shorten_path(record)} was made with another {shorten_path(source)}: run {first_run} again"
            )


def _require_fresh(record: Path, sources: tuple[Path, ...], first_run: str) -> None:
    """Raise MissingInputError if a file changed since the record was written, which no result knows yet."""
    for source in sources:
        if source.exists() and source.stat().st_mtime_ns > record.stat().st_mtime_ns:
            raise MissingInputError(
                f"{shorten_path(record)} is older than {shorten_path(source)}: run {first_run} again"
            )


def _name_record(gate: Gate, path: Path) -> str:
    """Return a record's name as seen from the log's folder."""
    return Path(os.path.relpath(path, Path(gate.log).parent)).as_posix()


def _digest(path: Path) -> str:
    try:
        return digest(path)
    except OSError as error:
        raise ReprodError(f"{error.filename} cannot be read: {error.strerror}") from error


def _require_keys(gate: Gate, records: tuple[NamedArrays, NamedArrays]) -> None:
    lacking = [key for key in gate.required if not any(key in record for record in records)]
    if lacking:
        raise MissingInputError(
            f"both records lack {', '.join(lacking)}: run {gate.first_run} again"
        )
    texts = [key for key in gate.required for record in records
             if key in record and record[key].dtype.kind in "SU"]  # fmt: skip
    if texts:
        raise MissingInputError(
            f"a record holds text, not numbers, under {texts[0]}: run {gate.first_run} again"
        )


def _require_same_step(gate: Gate, twins: tuple[NamedArrays, NamedArrays]) -> None:
    """Raise MissingInputError if the strict records lack what this step records."""
    wanted = (gate.required_twin,) if gate.required_twin else gate.required
    if wanted and not any(key in record for record in twins for key in wanted):
        names = " and ".join(shorten_path(path) for path in gate.strict)
        raise MissingInputError(
            f"{names} lack {wanted[0]}, so they belong to another step: run {gate.first_run} again"
        )


def _load_pair(paths: tuple[Path, Path]) -> tuple[NamedArrays, NamedArrays]:
    torch_side, paddle_side = paths
    return _load(torch_side), _load(paddle_side)


def _load(path: Path) -> NamedArrays:
    """Return a record whose large arrays stay in the file."""
    return dict(unread_items(load_record(shorten_path(path))))


def _write_results(gate: Gate, verdict: _GateVerdict) -> None:
    lines = list_strict_lines(verdict.strict) if gate.is_strict else []
    lines += [f"remark: {one_line(remark)}" for remark in verdict.remarks]
    lines.append(make_closing_line(verdict.reason))
    write_log(gate.log, *verdict.records, verdict.official, gate.threshold, lines)
    records = {_name_record(gate, path): path for path in (*gate.official, *gate.strict)}
    made = describe_making(records, dict(zip(FRAMEWORKS, gate.sources, strict=True)))
    _write_json(gate, verdict.reason, verdict, made)


def _write_json(gate: Gate, reason: str, verdict: _GateVerdict | None, made: Provenance) -> None:
    content: dict[str, Any] = {
        "name": gate.name,
        "passed": not reason,
        "reason": one_line(reason),
        "official": None if verdict is None else verdict.official.to_json(),
        "strict": None if verdict is None else verdict.strict.to_json(),
    }
    if made:
        content["made"] = made
    write_json(gate.result_file, content)


def _refuse(gate: Gate, reason: str, made: Provenance) -> int:
    """Write why nothing can be compared; what is known of the records' making stays."""
    print(one_line(f"{gate.name}: cannot be compared: {reason}"), file=sys.stderr)
    try:
        write_text(gate.log, as_text([make_closing_line(reason), f"diff check failed: {reason}"]))
        _write_json(gate, reason, None, made)
    except ReprodError as error:  # the exit code still tells
        print(one_line(f"{gate.name}: {error}"), file=sys.stderr)
    return NOT_COMPARABLE


def _summarize(gate: Gate, verdict: _GateVerdict) -> list[str]:
    lines = [f"{gate.name}: {'DIFFERENT' if verdict.reason else 'aligned'}"]
    lines.append(f"  official  {verdict.official.headline}")
    lines.append(f"  strict    {verdict.strict.headline if gate.is_strict else 'not judged'}")
    lines += verdict.judge.failing(gate.unit)
    lines += [f"  remark: {remark}" for remark in verdict.remarks]
    return [*lines, f"  log: {shorten_path(gate.log)}"]


def list_strict_lines(strict: Comparison) -> list[str]:
    """Return the lines of the log about the strict comparison: one for each key, and the verdict."""
    lines = [_describe_strict(result) for result in strict.results]
    return [*lines, f"strict check {strict.word}"]


def _describe_strict(result: KeyResult) -> str:
    """Return the line of the log about one key: "strict NAME: passed True, max relative ..."."""
    start = f"strict {one_line(result.key)}: passed {result.passed}"
    if result.difference is None:
        return f"{start}, {result.reason}"
    line = f"{start}, {result.largest}"
    if not result.passed:
        return f"{line}: {result.reason}"
    if not result.is_rounding_around_zero:
        return line
    return f"{line}: max difference {result.difference.max_abs:.1e} is rounding around zero"
