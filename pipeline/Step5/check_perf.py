"""Step 5 check: how fast is Paddle's side beside PyTorch's, and which phase makes the difference?

runs    pt_perf.py and pd_perf.py in turns          in --rounds rounds, the first one changing
writes  log_reprod/strict/perf_diff.log, perf_diff.json
exit    0 measured, 1 slower than --at-least, 2 could not be measured
"""

import argparse
import os
import shlex
import subprocess
import sys

from pipeline.perf import (
    Speed,
    add_workload,
    load_speed,
    speed_file,
    workload_of,
    workload_options,
    write_json,
)
from pipeline.perf_compare import SpeedComparison
from pipeline.run import REPOSITORY, Run, start
from reprod_align.atomic import whole_file
from reprod_align.errors import ReprodError

SIDES = {"torch": "pt", "paddle": "pd"}


def main(run: Run) -> int:
    """Time both sides in turns, print and write the comparison, and judge it by --at-least."""
    speeds: dict[str, list[Speed]] = {side: [] for side in SIDES}
    for number in range(run.options.rounds):
        for side in sorted(SIDES, reverse=number % 2 == 0):
            speeds[side].append(time_side(run, side))
    comparison = SpeedComparison(tuple(speeds["torch"]), tuple(speeds["paddle"]))
    print(comparison.text())
    write_json(speed_file(run, "perf_diff"), comparison.to_json())
    with whole_file(speed_file(run, "perf_diff").with_suffix(".log")) as handle:
        handle.write(f"{comparison.text()}\n".encode())
    return 0 if comparison.ratio.value >= run.options.at_least else 1


def time_side(run: Run, side: str) -> Speed:
    """Run one side's script; ReprodError with its last line if it fails."""
    script = f"pipeline/Step5/{SIDES[side]}_perf.py"
    _, _, *options = shlex.split(run.command(script))
    fast = ["--fast"] if side in run.options.fast else []
    words = [str(REPOSITORY / script), *options, *workload_options(workload_of(run)), *fast]
    environment = os.environ | {"OMP_NUM_THREADS": str(run.options.threads)}
    done = subprocess.run([sys.executable, *words], env=environment, capture_output=True, text=True)
    if done.returncode:
        last = (done.stderr.strip() or "it said nothing").splitlines()[-1]
        raise ReprodError(f"{script} ended with {done.returncode}: {last}")
    return load_speed(run, f"perf_{side}")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add this check's own options."""
    add_workload(parser)
    parser.add_argument("--rounds", type=_rounds, default=5, help="runs of each side, 2 or more")
    parser.add_argument("--threads", type=int, default=1, help="OMP_NUM_THREADS of both sides")
    parser.add_argument(
        "--fast", choices=SIDES, action="append", default=[], help="a side to run with --fast"
    )
    parser.add_argument(
        "--at-least", type=float, default=0.0, metavar="RATIO", help="fail below this ratio"
    )


def _rounds(word: str) -> int:
    if not word.isdecimal() or int(word) < 2:
        raise argparse.ArgumentTypeError(f"{word} is not a whole number above 1")
    return int(word)


if __name__ == "__main__":
    start(main, __doc__, add_options)
