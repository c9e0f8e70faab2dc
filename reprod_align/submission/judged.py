"""What was recomputed of one step, for everything that is held against it."""

from dataclasses import dataclass
from typing import Any

from reprod_align.records.verdict import Comparison
from reprod_align.submission.layout import Step

import numpy.typing as npt

Record = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Judged:
    """What was recomputed of a step; None where a record is missing or cannot be read."""

    step: Step
    records: tuple[Record, Record] | None
    official: Comparison | None
    twins: tuple[Record, Record] | None
    strict: Comparison | None

    @property
    def passed(self) -> bool:
        """Whether every verdict that could be recomputed is a pass, and there is one."""
        return all(each.passed for each in (self.official, self.strict) if each) and bool(
            self.official
        )
