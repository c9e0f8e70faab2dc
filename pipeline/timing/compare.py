"""Both sides of Step 5 timed in turns: the ratio with its interval, and which phase makes it."""

import math
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from pipeline.run import REPOSITORY, Run
from pipeline.timing.workload import PHASES, Phase, Speed, list_options, load_speed, read_workload
from reprod_align.base.files import to_plain
from reprod_align.errors import ReprodError
from reprod_align.significance import Interval, find_student_interval

ALPHA = 0.05


@dataclass(frozen=True)
class Estimate(Interval):
    """An estimate with its 95 % interval."""

    value: float

    def text(self, digits: int = 1) -> str:
        """Return `value (low to high)`."""
        return f"{self.value:.{digits}f} ({self.low:.{digits}f} to {self.high:.{digits}f})"


@dataclass(frozen=True)
class SpeedComparison:
    """Rounds of one run a side. The ratio is Paddle's sentences per second over PyTorch's."""

    torch: tuple[Speed, ...]
    paddle: tuple[Speed, ...]

    def __post_init__(self) -> None:
        """Raise ReprodError unless all runs timed the same work, at least two rounds of it."""
        if len(self.torch) != len(self.paddle) or len(self.torch) < 2:
            raise ReprodError("an interval needs two rounds or more, each with a run of both sides")
        both = (*self.torch, *self.paddle)
        runs = {(str(speed.workload), speed.device, speed.threads) for speed in both}
        if len(runs) > 1:
            raise ReprodError(
                f"not the same work was timed: {' and '.join(map(str, sorted(runs)))}"
            )

    @property
    def ratio(self) -> Estimate:
        """From the rounds' own ratios: what slows the machine slows both runs of a round."""
        pairs = zip(self.torch, self.paddle, strict=True)
        return of_ratios([b.sentences_per_second / a.sentences_per_second for a, b in pairs])

    def difference(self, phase: Phase) -> Estimate:
        """Return by how many milliseconds Paddle's phase is longer."""
        pairs = zip(self.torch, self.paddle, strict=True)
        return of_differences([b.per_phase()[phase] - a.per_phase()[phase] for a, b in pairs])

    @property
    def deciding_phase(self) -> Phase:
        """The phase that adds most to the slower side's time."""
        differences = {phase: self.difference(phase).value for phase in PHASES}
        sign = 1 if sum(differences.values()) >= 0 else -1
        return max(PHASES, key=lambda phase: sign * differences[phase])

    def text(self) -> str:
        """Return the table, the ratio and the phase that makes the difference."""
        return "\n".join([*self._table(), "", self._ratio_line(), *self._phase_lines()])

    def to_json(self) -> dict[str, Any]:
        """Return everything, every step's milliseconds included."""
        return {
            "ratio": to_plain(self.ratio),
            "differences_ms": {phase: to_plain(self.difference(phase)) for phase in PHASES},
            "deciding_phase": self.deciding_phase,
            "torch": to_plain(self.torch),
            "paddle": to_plain(self.paddle),
        }

    def _table(self) -> list[str]:
        phases = "".join(f"{phase:>11}" for phase in PHASES)
        head = (
            f"{'side':15}{'sentences/s':>24}{'tokens/s':>10}{phases}{'peak MB':>9}   (phases in ms)"
        )
        return [head, self._row("torch", self.torch), self._row("paddle", self.paddle)]

    def _row(self, name: str, speeds: Sequence[Speed]) -> str:
        rate = of_ratios([speed.sentences_per_second for speed in speeds])
        phases = [fmean(speed.per_phase()[phase] for speed in speeds) for phase in PHASES]
        cells = "".join(f"{each:11.1f}" for each in phases)
        label = ", ".join(filter(None, (name, speeds[0].fast)))
        tokens = rate.value * speeds[0].workload.length
        peak = max(each.peak_mb for each in speeds)
        return f"{label:15}{rate.text():>24}{tokens:10.0f}{cells}{peak:9.0f}"

    def _ratio_line(self) -> str:
        rounds, work = len(self.torch), self.torch[0].workload
        return (
            f"paddle does {self.ratio.text(3)} times torch's sentences per second: {rounds} rounds of "
            f"{work.steps} steps, batch {work.batch_size} x {work.length}, {work.profile}, "
            f"{self.torch[0].threads or 'all'} threads"
        )

    def _phase_lines(self) -> list[str]:
        lines = [f"  {phase:10}{self.difference(phase).text():>26} ms" for phase in PHASES]
        phase = self.deciding_phase
        slower = "paddle" if self.difference(phase).value > 0 else "torch"
        last = f"{phase} makes the difference: {slower} takes longer there than anywhere else"
        return ["paddle's time beyond torch's, per step:", *lines, last]


def of_differences(values: Sequence[float]) -> Estimate:
    """Return the mean of two or more numbers with Student's interval."""
    mean, error = fmean(values), stdev(values) / math.sqrt(len(values))
    found = find_student_interval(mean, error, len(values) - 1, ALPHA)
    return Estimate(found.low, found.high, mean)


def of_ratios(values: Sequence[float]) -> Estimate:
    """Return the geometric mean of positive numbers with Student's interval of their logarithms."""
    logs = of_differences([math.log(value) for value in values])
    return Estimate(math.exp(logs.low), math.exp(logs.high), math.exp(logs.value))


FAST = {"torch": ("torch", "fused"), "paddle": ("paddle", "layers"), "native": ("paddle", "native")}
SCRIPTS = {"torch": "pipeline/Step5/pt_perf.py", "paddle": "pipeline/Step5/pd_perf.py"}


def time_in_turns(run: Run) -> SpeedComparison:
    """Return the speeds of --rounds rounds; who begins changes with each. ReprodError if a run fails."""
    speeds: dict[str, list[Speed]] = {side: [] for side in SCRIPTS}
    for number in range(run.options.rounds):
        for side in sorted(SCRIPTS, reverse=number % 2 == 0):
            speeds[side].append(time_side(run, side))
    return SpeedComparison(tuple(speeds["torch"]), tuple(speeds["paddle"]))


def time_side(run: Run, side: str) -> Speed:
    """Run one side's script; ReprodError with its last line if it fails."""
    script = SCRIPTS[side]
    _, _, *options = shlex.split(run.command(script))
    ways = [way for of, way in map(FAST.__getitem__, run.options.fast) if of == side]
    fast = ["--fast", ways[-1]] if ways else []
    work = [*list_options(read_workload(run)), "--device", run.options.device]
    words = [str(REPOSITORY / script), *options, *work, *fast]
    environment = os.environ | {"OMP_NUM_THREADS": str(run.options.threads)}
    done = subprocess.run([sys.executable, *words], env=environment, capture_output=True, text=True)
    if done.returncode:
        last = (done.stderr.strip() or "it said nothing").splitlines()[-1]
        raise ReprodError(f"{script} ended with {done.returncode}: {last}")
    return load_speed(run, f"perf_{side}")
