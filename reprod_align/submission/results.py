"""Compares the verdicts that each check wrote as JSON, strict/STEP_diff.json, with what is recomputed."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from math import isclose
from typing import Any, Final

from reprod_align import __version__
from reprod_align.base import FRAMEWORKS
from reprod_align.base.files import to_plain
from reprod_align.errors import one_line
from reprod_align.records.compare import compare_records
from reprod_align.records.gate import digest
from reprod_align.records.verdict import EXACT, STRICT, Comparison, official_rule
from reprod_align.submission.files import Submission
from reprod_align.submission.findings import (
    EDITED,
    MISSING,
    RUNS,
    Findings,
    JudgedStep,
    Record,
    get_dict,
    read_object,
)

_SHOWN_DIGITS = 12
_NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
_CLOSE: Final = 1e-6  # relative: the same sums in another order, on another processor
_ROUNDED: Final = 0.06  # of a number that a sentence shows with two digits
_GUIDES: Final = (0.0015, 0.0025)
"""largest differences of Step 5 in the two editions of the guide"""
_PARTS: Final = frozenset({"name", "passed", "reason", "official", "strict", "made"})
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


def check_results(submission: Submission, steps: Sequence[JudgedStep], findings: Findings) -> None:
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


def _note_missing(submission: Submission, judged: JudgedStep, findings: Findings) -> None:
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
    claimed: Mapping[str, Any], wanted: Comparison, records: tuple[Record, Record], ours: bool
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


def _compare_remarks(said: Any, wanted: Comparison, records: tuple[Record, Record]) -> str:
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
    submission: Submission, result: str, made: Mapping[str, Any], findings: Findings
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
    fact: tuple[str, ...], made: Mapping[str, Mapping[str, Any]], findings: Findings
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
