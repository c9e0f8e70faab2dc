"""What a proof found: stages, refusals (each way to cheat has a name), and its certificate."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isclose
from pathlib import Path
from typing import Any, Final

from reprod_align.base.files import read_json, to_plain
from reprod_align.base.text import table
from reprod_align.errors import ReprodError, join_lines
from reprod_align.page.outputs import escape, make_table, quote

REFUSALS: Final = {
    # of the contract's own side
    "contract-changed": "the contract is not the one that was agreed on",
    "reference-changed": "a file of the reference has another digest than the contract gives",
    "changed-while-running": "a file of the contract, the reference or the port changed during the proof",
    "certificate-differs": "the certificate does not hold what the proof gives",
    # of the port's files, read and never run
    "not-a-plain-file": "a file of the port is a link, a device or missing",
    "shadows-a-module": "a file of the port has the name of another module",
    "not-python": "a file of the port cannot be parsed",
    "imports-torch": "the port imports PyTorch",
    "imports-the-judge": "the port imports or names the library that judges it",
    "imports-unlisted": "the port imports a package that the contract does not list",
    "uses-ctypes": "the port reaches memory and libraries past Python",
    "starts-processes": "the port starts a process or a thread",
    "uses-the-network": "the port opens a connection",
    "reads-files": "the port reads a file that is not its own",
    "reads-proc": "the port reads what the system says of processes",
    "writes-files": "the port writes a file",
    "reads-the-environment": "the port reads its environment",
    "reads-the-clock": "the port reads the clock or draws numbers of its own",
    "runs-text": "the port runs text as code",
    "inspects-the-judge": "the port looks at frames, modules or objects around it",
    "ends-the-process": "the port ends or interrupts its process",
    "patches-framework": "the port changes a framework's functions",
    "patches-comparison": "the port changes functions that the judge computes with",
    "overrides-the-layer": "the port overrides how a layer holds its weights or is called",
    "swallows-exceptions": "the port catches every exception and goes on",
    "holds-answers": "the port's source holds a large table of numbers or text",
    # of what it does
    "out-of-time": "the port took longer than the contract allows",
    "no-tensor": "the port returns no tensor, or of another shape than the reference",
    "not-finite": "the port's outputs are not finite",
    "keeps-own-weights": "the port does not compute with the weights that it is given",
    "cached-answers": "the port gives the same answer with other weights",
    "ignores-its-inputs": "the port gives the same answer for other inputs",
    "not-deterministic": "the port gives two answers to one question",
    "loses-in-the-checkpoint": "the port does not come back from its checkpoint",
    "trains-nothing": "the port's losses stay the same while the reference's move",
}
"""code -> what it means"""


@dataclass(frozen=True)
class Refusal:
    """One reason why a port is refused."""

    code: str
    text: str
    """where, and what was found"""

    def __post_init__(self) -> None:
        """Require a known code."""
        assert self.code in REFUSALS, self.code

    def __str__(self) -> str:
        """Return it as one sentence."""
        return f"{self.code}: {self.text}"


FORMAT = 1


@dataclass(frozen=True)
class ProofStage:
    """One thing that the contract asks for, with its figure."""

    name: str
    passed: bool
    figure: str
    """what was measured, in a few words"""
    value: float | None = None
    """the largest relative difference, where one was measured"""


@dataclass
class KnownFault:
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

    def hold_against(self, found: Sequence[ProofStage]) -> None:
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
class ContractProof:
    """The result of a proof; filled while it runs."""

    name: str
    contract: str
    """the SHA-256 of the contract"""
    reference: Mapping[str, str]
    """each file -> its SHA-256"""
    port: Mapping[str, str]
    seed: int
    stages: list[ProofStage] = field(default_factory=list)
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
    known: KnownFault | None = None
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
        lines += [
            f"  {line}" for line in table([("stage", "verdict", "measured"), *self._list_rows()])
        ]
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

    def _list_rows(self) -> list[tuple[str, str, str]]:
        return [(one.name, "passed" if one.passed else "FAILED", one.figure) for one in self.stages]

    def describe(self) -> dict[str, Any]:
        """Return the certificate as plain values."""
        plain: dict[str, Any] = to_plain(self)
        return {"format": FORMAT, "verdict": self.verdict, **plain}

    def to_markdown(self) -> str:
        """Return the table that a pull request shows."""
        parts = [f"### {escape(self.name)}: {self.verdict}"]
        if self.refusals:
            rows = [(quote(one.code), escape(one.text)) for one in self.refusals]
            parts.append(make_table(("refused", "where"), rows))
        if self.stages:
            shown = [(one.name, "✅" if one.passed else "❌", one.figure) for one in self.stages]
            parts.append(
                make_table(("check", "result", "measured"), [[*map(escape, row)] for row in shown])
            )
        parts += map(escape, self._describe_known())
        versions = ", ".join(f"{name} {one}" for name, one in self.versions.items())
        made = f"seed `{self.seed}`, contract `{self.contract[:12]}`; {escape(versions)}"
        return "\n\n".join([*parts, made]) + "\n"


_NEAR = 1e-6  # relative: losses on another processor


def read_certificate(path: Path) -> dict[str, Any]:
    """Return a certificate. Raises ReprodError where the file is none."""
    made = read_json(path)
    if (
        not isinstance(made, dict)
        or made.get("format") != FORMAT
        or type(made.get("seed")) is not int
    ):
        raise ReprodError(f"{path}: expected a certificate of prove, with its format and seed")
    if not 0 <= made["seed"] < 2**63:
        raise ReprodError(f"{path}: the seed must lie between 0 and 2**63")
    return made


def hold_against(certificate: Mapping[str, Any], proof: ContractProof) -> list[Refusal]:
    """Return where a certificate says something else than the proof made again."""
    return [Refusal("certificate-differs", text) for text in _list_differences(certificate, proof)]


def _list_differences(said: Mapping[str, Any], proof: ContractProof) -> Iterator[str]:
    now = proof.describe()
    for name in ("name", "contract", "reference", "port", "verdict", "known", "tokens"):
        if said.get(name) != now[name]:
            yield f"{name}: it says {str(said.get(name))[:80]}, the proof {str(now[name])[:80]}"
    stages = [(one.name, one.passed) for one in proof.stages]
    given = said.get("stages")
    claimed = [(one.get("name"), one.get("passed")) for one in given if isinstance(one, dict)] \
        if isinstance(given, list) else []  # fmt: skip
    if claimed != stages:
        yield "stages: it has others, or with other verdicts"
    losses = said.get("losses")
    if not isinstance(losses, list) or not _are_near(losses, list(proof.losses)):
        yield "losses: it has others than the proof"


def _are_near(one: list[Any], other: list[float]) -> bool:
    return len(one) == len(other) and all(
        isinstance(a, (int, float)) and isclose(a, b, rel_tol=_NEAR, abs_tol=1e-12)
        for a, b in zip(one, other, strict=True)
    )
