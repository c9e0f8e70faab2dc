"""What stands between a draft and a faithful port: an error, or a finding of `align`."""

from dataclasses import dataclass
from typing import Literal

from reprod_align.report import Finding

Stage = Literal["import", "build", "run", "align"]


@dataclass(frozen=True)
class Problem:
    """One obstacle, and where it stands."""

    stage: Stage
    text: str
    """the error as "NameError: name 'Tensor' is not defined", or the finding's message"""
    line: int | None = None
    """of the draft"""
    code: str = ""
    """what stands in that line"""
    finding: Finding | None = None
    below: int | None = None
    """how many lines follow it: an edit of this line leaves that as it is"""

    def __str__(self) -> str:
        """Return it in one line."""
        place = f"line {self.line}: " if self.line else ""
        return f"{self.stage}: {place}{self.text}"
