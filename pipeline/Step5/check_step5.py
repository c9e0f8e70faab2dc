"""Step 5 check: does the port learn as well, and the same, step by step?

reads   log_reprod/train_align_torch.npy, train_align_paddle.npy, and their twins in strict/
        log_reprod/train_align_benchmark.npy    instead of the first, if it is there: the paper's figures
writes  log_reprod/train_align_diff.log
        log_reprod/train_align_benchmark.npy    with --benchmark acc=0.93
exit    0 aligned, 1 different, 2 cannot be compared
"""

import sys
from argparse import ArgumentParser, ArgumentTypeError
from dataclasses import replace
from math import isfinite

from pipeline import settings
from pipeline.checks import add_options as add_output_options
from pipeline.checks import build_gate, judge
from pipeline.run import Run, start
from pipeline.training.record import official
from reprod_align import Gate, official_rule, save_record


def main(run: Run) -> int:
    """Judge accuracies, or the task's metrics, by the guide's threshold; the float64 curves strictly."""
    scripts = ("pipeline/Step5/pt_train.py", "pipeline/Step5/pd_train.py")
    gate = build_gate(
        run,
        "train_align",
        scripts,
        threshold=run.options.threshold,
        unit="entry",
        expect_noise=True,
        required=[official(name) for name in run.task.metric_names],
        stage="training" if run.task.num_labels == settings.NUM_LABELS else None,
    )
    return judge(run, take_benchmark(run, gate))


def take_benchmark(run: Run, gate: Gate) -> Gate:
    """Return the gate with the paper's figures in place of the reference's run, if they are given."""
    path = run.results / "train_align_benchmark.npy"
    if run.options.benchmark:
        save_record(path, dict(run.options.benchmark))
    if not path.is_file():
        return gate
    # with --markdown the table alone goes to the output
    shown = sys.stderr if run.options.markdown else sys.stdout
    print(f"the reference is the benchmark: {path}", file=shown)
    pair = (path, gate.official[1])
    if gate.strict[0].is_file():
        return replace(gate, official=pair)
    # PyTorch was not trained: the paper's figures are all there is
    rule = official_rule(gate.threshold)
    return replace(
        gate, official=pair, strict=pair, strict_rule=rule, explanation=None, expect_noise=False
    )


def add_options(parser: ArgumentParser) -> None:
    """Add what every check has, and what the guide leaves to the contestant."""
    add_output_options(parser)
    parser.add_argument(
        "--threshold",
        type=read_number,
        default=settings.ACCURACY_THRESHOLD,
        metavar="X",
        help="largest difference (default: %(default)s; the guide's newer edition has 0.0025)",
    )
    parser.add_argument(
        "--benchmark",
        type=read_figure,
        action="append",
        metavar="NAME=X",
        help="a figure of the paper, as acc=0.93: written to train_align_benchmark.npy, and judged by",
    )


def read_number(word: str) -> float:
    """Return a number from 0; a type of argument."""
    try:
        number = float(word)
    except ValueError:
        number = -1.0
    if not (isfinite(number) and number >= 0):
        raise ArgumentTypeError(f"expected a number from 0, got {word[:30]!r}")
    return number


def read_figure(word: str) -> tuple[str, float]:
    """Return the name and the number of NAME=X; a type of argument."""
    name, sign, number = word.partition("=")
    if not (name and sign):
        raise ArgumentTypeError(f"expected NAME=X, as acc=0.93, got {word[:30]!r}")
    return name, read_number(number)


if __name__ == "__main__":
    start(main, __doc__, add_options)
