"""Compares what a submission claims with what its arrays give: its logs, and each check's verdict as JSON.

A log has reprod_log's lines, with or without dates, and those that this library adds:

    logits:
        mean diff: check passed: True, value: 1.1e-08
    diff check passed
    strict logits: passed True, max relative 2.7e-15 (tolerance 1e-09)
    strict check passed
    reprod_align: passed

The JSON of a check is strict/STEP_diff.json.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from math import isclose
from pathlib import Path
from typing import Any, Final

from reprod_align import __version__
from reprod_align.base import FRAMEWORKS
from reprod_align.base.files import to_plain
from reprod_align.errors import RecordError, ReprodError, one_line
from reprod_align.records import NamedArrays
from reprod_align.records.compare import (
    EXACT,
    STRICT,
    Comparison,
    KeyResult,
    compare_records,
    official_rule,
)
from reprod_align.records.gate import digest, list_strict_lines, measure_mean
from reprod_align.submission.files import Submission
from reprod_align.submission.findings import (
    DAMAGED,
    EDITED,
    MISSING,
    RUNS,
    JudgedStep,
    StepRow,
    Verification,
    get_dict,
    read_object,
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
    submission: Submission, judged: JudgedStep, row: StepRow, findings: Verification
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


def _check_claims(name: str, claims: LogClaims, judged: JudgedStep, findings: Verification) -> None:
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
    key: str, claim: Claim, result: KeyResult, records: tuple[NamedArrays, NamedArrays]
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


_SHOWN_DIGITS = 12
_NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
_CLOSE: Final = 1e-6  # relative: the same sums in another order, on another processor
_ROUNDED: Final = 0.06  # of a number that a sentence shows with two digits
_GUIDES: Final = (0.0015, 0.0025)
"""largest differences of Step 5 in the two editions of the guide"""
_PARTS: Final = frozenset({"name", "passed", "reason", "official", "strict", "made"})
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


def check_results(
    submission: Submission, steps: Sequence[JudgedStep], findings: Verification
) -> None:
    """Compare each result's numbers, verdicts and rules with the arrays, and the results with each other."""
    made = {}
    for judged in steps:
        name = judged.step.result
        if name not in submission.files:
            _note_missing(submission, judged, findings)
            continue
        result = read_object(submission, name, findings)
        if not result:
            continue
        making = get_dict(result, "made")
        made[judged.step.name] = making
        for fault in _list_faults(submission, judged, result, making):
            findings.add(EDITED, f"{name} {fault}")
        _check_records(submission, name, making, findings)
    for facts in _list_facts(made):
        _check_one_run(facts, made, findings)
    if not any(made.values()):
        findings.remarks.append(
            "what the records were made with is not included: the steps are one run by their numbers alone"
        )


def _note_missing(submission: Submission, judged: JudgedStep, findings: Verification) -> None:
    """Add a fault where there are float64 records, which a check of ours judges and writes a result of."""
    step = judged.step
    if any(step.name_twin(side) in submission.files for side in FRAMEWORKS):
        findings.add(MISSING, f"{step.result}, which the check writes beside {step.logs[0]}")


def _list_faults(
    submission: Submission, judged: JudgedStep, result: Mapping[str, Any], making: Mapping[str, Any]
) -> Iterator[str]:
    """Yield what a result says and the arrays do not."""
    ours = get_dict(making, "versions").get("reprod-align") == __version__
    if ours and (other := sorted(result.keys() ^ _PARTS)):
        yield f"{'has' if other[0] in result else 'lacks'} {one_line(other[0])[:40]!r}"
    if result.get("name") != judged.step.name:
        yield f"is the result of {one_line(str(result.get('name')))[:50]!r}"
    if judged.official is None or judged.records is None:
        return
    if result.get("passed") is not judged.passed:
        yield f"says passed: {result.get('passed')}; recomputed: {judged.passed}"
    if bool(result.get("reason")) is judged.passed:
        yield f"gives the reason {one_line(str(result.get('reason')))[:80]!r}"
    for part, wanted in _recompute(judged, result):
        claimed = get_dict(result, part)
        if isinstance(wanted, str):
            yield wanted
        elif fault := _find_difference(claimed, wanted, judged.records, ours):
            yield f"{part}: {fault}"
    yield from _check_making(submission, judged, making, ours)


