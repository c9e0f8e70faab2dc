"""What a page holds: values without a framework, which every comparison can fill in."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple


class Figures(NamedTuple):
    """How far two tensors are apart."""

    mean: float
    """mean |actual - expected|"""
    most: float
    """max |actual - expected|"""
    relative: float
    """the largest difference over the largest expected value"""


@dataclass
class Layer:
    """One module of the two models, all its calls together: how far what it gives is apart."""

    torch_name: str
    """dotted; "" the model itself"""
    paddle_name: str
    kind: str = ""
    """PyTorch's class"""
    calls: int = 1
    forward: Figures | None = None
    """of its output, in float64; None: not compared. The next two likewise"""
    rounded: Figures | None = None
    """of its output, both sides in float32"""
    backward: Figures | None = None
    """of its own parameters' gradients"""
    floor: float | None = None
    """relative: how far rounding alone moves PyTorch's output in float64"""
    introduced: float | None = None
    """relative: what it adds on PyTorch's own inputs"""
    inherited: float | None = None
    """relative: what becomes of the difference that it was given"""
    failed: bool = False
    """a finding is about it"""


@dataclass(frozen=True)
class TensorPicture:
    """The difference of one tensor, place by place, and what both sides hold in it."""

    name: str
    shape: tuple[int, ...]
    grid: Sequence[Sequence[float]]
    """|actual - expected|: the largest of each block; rows are all axes but the last, or see `spatial`"""
    edges: Sequence[float]
    """of the histograms' bins: one more than bins"""
    expected: Sequence[int]
    actual: Sequence[int]
    spatial: bool = False
    """images (N, C, H, W): the grid is (H, W), the largest of all images and channels"""


@dataclass(frozen=True)
class CurvePlot:
    """Two curves over the same steps."""

    name: str
    steps: Sequence[float]
    expected: Sequence[float]
    actual: Sequence[float]
    band: Sequence[float] = ()
    """how far the two may be apart, at each step"""
    first: int | None = None
    """the first step outside the band"""

    @property
    def constant(self) -> float | None:
        """The one value that both curves have at every step; None where there are more."""
        values = {*self.expected, *self.actual}
        return values.pop() if len(values) == 1 else None


@dataclass(frozen=True)
class Line:
    """A line of source: "PyTorch", "net.py:12", the code."""

    side: str
    place: str
    code: str
    span: tuple[int, int] = (0, 0)
    """the part of `code` that is meant; (0, 0): all of it"""
    around: Sequence[tuple[int, str]] = ()
    """the numbers and texts of the lines around, that of `code` among them; empty: not known"""
    link: str = ""
    """the address that opens the line in an editor"""

    @property
    def number(self) -> int:
        """The line's number."""
        return int(self.place.rpartition(":")[2] or 0)

    @property
    def parts(self) -> tuple[str, str, str]:
        """The code before the part that is meant, that part, and the code behind it."""
        start, stop = self.span
        return self.code[:start], self.code[start:stop], self.code[stop:]


@dataclass(frozen=True)
class Fault:
    """One finding: where, and what, in one sentence."""

    stage: str
    place: str
    message: str
    lines: Sequence[Line] = ()
    figures: str = ""
    """how far apart, and how far they may be"""
    places: Sequence[str] = ()
    """further places of the same cause"""
    module: str = ""
    """PyTorch's name of the module, in the tree"""
    code: str = ""
    """stable, of what is at fault: "layer-norm-epsilon" """
    notes: Sequence[tuple[str, str]] = ()
    """what else is said of it: "evidence", and the words"""


@dataclass(frozen=True)
class Step:
    """One of the five steps, or a part of one."""

    name: str
    state: str
    """"passed", "failed", "not run" or "not compared" """
    official: str = ""
    strict: str = ""
    worst: str = ""
    difference: str = ""
    seconds: str = ""


@dataclass(frozen=True)
class Table:
    """A table; `failed`: the numbers of rows to be marked."""

    title: str
    headers: Sequence[str]
    rows: Sequence[Sequence[str]]
    failed: frozenset[int] = frozenset()
    note: str = ""
    paste: bool = False
    """it belongs in what is pasted into a pull request"""


@dataclass(frozen=True)
class Case:
    """One comparison, as a test of a build server."""

    suite: str
    name: str
    passed: bool
    message: str = ""
    """what differs"""
    consequence: bool = False
    """what differs follows from a case that names the cause"""


@dataclass
class Page:
    """All of a page; what is empty is left out."""

    name: str
    """what was compared: a file, or two"""
    verdict: str
    passed: bool
    sentence: str = ""
    """the verdict in one sentence"""
    steps: Sequence[Step] = ()
    faults: Sequence[Fault] = ()
    """the first is where the two sides diverge"""
    meaning: Sequence[str] = ()
    layers: Sequence[Layer] = ()
    """in call order"""
    limit: float = 0.0
    """relative: what the layers of a faithful pair stay within"""
    picture: TensorPicture | None = None
    curves: Sequence[CurvePlot] = ()
    tables: Sequence[Table] = ()
    cases: Sequence[Case] = ()
    """every comparison"""
    remarks: Sequence[str] = ()
    unjudged: Sequence[str] = ()
    """what no comparison has reached, one sentence each"""
    text: Sequence[str] = ()
    """lines that are shown as they are"""
    plots: Sequence[bytes] = ()
    """further pictures, as SVG that holds no text of the user's"""
    facts: Sequence[tuple[str, str]] = field(default_factory=tuple)
    """settings of the run, versions, date, command"""
