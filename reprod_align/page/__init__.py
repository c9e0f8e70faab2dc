"""A result as one value: what every comparison fills in, and every renderer shows.

`html`, `markdown` and `outputs` (JUnit) each render a `Page`. `describe_run` says what it was made with:
versions, machine, date and command. Nothing here needs a framework.
"""

import os
import platform
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple

import reprod_align
from reprod_align.base import find_version
from reprod_align.base.text import table


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
    """One module of both models: how far its outputs and gradients differ, the worst of all its calls."""

    torch_name: str
    """dotted; "" the model itself"""
    paddle_name: str
    kind: str = ""
    """the reference's class"""
    calls: int = 1
    forward: Figures | None = None
    """of its output, in float64; None: not compared"""
    rounded: Figures | None = None
    """of its output, both sides in float32; None: not compared"""
    backward: Figures | None = None
    """of its own parameters' gradients; None: not compared"""
    floor: float | None = None
    """relative: how far rounding alone moves the reference's output in float64"""
    introduced: float | None = None
    """relative: what it adds on the reference's own inputs"""
    inherited: float | None = None
    """relative: what the difference of its inputs makes of its output"""
    failed: bool = False
    """a finding is about it"""

    def keep_worse(self, name: str, found: Figures) -> None:
        """Keep figures, "forward" or "backward", if they are worse than those known, or NaN."""
        known = getattr(self, name)
        if known is None or not known.relative >= found.relative:
            setattr(self, name, found)


@dataclass(frozen=True)
class TensorPicture:
    """The difference of one tensor, element by element, and histograms of both sides' values."""

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


class RoundingPlot(NamedTuple):
    """How rounding grows in a curve."""

    steps: Sequence[float]
    gaps: Sequence[float]
    label: str
    onset: int | None
    """the step from which it grows; None: it does not"""


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
    measured: bool = True
    """the band is measured noise, not a fixed share"""
    rounding: RoundingPlot | None = None
    """how far the first curve is from the same run in float64"""

    @property
    def constant(self) -> float | None:
        """The one value that both curves have at every step; None where there are more."""
        values = {*self.expected, *self.actual}
        return values.pop() if len(values) == 1 else None


@dataclass(frozen=True)
class CodeLine:
    """A line of source: "PyTorch", "net.py:12", the code."""

    side: str
    place: str
    code: str
    span: tuple[int, int] = (0, 0)
    """start and stop of the part of `code` at fault; (0, 0): all of it"""
    around: Sequence[tuple[int, str]] = ()
    """numbers and texts of this line and its neighbours; empty: the file is not there"""
    link: str = ""
    """the address that opens the line in an editor"""

    @property
    def number(self) -> int:
        """The line's number."""
        return int(self.place.rpartition(":")[2] or 0)

    @property
    def parts(self) -> tuple[str, str, str]:
        """The code before the part at fault, that part, and the code behind it."""
        start, stop = self.span
        return self.code[:start], self.code[start:stop], self.code[stop:]


@dataclass(frozen=True)
class Diagnostic:
    """One finding: where, and what, in one sentence."""

    stage: str
    place: str
    message: str
    lines: Sequence[CodeLine] = ()
    figures: str = ""
    """the difference and the tolerance, in words"""
    places: Sequence[str] = ()
    """further modules with the same cause"""
    module: str = ""
    """PyTorch's name of the module at fault, which the tree of modules shows"""
    code: str = ""
    """stable name of the cause: "layer-norm-epsilon" """
    notes: Sequence[tuple[str, str]] = ()
    """labels and sentences: ("evidence", "its inputs agree ...")"""
    chinese: str = ""
    """what its code means, in Chinese: the title where the Chinese of `message` is not known"""


@dataclass(frozen=True)
class StepResult:
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
    """A table of cells as they are shown."""

    title: str
    headers: Sequence[str]
    rows: Sequence[Sequence[str]]
    failed: frozenset[int] = frozenset()
    """numbers of the rows that are marked"""
    note: str = ""
    paste: bool = False
    """the Markdown for a pull request shows it too"""

    def lines(self, mark: str = "") -> list[str]:
        """Return the table as plain lines, for a terminal; `mark` stands behind the marked rows."""
        marks = [mark if at in self.failed else "" for at in range(len(self.rows))]
        rows = [(*row, word) for row, word in zip(self.rows, marks, strict=True)]
        return table([(*self.headers, ""), *rows])


@dataclass(frozen=True)
class JUnitCase:
    """One comparison, as a test of a build server."""

    suite: str
    name: str
    passed: bool
    message: str = ""
    """what differs"""
    consequence: bool = False
    """the difference follows from another case, which names the cause"""


@dataclass
class Page:
    """All that is shown of a result; renderers leave out what is empty."""

    name: str
    """what was compared: a file, or two"""
    verdict: str
    passed: bool
    sentence: str = ""
    """the verdict in one sentence"""
    steps: Sequence[StepResult] = ()
    diagnostics: Sequence[Diagnostic] = ()
    """the first is where the two sides diverge"""
    meaning: Sequence[str] = ()
    layers: Sequence[Layer] = ()
    """in call order"""
    limit: float = 0.0
    """relative: the largest difference of a layer in a faithful pair"""
    picture: TensorPicture | None = None
    curves: Sequence[CurvePlot] = ()
    tables: Sequence[Table] = ()
    cases: Sequence[JUnitCase] = ()
    """every comparison"""
    remarks: Sequence[str] = ()
    unjudged: Sequence[str] = ()
    """what was not compared, one sentence each"""
    text: Sequence[str] = ()
    """lines shown verbatim"""
    plots: Sequence[Callable[[str], bytes]] = ()
    """further pictures, each drawn as "svg" or "png" when asked; they hold no text of the user's"""
    facts: Sequence[tuple[str, str]] = field(default_factory=tuple)
    """settings of the run, versions, date, command"""


PACKAGES: Final = (
    "torch",
    "paddlepaddle",
    "paddlepaddle-gpu",
    "numpy",
    "transformers",
    "paddlenlp",
)
SWITCHES: Final = (
    "OMP_NUM_THREADS", "MKL_NUM_THREADS", "CUDA_VISIBLE_DEVICES", "NVIDIA_TF32_OVERRIDE",
    "CUBLAS_WORKSPACE_CONFIG", "FLAGS_cudnn_deterministic", "FLAGS_embedding_deterministic",
    "ATEN_CPU_CAPABILITY",
)  # fmt: skip
"""environment variables that change numbers"""


def describe_run() -> list[tuple[str, str]]:
    """Return names and values: date, command, versions of what is installed, machine, switches."""
    program, *words = sys.argv or [""]
    path = Path(program)
    installed = path.name == "reprod-align" or path.parent.name == "reprod_align"
    shown = ["reprod-align"] if installed else ["python", os.path.relpath(program or ".")]
    facts = [
        ("date", datetime.now().astimezone().isoformat(" ", "seconds")),
        ("command", shlex.join([*shown, *words])),
    ]
    facts += [("reprod-align", reprod_align.__version__), ("Python", platform.python_version())]
    facts += list_versions().items()
    facts.append(("machine", f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs"))
    return facts + [(name, os.environ[name]) for name in SWITCHES if name in os.environ]


def list_versions() -> dict[str, str]:
    """Return the versions of the packages that results depend on, as far as they are installed."""
    return {name: found for name in PACKAGES if (found := find_version(name))}
