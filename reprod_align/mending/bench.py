"""Judges the pair with another text of the port's files: is the difference gone with it?"""

import math
import time
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from types import FunctionType
from typing import cast

from reprod_align.alignment import compare_pair
from reprod_align.alignment.findings import OUTPUTS_IN_EVAL
from reprod_align.alignment.judge import judge
from reprod_align.base.text import parent
from reprod_align.errors import ReprodError
from reprod_align.explain.executed import Ran, note_functions
from reprod_align.explain.overlay import NotAppliedError, list_live_functions, overlaid
from reprod_align.explain.trials import Files, Texts, Trial
from reprod_align.model.local import LocalSide, use_one_thread
from reprod_align.model.side import Inputs, ModelFailure
from reprod_align.model.source import SourceLine
from reprod_align.pair import PairSpec
from reprod_align.report import STAGES, Finding, Report

Fault = tuple[str, str, str]
"""the stage and the place of a finding, and which of the place's values differs first"""
_LAST = "its output"  # of the values at one place
MakePort = Callable[[], LocalSide]
MakeGiven = Callable[[], tuple[LocalSide, Inputs]]


@dataclass
class Bench:
    """The pair, the port made anew for each text."""

    pair: PairSpec
    """with the port as it came; both sides are of this process"""
    make_port: MakePort
    widened: bool = False
    """whether the models' own requests for float32 are answered with float64"""
    make_given: MakeGiven | None = None
    """makes PyTorch's side and the inputs anew, which no edit may change; None: they are as they are"""
    homes: Collection[str] | None = None
    """the files that define the port's composite modules as it came; None: any may"""
    allows: Callable[[str, int, str], bool] = lambda file, line, stage: True
    """tells whether a line of a file may be edited for a fault of a stage"""
    live: Sequence[FunctionType] = ()
    """the functions of the port that exist before it is made anew"""
    files: Files = field(default_factory=Files)
    seconds: float = 0.0
    """that the longest run of the pair has taken"""

    @property
    def reference(self) -> LocalSide:
        """PyTorch's side."""
        return cast(LocalSide, self.pair.reference)

    @contextmanager
    def port_with(self, texts: Texts) -> Iterator[LocalSide]:
        """Yield the port that other texts of its files make. Raises NotAppliedError, or what it raises."""
        with self.with_texts(texts):
            yield self.make_port()

    def with_texts(self, texts: Texts) -> AbstractContextManager[None]:
        """Return the context in which other texts of the port's files are in force."""
        return overlaid(self.files.loaded, texts, self.live)

    def watch(self, texts: Texts) -> Ran:
        """Return what runs of the users' code while the pair is judged; from now on it can be edited."""
        ran = note_functions(lambda: self.judge(texts))
        self.live = list_live_functions({file for file, _ in ran.port})
        return ran

    def judge(
        self, texts: Texts, inputs: Inputs | None = None, throughout: bool = False
    ) -> "Outcome":
        """Return which places differ with these texts, of the first stage at which any does.

        throughout: of all stages, and with the line at which each begins; this takes longer.
        """
        began = time.monotonic()
        try:
            with self.port_with(texts) as port, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if self.homes is not None and not list_homes(port) <= {*self.homes}:
                    return Outcome(error="another implementation takes the place of the port's own")
                return _read_outcome(self._judge(port, inputs, throughout))
        except (NotAppliedError, ModelFailure, ReprodError) as error:
            return Outcome(error=str(error))
        except Exception as error:  # of the port's constructors
            return Outcome(error=f"{type(error).__name__}: {error}")
        finally:
            self.seconds = max(self.seconds, time.monotonic() - began)

    def _judge(self, port: LocalSide, inputs: Inputs | None, throughout: bool) -> Report:
        batch = self.pair.inputs if inputs is None else inputs
        pair = replace(
            self.pair,
            port=port,
            inputs=batch,
            further=False,
            tries_edits=False,
            places_only=not throughout,
        )
        with ExitStack() as stack:
            stack.enter_context(self.reference.working("float64", self.widened))
            stack.enter_context(port.working("float64", self.widened, at_rest=True))
            return judge(pair, "float64")

    def use_one_thread(self) -> None:
        """Let both frameworks compute in one thread, as a copy of this process must."""
        use_one_thread(self.reference, self.pair.port)

    def judge_fully(self, texts: Texts, tries_edits: bool = True) -> Report:
        """Return the whole report with these texts. Raises what the port raises.

        tries_edits: as `align` does, which takes most of its time where the pair differs.
        """
        with self.port_with(texts) as port:
            return compare_pair(replace(self.pair, port=port, tries_edits=tries_edits))


def list_homes(port: LocalSide) -> frozenset[str]:
    """Return the files that define the classes of a port's modules with modules of their own.

    An edit that makes another implementation of the model agrees with the reference and mends nothing.
    """
    modules = dict(port.fw.modules(port.model))
    composites = {type(modules[name]) for name in map(parent, modules) if name in modules}
    forwards = (getattr(one.forward, "__code__", None) for one in composites)
    files = {made.co_filename for made in forwards if made is not None}
    return frozenset(filter(port.holds, files))


