"""Which part of a training step makes two runs differ: their steps again, with parts exchanged.

Both sides are brought back to the checkpoint before the first step outside the band, in float64,
and trained on. Then Paddle's steps are taken with one part of PyTorch's, and the other way round.
A part that alone makes them differ is at fault; `align` names the module in it.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from reprod_align.alignment import Findings, compare_pair, pair_models, shake, share_draws
from reprod_align.backends.recipes import OptimizerState
from reprod_align.base import FRAMEWORKS, Framework
from reprod_align.base.blocks import Array
from reprod_align.base.console import tell
from reprod_align.base.difference import gap
from reprod_align.curves.band import find_precision
from reprod_align.curves.log import GRAD_NORM, LOSS, LR
from reprod_align.curves.report import (
    PARTS,
    CurveReport,
    CurveResult,
    Explanation,
    Part,
    Replay,
    Swapped,
)
from reprod_align.curves.swap import PADDLE, TORCH, Assignment, Swap
from reprod_align.curves.training import (
    TrainingFile,
    TrainingSide,
    TrainingState,
    describe_difference,
)
from reprod_align.errors import ReprodError
from reprod_align.pair import PairSpec
from reprod_align.pair.file import open_file, run_user_code
from reprod_align.report import Finding

import numpy as np

_OF_STEPS: Final = (LOSS, LR, GRAD_NORM)
_ULPS: Final = 64  # of a log's precision: what a replay in float64 may be off by
REPLAY: Final = 200
"""steps at most from a checkpoint to the one to be explained"""
_SWAPPED: Final = 12  # steps at most that are taken with parts exchanged, if fewer will do
_FLOOR: Final = 1e-11  # of the loss: less is rounding, float32 constants inside kernels included
_NOISE: Final = 10.0  # times what a twin's weights, a few units in the last place off, make
_STEPS: Final = 3  # that align takes
_FAITHFUL: Final = 0.1  # of the logs' gap: a replay that is further off is another training
Starts = Mapping[Framework, TrainingState]
"""the state from which each side's steps are taken"""


@dataclass(frozen=True)
class LoggedGap:
    """Which curve left the band, and where; steps are counted from 1."""

    curve: str
    step: int
    """the first outside the band"""
    before: int
    """the last step compared before it; 0 if there is none"""
    final: int
    """the last step compared"""
    losses: Mapping[int, tuple[float, float]]
    """step -> PyTorch's and Paddle's"""

    def largest(self, steps: Sequence[int]) -> float:
        """Return the largest difference of the two losses over `steps`; NaN if none is logged."""
        known = [self.losses[step] for step in steps if step in self.losses]
        return gap(*np.array(known).T).difference if known else np.nan

    def distance(self, side: int, first: int, losses: Array) -> float | None:
        """Return how far `losses` of the steps from `first` on are from a side's log; None if it has none.

        side: 0 for PyTorch, 1 for Paddle.
        """
        pairs = [
            (self.losses[step][side], loss)
            for step, loss in enumerate(losses, first)
            if step in self.losses
        ]
        return gap(*np.array(pairs).T).difference if pairs else None

    @property
    def rounding(self) -> float:
        """What a replay in float64 may be off by, given the log's precision."""
        known = np.array(list(self.losses.values()) or [(0.0, 0.0)])
        bits = min(find_precision(known[:, 0]), find_precision(known[:, 1]))
        return _ULPS * 2.0 ** (1 - bits) * float(np.abs(known[np.isfinite(known)]).max(initial=0.0))


def find_gap(report: CurveReport, at: int | None) -> LoggedGap:
    """Return the gap to be explained: at step `at` of the logs, else the first outside the band."""
    result = _choose_curve(report)
    track, place = result.track, result.track.first or 0
    if at is not None:
        place = int(np.searchsorted(track.steps, at))
        if at not in track.steps:
            raise ReprodError(f"--at {at}: {result.name} has no such step in both logs")
    begins = [int(curve.steps[0]) for curve in report.reference.curves.values()]
    shift = 1 if min(begins) == 0 else 0  # a log that counts its steps from 0
    steps = [int(step) + shift for step in track.steps]
    losses = {
        int(step) + shift: (float(ours), float(theirs))
        for each in (other.track for other in report.results if other.quantity == LOSS)
        for step, ours, theirs in zip(each.steps, each.expected, each.actual, strict=True)
    }
    before = steps[place - 1] if place else 0
    return LoggedGap(result.name, steps[place], before, max(steps[-1], *losses, 0), losses)


