"""One place at which a port is not faithful: what, where, the fix, the evidence."""

from dataclasses import dataclass
from typing import Literal

from reprod_align.api.table import split_references
from reprod_align.errors import one_line
from reprod_align.report.codes import Kind

Stage = Literal["audit", "weights", "forward", "loss", "backward", "optimizer", "schedule"]
STAGES: tuple[Stage, ...] = (
    "audit", "weights", "forward", "loss", "backward", "optimizer", "schedule",
)  # fmt: skip
Span = tuple[int, int]
"""a slice of a line of source, without the line's indentation; (0, 0): of no part in particular"""


@dataclass(frozen=True)
class Edit:
    """A change of the port's source with which a difference is gone."""

    file: str
    line: int
    """from 1: the first that it changes"""
    before: str
    after: str
    kind: str
    """of mistake, a stable name: "reference", "number", "operator", ..."""
    level: Literal["safe", "unproven", "tried"]
    """tried: on the given batch, as far as the place at fault; `fix` proves it on others"""
    column: int = 0
    """from 1, in characters; 0: not known, as are the two that follow"""
    last_line: int = 0
    last_column: int = 0
    """behind the last character that it replaces"""

    def __str__(self) -> str:
        """Return the edit in one line."""
        before, after = (" ".join(text.split()) for text in (self.before, self.after))
        return f"`{after}` in place of `{before}` gives PyTorch's numbers"


@dataclass(frozen=True)
class Finding:
    """One place at which the port is not faithful, and why."""

    stage: Stage
    torch_name: str
    """dotted name of the module or parameter; "" the whole model"""
    paddle_name: str
    evidence: str
    """what was measured there, in words"""
    difference: float
    """the largest absolute difference there"""
    tolerance: float
    """the largest that a faithful pair may have there"""
    torch_line: str | None = None
    """the line of PyTorch's model from which Paddle's differs, as "file.py:123"; None: no source"""
    paddle_line: str | None = None
    torch_code: str = ""
    """what stands in that line"""
    paddle_code: str = ""
    places: tuple[str, ...] = ()
    """further places that differ for the same cause, in the order of the findings"""
    edit: Edit | None = None
    """of the port's source, with which this difference is gone; None: none was found"""
    torch_span: Span = (0, 0)
    """the part of `torch_code` that is meant"""
    paddle_span: Span = (0, 0)
    kind: Kind = "module"
    """what differs, where no entry of the table of APIs tells the cause"""
    cause: str = ""
    """why it differs; "" where that was not found out"""
    settings: str = ""
    """which settings of the two modules differ"""
    remedy: str = ""
    """what made the difference go away, where it is no edit"""
    batches: str = ""
    """the derived batches that show it; "" the given one"""

    @property
    def code(self) -> str:
        """The stable code: the entry of the table of APIs that tells the cause, or the kind."""
        return next(iter(self.entries), self.kind)

    @property
    def entries(self) -> list[str]:
        """The entries of the table of APIs that the finding cites."""
        return list(dict.fromkeys(split_references(self.message)[1]))

    @property
    def title(self) -> str:
        """What is wrong: the cause, or the settings that differ, or what was measured."""
        settings = self.settings and f"settings differ: {self.settings}"
        title, _ = split_references(self.cause or settings or self.evidence)
        return f"{self.batches}: {title}" if self.batches else title

    @property
    def message(self) -> str:
        """All of it: why, what made it go away, which settings differ, what was measured."""
        settings = self.settings and f"Settings differ: {self.settings}"
        parts = filter(None, [self.cause, self.remedy, settings, self.evidence])
        return (f"{self.batches}: " if self.batches else "") + ". ".join(parts)

    @property
    def fix(self) -> str:
        """What makes the difference go away; "" where nothing was found."""
        return self.remedy if self.edit is None else str(self.edit)

    @property
    def place(self) -> str:
        """Both names, or the one that they share."""
        if self.torch_name == self.paddle_name:
            return self.torch_name or "the model"
        return f"{self.torch_name or 'the model'} (Paddle: {self.paddle_name or 'the model'})"

    def __str__(self) -> str:
        """Return the finding in one line."""
        return one_line(f"{self.stage}: {self.place}: {self.message}")
