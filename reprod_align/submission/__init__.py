"""A submission, the guide's five steps as files, verified without trusting it.

Every verdict is recomputed from the arrays, and logs, results and training logs are compared with them; the
files, and the code and weights beside them, with the digests in the manifest and the results. `pack` writes
the archive and its manifest.
"""

import re
import zipfile
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from reprod_align.base import FRAMEWORKS
from reprod_align.base.blocks import Array, read_span
from reprod_align.base.difference import INEXACT, dtype_kind
from reprod_align.base.files import as_json, whole_file
from reprod_align.base.text import count, shorten
from reprod_align.errors import ReprodError
from reprod_align.records import NamedArrays, load_record, unread_items
from reprod_align.records.compare import EXACT, STRICT, Comparison, compare_records, official_rule
from reprod_align.records.gate import digest, list_versions
from reprod_align.submission.claims import check_logs, check_results
from reprod_align.submission.files import (
    EXTRA,
    GUIDE_FOLDER,
    MANIFEST,
    STEPS,
    TRAINING,
    GuideStep,
    Submission,
    is_known,
    open_submission,
)
from reprod_align.submission.findings import (
    DAMAGED,
    EDITED,
    FAILED,
    MISSING,
    RUNS,
    SUSPICIOUS,
    JudgedStep,
    StepRow,
    Verification,
    get_dict,
    read_object,
)
from reprod_align.submission.numbers import check_numbers
from reprod_align.submission.training_logs import check_training_logs

import numpy as np

ENOUGH = 8
"""so many equal floats are no chance: at one in four, once in 65,000 submissions"""

_RATE = re.compile(r"(^|[_.])(lr|learning_?rate)([_.\d]|$)", re.IGNORECASE)
_LOOKED_AT = 4096  # elements of a tensor
_FEWEST_LOSSES = 2


def verify(
    source: Path, *, threshold: float | None = None, allow_identical: Collection[str] = ()
) -> Verification:
    """Return what is found in a submission, a folder or a zip archive.

    threshold: the largest difference of Step 5's metrics; None is the guide's 0.0015. allow_identical:
    names of steps whose floats may be bit-identical. Raises ReprodError if the archive is unsafe, or
    holds no submission.
    """
    with open_submission(source) as submission:
        return examine(submission, threshold=threshold, allow_identical=allow_identical)


def examine(
    submission: Submission, *, threshold: float | None = None, allow_identical: Collection[str] = ()
) -> Verification:
    """Return what is found in a submission that is open already; options as of `verify`."""
    findings = Verification(submission.source)
    judged = [
        judge_step(submission, step, findings, allow_identical=step.name in allow_identical)
        for step in _list_steps(submission, threshold)
    ]
    check_manifest(submission, findings)
    check_results(submission, judged, findings)
    check_numbers(judged, findings)
    check_training_logs(submission, findings)
    code = find_code(submission.source)
    if code is not None:
        check_sources(submission, code, findings)
    if not any(name.startswith(TRAINING) for name in submission.files):
        findings.remarks.append(
            f"without training logs ({TRAINING}*), which the guide asks for beside the fifteen files"
        )
    return findings


def _list_steps(submission: Submission, threshold: float | None) -> list[GuideStep]:
    """Return the guide's five steps, and data and learning rates where they are there."""
    steps = [
        replace(step, threshold=threshold) if step.number == 5 and threshold is not None else step
        for step in STEPS
    ]
    return steps + [
        step
        for step in EXTRA
        if submission.find(*step.records("torch"), *step.records("paddle"), *step.logs)
    ]


def judge_step(
    submission: Submission,
    step: GuideStep,
    findings: Verification,
    *,
    allow_identical: bool = False,
) -> JudgedStep:
    """Recompute the step's verdicts, compare its logs with them, and add what is wrong to `findings`.

    allow_identical: bit-identical floats are a remark.
    """
    tried = []
    references = [name for name in step.records("torch") if name in submission.files]
    for reference in references or [""]:  # of two, the log is about one
        trial = Verification(findings.source)
        names = [reference, submission.find(*step.records("paddle"))]
        tried.append((_judge(submission, step, names, trial, allow_identical), trial))
        if not trial.faults:
            break
    judged, trial = next((each for each in tried if not each[1].faults), tried[0])
    findings.take(trial)
    return judged


def _judge(
    submission: Submission,
    step: GuideStep,
    names: list[str],
    findings: Verification,
    allow_identical: bool,
) -> JudgedStep:
    row = StepRow(step)
    findings.rows.append(row)
    records = _load_pair(submission, step, names, findings)
    twins = _load_twins(submission, step, records, findings)
    judged = JudgedStep(
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
    submission: Submission, step: GuideStep, names: list[str], findings: Verification
) -> tuple[NamedArrays, NamedArrays] | None:
    for name, side in zip(names, FRAMEWORKS, strict=True):
        if not name:
            findings.add(MISSING, " or ".join(reversed(step.records(side))))
    loaded = [_load(submission, name, findings) for name in names if name]
    found = [each for each in loaded if each is not None]
    return (found[0], found[1]) if len(found) == len(FRAMEWORKS) else None


def _load_twins(
    submission: Submission,
    step: GuideStep,
    records: tuple[NamedArrays, NamedArrays] | None,
    findings: Verification,
) -> tuple[NamedArrays, NamedArrays] | None:
    """Return the float64 records, which the guide does not ask for: both, or a fault."""
    if step.exact:
        return records
    names = [step.name_twin(side) for side in FRAMEWORKS]
    if not any(name in submission.files for name in names):
        return None
    for name in names:
        if name not in submission.files:
            findings.add(MISSING, f"{name}, though the other side's is there")
            return None
    return _load_pair(submission, step, names, findings)


