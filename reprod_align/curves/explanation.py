"""Which part of a training step explains a gap: the finding as a value, with its text and JSON."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from reprod_align.base.files import to_plain
from reprod_align.base.text import table
from reprod_align.errors import join_lines, one_line

Part = Literal["data", "forward", "loss", "backward", "optimizer", "schedule"]
PARTS: Final[tuple[Part, ...]] = get_args(Part)

LEFT = 1e-2  # of the gap: with so little left, it is explained
_NAMES: Final = {"forward": "forward pass", "backward": "backward pass"}


@dataclass(frozen=True)
class Swapped:
    """One part of a step, done by the other framework."""

    part: Part
    left: float
    """the gap that remains with PyTorch's part in Paddle's steps"""
    made: float
    """the gap that Paddle's part makes in PyTorch's steps"""


@dataclass(frozen=True)
class Replay:
    """One side's steps again, in float64, beside its log."""

    name: str
    apart: float | None
    """largest difference of the loss from the log; None if the log has none of these steps"""


@dataclass(frozen=True)
class Explanation:
    """Which part of a training step makes the two runs differ."""

    curve: str
    step: int
    """the first outside the band"""
    logged: float
    """the loss's largest gap in the logs over the steps compared; NaN if they have none of them"""
    restored: int
    """each side was replayed from its checkpoint of this step; 0: from the start of training"""
    begin: int
    """parts were swapped from PyTorch's state after this step on"""
    last: int
    replays: tuple[Replay, Replay]
    replayed: float
    """the gap of the two replays, each from its own checkpoint"""
    weights_apart: float
    """of the two checkpoints: largest difference, relative"""
    whole: float
    """the gap of Paddle's steps from PyTorch's state"""
    floor: float
    """a gap of this size is rounding"""
    rows: tuple[Swapped, ...]
    together: float | None
    """the gap that remains with PyTorch's in place of every part at fault"""
    findings: tuple[str, ...]
    remarks: tuple[str, ...]

    @property
    def guilty(self) -> tuple[Part, ...]:
        """The parts that make a gap on their own, the largest first."""
        found = [row for row in self.rows if not row.made <= self.floor]
        found.sort(key=lambda row: math.inf if math.isnan(row.made) else row.made, reverse=True)
        return tuple(row.part for row in found)

    @property
    def sentence(self) -> str:
        """Who explains the gap."""
        if self.whole <= self.floor:
            return self._explain_without_fault()
        if not self.guilty:
            better = [row.part for row in self.rows if row.left < self.whole / 2]
            named = f": with PyTorch's {_join_names(better)} it is smaller" if better else ""
            return f"no part alone makes it, they do together{named}"
        together = math.inf if self.together is None else self.together
        one = len(self.guilty) == 1
        place = "its place" if one else "their place"
        verb = "explains it" if one else "explain it together, the largest first"
        if not together <= max(self.floor, LEFT * self.whole):
            verb = "explains a part of it" if one else "explain a part of it"
        left = f"with PyTorch's in {place} {together:.1e} of {self.whole:.1e} is left"
        return f"{_join_names(self.guilty)} {verb}: {left}"

    def _explain_without_fault(self) -> str:
        same = f"over steps {self.begin + 1} to {self.last} the two agree to {self.whole:.0e}"
        if self.replayed <= self.floor:
            return (
                f"no part explains it: replayed in float64, {same}. The gap in the logs is rounding or "
                "chance (--twin measures how much of it there may be, --at explains another step), or "
                "comes from something that is not in the file"
            )
        if self.restored:
            return (
                f"it was made before: from PyTorch's state {same}, and the checkpoints of step "
                f"{self.restored} differ already, their weights by {self.weights_apart:.1e}. Explain "
                "an earlier step, or keep an earlier checkpoint"
            )
        return (
            f"the initial weights explain it: they differ by {self.weights_apart:.1e}, and from "
            f"PyTorch's {same}"
        )

    @property
    def notes(self) -> list[str]:
        """The lines below the sentence: align's findings, remarks, and the measurements."""
        start = f"the checkpoints of step {self.restored}" if self.restored else "the start"
        return [
            *(f"align: {one_line(finding)}" for finding in self.findings),
            *(f"remark: {one_line(remark)}" for remark in self.remarks),
            f"gap: the loss's largest difference over steps {self.begin + 1} to {self.last}, "
            f"replayed in float64 from {start}",
            f"unswapped {self.whole:.1e}; each side from its own state {self.replayed:.1e}; "
            f"in the logs {self.logged:.1e}; {self.floor:.0e} would be rounding",
            *(_replay_line(replay) for replay in self.replays),
        ]

    def text(self) -> str:
        """Return the table, then the sentences."""
        head = f"which part of a step makes {one_line(self.curve)} differ at step {self.step}?"
        return join_lines([head, *self._table(), "", self.sentence, *self.notes])

    def _table(self) -> list[str]:
        if not self.rows:
            return []
        lines = [("part swapped", "gap left with PyTorch's", "gap that Paddle's makes alone", "")]
        for row in self.rows:
            blame = "<- makes it" if row.part in self.guilty else ""
            lines.append((row.part, f"{row.left:.1e}", f"{row.made:.1e}", blame))
        return ["", *table(lines)]

    def to_json(self) -> dict[str, Any]:
        """Return the finding as plain values that strict JSON can hold."""
        plain: dict[str, Any] = to_plain(self)
        return plain | {"guilty": list(self.guilty), "sentence": self.sentence}


def _replay_line(replay: Replay) -> str:
    if replay.apart is None:
        return f"{replay.name}'s log has no loss of these steps to hold the replay against"
    return f"{replay.name}'s replay is within {replay.apart:.1e} of its log"


def _join_names(parts: Sequence[str]) -> str:
    *rest, last = [f"the {_NAMES.get(part, part)}" for part in parts]
    return f"{', '.join(rest)} and {last}" if rest else last
