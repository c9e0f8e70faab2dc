"""Collects what a comparison finds, and writes the report."""

import math
from collections.abc import Sequence
from dataclasses import replace

from reprod_align.base.difference import RELATIVE_TOLERANCE, Gap
from reprod_align.model.source import SourceLine
from reprod_align.report import Check, Finding, NotJudged, Report, Stage, Unjudged
from reprod_align.report.finding import FindingKind

NOT_COMPARABLE = Gap(math.inf, 0.0, 0.0, "")
OUTPUTS_IN_EVAL = "outputs, eval mode"


class Findings:
    """Findings, checks and remarks, in the order in which they are made."""

    def __init__(self) -> None:
        """Begin with an empty report."""
        self.report = Report()
        self.places_only = False
        """whether causes and lines are left out, since the pair is judged once more"""
        self.ends_at_float32 = False
        """whether a place that loses precision is enough too: then the pair is judged once more"""
        self.tries_edits = True
        """whether edits of the port's code are tried at a fault"""

    def add(
        self,
        stage: Stage,
        ours: str,
        theirs: str,
        evidence: str,
        found: Gap = NOT_COMPARABLE,
        lines: tuple[SourceLine | None, SourceLine | None] = (None, None),
        *,
        kind: FindingKind,
        cause: str = "",
        remedy: str = "",
    ) -> None:
        """Add a finding about a module or parameter, by PyTorch's name and Paddle's.

        evidence: what was measured there. lines: of source, PyTorch's and Paddle's, that make the
        difference. cause: why it differs, "" if that is not known. remedy: what makes it go away.
        """
        apart = found.difference, found.tolerance
        finding = Finding(
            stage, ours, theirs, evidence, *apart, kind=kind, cause=cause, remedy=remedy
        )
        self.report.findings.append(give_lines(finding, *lines))

    def put_first(self, findings: Sequence[Finding]) -> None:
        """Add findings before those that were made already."""
        self.report.findings[:0] = findings

    def replace(self, finding: Finding, other: Finding) -> None:
        """Put another finding in the place of one."""
        self.report.findings[self.report.findings.index(finding)] = other

    def add_settings(self, finding: Finding, text: str) -> None:
        """Add to a finding which settings of its module differ."""
        settings = "; ".join(filter(None, [finding.settings, text]))
        self.replace(finding, replace(finding, settings=settings))

    def check(
        self, stage: Stage, what: str, relative: float, passed: bool, noise: float | None = None
    ) -> None:
        """Note a comparison."""
        self.report.checks.append(Check(stage, what, relative, passed, noise))

    def check_gaps(
        self, stage: Stage, what: str, gaps: Sequence[Gap], passed: bool | None = None
    ) -> None:
        """Note a comparison of several tensors, which passes if all of them agree.

        The largest difference is noted; what is allowed beside RELATIVE_TOLERANCE counts as scale.
        """
        passed = all(found.ok for found in gaps) if passed is None else passed
        nothing = 0.0 if passed else math.inf
        self.check(
            stage,
            what,
            max((found.exceed * RELATIVE_TOLERANCE for found in gaps), default=nothing),
            passed,
        )

    def remark(self, text: str) -> None:
        """Note something that is not a fault but should be known, once."""
        if text not in self.report.remarks:
            self.report.remarks.append(text)

    def leave_unjudged(self, kind: Unjudged, what: str) -> None:
        """Note something that no comparison reaches, once."""
        note = NotJudged(kind, what)
        if note not in self.report.not_judged:
            self.report.not_judged.append(note)

    def note_float32(self, place: str, relative: float) -> None:
        """Note a place at which one side computes with float32 inside, once."""
        self.report.imprecise.setdefault(place, relative)

    def attribute_to_float32(self) -> None:
        """Mark checks that failed as float32's, if one side computes in it and no fault is found so far.

        A fault that a later stage finds is none of theirs.
        """
        if self.float32_inside and not self.report.findings:
            checks = self.report.checks
            checks[:] = [replace(check, float32=not check.passed) for check in checks]

    @property
    def float32_inside(self) -> bool:
        """Whether a place was noted at which one side computes with float32 inside."""
        return bool(self.report.imprecise)

    @property
    def eval_agrees(self) -> bool:
        """Whether the outputs in eval mode were compared and agree."""
        return any(check.what == OUTPUTS_IN_EVAL and check.passed for check in self.report.checks)

    @property
    def is_enough(self) -> bool:
        """Whether places alone are wanted and one was found."""
        rounds = self.ends_at_float32 and self.float32_inside
        return self.places_only and (bool(self.report.findings) or rounds)

    def at(self, ours: str, theirs: str) -> list[Finding]:
        """Return the findings about a place."""
        return [f for f in self.report.findings if (f.torch_name, f.paddle_name) == (ours, theirs)]

    def at_stage(self, *stages: Stage) -> list[Finding]:
        """Return the findings of some stages."""
        return [finding for finding in self.report.findings if finding.stage in stages]


def give_lines(finding: Finding, torch: SourceLine | None, paddle: SourceLine | None) -> Finding:
    """Return the finding with lines of source, where it has none yet."""
    if torch is not None and finding.torch_line is None:
        finding = replace(
            finding, torch_line=str(torch), torch_code=torch.text, torch_span=torch.span
        )
    if paddle is not None and finding.paddle_line is None:
        finding = replace(
            finding, paddle_line=str(paddle), paddle_code=paddle.text, paddle_span=paddle.span
        )
    return finding
