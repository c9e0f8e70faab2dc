"""The files that the guide asks for: ten records and five logs, under any of the names it uses."""

from dataclasses import dataclass
from typing import Final

SIDES: Final = ("torch", "paddle")
MANIFEST: Final = "manifest.json"
TRAINING: Final = "training/"
"""the folder of the training logs"""


@dataclass(frozen=True)
class Step:
    """One comparison of a submission: its names, and the largest mean difference."""

    number: int
    name: str
    threshold: float = 1e-6
    exact: bool = False
    """data and learning rates: equal to the last bit, and not among the fifteen files"""
    from_counts: bool = False
    """its single numbers are quotients of counts: equal ones are a good sign, not a bad one"""
    shows_place: bool = True
    """float32 and float64 stay together; a training's accuracy may flip by an example"""

    def records(self, side: str) -> tuple[str, ...]:
        """Return the names that the guide gives a side's record; the first that exists counts."""
        if self.exact:
            return (f"strict/{self.name}_{side}.npy",)
        own = f"{self.name}_{side}.npy"
        # the paper's own figures may stand in for the reference's run
        return (f"{self.name}_benchmark.npy", own) if self._has_target(side) else (own,)

    def twin(self, side: str) -> str:
        """Return the name of a side's float64 record."""
        return f"strict/{self.name}_{side}.npy"

    @property
    def logs(self) -> tuple[str, str]:
        """The names that the guide gives the log, in section 2.2.3 and in section 3."""
        return f"{self.name}_diff.log", f"{self.name}_diff_log.txt"

    @property
    def result(self) -> str:
        """The name of the verdict as JSON, which a check of ours writes."""
        return f"strict/{self.name}_diff.json"

    def _has_target(self, side: str) -> bool:
        return self.name == "train_align" and side == "torch"


STEPS: Final = (
    Step(1, "forward"),
    Step(2, "metric", from_counts=True),
    Step(3, "loss"),
    Step(4, "bp_align"),
    Step(5, "train_align", threshold=0.0015, from_counts=True, shows_place=False),
)
EXTRA: Final = (Step(2, "data", exact=True), Step(4, "lr", exact=True))
"""what the pipeline compares beside them, where it is there"""


def is_known(name: str) -> bool:
    """Return whether a file, named as seen from the submission's folder, belongs to a submission."""
    return name in _KNOWN or name.startswith(TRAINING)


_KNOWN: Final = frozenset(
    name
    for step in (*STEPS, *EXTRA)
    for side in SIDES
    for name in (*step.records(side), step.twin(side), *step.logs, step.result)
) | {MANIFEST}
