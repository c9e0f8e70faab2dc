"""Who makes the gap between two training runs: their steps again, with parts exchanged.

Both sides are brought back to the checkpoint before the first step outside the band, in float64,
and trained on. Then Paddle's steps are taken with one part of PyTorch's, and the other way round.
What one part alone makes is its fault; `align` names the place in it.
"""

import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from reprod_align.alignment import compare_sides
from reprod_align.alignment.findings import Findings
from reprod_align.alignment.pair_models import pair_models
from reprod_align.base.difference import gap
from reprod_align.base.progress import tell
from reprod_align.base.quiet import quieten, without_warnings
from reprod_align.curves.band import precision_of
from reprod_align.curves.explanation import PARTS, Explanation, Part, Replay, Swapped
from reprod_align.curves.names import GRAD_NORM, LOSS, LR
from reprod_align.curves.replay.data import difference_of_data
from reprod_align.curves.replay.state import Kept, State, furthest
from reprod_align.curves.replay.swap import PADDLE, TORCH, Swap, Who, restored
from reprod_align.curves.replay.training import Training, TrainingFile
from reprod_align.curves.report import CurveReport, CurveResult
from reprod_align.errors import ReprodError
from reprod_align.model.trace import Array
from reprod_align.pair.file import FRAMEWORKS, Framework, opened, told_at
from reprod_align.report import Finding

import numpy as np

REPLAY: Final = 200
"""steps at most from a checkpoint to the one to be explained"""
_SWAPPED: Final = 12  # steps at most that are taken with parts exchanged, if fewer will do
_FLOOR: Final = 1e-11  # of the loss: less is rounding, float32 constants inside kernels included
_NOISE: Final = 10.0  # times what a twin's weights, a few units in the last place off, make
_JITTER: Final = 4 * float(np.finfo(np.float64).eps)
_STEPS: Final = 3  # that align takes
_OF_STEPS: Final = (LOSS, LR, GRAD_NORM)
_ULPS: Final = 64  # of a log's precision: what a replay in float64 may be off by
_FAITHFUL: Final = 0.1  # of the logs' gap: a replay that is further off is another training


@dataclass(frozen=True)
class Span:
    """Which steps are replayed and swapped."""

    step: int
    """the first outside the band"""
    restored: int
    begin: int
    last: int


@dataclass(frozen=True)
class Gone:
    """What the logs say: which curve left the band, where, and the losses of both."""

    curve: str
    step: int
    """the first outside the band, counted from 1"""
    before: int
    """the last step compared before it; 0 if there is none"""
    final: int
    """the last step compared"""
    losses: Mapping[int, tuple[float, float]]
    """step -> PyTorch's and Paddle's"""


def explained(
    path: Path, report: CurveReport, at: int | None = None, replay: int = REPLAY
) -> Explanation:
    """Return who makes the gap that `report` found, by the trainings in the file at `path`.

    at: a step of the logs, instead of the first outside the band; replay: steps at most from a
    checkpoint to it. Raises ReprodError for whatever is in the way: no gap, a file that lacks what is
    needed, no checkpoint near enough.
    """
    gone = _gone(report, at)
    logs = Path(report.reference.source), Path(report.other.source)
    quieten()
    try:
        with opened(path, TrainingFile) as file, redirect_stdout(sys.stderr), without_warnings():
            file.begin(*(log.resolve() for log in logs))
            return _of_file(file, gone, replay)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit too: the file's exit code must not become ours
        raise told_at(error, path) from error
    finally:
        tell("")


def _gone(report: CurveReport, at: int | None) -> Gone:
    result = _first(report)
    track, place = result.track, result.track.first or 0
    if at is not None:
        place = int(np.searchsorted(track.steps, at))
        if at not in track.steps:
            raise ReprodError(f"--at {at}: {result.name} has no such step in both logs")
    begins = [int(curve.steps[0]) for curve in report.reference.curves.values()]
    shift = 1 if min(begins) == 0 else 0  # a log that counts its steps from 0
    losses = {
        int(step) + shift: (float(ours), float(theirs))
        for other in report.results
        if other.quantity == LOSS
        for step, ours, theirs in zip(
            other.track.steps, other.track.expected, other.track.actual, strict=True
        )
    }
    return Gone(
        result.name,
        int(track.steps[place]) + shift,
        int(track.steps[place - 1]) + shift if place else 0,
        max([int(track.steps[-1]) + shift, *losses]),
        losses,
    )


def _first(report: CurveReport) -> CurveResult:
    """Return the curve of training steps that leaves its band first."""
    parted = [result for result in report.results if result.first_step is not None]
    if not parted or report.first is None:
        raise ReprodError("--explain: the logs agree, there is no gap to explain")
    of_steps = [result for result in parted if result.quantity in _OF_STEPS]
    if of_steps:
        return report.first if report.first in of_steps else min(of_steps, key=_step_of)
    if any(result.quantity == LOSS for result in report.results):
        raise ReprodError(
            f"--explain: the losses agree and {report.first.name} does not: it is made in no training "
            "step, so look at the evaluation (eval mode, its data, the metric)"
        )
    return report.first


