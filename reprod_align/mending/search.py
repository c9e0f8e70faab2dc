"""Looks for the edit with which a fault is gone: the likeliest candidates first, each tried in memory.

A quick look comes first: one forward pass of the port on the reference's numbers, a tenth of what the
pair's judgement takes. What it turns down would not have mended the fault; what it lets pass is judged.
"""

import math
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from reprod_align.alignment.comparing import compare_pass
from reprod_align.alignment.findings import Findings
from reprod_align.alignment.locating.counterparts import PinnedRun
from reprod_align.alignment.locating.experiment import Experiment
from reprod_align.alignment.locating.fault import Fault as Place
from reprod_align.alignment.locating.faults import find_backward_faults, list_differences
from reprod_align.alignment.locating.lines import LineFinder
from reprod_align.alignment.locating.pinning import ReferencePins, run_pinned
from reprod_align.alignment.pair_models import pair_models
from reprod_align.alignment.runner import Runner
from reprod_align.base.console import tell
from reprod_align.errors import ReprodError
from reprod_align.explain.code import Edit as Span
from reprod_align.explain.code import parse_code
from reprod_align.explain.edits import Candidate
from reprod_align.explain.overlay import NotAppliedError
from reprod_align.explain.scope import Scope
from reprod_align.explain.trials import BUDGETS, Texts, Trial, list_texts
from reprod_align.explain.workers import try_in_order
from reprod_align.mending.bench import Bench, Fault, Outcome
from reprod_align.model.backward import Projection
from reprod_align.model.side import Inputs, ModelFailure, ModelInfo
from reprod_align.randomness import KeyedDraws
from reprod_align.report import Suggestion

Known = Mapping[tuple[object, ...], float]
"""what differs -> how far float32 inside may leave it apart when it is gone"""


@dataclass(frozen=True)
class Probe:
    """The port's run on the reference's numbers, in eval mode, and what differs there."""

    stage: str
    """forward, or backward: with a backward pass"""
    bench: Bench
    runner: Runner
    run: PinnedRun
    known: Known
    noise: float = 0.0
    """of the outputs, relative"""
    finder: LineFinder | None = None
    """of the calls at which the differences begin, for `may_move`"""
    met: frozenset[int] = frozenset()
    """PyTorch's calls there that the port as it is meets"""

    def may_mend(self, texts: Texts) -> bool:
        """Tell whether any of the differences is gone with these texts, as far as can be told."""
        try:
            with self._runner_with(texts) as runner:
                if runner is None:
                    return True  # no value is known for a new one, or of its new shape
                pins = ReferencePins(self.run.counterparts, self.run.reference, constants=False)
                back = self.stage == "backward"
                trace = runner.run_port(False, "all", pins=pins, backward=back)
                new = trace.counts().keys() - self.run.port.counts().keys()
                if new & self.runner.pairing.names.keys():
                    return True  # what it gives is not replaced by the reference's numbers
                left = _list_faults(replace(self.run, port=trace), self.stage, self.noise)
                stays = {one.key for one in left if one.gap.relative > self.known.get(one.key, 0.0)}
                return not self.known.keys() <= stays
        except (NotAppliedError, ModelFailure):
            return False
        except Exception:  # other modules, other tensors: the pair's judgement tells
            return True

    def may_move(self, texts: Texts) -> bool:
        """Tell whether with these texts the port meets a call of PyTorch's that it did not meet.

        So it is where an edit mends the first of two mistakes that lead to one value.
        """
        if self.finder is None:
            return True
        try:
            with self._runner_with(texts) as runner:
                return runner is None or not self.finder.find_met(runner) <= self.met
        except (NotAppliedError, ModelFailure):
            return False
        except Exception:  # as above
            return True

    @contextmanager
    def _runner_with(self, texts: Texts) -> Iterator[Runner | None]:
        """Yield what runs the port that these texts make; None if it has other tensors."""
        with self.bench.port_with(texts) as port, ExitStack() as stack:
            stack.enter_context(port.working("float64", self.bench.widened, at_rest=True))
            if port.describe().tensors != self.runner.pairing.paddle.tensors:
                yield None
                return
            runner = replace(self.runner, port=port, moved=set())
            runner.load_port()
            yield runner


def _list_faults(run: PinnedRun, stage: str, noise: float) -> list[Place]:
    """Return what differs in a run on the reference's numbers, forward or backward."""
    return [*list_differences(run)] if stage == "forward" else find_backward_faults(run, noise)


@dataclass(frozen=True)
class RunProbe:
    """A port that raises: what does not let it run mends nothing."""

    bench: Bench
    training: bool
    """with a backward pass; else forward, in eval mode"""

    def may_mend(self, texts: Texts) -> bool:
        """Tell whether the port runs with these texts."""
        try:
            with self.bench.port_with(texts) as port, ExitStack() as stack:
                stack.enter_context(port.working("float64", self.bench.widened, at_rest=True))
                draws, inputs = KeyedDraws(0, {}), self.bench.pair.inputs
                whole = None if port.loss is not None else Projection()
                loss = whole if self.training else Projection(only=frozenset())
                port.run(inputs, self.training, draws, "none", loss, anew=True)
            return True
        except Exception:  # of the port, or of what makes it
            return False


