"""Compares what a log claims with what its arrays give.

A log has reprod_log's lines, with or without dates, and those that this library adds:

logits:
    mean diff: check passed: True, value: 1.1e-08
diff check passed
strict logits: passed True, max relative 2.7e-15 (tolerance 1e-09)
strict check passed
reprod_align: passed
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from reprod_align.errors import RecordError, ReprodError, one_line
from reprod_align.records.gate import list_strict_lines
from reprod_align.records.official import measure_mean
from reprod_align.records.verdict import KeyResult
from reprod_align.submission.files import Submission
from reprod_align.submission.findings import (
    DAMAGED,
    EDITED,
    MISSING,
    Findings,
    JudgedStep,
    Record,
    StepRow,
)

_MOST_BYTES = 64 * 2**20
_STAMP = re.compile(r"\[\d{4}/\d\d?/\d\d? \d\d?:\d\d:\d\d\] root INFO: ?")
_CHECK = re.compile(r"\s+(\w+) diff: check passed: (True|False), value: (\S+)")
_WORDS = {"passed": True, "failed": False}
_METHODS = {"mean": "mean_abs", "max": "max_abs", "min": "min_abs"}
_SHOWN_KEYS = 3
_CLAIM = 2e-3  # relative: reprod_log's mean in the arrays' own precision, in another order
_FINEST_HALF = 6e-8  # float16 has no smaller numbers


@dataclass(frozen=True)
class Claim:
    """One statistic of one key: which, whether it passed, and its value."""

    method: str
    passed: bool
    value: float


@dataclass
class LogClaims:
    """What the last report of a log claims."""

    keys: dict[str, list[Claim]] = field(default_factory=dict)
    passed: bool | None = None
    """the line "diff check passed"; None: it is not there"""
    strict: list[str] = field(default_factory=list)
    """the lines that begin with "strict " """
    verdict: bool | None = None
    """the line "reprod_align: passed" """
    earlier: int = 0
    """reports that stand before it"""


def read_claims(path: Path) -> LogClaims:
    """Return what a log claims. Raises RecordError if it is not a text, or too long for a log."""
    size = path.stat().st_size
    if size > _MOST_BYTES:
        raise RecordError(f"has {size} bytes; a log has at most {_MOST_BYTES}")
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise RecordError(f"is not a text in UTF-8 (byte {error.start})") from None
    return _read_lines(_strip_stamps(text))


def _strip_stamps(text: str) -> Iterator[str]:
    for line in text.replace("\r\n", "\n").split("\n"):  # splitlines() would split at U+2028, too
        stamp = _STAMP.match(line)
        yield line[stamp.end() :] if stamp else line


def _read_lines(lines: Iterator[str]) -> LogClaims:
    claims, key = LogClaims(), ""
    for line in lines:
        start, _, rest = line.strip().partition(" check ")
        if found := _CHECK.fullmatch(line.rstrip()):
            claim = Claim(found[1], found[2] == "True", _read_number(found[3]))
            claims.keys.setdefault(key, []).append(claim)
            continue
        if line.startswith("reprod_align: "):
            claims.verdict = line.strip() == "reprod_align: passed"
        elif start == "diff" and rest in _WORDS:
            claims.passed = _WORDS[rest]
        elif line.startswith("strict "):
            claims.strict.append(line.rstrip())
        elif line.rstrip().endswith(":") and not line.startswith("remark: "):
            if claims.passed is not None:  # a further report
                claims = LogClaims(earlier=claims.earlier + 1)
            key = line.rstrip()[:-1]
    return claims


def _read_number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        return math.nan


def check_logs(
    submission: Submission, judged: JudgedStep, row: StepRow, findings: Findings
) -> None:
    """Compare the claims of the step's logs, under either name, with what was recomputed."""
    step = judged.step
    names = [name for name in step.logs if name in submission.files]
    if not names:
        findings.add(MISSING, " or ".join(step.logs))
    before = len(findings.faults)
    for name in names:
        try:
            claims = read_claims(submission.files[name])
        except ReprodError as error:
            findings.add(DAMAGED, f"{name} {error}")
            continue
        if judged.records is not None and judged.official is not None:
            _check_claims(name, claims, judged, findings)
    if names:
        row.log = "agrees" if len(findings.faults) == before else "differs"


