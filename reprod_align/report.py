"""What `align` found: a value, and the texts and JSON that are made from it."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Stage = Literal["audit", "weights", "forward", "loss", "backward", "optimizer", "schedule"]
STAGES: tuple[Stage, ...] = (
    "audit", "weights", "forward", "loss", "backward", "optimizer", "schedule",
)  # fmt: skip
Verdict = Literal["faithful", "agrees to float32", "diverges"]


@dataclass(frozen=True)
class Finding:
    """One place at which the port is not faithful, and why."""

    stage: Stage
    torch_name: str
    """dotted name of the module or parameter; "" the whole model"""
    paddle_name: str
    message: str
    """what differs and, where it was found out, the cause"""
    difference: float
    """the largest absolute difference there"""
    tolerance: float
    """the largest that a faithful pair may have there"""

    @property
    def place(self) -> str:
        """Both names, or the one that they share."""
        if self.torch_name == self.paddle_name:
            return self.torch_name or "the model"
        return f"{self.torch_name or 'the model'} (Paddle: {self.paddle_name or 'the model'})"

    def __str__(self) -> str:
        """Return the finding in one line."""
        return f"{self.stage}: {self.place}: {self.message}"


@dataclass(frozen=True)
class Check:
    """One comparison that was made: what, and how far the two sides were apart."""

    stage: Stage
    what: str
    relative: float
    """largest difference over the largest expected value"""
    passed: bool


@dataclass
class Report:
    """The result of `align`."""

    verdict: Verdict = "faithful"
    findings: list[Finding] = field(default_factory=list)
    """in causal order: the first is where the two models part"""
    remarks: list[str] = field(default_factory=list)
    """what is no fault but should be known"""
    checks: list[Check] = field(default_factory=list)
    """everything that was compared"""
    pairs: Mapping[str, str] = field(default_factory=dict)
    """modules: PyTorch's name -> Paddle's"""

    @property
    def passed(self) -> bool:
        """True if the port is faithful, as far as it was run."""
        return not self.findings and bool(self.checks)

    @property
    def worst(self) -> Check | None:
        """The comparison with the largest relative difference."""
        return max(self.checks, key=lambda check: _order(check.relative), default=None)

    def summary(self) -> str:
        """Return the report as text: the verdict, a table of what was compared, the findings."""
        lines = [f"verdict: {self.verdict}", ""]
        lines += [_row(check) for check in self.checks]
        if self.findings:
            lines += ["", f"{len(self.findings)} finding(s), the first is where the two part:"]
            lines += [f"  {number}. {finding}" for number, finding in enumerate(self.findings, 1)]
        if self.remarks:
            lines += ["", "remarks:", *(f"  - {remark}" for remark in self.remarks)]
        return "\n".join(lines)

    def __str__(self) -> str:
        """Return the summary."""
        return self.summary()

    def to_json(self) -> str:
        """Return the report as strict JSON; inf and nan as text."""
        plain = {
            "passed": self.passed,
            "verdict": self.verdict,
            "findings": [asdict(finding) for finding in self.findings],
            "remarks": self.remarks,
            "checks": [asdict(check) for check in self.checks],
            "pairs": dict(self.pairs),
        }
        return json.dumps(_strict(plain), indent=2)


def _row(check: Check) -> str:
    word = "ok" if check.passed else "DIFFERENT"
    return f"  {check.stage:<9}  {check.what:<44}  {check.relative:8.1e}  {word}"


def _order(relative: float) -> float:
    return math.inf if math.isnan(relative) else relative


def _strict(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {str(key): _strict(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_strict(part) for part in value]
    return value
