"""What a figure is: two pieces of work that take turns, and how far apart they may be."""

from dataclasses import dataclass
from statistics import median

COUNT = "found"
Texts = tuple[str, str]
"""in English, in Chinese"""


class Unmeasurable(Exception):
    """A group's rows can't be measured here; the message says why."""


@dataclass(frozen=True)
class Row:
    """One figure: the median of `ours` over that of `peer`, or `ours` alone."""

    name: Texts
    ours: str
    """"module:function", called with the group's folder in a process of its own; or a command"""
    target: float | None
    """what the figure may be at most; None: it is shown and not judged"""
    peer: str = ""
    """the same, in turns with `ours`; "": the figure is that of `ours` itself"""
    unit: str = "s"
    """"s": time that passes; "s of work": of the processor; "MB": the most anonymous memory that is added;
    COUNT: the number that the call returns, ours beside the peer's;
    "GB of I/O": what is read from files and written to them, cached or not"""
    rounds: int = 3
    """beside the first turn, which does not count; 0: that turn counts"""

    @property
    def is_ratio(self) -> bool:
        """Whether the figure is a ratio."""
        return bool(self.peer) and self.unit != COUNT


@dataclass(frozen=True)
class Curve:
    """How a call's time grows: time = constant * size ** exponent."""

    name: Texts
    work: str
    """"module:function", called with the folder and a size"""
    sizes: tuple[int, ...]
    axis: Texts
    target: float
    """what the exponent may be at most"""
    rounds: int = 3


@dataclass(frozen=True)
class Figure:
    """What was measured for a row or a curve."""

    value: float
    ours: float
    """the median"""
    peer: float
    """the median; 0 without a peer"""
    date: str
    machine: str


def divide_medians(
    ours: list[float], peer: list[float], is_ratio: bool = True
) -> tuple[float, float, float]:
    """Return the figure, the median of ours and that of the peer, 0 without one."""
    first, second = median(ours), median(peer) if peer else 0.0
    return (first / second if peer and is_ratio else first), first, second


def describe_target(target: float | None) -> str:
    """Return the target as the pages show it."""
    return "" if target is None else f"≤ {target:g}"


def fit_exponent(sizes: list[int], seconds: list[float]) -> float:
    """Return the exponent of the power law that fits best, by the logarithms."""
    import numpy as np

    slope, _ = np.polyfit(np.log(sizes), np.log(seconds), 1)
    return float(slope)