def _step_of(result: CurveResult) -> float:
    return np.inf if result.first_step is None else result.first_step


def _of_file(file: TrainingFile, gone: Gone, replay: int) -> Explanation:
    span = _span(file, gone, replay)
    tell("making the models")
    trainings = {framework: file.training(framework) for framework in FRAMEWORKS}
    kept: dict[Framework, Kept] = {framework: {} for framework in FRAMEWORKS}
    if span.restored:
        for framework, training in trainings.items():
            kept[framework] = restored(training, framework, span.restored)
    with ExitStack() as stack:
        for training in trainings.values():
            stack.enter_context(training.side.working("float64"))
        return _Case(file, trainings, kept, gone, span).explanation()


def _span(file: TrainingFile, gone: Gone, replay: int) -> Span:
    """Choose the checkpoint, so that at least one update lies between it and the gap if it can."""
    saved = [0, *file.checkpoints()]
    start = max(step for step in saved if step <= max(gone.before - 1, 0))
    last = min(gone.step + 1, gone.final)
    if last - start > replay:
        place = f"the checkpoint of step {start}" if start else "the start of training"
        raise ReprodError(
            f"--explain: step {gone.step} lies {gone.step - start} steps after {place}, the nearest that "
            f"can be restored, and at most {replay} are replayed: keep checkpoints nearer to it, or add "
            f"--replay {last - start}"
        )
    near = start if last - start <= _SWAPPED else max(gone.before - 1, start)
    return Span(gone.step, start, near, last)