def _recompute(
    judged: JudgedStep, result: Mapping[str, Any]
) -> Iterator[tuple[str, Comparison | str]]:
    """Yield the comparison behind each part of a result, or what is wrong with the rule that it names."""
    assert judged.official is not None and judged.records is not None
    step = judged.step
    fine = judged.twins or judged.records
    strict = EXACT if step.exact else STRICT
    for part, records, known, rule in (
        ("official", judged.records, judged.official, official_rule(step.threshold)),
        ("strict", fine, judged.strict, strict),
    ):
        said = get_dict(get_dict(result, part), "rule")
        allowed = [rule]
        if step.from_counts and step.number == 5:
            others = [official_rule(one) for one in (*_GUIDES, step.threshold)]
            bare = part == "strict" and judged.twins is None  # the paper's figures are all there is
            allowed = others if part == "official" or bare else allowed
        chosen = next((one for one in allowed if _agree(said, to_plain(one))), None)
        if chosen is None:
            yield part, f"{part}: judges by another rule than the check does: {str(said)[:100]}"
        elif known is not None and known.rule == chosen:
            yield part, known
        else:
            yield part, compare_records(*records, rule=chosen)


def _find_difference(
    claimed: Mapping[str, Any],
    wanted: Comparison,
    records: tuple[NamedArrays, NamedArrays],
    ours: bool,
) -> str:
    """Return the first statement that is not what is recomputed; "" if all are.

    ours: written by this version, so that nothing may be left out or added.
    """
    plain = wanted.to_json()
    keys = {entry["key"]: entry for entry in plain["keys"]}
    said = claimed.get("keys")
    if not isinstance(said, list) or len(said) != len(plain["keys"]):
        return (
            f"is about {len(said) if isinstance(said, list) else 0} keys; recomputed: {len(keys)}"
        )
    for entry, due in zip(said, plain["keys"], strict=True):
        fault = _compare(entry, due, ours)
        if fault:
            return f"{one_line(str(due['key']))[:60]}: {fault}"
    worst = claimed.get("worst")
    name = worst.get("key") if isinstance(worst, dict) else None
    if (worst is not None or keys) and _compare(worst, keys.get(name, {}), ours):
        return f"names {one_line(str(name))[:60]!r} as the worst key, otherwise than recomputed"
    for part in ("passed", "reason"):
        if fault := _compare({part: claimed.get(part)}, {part: plain[part]}, ours):
            return fault
    return _compare_remarks(claimed.get("remarks"), wanted, records)


def _compare_remarks(
    said: Any, wanted: Comparison, records: tuple[NamedArrays, NamedArrays]
) -> str:
    if _agree(said, list(wanted.remarks)):
        return ""
    noisy = compare_records(*records, rule=wanted.rule, expect_noise=True)
    return "" if _agree(said, list(noisy.remarks)) else "has other remarks than are recomputed"


def _compare(claimed: Any, wanted: Mapping[str, Any], ours: bool) -> str:
    """Return the first entry of an object that is not as recomputed; "" if all are."""
    if not isinstance(claimed, dict):
        return "is no object"
    if ours and (other := sorted(claimed.keys() ^ wanted.keys())):
        return f"{'has' if other[0] in claimed else 'lacks'} {one_line(other[0])[:40]!r}"
    for name in wanted.keys() & claimed.keys():
        if not _agree(claimed[name], wanted[name]):
            said, due = (one_line(str(one))[:60] for one in (claimed[name], wanted[name]))
            return f"says {name}: {said}; recomputed: {due}"
    return ""


