"""What a proof found: its stages, what was refused, and with what it was made. Text, JSON, Markdown."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from reprod_align.base.json import to_plain
from reprod_align.base.text import table
from reprod_align.contract.refusal import REFUSALS, Refusal
from reprod_align.errors import join_lines, one_line

FORMAT = 1


@dataclass(frozen=True)
class Stage:
    """One thing that the contract asks for, with its figure."""

    name: str
    passed: bool
    figure: str
    """what was measured, in a few words"""
    value: float | None = None
    """the largest relative difference, where one was measured"""


@dataclass
class Known:
    """A documented fault: what it may break, and the proof of the port with it mended."""

    stages: Sequence[str]
    """what the names of those stages begin with"""
    report: str
    mended: str
    """the SHA-256 of the file that mends it"""
    verdict: str = ""
    """of the mended port's proof; "" where it was not run"""
    fault: str = ""
    """why this is not precisely what is documented"""

    def hold_against(self, found: Sequence[Stage]) -> None:
        """Note in `fault` what differs otherwise than documented."""
        for one in found:
            expected = one.name.startswith(tuple(self.stages))
            if expected and one.passed:
                self.fault = f"{one.name} passes: where the fault is gone, take [expected] out"
            elif not expected and not one.passed:
                self.fault = f"{one.name} fails beside it"
            if self.fault:
                return
        silent = [
            name for name in self.stages if not any(one.name.startswith(name) for one in found)
        ]
        if silent:
            self.fault = f"the contract has no stage {silent[0]!r}"


@dataclass
class Proof:
    """The result of a proof; filled while it runs."""

    name: str
    contract: str
    """the SHA-256 of the contract"""
    reference: Mapping[str, str]
    """each file -> its SHA-256"""
    port: Mapping[str, str]
    seed: int
    stages: list[Stage] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    tokens: Sequence[Sequence[int]] = ()
    """the port's first greedy tokens"""
    losses: Sequence[float] = ()
    """the port's losses in training"""
    versions: Mapping[str, str] = field(default_factory=dict)
    isolation: Sequence[str] = ()
    remarks: list[str] = field(default_factory=list)
    seconds: float = 0.0
    mebibytes: float = 0.0
    """the most that a process of the proof held"""
    known: Known | None = None
    """what the contract documents of a port that does not keep it"""

    @property
    def verdict(self) -> str:
        """Return "proven", "documented", "different" or "refused"."""
        if self.refusals:
            return "refused"
        if self.known is not None:
            held = not self.known.fault and self.known.verdict == "proven"
            return "documented" if held else "different"
        done = bool(self.stages) and all(stage.passed for stage in self.stages)
        return "proven" if done else "different"

    @property
    def passed(self) -> bool:
        """Whether the port keeps the contract, or differs precisely as the contract documents."""
        return self.verdict in ("proven", "documented")

    def summary(self) -> str:
        """Return the verdict, then the stages, then what was refused."""
        lines = [f"{self.name}: {self.verdict.upper() if not self.passed else self.verdict}"]
        for one in self.refusals:
            lines += [f"  refused: {one}", f"    {REFUSALS[one.code]}"]
        lines += [f"  {line}" for line in table([("stage", "verdict", "measured"), *self._rows()])]
        lines += [f"  {line}" for line in self._describe_known()]
        lines += [f"  remark: {remark}" for remark in self.remarks]
        lines.append(
            f"  seed {self.seed}, contract {self.contract[:12]}, {self.seconds:.1f} s, "
            f"{self.mebibytes:.0f} MiB"
        )
        return join_lines(lines)

    def _describe_known(self) -> list[str]:
        """Return what is said of a documented fault."""
        if self.known is None:
            return []
        if self.known.fault:
            said = f"not what is documented: {self.known.fault}"
        elif self.known.verdict != "proven":
            said = f"not what is documented: with the fault mended the port is {self.known.verdict}"
        else:
            said = "as documented: with that fault mended the port is proven"
        return [f"{said}; {self.known.report}"]

    def _rows(self) -> list[tuple[str, str, str]]:
        return [(one.name, "passed" if one.passed else "FAILED", one.figure) for one in self.stages]

    def describe(self) -> dict[str, Any]:
        """Return the certificate as plain values."""
        plain: dict[str, Any] = to_plain(self)
        return {"format": FORMAT, "verdict": self.verdict, **plain}

    def to_markdown(self) -> str:
        """Return the table that a pull request shows."""
        mark = {True: "✅", False: "❌"}
        lines = [f"### {_cell(self.name)}: {self.verdict}", ""]
        if self.refusals:
            lines += ["| refused | where |", "| --- | --- |"]
            lines += [f"| `{one.code}` | {_cell(one.text)} |" for one in self.refusals]
        if self.stages:
            lines += ["", "| check | result | measured |", "| --- | :---: | --- |"]
            lines += [
                f"| {_cell(one.name)} | {mark[one.passed]} | {_cell(one.figure)} |"
                for one in self.stages
            ]
        lines += [f"\n{_cell(line)}" for line in self._describe_known()]
        versions = ", ".join(f"{name} {one}" for name, one in self.versions.items())
        lines += ["", f"seed `{self.seed}`, contract `{self.contract[:12]}`; {_cell(versions)}"]
        return "\n".join([*lines, ""])


def _cell(text: str) -> str:
    """Return text for a cell: no name in it can begin another cell, a tag or a mention."""
    plain = one_line(text).replace("\\", "\\\\")
    for letter in "|<>@`[]*_":
        plain = plain.replace(letter, f"&#{ord(letter)};")
    return plain
