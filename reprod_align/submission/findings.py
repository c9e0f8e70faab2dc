"""What a verification finds: faults, each of a kind, remarks, and a row of words for each step."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reprod_align.base.text import count, shorten_lines, table
from reprod_align.errors import one_line
from reprod_align.submission.layout import Step

MISSING, DAMAGED, FAILED = "missing", "damaged", "failed"
EDITED, RUNS, SUSPICIOUS = "edited", "different runs", "suspicious"
_SHOWN = 10  # faults of a kind


@dataclass(frozen=True)
class Fault:
    """One reason why the submission is not verified."""

    kind: str
    text: str


@dataclass
class StepRow:
    """What was recomputed of one step, in words."""

    step: Step
    official: str = "missing"
    strict: str = "not included"
    log: str = "missing"


@dataclass
class Findings:
    """All that was found; filled while the submission is read."""

    source: Path
    rows: list[StepRow] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """True if the five steps were read and no fault was found."""
        return bool(self.rows) and not self.faults

    def add(self, kind: str, text: str) -> None:
        """Add a fault, once."""
        fault = Fault(kind, one_line(text))
        if fault not in self.faults:
            self.faults.append(fault)

    def take(self, other: "Findings") -> None:
        """Add what was found elsewhere in the same submission."""
        self.rows += other.rows
        self.remarks += other.remarks
        for fault in other.faults:
            self.add(fault.kind, fault.text)

    def summary(self) -> str:
        """Return the verdict as text: a row for each step, then the faults by kind, then the remarks."""
        word = "verified" if self.passed else f"NOT verified, {count(len(self.faults), 'fault')}"
        rows = [("step", "official", "strict", "log")]
        rows += [
            (f"{row.step.number} {row.step.name}", row.official, row.strict, row.log)
            for row in self.rows
        ]
        lines = [f"{one_line(str(self.source))}: {word}", *(f"  {line}" for line in table(rows))]
        for kind in dict.fromkeys(fault.kind for fault in self.faults):
            texts = [f"  {kind}: {fault.text}" for fault in self.faults if fault.kind == kind]
            lines += shorten_lines(texts, _SHOWN, indent="  ")
        return "\n".join([*lines, *self._remark_lines()])

    def to_json(self) -> dict[str, Any]:
        """Return the same as plain values."""
        steps = [
            {"number": row.step.number, "name": row.step.name,
             "official": row.official, "strict": row.strict, "log": row.log}
            for row in self.rows
        ]  # fmt: skip
        faults = [{"kind": fault.kind, "text": fault.text} for fault in self.faults]
        return {
            "source": str(self.source),
            "passed": self.passed,
            "steps": steps,
            "faults": faults,
            "remarks": list(self.remarks),
        }

    def _remark_lines(self) -> Iterable[str]:
        return shorten_lines([f"  remark: {one_line(each)}" for each in self.remarks], _SHOWN, "  ")
