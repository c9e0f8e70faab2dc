"""Verifies a submission without trusting it: every verdict is recomputed from its arrays."""

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from reprod_align.submission.findings import Findings
from reprod_align.submission.folder import Submission, open_submission
from reprod_align.submission.layout import EXTRA, STEPS, TRAINING, Step
from reprod_align.submission.sources import check_sources, find_code
from reprod_align.submission.steps import judge_step
from reprod_align.submission.together import check_together
from reprod_align.submission.training_logs import check_training_logs


def verify(
    source: Path, *, threshold: float | None = None, allow_identical: Collection[str] = ()
) -> Findings:
    """Return what is found in a submission, a folder or a zip archive.

    threshold: the largest difference of Step 5's metrics; None is the guide's 0.0015. allow_identical:
    names of steps whose floats may be bit-identical. Raises ReprodError if the archive is unsafe, or
    holds no submission.
    """
    with open_submission(source) as submission:
        return examine(submission, threshold=threshold, allow_identical=allow_identical)


def examine(
    submission: Submission,
    *,
    threshold: float | None = None,
    allow_identical: Collection[str] = (),
) -> Findings:
    """Return what is found in a submission that is open already; options as of `verify`."""
    findings = Findings(submission.source)
    judged = [
        judge_step(submission, step, findings, allow_identical=step.name in allow_identical)
        for step in _list_steps(submission, threshold)
    ]
    check_together(submission, judged, findings)
    check_training_logs(submission, findings)
    code = find_code(submission.source)
    if code is not None:
        check_sources(submission, code, findings)
    if not any(name.startswith(TRAINING) for name in submission.files):
        findings.remarks.append(
            f"without training logs ({TRAINING}*), which the guide asks for beside the fifteen files"
        )
    return findings


def _list_steps(submission: Submission, threshold: float | None) -> list[Step]:
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
