"""Do the files of a submission belong together: to each other, to one run, to the manifest?"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from reprod_align.errors import one_line
from reprod_align.records.compare import compare_records
from reprod_align.records.diff import INEXACT, dtype_kind
from reprod_align.records.made import digest
from reprod_align.records.verdict import official_rule
from reprod_align.submission.findings import DAMAGED, EDITED, MISSING, RUNS, Findings
from reprod_align.submission.folder import Submission
from reprod_align.submission.judged import Judged, Record
from reprod_align.submission.layout import MANIFEST, SIDES, is_known

import numpy as np

_MOST_BYTES = 64 * 2**20
_SHOWN_DIGITS = 12
_ROUNDING = 1e-4  # of float32, after a few iterations of training
_LABELS = ("fake_label", "labels", "label")


def check_together(submission: Submission, steps: Sequence[Judged], findings: Findings) -> None:
    """Add what does not belong together to `findings`; never raises on what a file holds."""
    _check_manifest(submission, findings)
    _check_results(submission, steps, findings)
    _check_twins(steps, findings)
    _check_first_loss({each.step.name: each for each in steps}, findings)


# The manifest, written when the files were packed.


def _check_manifest(submission: Submission, findings: Findings) -> None:
    if MANIFEST not in submission.files:
        findings.remarks.append("without a manifest, so changes after packing cannot be told")
        return
    listed = _read_object(submission, MANIFEST, findings).get("files")
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


# What each check of this library wrote beside its verdict.


def _check_results(submission: Submission, steps: Sequence[Judged], findings: Findings) -> None:
    made = {}
    for judged in steps:
        name = judged.step.result
        if name not in submission.files:
            continue
        result = _read_object(submission, name, findings)
        if judged.official is not None and result.get("passed") is not judged.passed:
            findings.add(
                EDITED, f"{name} says passed: {result.get('passed')}; recomputed: {judged.passed}"
            )
        making = result.get("made")
        made[judged.step.name] = making if isinstance(making, dict) else {}
        _check_records(submission, name, made[judged.step.name], findings)
    for facts in _list_facts(made):
        _check_one_run(facts, made, findings)
    if not any(made.values()):
        findings.remarks.append(
            "what the records were made with is not included: the steps are one run by their numbers alone"
        )


def _check_records(
    submission: Submission, result: str, made: Mapping[str, Any], findings: Findings
) -> None:
    """Compare each record with the one that was judged when the result was written."""
    for name, wanted in _get_dict(made, "records").items():
        if name in submission.files and wanted != digest(submission.files[name]):
            findings.add(EDITED, f"{name} is not the file that {result} judged")


def _list_facts(made: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, ...]]:
    """Yield the way to each fact that steps may share: ("sources", "torch", "weights/x.bin")."""
    found: dict[tuple[str, ...], None] = {}
    for making in made.values():
        found |= {("versions", name): None for name in _get_dict(making, "versions")}
        for side in SIDES:
            sources = _get_dict(_get_dict(making, "sources"), side)
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


# What the numbers themselves say.


def _check_twins(steps: Sequence[Judged], findings: Findings) -> None:
    """Compare each float32 record with its float64 twin: one model made both."""
    rule = official_rule(_ROUNDING)
    for judged in steps:
        if judged.records is None or judged.twins is None or not judged.step.shows_place:
            continue
        if judged.step.exact:
            continue
        for side, record, twin in zip(SIDES, judged.records, judged.twins, strict=True):
            shared = [key for key in record if key in twin]
            comparison = compare_records(
                {key: twin[key] for key in shared}, {key: record[key] for key in shared}, rule=rule
            )
            if shared and not comparison.passed:
                findings.add(
                    RUNS,
                    f"{judged.step.name}_{side}.npy and its float64 twin in strict/ are not of one run: "
                    f"{comparison.reason}",
                )


def _check_first_loss(steps: Mapping[str, Judged], findings: Findings) -> None:
    """Compare the losses that the guide makes of the same batch and weights in Steps 1, 3 and 4."""
    for position, side in enumerate(SIDES):
        losses = {
            "Step 1's logits": _loss_of_logits(_record(steps, "forward", position)),
            "Step 3's loss": _single(_record(steps, "loss", position), "loss"),
            "Step 4's loss_0": _single(_record(steps, "bp_align", position), "loss_0"),
        }
        known = {name: value for name, value in losses.items() if value is not None}
        if known and max(known.values()) - min(known.values()) > _ROUNDING * max(known.values()):
            said = ", ".join(f"{name} {value:.6g}" for name, value in known.items())
            findings.add(
                RUNS,
                f"{side}: the loss of the fake batch should be one number: {said}; the guide takes the same "
                "batch and weights for all three",
            )


def _record(steps: Mapping[str, Judged], name: str, position: int) -> Record:
    judged = steps.get(name)
    return judged.records[position] if judged is not None and judged.records is not None else {}


def _single(record: Record, key: str) -> float | None:
    array = record.get(key)
    if array is None or array.size != 1 or dtype_kind(array.dtype) not in INEXACT:
        return None
    value = float(np.real(array.reshape(-1)[0]))
    return value if np.isfinite(value) else None


def _loss_of_logits(record: Record) -> float | None:
    """Return the cross entropy of a record's "logits" (B, C) and its labels (B,), if it holds both."""
    logits = record.get("logits")
    labels = next((record[key] for key in _LABELS if key in record), None)
    if logits is None or labels is None or logits.ndim != 2 or logits.dtype.kind != "f":
        return None
    if labels.dtype.kind not in "iu" or labels.shape != logits.shape[:1] or not logits.size:
        return None
    if labels.min() < 0 or labels.max() >= logits.shape[1] or not np.isfinite(logits).all():
        return None
    scores = logits.astype(np.float64)
    scores -= scores.max(axis=1, keepdims=True)
    chances = np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(len(labels)), labels]
    return float(chances.mean())


# Reading.


def _get_dict(values: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = values.get(name)
    return found if isinstance(found, dict) else {}


def _read_object(submission: Submission, name: str, findings: Findings) -> dict[str, Any]:
    """Return a JSON object; an empty one, and a fault, if the file is something else."""
    try:
        found = json.loads(_read_text(submission.files[name]))
        if isinstance(found, dict):
            return found
        reason = f"holds a {type(found).__name__}, not an object"
    except (OSError, RecursionError, ValueError) as error:
        reason = f"is not JSON: {str(error)[:100]}"
    findings.add(DAMAGED, f"{name} {reason}")
    return {}


def _read_text(path: Path) -> str:
    if path.stat().st_size > _MOST_BYTES:
        raise ValueError(f"{path.stat().st_size} bytes")
    return path.read_text(encoding="utf-8")