def _agree(claimed: Any, wanted: Any) -> bool:
    """Tell whether two plain values are the same, numbers but for rounding."""
    if isinstance(wanted, Mapping):
        return (
            isinstance(claimed, Mapping)
            and claimed.keys() == wanted.keys()
            and all(_agree(claimed[name], wanted[name]) for name in wanted)
        )
    if isinstance(wanted, (list, tuple)):
        return isinstance(claimed, list) and all(
            _agree(one, other) for one, other in zip_longest(claimed, wanted, fillvalue=...)
        )
    if isinstance(wanted, str):
        return isinstance(claimed, str) and _read_alike(claimed, wanted)
    if isinstance(wanted, bool) or wanted is None or isinstance(claimed, bool):
        return claimed is wanted
    if not isinstance(claimed, (int, float)) or not isinstance(wanted, (int, float)):
        return False
    return bool(claimed == wanted or isclose(claimed, wanted, rel_tol=_CLOSE))


def _read_alike(claimed: str, wanted: str) -> bool:
    """Tell whether two sentences are the same but for the last digit of their numbers."""
    if claimed == wanted:
        return True
    pairs = zip_longest(_NUMBER.findall(claimed), _NUMBER.findall(wanted))
    return _NUMBER.sub("#", claimed) == _NUMBER.sub("#", wanted) and all(
        None not in pair and isclose(float(pair[0]), float(pair[1]), rel_tol=_ROUNDED)
        for pair in pairs
    )


# ------------------------------------------------------------------- what the records were made with


def _check_making(
    submission: Submission, judged: JudgedStep, making: Mapping[str, Any], ours: bool
) -> Iterator[str]:
    """Yield what a result should say of its records' making and does not."""
    step = judged.step
    if not making:
        yield "does not say what its records were made with"
        return
    listed = get_dict(making, "records")
    wanted = {step.records(side)[-1] for side in FRAMEWORKS} | {
        step.name_twin(side) for side in FRAMEWORKS
    }
    lacking = [name for name in sorted(wanted) if name in submission.files and name not in listed]
    benchmark = any(name.endswith("_benchmark.npy") for name in listed)
    if ours and lacking and not benchmark:
        yield f"does not say that it judged {lacking[0]}"
    for name in sorted(listed):
        if name not in wanted and name not in step.records("torch"):
            yield f"says that it judged {one_line(name)[:60]!r}, which is of another step"
    for side in FRAMEWORKS:
        for name, value in get_dict(get_dict(making, "sources"), side).items():
            if not (isinstance(value, str) and _DIGEST.fullmatch(value)):
                yield f"has no SHA-256 of {one_line(name)[:60]}"


def _check_records(
    submission: Submission, result: str, made: Mapping[str, Any], findings: Verification
) -> None:
    """Compare each record with the one that was judged when the result was written."""
    for name, wanted in get_dict(made, "records").items():
        if name in submission.files and wanted != digest(submission.files[name]):
            findings.add(EDITED, f"{name} is not the file that {result} judged")


def _list_facts(made: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, ...]]:
    """Yield the way to each fact that steps may share: ("sources", "torch", "weights/x.bin")."""
    found: dict[tuple[str, ...], None] = {}
    for making in made.values():
        found |= {("versions", name): None for name in get_dict(making, "versions")}
        for side in FRAMEWORKS:
            sources = get_dict(get_dict(making, "sources"), side)
            found |= {("sources", side, name): None for name in sources}
    yield from found


def _check_one_run(
    fact: tuple[str, ...], made: Mapping[str, Mapping[str, Any]], findings: Verification
) -> None:
    values: dict[str, str] = {}  # value: the first step that has it
    for step, making in made.items():
        value: Any = making
        for part in fact:
            value = value.get(part) if isinstance(value, dict) else None
        if value is not None:
            values.setdefault(str(value)[:_SHOWN_DIGITS], step)
    if len(values) > 1:
        said = ", ".join(f"{step} {one_line(value)}" for value, step in values.items())
        findings.add(RUNS, f"made with different {fact[-1]}: {said}")
