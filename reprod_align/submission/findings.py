"""What a verification recomputes and finds: a step's verdicts, faults, each of a kind, and remarks."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reprod_align.base.files import parse_json, to_plain
from reprod_align.base.text import count, shorten_lines, table
from reprod_align.errors import one_line
from reprod_align.records import NamedArrays
from reprod_align.records.compare import Comparison
from reprod_align.submission.files import GuideStep, Submission

MISSING, DAMAGED, FAILED = "missing", "damaged", "failed"
EDITED, RUNS, SUSPICIOUS = "edited", "different runs", "suspicious"
_SHOWN = 10  # faults of a kind
_MOST_BYTES = 32 * 2**20
_MOST_VALUES = 2_000_000
"""values in a file, of 50 to 100 bytes in memory each; a check of 10,000 tensors writes 600,000"""


@dataclass(frozen=True)
class SubmissionFault:
    """One reason why the submission is not verified."""

    kind: str
    text: str


@dataclass
class StepRow:
    """What was recomputed of one step, in words."""

    step: GuideStep
    official: str = "missing"
    strict: str = "not included"
    log: str = "missing"


@dataclass
class Verification:
    """All that was found; filled while the submission is read."""

    source: Path
    rows: list[StepRow] = field(default_factory=list)
    faults: list[SubmissionFault] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """True if the five steps were read and no fault was found."""
        return bool(self.rows) and not self.faults

    def add(self, kind: str, text: str) -> None:
        """Add a fault, once."""
        fault = SubmissionFault(kind, one_line(text))
        if fault not in self.faults:
            self.faults.append(fault)

    def take(self, other: "Verification") -> None:
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
        remarks = [f"  remark: {one_line(each)}" for each in self.remarks]
        return "\n".join([*lines, *shorten_lines(remarks, _SHOWN, indent="  ")])

    def to_json(self) -> dict[str, Any]:
        """Return the same as plain values."""
        steps = [
            {"number": row.step.number, "name": row.step.name,
             "official": row.official, "strict": row.strict, "log": row.log}
            for row in self.rows
        ]  # fmt: skip
        return {
            "source": str(self.source),
            "passed": self.passed,
            "steps": steps,
            "faults": to_plain(self.faults),
            "remarks": list(self.remarks),
        }


@dataclass(frozen=True)
class JudgedStep:
    """What was recomputed of a step; None where a record is missing or cannot be read."""

    step: GuideStep
    records: tuple[NamedArrays, NamedArrays] | None
    official: Comparison | None
    twins: tuple[NamedArrays, NamedArrays] | None
    strict: Comparison | None

    @property
    def passed(self) -> bool:
        """Whether every verdict that could be recomputed is a pass, and there is one."""
        known = [each.passed for each in (self.official, self.strict) if each]
        return self.official is not None and all(known)


def get_dict(values: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the object of that name in another one; an empty one if there is none."""
    found = values.get(name)
    return found if isinstance(found, dict) else {}


def read_object(submission: Submission, name: str, findings: Verification) -> dict[str, Any]:
    """Return a JSON object; an empty one, and a fault, if the file is something else."""
    try:
        found = parse(read_text(submission.files[name], _MOST_BYTES))
        if isinstance(found, dict):
            return found
        reason = f"holds a {type(found).__name__}, not an object"
    except (OSError, RecursionError, ValueError) as error:
        reason = f"is not JSON: {str(error)[:100]}"
    findings.add(DAMAGED, f"{name} {reason}")
    return {}


def parse(text: str) -> Any:
    """Return what JSON holds. Raises ValueError if it is not JSON, or would grow too large."""
    if sum(map(text.count, "[{,:")) > _MOST_VALUES:
        raise ValueError(f"more than {_MOST_VALUES} values")
    return parse_json(text)


def read_text(path: Path, most: int) -> str:
    """Return a file's text; ValueError if it has more than `most` bytes, or is not UTF-8."""
    size = path.stat().st_size
    if size > most:
        raise ValueError(f"{size} bytes; the most is {most}")
    return path.read_text(encoding="utf-8")