def _choose_curve(report: CurveReport) -> CurveResult:
    """Return the curve of training steps that leaves its band first."""
    if report.first is None:
        raise ReprodError("--explain: the logs agree, there is no gap to explain")
    if report.first.quantity in _OF_STEPS:
        return report.first
    outside = [result for result in report.results if result.first_step is not None]
    of_steps = [result for result in outside if result.quantity in _OF_STEPS]
    if of_steps:
        return min(of_steps, key=lambda result: result.first_step or 0)
    if any(result.quantity == LOSS for result in report.results):
        raise ReprodError(
            f"--explain: the losses agree and {report.first.name} does not: training steps do not "
            "make this gap, so look at the evaluation (eval mode, its data, the metric)"
        )
    return report.first


@dataclass(frozen=True)
class StepRange:
    """Which steps are replayed and swapped."""

    restored: int
    """the checkpoint's; 0: the start of training"""
    begin: int
    """parts are swapped after this step"""
    last: int


def explain(
    path: Path, report: CurveReport, at: int | None = None, replay: int = REPLAY
) -> Explanation:
    """Return which part of a step makes the gap that `report` found; the file at `path` holds the trainings.

    at: a step of the logs, instead of the first outside the band; replay: steps at most from a
    checkpoint to it. Raises ReprodError if there is no gap, the file lacks what is needed, or no
    checkpoint is near enough.
    """
    found = find_gap(report, at)
    logs = Path(report.reference.source), Path(report.other.source)
    with run_user_code(path), open_file(path, TrainingFile) as file:
        file.begin(*(log.resolve() for log in logs))
        return _explain_file(file, found, replay)


def _explain_file(file: TrainingFile, found: LoggedGap, replay: int) -> Explanation:
    span = _choose_span(file.list_checkpoints(), found, replay)
    tell("making the models")
    trainings = {framework: file.make_training(framework) for framework in FRAMEWORKS}
    kept: dict[Framework, OptimizerState] = {framework: {} for framework in FRAMEWORKS}
    if span.restored:
        kept = {name: training.restore(span.restored) for name, training in trainings.items()}
    with ExitStack() as stack:
        for training in trainings.values():
            stack.enter_context(training.side.working("float64"))
        return _Trainings(file, trainings, kept, found, span).explain()


def _choose_span(checkpoints: Sequence[int], found: LoggedGap, replay: int) -> StepRange:
    """Choose the checkpoint, so that at least one update lies between it and the gap if it can."""
    start = max(step for step in (0, *checkpoints) if step <= max(found.before - 1, 0))
    last = min(found.step + 1, found.final)
    if last - start > replay:
        place = f"the checkpoint of step {start}" if start else "the start of training"
        raise ReprodError(
            f"--explain: step {found.step} lies {found.step - start} steps after {place}, the nearest "
            f"that can be restored, and at most {replay} are replayed: keep checkpoints nearer to it, "
            f"or add --replay {last - start}"
        )
    begin = start if last - start <= _SWAPPED else max(found.before - 1, start)
    return StepRange(start, begin, last)