def _check_claims(name: str, claims: LogClaims, judged: JudgedStep, findings: Findings) -> None:
    official, records = judged.official, judged.records
    assert official is not None and records is not None  # the caller has asked
    wanted = {one_line(result.key): result for result in official.results}
    faults = [f"says nothing about {key}" for key in wanted if key not in claims.keys]
    faults += [
        f"is about {one_line(key)!r}, which the records do not hold"
        for key in claims.keys
        if key not in wanted and wanted
    ]
    for key, result in wanted.items():
        for claim in claims.keys.get(key, []):
            faults.append(_find_false_claim(key, claim, result, records))
    faults.append(_find_false_verdict(claims, judged))
    faults += _find_false_strict(claims, judged)
    if claims.strict and judged.strict is None:
        findings.remarks.append(
            f"{name}: its strict lines could not be recomputed: strict/ is not included"
        )
    if claims.earlier:
        findings.remarks.append(f"{name} holds {claims.earlier + 1} reports: the last one counts")
    told = [fault for fault in faults if fault]
    for fault in told[:_SHOWN_KEYS]:
        findings.add(EDITED, f"{name} {fault}")
    if len(told) > _SHOWN_KEYS:
        findings.add(
            EDITED, f"{name}: {len(told) - _SHOWN_KEYS} more lines disagree with the arrays"
        )


def _find_false_claim(
    key: str, claim: Claim, result: KeyResult, records: tuple[Record, Record]
) -> str:
    """Return how a line of the log contradicts the arrays; "" if it does not."""
    difference = result.difference
    if claim.method not in _METHODS:
        return f"shows an unknown statistic, {one_line(claim.method)!r}, of {key}"
    if claim.passed and not result.passed:
        return f"says that {key} passed; recomputed: {result.reason}"
    if result.passed and not claim.passed and claim.method == "mean":
        return f"says that {key} failed; recomputed: it passes"
    if difference is None or not result.passed:
        return ""  # what is shown of a key that cannot be compared differs between versions
    value = float(getattr(difference, _METHODS[claim.method]))
    known = [value]
    if claim.method == "mean":
        known.append(float(measure_mean(difference, *(record[result.key] for record in records))))
    finest = _FINEST_HALF if result.expected_dtype == "float16" else 0.0
    if any(abs(claim.value - each) <= _CLAIM * abs(each) + finest for each in known):
        return ""
    return f"says {key}: {claim.method} {claim.value:.4g}; recomputed: {value:.4g}"


def _find_false_verdict(claims: LogClaims, judged: JudgedStep) -> str:
    official = judged.official
    assert official is not None
    if claims.passed is None:
        return "has no closing line (diff check passed): it was cut short"
    if claims.passed != official.passed:
        said = "passed" if claims.passed else "failed"
        return f"ends with 'diff check {said}'; recomputed: {official.word}"
    if claims.verdict is None and (claims.strict or judged.twins) and not judged.step.exact:
        return "has no closing line of the check (reprod_align: passed): it was cut short"
    if claims.verdict is not None and claims.verdict != judged.passed:
        said = "passed" if claims.verdict else "FAILED"
        return f"ends with 'reprod_align: {said}'; recomputed: {'passed' if judged.passed else 'failed'}"
    return ""


def _find_false_strict(claims: LogClaims, judged: JudgedStep) -> list[str]:
    if judged.strict is None or (judged.step.exact and not claims.strict):
        return []
    wanted = list_strict_lines(judged.strict)
    lacking = [line for line in wanted if line not in set(claims.strict)]
    extra = [line for line in claims.strict if line not in set(wanted)]
    faults = [f"lacks the line {line[:120]!r}, which its arrays give" for line in lacking]
    return faults + [f"has the line {line[:120]!r}, which its arrays do not give" for line in extra]
