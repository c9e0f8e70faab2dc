"""What `align` found, as a value with its text and JSON, and the details that its page shows."""

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Literal, TypeVar

from reprod_align.base import Framework
from reprod_align.base.difference import RELATIVE_TOLERANCE
from reprod_align.base.files import as_json, to_plain
from reprod_align.base.text import count
from reprod_align.errors import join_lines
from reprod_align.page import CurvePlot, Layer, TensorPicture
from reprod_align.report.finding import (
    STAGES,
    Finding,
    FindingKind,
    Stage,
    Suggestion,
    group_findings,
    list_finding,
)

__all__ = [
    "STAGES",
    "Check",
    "Suggestion",
    "Finding",
    "FindingKind",
    "ModuleShare",
    "NotJudged",
    "Report",
    "Stage",
    "group_findings",
]
Verdict = Literal["faithful", "agrees to float32", "diverges"]
AMPLIFIES = 10.0
"""times: a module that makes an inherited difference this much larger is shown"""
DIFFERENT = "DIFFERENT"
PORT_RUNS = "the port runs"
ONLY_FLOAT32 = "agrees to float32 only: "
"""how a remark begins that says where float32 inside is all that differs"""
INSIDE_FLOAT32 = "the models compute in float32 in "
"""how a remark begins that says where both models ask for float32"""
_MANY = 10_000  # times
_ROWS = 12  # of the table of modules
Unjudged = Literal[
    "output",
    "gradient",
    "input gradient",
    "state",
    "random numbers",
    "lines",
    "precision",
    "batches",
]
"""what can be left unjudged"""


@dataclass(frozen=True)
class Weight:
    """A tensor of both models; several names where one side keeps it in parts."""

    torch_name: str
    paddle_name: str
    """"" where it has no counterpart; PyTorch's likewise"""
    shape: tuple[int, ...]
    """in the model that is named first"""
    how: str
    """what makes Paddle's of PyTorch's: "transposed", "in parts"; "" nothing"""


@dataclass(frozen=True)
class Setting:
    """A setting whose values differ between the two models."""

    torch_name: str
    paddle_name: str
    setting: str
    torch_value: str
    paddle_value: str
    conclusive: bool
    """False: both values may compute the same here"""


@dataclass
class Details:
    """All of it, as far as the comparison got."""

    layers: list[Layer] = field(default_factory=list)
    """in call order, from one pass in eval mode"""
    picture: TensorPicture | None = None
    """of the output of the first module at fault, or of the one that differs most"""
    curves: list[CurvePlot] = field(default_factory=list)
    """losses and learning rates of the training steps"""
    weights: list[Weight] = field(default_factory=list)
    settings: list[Setting] = field(default_factory=list)
    inputs: Sequence[tuple[str, str, tuple[int, ...]]] = ()
    """name, dtype, shape"""
    versions: Mapping[str, str] = field(default_factory=dict)
    """of packages, where a side runs in another interpreter"""


@dataclass(frozen=True)
class Check:
    """One comparison that was made: what, and how far the two sides were apart."""

    stage: Stage
    what: str
    relative: float
    """largest difference over the largest expected value"""
    passed: bool
    noise: float | None = None
    """in float32: how far PyTorch's own run is from float64, which bounds `relative`"""
    float32: bool = False
    """it failed, and float32 computation inside the models explains every failure so far"""


@dataclass(frozen=True)
class NotJudged:
    """Something of the pair that no comparison has reached, and why: agreement says nothing of it."""

    kind: Unjudged
    what: str
    """one sentence: what was not judged, where, and why"""


@dataclass(frozen=True)
class ModuleShare:
    """How one call of a module came to differ; each figure is relative to its largest value."""

    torch_name: str
    paddle_name: str
    call: int
    """0 for the module's first call, 1 for its second, ..."""
    received: float
    """the difference of its inputs in the port's own run"""
    introduced: float
    """what it adds on the reference's own inputs"""
    inherited: float
    """what the difference of its inputs makes of its output"""
    total: float
    """the difference of its output in the port's own run"""
    handed_to: str = ""
    """the module to which its own code hands the tensor of these figures; "": they are of its output"""

    @property
    def amplification(self) -> float:
        """How much larger the inherited difference left than it came; 1 if none came."""
        return self.inherited / self.received if self.received else 1.0


