"""What each framework draws by default, and whether equal arguments give equal distributions.

facts.tsv was measured by drawing from both frameworks with eight seeds, under the pinned versions;
the tests measure it again. calls.tsv names the initialisers on both sides.
"""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True)
class Fact:
    """One parameter of a case, or several that start alike."""

    case: str
    """"kaiming_normal_ on Embedding", "Linear by default" """
    parameters: str
    torch: str
    """what they start from in PyTorch, in words"""
    paddle: str
    remedy: str
    """what to set in Paddle; "" if both sides start alike"""

    @property
    def same(self) -> bool:
        """Whether both sides draw from the same distribution."""
        return not self.remedy


@cache
def read_facts() -> tuple[Fact, ...]:
    """Return every case that was measured."""
    return tuple(Fact(**row) for row in _read_rows("facts.tsv"))


@cache
def read_calls() -> Mapping[str, tuple[str, str]]:
    """Return {initialiser: (PyTorch's call, Paddle's call)}."""
    return {row["initialiser"]: (row["torch"], row["paddle"]) for row in _read_rows("calls.tsv")}


def as_text(facts: Sequence[Fact]) -> str:
    """Return a paragraph for each case: the calls, then what each parameter starts from."""
    lines = []
    for case in dict.fromkeys(fact.case for fact in facts):
        calls = read_calls().get(case.partition(" on ")[0], ())
        lines.append("  ".join((case, *(f"[{call}]" for call in calls))))
        for fact in (fact for fact in facts if fact.case == case):
            words = fact.torch if fact.same else f"PyTorch {fact.torch}; Paddle {fact.paddle}"
            lines.append(f"  {'same' if fact.same else 'DIFFERENT':9}  {fact.parameters}: {words}")
            lines += [] if fact.same else [f"             set {fact.remedy}"]
    return "\n".join(lines)


def _read_rows(name: str) -> list[dict[str, str]]:
    text = files(__package__).joinpath(name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE))