def _load(submission: Submission, name: str, findings: Verification) -> NamedArrays | None:
    try:
        return dict(unread_items(load_record(submission.files[name])))
    except ReprodError as error:
        findings.add(DAMAGED, str(error).replace(str(submission.files[name]), name))
        return None


def _add_verdicts(judged: JudgedStep, row: StepRow, findings: Verification) -> None:
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


def _check_content(judged: JudgedStep, findings: Verification) -> None:
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


def _check_copied(judged: JudgedStep, findings: Verification, allowed: bool) -> None:
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


def count_copied(comparison: Comparison, expected: Mapping[str, Any], *, from_counts: bool) -> int:
    """Return how many different computed floats the records have, all of them equal; 0 if one differs.

    Two frameworks round differently: of a BERT's logits and losses about one float in four is equal. What
    is equal by design says nothing: learning rates, constants, and metrics, which are quotients of counts.

    comparison: of `expected`, {name: array}, with the other side. from_counts: single numbers are
    metrics, and left out.
    """
    arrays, found = dict(unread_items(expected)), 0
    for result in comparison.results:
        array = arrays.get(result.key)
        if array is None or not _is_computed(result.key, array, from_counts):
            continue
        if result.difference is None or result.difference.mismatches:
            return 0
        values = np.unique(read_span(array, 0, min(array.size, _LOOKED_AT)))
        found += int(np.count_nonzero(values)) if values.size > 1 or array.size == 1 else 0
    return found


def _is_computed(key: str, array: Array, from_counts: bool) -> bool:
    if dtype_kind(array.dtype) not in INEXACT or _RATE.search(key):
        return False
    return array.size > (1 if from_counts else 0)


_NAMED = 9  # files in one remark
_NAMED_RECORDS = 4  # in one finding


def check_manifest(submission: Submission, findings: Verification) -> None:
    """Compare each file's hash with the manifest; remark on what belongs to no submission."""
    _note_others(submission, findings)
    if MANIFEST not in submission.files:
        findings.remarks.append("without a manifest, so changes after packing cannot be told")
        return
    listed = read_object(submission, MANIFEST, findings).get("files")
    if not isinstance(listed, dict):
        findings.add(DAMAGED, f"{MANIFEST} lists no files")
        return
    for name, wanted in listed.items():
        if name not in submission.files:
            findings.add(MISSING, f"{name}, which the manifest lists")
        elif wanted != digest(submission.files[name]):
            findings.add(EDITED, f"{name} is not the file that was packed: its hash is another one")
    for name in submission.files:
        if name not in listed and name != MANIFEST and is_known(name):
            findings.add(EDITED, f"{name} was added after packing: the manifest does not list it")


def _note_others(submission: Submission, findings: Verification) -> None:
    """Remark on files that a submission does not hold: they were not looked at."""
    others = [name for name in submission.files if not is_known(name)] + [*submission.outside]
    if others:
        verb = "is" if len(others) == 1 else "are"
        # pages of the guide's folder claim nothing of a run, and are named last
        by_kind = sorted(others, key=lambda name: name.startswith("README"))
        findings.remarks.append(
            f"{count(len(others), 'file')} {verb} no part of a submission and not looked at: "
            f"{shorten(by_kind, _NAMED)}"
        )


def pack(files: Mapping[str, Path], target: Path) -> None:
    """Write the files, by their names in log_reprod/, and their manifest to `target`, whole or not at all.

    Raises ReprodError if that fails.
    """
    manifest = {
        "format": 1,
        "versions": list_versions(),
        "files": {name: digest(path) for name, path in sorted(files.items())},
    }
    with (
        whole_file(target) as handle,
        zipfile.ZipFile(handle, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        archive.writestr(f"{GUIDE_FOLDER}/{MANIFEST}", as_json(manifest))
        for name, path in sorted(files.items()):
            archive.write(path, f"{GUIDE_FOLDER}/{name}")


def find_code(source: Path) -> Path | None:
    """Return the folder with a submission's code: what a log_reprod/ lies in; None for an archive."""
    root = source.resolve()
    if not root.is_dir():
        return None
    return root.parent if root.name == GUIDE_FOLDER else root


def check_sources(submission: Submission, code: Path, findings: Verification) -> None:
    """Add a fault for each file of the code whose digest is not the one that a record was made with.

    A missing file is accepted: not everything is handed in.
    """
    read = cache(digest)  # a file of weights counts in every step
    changed: dict[str, dict[str, None]] = {}
    for step in STEPS:
        if step.result not in submission.files:
            continue
        made = get_dict(read_object(submission, step.result, Verification(findings.source)), "made")
        for side in FRAMEWORKS:
            for name, wanted in get_dict(get_dict(made, "sources"), side).items():
                found = _list_places(code, name)
                if found and all(read(path) != wanted for path in found):
                    changed.setdefault(name, {})[f"{step.name}_{side}"] = None
    for name, records in changed.items():
        names = shorten([*records], _NAMED_RECORDS)
        text = f"{name} in {code} is not the one that these were made with: {names}"
        findings.add(RUNS, text)


def _list_places(code: Path, name: str) -> list[Path]:
    """Return the files that a source can be: it is known by the end of its path."""
    return [path for root in (code, code / "pipeline", code.parent)
            for path in (root / name, root / Path(name).name) if path.is_file()]  # fmt: skip