@dataclass
class Report:
    """The result of `align`."""

    verdict: Verdict = "faithful"
    findings: list[Finding] = field(default_factory=list)
    """in causal order: the first is where the two models diverge"""
    remarks: list[str] = field(default_factory=list)
    """what the user should know although it is correct"""
    checks: list[Check] = field(default_factory=list)
    """everything that was compared"""
    pairs: Mapping[str, str] = field(default_factory=dict)
    """modules: PyTorch's name -> Paddle's"""
    consequences: list[str] = field(default_factory=list)
    """what the differences mean for predictions and the loss, in words"""
    shares: list[ModuleShare] = field(default_factory=list)
    """if the outputs differ: how each module came to differ, in calling order"""
    rounded: list[str] = field(default_factory=list)
    """where both models compute in float32 inside: with float64 in its place nothing differs"""
    imprecise: dict[str, float] = field(default_factory=dict)
    """where one side computes with float32 inside, and the relative difference there"""
    not_judged: list[NotJudged] = field(default_factory=list)
    """what no comparison has reached"""
    details: Details = field(default_factory=Details)
    """every layer, weight and curve, for the web page and the table to paste"""
    called: list[str] = field(default_factory=list)
    """the modules among which the place of a difference was sought: they have a counterpart, and the port
    calls them no more often than the reference does"""
    unpaired: list[str] = field(default_factory=list)
    """the outputs of the reference that none of the port's is held against"""
    reference: Framework = "torch"
    """whose model is right; the other one was judged"""

    def take_paddle_as_reference(self) -> None:
        """Put what was noted of the reference, where PyTorch's usually stands, under Paddle's names."""
        self.reference, shown = "paddle", self.details
        self.findings = [
            replace(_exchange(one), reference="paddle",
                    edit=one.edit and replace(one.edit, reference="paddle"))
            for one in self.findings
        ]  # fmt: skip
        self.pairs = {port: reference for reference, port in self.pairs.items()}
        self.shares = list(map(_exchange, self.shares))
        for name in ("layers", "weights", "settings", "curves"):
            setattr(shown, name, list(map(_exchange, getattr(shown, name))))
        shown.picture = shown.picture and _exchange(shown.picture)

    @property
    def passed(self) -> bool:
        """True if the port is faithful, as far as it was run."""
        return not self.findings and bool(self.checks)

    @property
    def port_raised(self) -> bool:
        """True if the port raised an error somewhere."""
        return any(check.what == PORT_RUNS and not check.passed for check in self.checks)

    @property
    def worst(self) -> Check | None:
        """The comparison with the largest relative difference, those against noise left out."""
        checks = [check for check in self.checks if check.noise is None]
        return max(
            checks,
            key=lambda one: math.inf if math.isnan(one.relative) else one.relative,
            default=None,
        )

    def summary(self) -> str:
        """Return the report as text: the verdict, a table of what was compared, the findings."""
        lines = [f"verdict: {self.verdict}", ""]
        for one in self.checks:
            word = say_result(one, self.passed)
            lines.append(f"  {one.stage:<9}  {one.what:<44}  {one.relative:8.1e}  {word}")
        if self.findings:
            lines += [
                "",
                f"{count(len(self.findings), 'finding')}, the first is where the models diverge:",
            ]
            for finding in self.findings:
                lines += ["", *list_finding(finding)]
        lines += self._list_growth()
        if self.consequences:
            lines += ["", "what it means:", *(f"  - {text}" for text in self.consequences)]
        if self.remarks:
            lines += ["", "remarks:", *(f"  - {remark}" for remark in self.remarks)]
        if self.not_judged:
            lines += ["", "not judged:", *(f"  - {one.what}" for one in self.not_judged)]
        return join_lines(lines)

    def _list_growth(self) -> list[str]:
        """Return a table of the modules that make the difference or make it much larger."""
        if not self.shares:
            return []
        rows = ["", f"  {'where the difference grows':<44}  introduced  inherited     total"]
        for share in self.list_telling_shares():
            name = share.torch_name or "the model"
            # by its own name, where it has one there
            receiver = share.handed_to.removeprefix(f"{share.paddle_name}.")
            if receiver:
                name = f"{name} -> {receiver}"
            grown = share.amplification
            factor = f"  {show_factor(grown)}" if grown >= AMPLIFIES else ""
            rows.append(f"  {name[-44:]:<44}  {share.introduced:10.1e}  {share.inherited:9.1e}  "
                        f"{share.total:8.1e}{factor}")  # fmt: skip
        return rows

    def list_telling_shares(self) -> list[ModuleShare]:
        """Return the shares of modules that introduce or amplify a difference, and the model's."""
        telling = [share for share in self.shares if share.introduced > RELATIVE_TOLERANCE
                   or (share.total > RELATIVE_TOLERANCE and share.amplification >= AMPLIFIES)]  # fmt: skip
        last = self.shares[-1:]
        return telling[:_ROWS] + [share for share in last if share not in telling[:_ROWS]]

    def __str__(self) -> str:
        """Return the summary."""
        return self.summary()

    def save_html(self, path: str | os.PathLike[str], title: str = "align") -> None:
        """Write the report as one web page, which needs no network.

        A folder that is missing is made. Raises ReprodError if the name does not end in .html, the
        page cannot be written, or jinja2 or matplotlib is missing.
        """
        from reprod_align.page.outputs import (  # not for a report in text
            require_report,
            write_report,
        )
        from reprod_align.report.pages import make_page

        require_report(path)
        write_report(path, make_page(self, title))

    def to_json(self) -> str:
        """Return the report as strict JSON; inf and nan as text."""
        plain = {
            "passed": self.passed,
            "verdict": self.verdict,
            "reference": self.reference,
            "findings": [
                {name: getattr(one, name) for name in _MADE} | to_plain(one)
                for one in self.findings
            ],
            "remarks": self.remarks,
            "not_judged": self.not_judged,
            "imprecise": self.imprecise,
            "checks": self.checks,
            "pairs": self.pairs,
            "consequences": self.consequences,
            "shares": self.shares,
        }
        return as_json(plain)


T = TypeVar("T")
_MADE = ("code", "title", "message", "fix")  # from a finding's fields
_EXCHANGED = {"torch": "paddle", "paddle": "torch", "expected": "actual", "actual": "expected"}


def _exchange(noted: T) -> T:
    """Return a note with the fields of the two sides exchanged: torch_name and paddle_name, and so on."""
    changes = {}
    for one in fields(noted):  # type: ignore[arg-type]
        side, _, rest = one.name.partition("_")
        if side in _EXCHANGED:
            changes[one.name] = getattr(noted, "_".join(filter(None, [_EXCHANGED[side], rest])))
    return replace(noted, **changes)  # type: ignore[type-var]


def show_factor(factor: float) -> str:
    """Return how much larger something left than it came: "x12", and ">x10000" where it came as rounding."""
    return f"x{factor:.0f}" if factor < _MANY else f">x{_MANY}"


def say_result(check: Check, faithful: bool) -> str:
    """Return a check's result in a word; in a faithful port only float32 inside the model differs."""
    return "ok" if check.passed else "float32" if faithful or check.float32 else DIFFERENT