@dataclass(frozen=True)
class WeightsProbe:
    """A port whose weights have another place, shape or tie: they are the constructors'."""

    bench: Bench
    described: ModelInfo
    """the port as it is"""
    lacks_tie: bool = False
    """whether a parameter is one of its own in place of another: its name must stay one of a parameter"""

    def may_mend(self, texts: Texts) -> bool:
        """Tell whether the port that is made with these texts has other modules, settings or weights."""
        try:
            with self.bench.port_with(texts) as port:
                made = port.describe()
            kept = self.described.tensors.keys() <= made.tensors.keys()
            return made != self.described and (kept or not self.lacks_tie)
        except Exception:  # of what makes the port
            return False


def make_probe(
    bench: Bench,
    texts: Texts,
    fault: Fault,
    before: Outcome,
    lacks_tie: bool = False,
    finds_calls: bool = False,
) -> Probe | RunProbe | WeightsProbe | None:
    """Return the quick look at a fault that shows in eval mode or before; None where there is none.

    finds_calls: which calls of PyTorch's the port meets is wanted too.
    """
    if fault[0] == "weights" and bench.pair.copy_weights:
        with bench.port_with(texts) as port:
            return WeightsProbe(bench, port.describe(), lacks_tie)
    if fault[0] not in ("forward", "backward"):
        return None
    if not before.ran:
        every = (RunProbe(bench, training) for training in (False, True))
        return next((one for one in every if not one.may_mend(texts)), None)
    try:
        with bench.port_with(texts) as port, ExitStack() as stack:
            stack.enter_context(bench.reference.working("float64", bench.widened))
            stack.enter_context(port.working("float64", bench.widened, at_rest=True))
            given, findings = bench.pair, Findings()
            runner = pair_models(given.reference, port, given.inputs, "float64", given.name_map,
                                 given.copy_weights, findings)  # fmt: skip
            done = compare_pass(runner, runner.expected, False, until_one_differs=True)
            if fault[0] == "forward" and done.outputs_ok:
                return None
            run, _ = run_pinned(runner, done)
            found = _list_faults(run, fault[0], done.outputs_noise)
            known = {one.key: one.residue for one in found}
            noise = done.outputs_noise
            probe = Probe(fault[0], bench, runner, run, known, noise)
            if finds_calls and fault[0] == "forward":
                finder = LineFinder(runner, False, run, found, Experiment(runner, False, run))
                probe = replace(probe, finder=finder, met=finder.find_met())
            return probe if known else None
    except (NotAppliedError, ModelFailure, ReprodError):
        return None


@dataclass(frozen=True)
class Search:
    """What a search for one edit came to."""

    found: Trial | None
    tried: int
    """edits"""
    seconds: float
    """of a processor"""
    moves: bool = False
    """whether the fault is not gone but begins further on: another edit must follow"""


WIDE = 250
"""the likeliest edits: of the statements nearest to a finding, and what PyTorch says"""
_MORE = 120
"""runs after an edit that mends a fault and uncovers another, or with which the backward pass raises"""
_MORE_IN_TRAIN = 400
"""runs after an edit with which eval mode agrees and train mode does not: a summand behind a dropout"""


def find_edit(
    bench: Bench,
    texts: Texts,
    scope: Scope,
    fault: Fault,
    before: Outcome,
    mended: Collection[Fault],
    seen: Sequence[Inputs] = (),
    seconds: float = BUDGETS["fix"].seconds,
    known: Suggestion | None = None,
    start: int = 0,
    most: int = BUDGETS["fix"].runs,
) -> Search:
    """Look for the first edit with which the fault is gone.

    before: the outcome with `texts`. mended: faults that may not come back. seen: further batches on which
    the fault must be gone too. seconds: of a processor, for each copy of this process. known: the edit that
    `align` has found, which is tried first. start: how many edits were tried before. most: the number of
    edits after which the search ends.
    """
    probe = make_probe(bench, texts, fault, before, bool(scope.ties))

    def work(task: tuple[Trial, Texts]) -> tuple[Trial, Outcome, float]:
        looks = probe is None or probe.may_mend(task[1])
        outcome = bench.judge(task[1]) if looks else Outcome()
        return task[0], outcome, time.process_time()

    found = _try_edits(bench, texts, scope, fault, before, work, known, start)
    first: Trial | None = None
    other: Trial | None = None
    fewest = math.inf  # faults behind one that raises: what lets it run in a wrong way adds its own
    last, spent = math.inf, 0.0
    number = start - 1
    for number, answer in found:
        tell(f"{fault[1]}: edit {number + 1}")
        if answer is not None:
            trial, outcome, spent = answer
            if outcome.mends(before, fault, mended) and _holds(bench, texts, trial, fault, seen):
                # train mode was not judged before: what differs there may be this edit's doing
                judged = not outcome.agrees_in_eval or before.agrees_in_eval
                if outcome.passed or (judged and outcome.ran):
                    return Search(trial, number + 1 - start, spent)
                if first is None:
                    more = _MORE_IN_TRAIN if outcome.ran else _MORE
                    first, last = trial, min(last, number + more)
            uncovered = len(outcome.faults)
            if uncovered < fewest and outcome.mends(before, fault, mended, uncovers=True):
                other, last = trial, min(last, number + _MORE)
                fewest = 0 if before.ran else uncovered
            if spent > seconds:
                break
        if number >= (last if first or other else most - 1):
            break
    return Search(first or other, number + 1 - start, spent)


