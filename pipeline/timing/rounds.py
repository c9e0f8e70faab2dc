"""Both sides of Step 5 timed in turns, each run in a process of its own."""

import os
import shlex
import subprocess
import sys

from pipeline.run import Run
from pipeline.run.command_line import REPOSITORY
from pipeline.timing.compare import SpeedComparison
from pipeline.timing.workload import Speed, list_options, load_speed, read_workload
from reprod_align.errors import ReprodError

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
