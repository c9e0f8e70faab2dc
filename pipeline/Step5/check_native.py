"""Step 5 check, native mode: do both sides learn as well, each with its own framework's randomness?

reads   log_reprod/native/train_align_torch_seed*.npy, train_align_paddle_seed*.npy    of all seeds
writes  log_reprod/native/native_diff.log, native_diff.json, and the plot of --report
exit    0 equivalent, 1 different, 2 undecided (more seeds are needed) or cannot be compared
"""

import argparse
from pathlib import Path

from pipeline.run import Run, start
from pipeline.training.native import judge_runs, list_remarks, read_runs
from pipeline.training.options import NATIVE
from reprod_align.base.files import write_json, write_text
from reprod_align.page.outputs import PAGE_OR_PICTURE, require_report, write_report
from reprod_align.significance import ALPHA, EXIT_CODES, MARGINS


def main(run: Run) -> int:
    """Judge all seeds found; write the verdict, and print it."""
    options, log = run.options, run.results / NATIVE / "native_diff.log"
    if options.report:
        require_report(options.report, PAGE_OR_PICTURE)
        from reprod_align.significance.plot import make_page  # not above: needs matplotlib

    sides = read_runs(run)
    report = judge_runs(sides, tuple(options.margin or MARGINS), options.alpha)
    remarked = list_remarks(sides)
    text = "\n".join([report.text(), *(f"remark: {remark}" for remark in remarked)])
    seeds = {side: sorted(found) for side, found in sides.items()}
    write_text(log, f"{text}\n")
    write_json(
        log.with_suffix(".json"),
        report.to_json() | {"seeds_found": seeds, "remarks": remarked},
    )
    if options.report:
        write_report(options.report, make_page(report))
    print(text)
    return EXIT_CODES[report.verdict]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add this check's own options."""
    parser.add_argument("--alpha", type=float, default=ALPHA, help="level of every test")
    parser.add_argument(
        "--margin",
        type=float,
        action="append",
        metavar="SHARE",
        help="what accuracies may differ by; may be repeated (default: 0.0015 and 0.0025)",
    )
    parser.add_argument("--report", type=Path, metavar="FILE", help="draw: .html, .png or .svg")


if __name__ == "__main__":
    start(main, __doc__, add_options)
