"""Judges the pair with another text of the port's files: is the difference gone with it?"""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from reprod_align.alignment import compare_sides
from reprod_align.alignment.judge import Pair, judge
from reprod_align.errors import ReprodError
from reprod_align.explain.overlay import NotAppliedError, overlaid
from reprod_align.model.local import LocalSide
from reprod_align.model.side import Inputs, ModelFailure, Side
from reprod_align.report import STAGES, Finding, Report

Texts = Mapping[str, str]
"""file -> its text"""
Fault = tuple[str, str, str]
"""the stage and the place of a finding, and which of the place's values differs first"""
MakePort = Callable[[], LocalSide]


@dataclass
class Bench:
    """The pair, the port made anew for each text."""

    reference: Side
    make_port: MakePort
    inputs: Inputs
    steps: int = 3
    name_map: Mapping[str, str] | None = None
    copy_weights: bool = True
    widened: bool = False
    """whether the models' own requests for float32 are answered with float64"""
    rebuilds: bool = True
    """whether the port is a new model each time"""
    classes: Sequence[type] = ()
    """of its modules"""
    loaded: dict[str, str] = field(default_factory=dict)
    """the files' texts as they were loaded"""
    runs: int = 0

    def text_of(self, file: str, texts: Texts) -> str:
        """Return a file's text among `texts`, or as it was loaded."""
        if file not in self.loaded:
            self.loaded[file] = Path(file).read_bytes().decode("utf-8")
        return texts.get(file, self.loaded[file])

    @contextmanager
    def port_with(self, texts: Texts) -> Iterator[LocalSide]:
        """Yield the port that other texts of its files make. Raises NotAppliedError, or what it raises."""
        with overlaid(self.loaded, texts, self.classes):
            yield self.make_port()

    def judge(self, texts: Texts, inputs: Inputs | None = None) -> "Outcome":
        """Return which places differ with these texts, of the first stage at which any does."""
        self.runs += 1
        try:
            with self.port_with(texts) as port, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return Outcome(self._judge(port, self.inputs if inputs is None else inputs))
        except (NotAppliedError, ModelFailure, ReprodError) as error:
            return Outcome(None, str(error))
        except Exception as error:  # of the port's constructors
            return Outcome(None, f"{type(error).__name__}: {error}")

    def _judge(self, port: LocalSide, inputs: Inputs) -> Report:
        pair = Pair(
            self.reference, port, inputs, self.steps, self.name_map, self.copy_weights,
            further=False, places_only=True,
        )  # fmt: skip
        with ExitStack() as stack:
            stack.enter_context(self.reference.working("float64", self.widened))
            stack.enter_context(port.working("float64", self.widened, at_rest=True))
            return judge(pair, "float64")

    def judge_fully(self, texts: Texts) -> Report:
        """Return the whole report with these texts. Raises what the port raises."""
        with self.port_with(texts) as port:
            return compare_sides(
                self.reference, port, self.inputs, self.steps, self.name_map, self.copy_weights
            )


@dataclass(frozen=True)
class Outcome:
    """What became of the pair with a text."""

    report: Report | None
    """None: the port cannot be made or run"""
    error: str = ""

    @property
    def passed(self) -> bool:
        """Whether nothing differs."""
        return self.report is not None and self.report.passed

    @property
    def faults(self) -> Mapping[Fault, float]:
        """The places that differ, and by how much at most."""
        if self.report is None:
            return {}
        return {
            (found.stage, place, _name_value(found)): found.difference
            for found in self.report.findings
            for place in (found.place, *found.places)
        }

    @property
    def stage(self) -> int:
        """The number of the first stage at which anything differs."""
        found = [STAGES.index(fault[0]) for fault in self.faults]
        return min(found, default=len(STAGES))

    def mends(self, before: "Outcome", fault: Fault) -> bool:
        """Tell whether a fault of `before` is gone and none is new that is not later.

        Later is one of a later stage, or of another value at the same place: the first one hid it.
        """
        if self.report is None or self.report.port_raised or fault in self.faults:
            return False
        if self.passed:
            return True
        last = max(before.stage, STAGES.index(fault[0]))
        return all(
            one in before.faults or one[:2] == fault[:2] or STAGES.index(one[0]) > last
            for one in self.faults
        )


def _name_value(finding: Finding) -> str:
    """Return which value of its place a finding is about: "its output", "the value it hands to b"."""
    return finding.message.partition(": ")[0]


def list_classes(side: LocalSide) -> Sequence[type]:
    """Return the classes of a model's modules."""
    return [*{type(module) for _, module in side.fw.modules(side.model)}]