def find_step(
    bench: Bench,
    texts: Texts,
    scope: Scope,
    fault: Fault,
    before: Outcome,
    mended: Collection[Fault],
    seen: Sequence[Inputs] = (),
    seconds: float = BUDGETS["fix"].seconds,
    most: int = WIDE,
) -> Search:
    """Look for an edit with which a fault of any stage is gone, or one of its two mistakes.

    before: the outcome with `texts`, throughout. This is for what `find_edit` can't see: a value that
    two mistakes lead to differs as long as either is there, and while the models differ in a forward
    pass, what a training step changes is not looked at. Other arguments: as there.
    """

    probe = make_probe(bench, texts, fault, before, bool(scope.ties), finds_calls=True)

    def work(task: tuple[Trial, Texts]) -> tuple[Trial, Outcome, float]:
        looks = not isinstance(probe, Probe) or probe.may_move(task[1])
        outcome = bench.judge(task[1], throughout=True) if looks else Outcome()
        return task[0], outcome, time.process_time()

    number, spent = -1, 0.0
    for number, answer in _try_edits(bench, texts, scope, fault, before, work, most=most):
        tell(f"{fault[1]}: edit {number + 1}, throughout")
        if answer is not None:
            trial, outcome, spent = answer
            if outcome.mends(before, fault, mended) and _holds(bench, texts, trial, fault, seen):
                return Search(trial, number + 1, spent)
            if outcome.moves(before, fault, trial, _count_added(bench, texts, trial)):
                return Search(trial, number + 1, spent, moves=True)
        if spent > seconds:
            break
    return Search(None, number + 1, spent)


def _try_edits(
    bench: Bench,
    texts: Texts,
    scope: Scope,
    fault: Fault,
    before: Outcome,
    work: Callable[[tuple[Trial, Texts]], Any],
    known: Suggestion | None = None,
    start: int = 0,
    most: int = BUDGETS["fix"].runs,
) -> Iterator[tuple[int, Any]]:
    """Yield the number of each of the `most` likeliest edits from `start` on, and what `work` says of it.

    known: an edit that comes before them.
    """
    told = [] if known is None else [_make_trial(bench, texts, known)]

    def may_be_made(trial: Trial) -> bool:
        return bench.allows(trial.file, trial.candidate.line, fault[0])

    def list_most() -> Iterator[tuple[Trial, Texts]]:
        first = filter(may_be_made, told)
        yield from ((trial, bench.files.apply(texts, trial)) for trial in first)
        every = list_texts(bench.files, scope, texts, raises=not before.ran)
        yield from islice((one for one in every if may_be_made(one[0])), start, most)

    patience = BUDGETS["fix"].limit_run(bench.seconds)
    answers = try_in_order(list_most, work, bench.use_one_thread, patience)
    yield from ((start + number, answer) for number, answer in answers)


def _count_added(bench: Bench, texts: Texts, trial: Trial) -> int:
    """Return how many lines an edit adds to its file."""
    made = bench.files.apply(texts, trial)[trial.file]
    return made.count("\n") - bench.files.read(trial.file, texts).count("\n")


def _holds(bench: Bench, texts: Texts, trial: Trial, fault: Fault, seen: Iterable[Inputs]) -> bool:
    """Tell whether a fault is gone on further batches too: an edit that fits the given one is none."""
    made = bench.files.apply(texts, trial)
    outcomes = (bench.judge(made, inputs) for inputs in seen)
    return all(outcome.runs_past(fault[:1]) and fault not in outcome.faults for outcome in outcomes)


def _make_trial(bench: Bench, texts: Texts, edit: Suggestion) -> Trial:
    """Return the trial of an edit that `align` has found."""
    code = parse_code(bench.files.read(edit.file, texts))
    start = code.offset(edit.line, edit.column)
    span = Span(start, code.offset(edit.last_line, edit.last_column), edit.after)
    return Trial(edit.file, Candidate(edit.kind, span, edit.line, edit.before, edit.after))
