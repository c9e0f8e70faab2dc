"""Why a port is refused: each way to cheat has a name."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

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


def keep_distinct(found: Iterable[Refusal]) -> list[Refusal]:
    """Return refusals once each, in order."""
    return list(dict.fromkeys(found))