@dataclass(frozen=True)
class Outcome:
    """What became of the pair with a text."""

    passed: bool = False
    """whether nothing differs"""
    ran: bool = False
    """whether the port could be made and run"""
    faults: Mapping[Fault, float] = field(default_factory=dict)
    """the places that differ, and by how much at most"""
    agrees_in_eval: bool = False
    """whether the outputs in eval mode agree: train mode is judged only then"""
    called: frozenset[str] = frozenset()
    """the modules that the port calls, where a place was sought"""
    unpaired: frozenset[str] = frozenset()
    """the outputs of PyTorch's model that none of the port's is held against"""
    error: str = ""
    begins: Mapping[Fault, tuple[str, int]] = field(default_factory=dict)
    """the file and the line of the port at which a place's difference begins, where they are known"""

    @property
    def stage(self) -> int:
        """The number of the first stage at which anything differs."""
        found = [STAGES.index(fault[0]) for fault in self.faults]
        return min(found, default=len(STAGES))

    def runs_past(self, stages: Iterable[str]) -> bool:
        """Tell whether the port runs, or raises at a later stage than these, behind its forward pass."""
        last = max(map(STAGES.index, ("forward", *stages)))
        return self.ran or (bool(self.faults) and self.stage > last)

    def mends(
        self,
        before: "Outcome",
        fault: Fault,
        mended: Collection[Fault] = (),
        uncovers: bool = False,
    ) -> bool:
        """Tell whether a fault of `before` is gone and none is new but of a later stage.

        mended: faults that earlier edits have mended, none of which may come back. uncovers: another
        value may differ at the same place, as if the first one had hidden it, and any that a port which
        raised has hidden. Nothing is mended where a module that was called is called no more, or an
        output is judged no more; a module that is called now may differ itself.
        """
        if fault in self.faults or not self._keeps(before, mended):
            return False
        if self.agrees_in_eval and not before.agrees_in_eval:
            return True  # what differs now shows in train mode, which was not judged before
        anew = self.called - before.called if before.called else frozenset()
        last = max(before.stage, STAGES.index(fault[0]))
        return all(
            one in before.faults
            or one[1] in anew
            or (
                uncovers
                and (not before.ran or _may_be_hidden_by(one, fault))
                and math.isfinite(difference)
            )
            or STAGES.index(one[0]) > last
            for one, difference in self.faults.items()
        )

    def moves(self, before: "Outcome", fault: Fault, trial: Trial, added: int) -> bool:
        """Tell whether a fault begins later in the port's code than before, and nothing else differs anew.

        So it is where two mistakes lead to one value: with the first of them mended, all the calls up
        to the second give PyTorch's numbers. trial: the edit. added: lines that it adds to its file.
        """
        first, now = before.begins.get(fault), self.begins.get(fault)
        if first is None or now is None or fault not in self.faults:
            return False
        if not self._keeps(before, ()) or self.faults.keys() - before.faults.keys():
            return False
        file, _, line = str(SourceLine(trial.file, trial.candidate.line)).rpartition(":")
        behind = now[0] == file and now[1] > int(line)
        return now[0] == first[0] and now[1] - (added if behind else 0) > first[1]

    def _keeps(self, before: "Outcome", mended: Collection[Fault]) -> bool:
        """Tell whether the port runs, calls and returns what it did, and no mended fault is back."""
        judged = (fault[0] for fault in before.faults)
        if not self.runs_past(judged) or any(one in self.faults for one in mended):
            return False
        if self.called and before.called - self.called:
            return False
        return not (before.ran and self.unpaired - before.unpaired)


def _may_be_hidden_by(one: Fault, first: Fault) -> bool:
    """Tell whether a fault may have been hidden by another one at the same place: it is named once."""
    return one[:2] == first[:2] and first[0] == "forward" and not first[2].endswith(_LAST)


def _read_outcome(report: Report) -> Outcome:
    faults: dict[Fault, float] = {
        (found.stage, place, _name_value(found)): found.difference
        for found in report.findings
        for place in (found.place, *found.places)
    }
    begins: dict[Fault, tuple[str, int]] = {}
    for found in report.findings:
        file, _, line = (found.paddle_line or "").rpartition(":")
        if file:
            begins[found.stage, found.place, _name_value(found)] = file, int(line)
    agrees = any(one.what == OUTPUTS_IN_EVAL and one.passed for one in report.checks)
    called = frozenset(report.called)
    unpaired = frozenset(report.unpaired)
    return Outcome(
        report.passed, not report.port_raised, faults, agrees, called, unpaired, begins=begins
    )


def _name_value(finding: Finding) -> str:
    """Return which value of its place a finding is about: "its output", "the value it hands to b"."""
    return finding.evidence.partition(": ")[0]
