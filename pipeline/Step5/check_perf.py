"""Step 5 check: how fast is Paddle's side beside PyTorch's, and which phase makes the difference?

runs    pt_perf.py and pd_perf.py in turns          in --rounds rounds, the first one changing
writes  log_reprod/strict/perf_diff.log, perf_diff.json
exit    0 measured, 1 slower than --at-least, 2 could not be measured
"""

import argparse

from pipeline.run import Run, start
from pipeline.timing.compare import FAST, time_in_turns
from pipeline.timing.workload import add_workload, speed_file
from reprod_align.base.files import write_json, write_text


def main(run: Run) -> int:
    """Time both sides in turns, print and write the comparison, and judge it by --at-least."""
    comparison, result = time_in_turns(run), speed_file(run, "perf_diff")
    print(comparison.text())
    write_json(result, comparison.to_json())
    write_text(result.with_suffix(".log"), f"{comparison.text()}\n")
    return 0 if comparison.ratio.value >= run.options.at_least else 1


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add this check's own options."""
    add_workload(parser)
    parser.add_argument("--rounds", type=_rounds, default=5, help="runs of each side, 2 or more")
    parser.add_argument("--threads", type=int, default=1, help="OMP_NUM_THREADS of both sides")
    parser.add_argument(
        "--fast",
        choices=FAST,
        action="append",
        default=[],
        help="a side that runs faster; native: paddle, by C++ operators",
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