class _Trainings:
    """The two trainings at work."""

    def __init__(
        self,
        file: TrainingFile,
        trainings: Mapping[Framework, TrainingSide],
        kept: Mapping[Framework, OptimizerState],
        logged: LoggedGap,
        span: StepRange,
    ) -> None:
        self.file, self.trainings, self.logged, self.span = file, trainings, logged, span
        self.ours, self.theirs = trainings["torch"], trainings["paddle"]
        self.settings = file.settings()
        ours = TrainingState(span.restored, self.ours.side.values(), kept["torch"])
        theirs = TrainingState(span.restored, self.theirs.side.values(), kept["paddle"])
        inputs = self.ours.give_targets(self.ours.read_batch(span.restored + 1))
        sides, names = (self.ours.side, self.theirs.side), self.settings.get("name_map")
        runner = pair_models(*sides, inputs, "float64", names, True, Findings())
        if not runner.pairing.outputs:
            raise ReprodError(f"{file.path}: no Paddle output has the shape of a PyTorch output")
        runner = share_draws(runner)
        self.swap = Swap(trainings, runner, span.last)
        common = self.swap.share(ours)
        if not span.restored and self.settings.get("copy_weights", True):
            theirs = common["paddle"]  # as `align` begins
        self.weights_apart = _compare_weights(common["paddle"].weights, theirs.weights)
        self.own: Starts = {"torch": ours, "paddle": theirs}

    def explain(self) -> Explanation:
        """Replay, swap and decide."""
        span, swap = self.span, self.swap
        before, reached = swap.advance(self.own["torch"], span.begin)
        theirs = swap.train(PADDLE, self.own, span.last)
        starts = swap.share(reached)
        torch = swap.train(TORCH, starts, span.last)
        ours = np.concatenate([before, torch])
        replayed = gap(torch, theirs[len(before) :]).difference
        whole, floor = self._measure(PADDLE, starts, torch), self._measure_floor(starts, torch)
        if whole <= floor < replayed and span.begin > span.restored:
            self.span = replace(span, begin=span.restored)  # the gap was made before the last steps
            return self.explain()
        rows: list[Swapped] = []
        if whole > floor:
            swap.judge_backward(starts, span.last)
            rows = [self._swap_part(part, starts, torch, whole) for part in PARTS]
        guilty = [row.part for row in rows if not row.made <= floor]
        together: Assignment = {**PADDLE, **dict.fromkeys(guilty, "torch")}
        found, remarks = self._find_places(guilty, starts) if guilty else ([], [])
        first = span.restored + 1
        replays = (
            Replay(FRAMEWORKS["torch"], self.logged.distance(0, first, ours)),
            Replay(FRAMEWORKS["paddle"], self.logged.distance(1, first, theirs)),
        )
        logged = self.logged.largest(range(span.begin + 1, span.last + 1))
        return Explanation(
            curve=self.logged.curve,
            step=self.logged.step,
            logged=logged,
            restored=span.restored,
            begin=span.begin,
            last=span.last,
            replays=replays,
            replayed=replayed,
            weights_apart=self.weights_apart,
            whole=whole,
            floor=floor,
            rows=tuple(rows),
            together=self._measure(together, starts, torch) if guilty else None,
            findings=tuple(found),
            remarks=(*remarks, *self._doubt_replays(replays, logged)),
        )

    def _measure(self, who: Assignment, starts: Starts, torch: Array) -> float:
        """Return how far the losses are from PyTorch's; `who`: which framework does each part of a step."""
        return gap(torch, self.swap.train(who, starts, self.span.last)).difference

    def _measure_floor(self, starts: Starts, torch: Array) -> float:
        """Return how large a gap rounding makes: measured on a twin of PyTorch's run."""
        state = starts["torch"]
        moved = dict(shake(state.weights, float(np.finfo(np.float64).eps), 0))
        twin = replace(state, weights={**state.weights, **moved})
        noise = self._measure(TORCH, {"torch": twin}, torch)
        scale = float(np.abs(torch[np.isfinite(torch)]).max(initial=0.0))
        return max(_NOISE * noise if np.isfinite(noise) else 0.0, _FLOOR * scale)

    def _swap_part(self, part: Part, starts: Starts, torch: Array, whole: float) -> Swapped:
        if part == "backward" and not self.swap.backward_apart:
            return Swapped(part, whole, 0.0)
        left = self._measure({**PADDLE, part: "torch"}, starts, torch)
        return Swapped(part, left, self._measure({**TORCH, part: "paddle"}, starts, torch))

    def _find_places(self, guilty: Sequence[Part], starts: Starts) -> tuple[list[str], list[str]]:
        """Return what is known of the places of the faults, and remarks."""
        steps = range(self.span.begin + 1, self.span.last + 1)
        found: list[str] = []
        remarks: list[str] = []
        if "data" in guilty:
            words = describe_difference(self.ours.read_batch, self.theirs.read_batch, steps)
            found.append(f"data: {words or 'not the same objects'}")
        if set(guilty) - {"data"}:
            for finding in self._align(starts):
                named = finding.stage in guilty or finding.stage in ("audit", "weights")
                (found if named else remarks).append(str(finding))
        placed = {one.partition(":")[0] for one in found}
        silent = [part for part in guilty if part not in placed]
        if silent:
            remarks.append(f"align names no place for {', '.join(silent)} on this step's batch")
        return found, remarks

    def _align(self, starts: Starts) -> Sequence[Finding]:
        """Return what `align` finds in the two models and what trains them, on this step's batch."""
        tell("align looks for the place")
        batch = self.ours.read_batch(self.logged.step)
        for framework, training in self.trainings.items():
            training.side.load(starts[framework].weights)
            inputs = training.give_targets(batch)
        sides, names = (self.ours.side, self.theirs.side), self.settings.get("name_map")
        pair = PairSpec(*sides, inputs, self.settings.get("steps", _STEPS), names)
        return compare_pair(pair).findings

    def _doubt_replays(self, replays: Sequence[Replay], logged: float) -> list[str]:
        """Doubt that the file describes the runs of the logs, if its replay is far from them."""
        allowed = max(_FAITHFUL * logged, self.logged.rounding)
        return [
            f"{replay.name}'s replay does not give its log's losses ({replay.apart:.1e} off, the logs "
            f"are {logged:.1e} apart): that run trained otherwise than the file"
            for replay in replays
            if replay.apart is not None and not replay.apart <= allowed
        ]


def _compare_weights(ours: Mapping[str, Array], theirs: Mapping[str, Array]) -> float:
    """Return the largest difference of any float tensor that both hold, relative to its largest."""
    shared = [name for name, array in ours.items() if name in theirs and array.dtype.kind == "f"]
    gaps = [gap(ours[name], theirs[name]) for name in shared]
    return max((each.difference / (each.scale or 1.0) for each in gaps), default=0.0)