class _Case:
    """The two trainings at work."""

    def __init__(
        self,
        file: TrainingFile,
        trainings: Mapping[Framework, Training],
        kept: Mapping[Framework, Kept],
        gone: Gone,
        span: Span,
    ) -> None:
        self.file, self.trainings, self.gone, self.span = file, trainings, gone, span
        held = {framework: one.side.values() for framework, one in trainings.items()}
        inputs, trainings["torch"].targets.arrays = trainings["torch"].data(span.restored + 1)
        sides = trainings["torch"].side, trainings["paddle"].side
        runner = pair_models(*sides, inputs, "float64", file.name_map(), True, Findings())
        if not runner.pairing.outputs:
            raise ReprodError(f"{file.path}: the Paddle model's outputs fit none of PyTorch's")
        self.swap = Swap(file, trainings, runner, span.last)
        common = self.swap.common(State(span.restored, held["torch"], kept["torch"]))
        own = State(span.restored, held["paddle"], kept["paddle"])
        if not span.restored and file.settings().get("copy_weights", True):
            own = common["paddle"]  # as `align` begins
        self.weights_apart = furthest(common["paddle"].weights, own.weights)
        self.own: dict[Framework, State] = {"torch": common["torch"], "paddle": own}

    def explanation(self) -> Explanation:
        """Replay, swap and decide."""
        span, swap = self.span, self.swap
        before, reached = swap.reached(self.own["torch"], span.begin)
        theirs = swap.losses(PADDLE, self.own, span.last)
        starts = swap.common(reached)
        torch = swap.losses(TORCH, starts, span.last)
        ours = np.concatenate([before, torch])
        length = span.last - span.begin
        replayed = _apart(ours[-length:], theirs[-length:])
        floor = self._floor(starts, torch)
        whole = _apart(torch, swap.losses(PADDLE, starts, span.last))
        if whole <= floor < replayed and span.begin > span.restored:
            return self._from_the_checkpoint()
        rows: list[Swapped] = []
        if whole > floor:
            swap.judge_backward(starts, span.last)
            rows = [self._row(part, starts, torch, whole) for part in PARTS]
        guilty = [row.part for row in rows if not row.made <= floor]
        found = self._findings(guilty, starts) if guilty else ([], [])
        return Explanation(
            self.gone.curve,
            span.step,
            self._logged(),
            span.restored,
            span.begin,
            span.last,
            (self._replay("torch", ours), self._replay("paddle", theirs)),
            replayed,
            self.weights_apart,
            whole,
            floor,
            tuple(rows),
            self._together(guilty, starts, torch) if guilty else None,
            tuple(found[0]),
            (*found[1], *self._doubts(ours, theirs)),
        )

    def _from_the_checkpoint(self) -> Explanation:
        """Swap all steps from the checkpoint on: the gap was made before the last ones."""
        self.span = replace(self.span, begin=self.span.restored)
        return self.explanation()

    def _row(
        self, part: Part, starts: Mapping[Framework, State], torch: Array, whole: float
    ) -> Swapped:
        if part == "backward" and not self.swap.backward_apart:
            return Swapped(part, whole, 0.0)
        swap, last = self.swap, self.span.last
        left = swap.losses({**PADDLE, part: "torch"}, starts, last)
        made = swap.losses({**TORCH, part: "paddle"}, starts, last)
        return Swapped(part, _apart(torch, left), _apart(torch, made))

    def _together(
        self, guilty: Sequence[Part], starts: Mapping[Framework, State], torch: Array
    ) -> float:
        who: Who = {**PADDLE, **dict.fromkeys(guilty, "torch")}
        return _apart(torch, self.swap.losses(who, starts, self.span.last))

    def _floor(self, starts: Mapping[Framework, State], torch: Array) -> float:
        """Return how large a gap rounding makes: measured on a twin of PyTorch's run."""
        source, state = np.random.default_rng(0), starts["torch"]
        moved = {
            name: array * (1 + _JITTER * source.uniform(-1, 1, array.shape))
            for name, array in state.weights.items()
            if array.dtype.kind == "f"
        }
        twin: dict[Framework, State] = {"torch": replace(state, weights={**state.weights, **moved})}
        noise = _apart(torch, self.swap.losses(TORCH, twin, self.span.last))
        scale = float(np.abs(torch[np.isfinite(torch)]).max(initial=0.0))
        return max(_NOISE * noise if np.isfinite(noise) else 0.0, _FLOOR * scale)

    def _findings(
        self, guilty: Sequence[Part], starts: Mapping[Framework, State]
    ) -> tuple[list[str], list[str]]:
        """Return what is known of the places of the faults, and remarks."""
        steps = range(self.span.begin + 1, self.span.last + 1)
        found: list[str] = []
        remarks: list[str] = []
        if "data" in guilty:
            ours, theirs = self.trainings["torch"].data, self.trainings["paddle"].data
            found.append(
                f"data: {difference_of_data(ours, theirs, steps) or 'not the same objects'}"
            )
        if set(guilty) - {"data"}:
            for finding in self._aligned(starts):
                named = finding.stage in guilty or finding.stage in ("audit", "weights")
                (found if named else remarks).append(str(finding))
        told = {one.partition(":")[0] for one in found}
        silent = [part for part in guilty if part not in told]
        if silent:
            remarks.append(f"align names no place for {', '.join(silent)} on this step's batch")
        return found, remarks

    def _aligned(self, starts: Mapping[Framework, State]) -> Sequence[Finding]:
        """Return what `align` finds in the two models and what trains them, on this step's batch."""
        tell("align looks for the place")
        for framework, training in self.trainings.items():
            training.side.load(starts[framework].weights)
            inputs, training.targets.arrays = self.trainings["torch"].data(self.span.step)
        sides = self.trainings["torch"].side, self.trainings["paddle"].side
        steps = self.file.settings().get("steps", _STEPS)
        return compare_sides(*sides, inputs, steps, self.file.name_map()).findings

    def _logged(self) -> float:
        steps = range(self.span.begin + 1, self.span.last + 1)
        known = [self.gone.losses[step] for step in steps if step in self.gone.losses]
        return _apart(*np.array(known).T) if known else np.nan

    def _replay(self, framework: Framework, losses: Array) -> Replay:
        """Return how far the replayed losses are from the log's."""
        side = list(FRAMEWORKS).index(framework)
        first = self.span.restored + 1
        pairs = [
            (self.gone.losses[step][side], loss)
            for step, loss in enumerate(losses, first)
            if step in self.gone.losses
        ]
        return Replay(FRAMEWORKS[framework], _apart(*np.array(pairs).T) if pairs else None)

    def _doubts(self, ours: Array, theirs: Array) -> list[str]:
        """Doubt that the file describes the runs of the logs, if its replay is far from them."""
        logged, found = self._logged(), []
        known = np.array(list(self.gone.losses.values()) or [(0.0, 0.0)])
        bits = min(precision_of(known[:, 0]), precision_of(known[:, 1]))
        scale = float(np.abs(known[np.isfinite(known)]).max(initial=0.0))
        rounding = _ULPS * 2.0 ** (1 - bits) * scale
        replays = self._replay("torch", ours), self._replay("paddle", theirs)
        for replay in replays:
            if replay.apart is not None and not replay.apart <= max(_FAITHFUL * logged, rounding):
                found.append(
                    f"{replay.name}'s replay does not give its log's losses ({replay.apart:.1e} "
                    f"off, the logs are {logged:.1e} apart): that run trained otherwise than the file"
                )
        return found


def _apart(ours: Array, theirs: Array) -> float:
    """Return the largest difference; inf if one is not finite where the other is."""
    return gap(ours, theirs).difference
