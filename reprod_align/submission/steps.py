"""One step of a submission: its verdicts recomputed from the arrays, and its log held against them."""

from reprod_align.base.difference import INEXACT, dtype_kind
from reprod_align.errors import ReprodError
from reprod_align.records.compare import compare_records
from reprod_align.records.record import load_record, unread_items
from reprod_align.records.verdict import EXACT, STRICT, official_rule
from reprod_align.submission.copied import ENOUGH, count_copied
from reprod_align.submission.findings import (
    DAMAGED,
    FAILED,
    MISSING,
    SUSPICIOUS,
    Findings,
    StepRow,
)
from reprod_align.submission.folder import Submission
from reprod_align.submission.judged import Judged, Record
from reprod_align.submission.layout import SIDES, Step
from reprod_align.submission.logs import check_logs

import numpy as np

_FEWEST_LOSSES = 2


def judge_step(
    submission: Submission, step: Step, findings: Findings, *, allow_identical: bool = False
) -> Judged:
    """Recompute the step's verdicts, hold its logs against them, and add what is wrong to `findings`.

    allow_identical: bit-identical floats are a remark.
    """
    tried = []
    for reference in _list_references(submission, step):
        trial = Findings(findings.source)
        names = [reference, submission.find(*step.records(SIDES[1]))]
        tried.append((_judge(submission, step, names, trial, allow_identical), trial))
        if not trial.faults:
            break
    judged, trial = next((each for each in tried if not each[1].faults), tried[0])
    findings.take(trial)
    return judged


def _list_references(submission: Submission, step: Step) -> list[str]:
    """Return the references that are there, [""] for none; of two, the log is about one."""
    found = [name for name in step.records(SIDES[0]) if name in submission.files]
    return found or [""]


def _judge(
    submission: Submission, step: Step, names: list[str], findings: Findings, allow_identical: bool
) -> Judged:
    row = StepRow(step)
    findings.rows.append(row)
    records = _load_pair(submission, step, names, findings)
    twins = _load_twins(submission, step, records, findings)
    judged = Judged(
        step,
        records,
        compare_records(*records, rule=EXACT if step.exact else official_rule(step.threshold))
        if records
        else None,
        twins,
        compare_records(*twins, rule=EXACT if step.exact else STRICT) if twins else None,
    )
    _add_verdicts(judged, row, findings)
    _check_content(judged, findings)
    _check_copied(judged, findings, allow_identical)
    check_logs(submission, judged, row, findings)
    return judged


def _load_pair(
    submission: Submission, step: Step, names: list[str], findings: Findings
) -> tuple[Record, Record] | None:
    for name, side in zip(names, SIDES, strict=True):
        if not name:
            findings.add(MISSING, " or ".join(reversed(step.records(side))))
    loaded = [_load(submission, name, findings) for name in names if name]
    found = [each for each in loaded if each is not None]
    return (found[0], found[1]) if len(found) == len(SIDES) else None


def _load_twins(
    submission: Submission,
    step: Step,
    records: tuple[Record, Record] | None,
    findings: Findings,
) -> tuple[Record, Record] | None:
    """Return the float64 records, which the guide does not ask for: both, or a fault."""
    if step.exact:
        return records
    names = [step.twin(side) for side in SIDES]
    if not any(name in submission.files for name in names):
        return None
    for name in names:
        if name not in submission.files:
            findings.add(MISSING, f"{name}, though the other side's is there")
            return None
    return _load_pair(submission, step, names, findings)


def _load(submission: Submission, name: str, findings: Findings) -> Record | None:
    try:
        return dict(unread_items(load_record(submission.files[name])))
    except ReprodError as error:
        findings.add(DAMAGED, str(error).replace(str(submission.files[name]), name))
        return None


def _add_verdicts(judged: Judged, row: StepRow, findings: Findings) -> None:
    if judged.official is not None:
        row.official = judged.official.word
    if judged.strict is not None:
        row.strict = judged.strict.word
    name = judged.step.name
    for rule, comparison in (("official", judged.official), ("strict", judged.strict)):
        if comparison is not None and not comparison.passed:
            findings.add(FAILED, f"{name}: {rule}: {comparison.reason}")
        remarks = comparison.remarks if comparison is not None else ()
        findings.remarks += [f"{name}: {remark}" for remark in remarks]
        if judged.step.exact:
            return


def _check_content(judged: Judged, findings: Findings) -> None:
    """Add a fault where both sides agree on nothing: without computed numbers, or all of them zero."""
    step = judged.step
    if judged.records is None or step.exact:
        return
    numbers = [array for array in judged.records[0].values() if dtype_kind(array.dtype) in INEXACT]
    if not numbers and not step.from_counts:
        findings.add(FAILED, f"{step.name}: its records hold no computed numbers (floats)")
    if numbers and not any(np.any(array) for array in numbers) and not step.from_counts:
        findings.add(FAILED, f"{step.name}: every number is zero, so that nothing is tested")
    if step.name == "bp_align":
        losses = [key for key in judged.records[0] if "loss" in key.lower()]
        counted = sum(judged.records[0][key].size for key in losses) if losses else len(numbers)
        if counted < _FEWEST_LOSSES:
            findings.add(
                FAILED,
                f"{step.name}: {counted} loss; the guide asks for {_FEWEST_LOSSES} iterations or more",
            )


def _check_copied(judged: Judged, findings: Findings, allowed: bool) -> None:
    step = judged.step
    pairs = ((judged.official, judged.records, ""), (judged.strict, judged.twins, "strict/"))
    for comparison, records, folder in () if step.exact else pairs:
        if comparison is None or records is None:
            continue
        found = count_copied(comparison, records[0], from_counts=step.from_counts)
        if found < ENOUGH:
            continue
        text = (
            f"{folder}{step.name}: all {found} computed floats are bit-identical on both sides: "
            "were both files written by one framework?"
        )
        if allowed:
            findings.remarks.append(text)
        else:
            findings.add(SUSPICIOUS, f"{text} (--allow-identical {step.name} accepts it)")
