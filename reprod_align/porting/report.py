"""What `port` did: the result as text, as JSON and as the report in the result folder."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from reprod_align.base.files import as_json
from reprod_align.base.text import count
from reprod_align.errors import join_lines
from reprod_align.porting.calls.draft import Draft
from reprod_align.porting.loop import Attempt, Course, DraftEdit
from reprod_align.porting.script import LoopReport
from reprod_align.report import INSIDE_FLOAT32, ONLY_FLOAT32

REPORT = "report.md"


@dataclass
class PortResult:
    """The port of one file."""

    source: str
    """the PyTorch file"""
    call: str
    port: str
    """the port's file name"""
    draft: Draft
    course: Course
    weights: str = ""
    """what became of the weights, in a sentence"""
    left: list[str] = field(default_factory=list)
    """what is left for a person, each with its line"""
    remarks: list[str] = field(default_factory=list)
    loop: LoopReport | None = None
    """two steps of the training loop on both sides, where it is asked for"""

    @property
    def passed(self) -> bool:
        """Whether the port is faithful, and its training loop where that was asked for."""
        return self.course.outcome.passed and (self.loop is None or self.loop.passed)

    @property
    def verdict(self) -> str:
        """The verdict, in a few words."""
        return describe(self.course.outcome)

    def list_roundings(self) -> list[str]:
        """Return where the pair computes in float32, or agrees no further, in sentences."""
        report = self.course.outcome.report
        remarks = report.remarks if report is not None else []
        return [
            text.removeprefix(ONLY_FLOAT32)
            for text in remarks
            if text.startswith((ONLY_FLOAT32, INSIDE_FLOAT32))
        ]

    def summary(self) -> str:
        """Return the result in a screen of text."""
        lines = [f"verdict: {self.verdict}", "", f"  draft     {self._describe_draft()}"]
        lines += [f"  at once   {describe(self.course.first)}"]
        lines += [f"  float32   {reason}" for reason in self.list_roundings()]
        lines += [f"  edit {at:<4} {step.reason}" for at, step in enumerate(self.course.steps, 1)]
        if self.weights:
            lines.append(f"  weights   {self.weights}")
        if self.loop:
            first, *rows = self.loop.lines()
            lines += [f"  loop      {first}", *(f"            {row}" for row in rows)]
        if self.left:
            lines += [
                "",
                f"left for a person, by lines of {self.port}:",
                *(f"  - {text}" for text in self.left),
            ]
        if self.remarks:
            lines += ["", "remarks:", *(f"  - {text}" for text in self.remarks)]
        return join_lines(lines)

    def to_json(self) -> str:
        """Return the result as strict JSON."""
        plain: dict[str, Any] = {
            "passed": self.passed,
            "verdict": self.verdict,
            "source": self.source,
            "call": self.call,
            "port": self.port,
            "at_once": describe(self.course.first),
            "float32": self.list_roundings(),
            "edits": self.course.steps,
            "weights": self.weights,
            "loop": self.loop.lines() if self.loop else None,
            "left": self.left,
            "remarks": self.remarks,
            "not_converted": self.draft.left,
            "calls": {
                "proven": self.draft.proven,
                "not_proven": self.draft.unproven,
                "never_ran": self.draft.unseen,
            },
        }
        return as_json(plain)

    def to_markdown(self) -> str:
        """Return the report of the result folder."""
        lines = [f"# The port of {self.source}", "", f"Verdict: **{self.verdict}**", ""]
        lines += [f"- Model: `{self.call}`", f"- Port: `{self.port}`"]
        lines += [f"- Draft: {self._describe_draft()}. As it came: {describe(self.course.first)}"]
        lines += [f"- Float32: {reason}" for reason in self.list_roundings()]
        lines += [f"- Weights: {self.weights}"] if self.weights else []
        lines += ["- Prove it again: `reprod-align pair pair.py`"]
        lines += _write_list(
            f"Left for a person, by lines of {self.port}", self.left
        ) + _write_list("Remarks", self.remarks)
        lines += ["", f"## Edits of the draft: {len(self.course.steps)}"]
        for number, step in enumerate(self.course.steps, 1):
            lines += _write_step(number, step)
        if self.loop:
            lines += ["", "## Two steps of the training loop", "", "```text"]
            lines += [*self.loop.lines(), "```"]
        if self.course.outcome.report is not None:
            lines += ["", "## The comparison", "", "```text"]
            lines += [self.course.outcome.report.summary(), "```"]
        return "\n".join(lines) + "\n"

    def _describe_draft(self) -> str:
        draft = self.draft
        left = count(len(draft.left), "line")
        if not draft.proven and not draft.unproven:
            return f"{draft.author}: {count(draft.calls, 'call')} of PyTorch, {left} not converted"
        parts = [f"{draft.proven} proven where they stand", f"{len(draft.unproven)} ran and are not proven",
                 f"{len(draft.unseen)} never ran", f"{left} not converted"]  # fmt: skip
        return f"{count(draft.calls, 'call')} of PyTorch: {', '.join(parts)}"


def describe(outcome: Attempt) -> str:
    """Return what an attempt ended in, in a few words."""
    if outcome.report is not None:
        return outcome.report.verdict
    words = {"import": "does not import", "build": "does not build", "run": "does not run"}
    return words.get(outcome.problems[0].stage, "not compared")


def _write_list(title: str, texts: Sequence[str]) -> list[str]:
    return ["", f"## {title}", "", *(f"- {text}" for text in texts)] if texts else []


def _write_step(number: int, step: DraftEdit) -> list[str]:
    known = f" (`reprod-align api {step.entry}`)" if step.entry else ""
    lines = ["", f"### {number}. {step.reason}{known}", "", f"Found: {step.problem}", ""]
    return [*lines, "```diff", step.diff.rstrip("\n"), "```"]
