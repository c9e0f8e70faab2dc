"""Names the first step at which two training runs diverge, from their logs alone.

The format of a log is recognised from its content; those that can be read are listed at the end. The
noise band comes from --twin: the log of the reference run with its weights perturbed by a rounding
error. Without --twin a fixed tolerance is used.

With both models at hand, --explain FILE.py says which component of a step makes the gap: FILE.py
holds the two trainings (docs/curves.md says how), and their steps are repeated with components
exchanged.

exit 0 the logs agree, 1 they diverge, 2 they cannot be compared
"""

import sys
from argparse import ArgumentParser, Namespace
from functools import partial
from pathlib import Path
from textwrap import fill

from reprod_align.base.files import as_json
from reprod_align.commands import add_name_map_argument, read_name_map
from reprod_align.curves import compare_curves
from reprod_align.curves.band import MULTIPLE, TOLERANCE
from reprod_align.curves.readers import list_formats
from reprod_align.curves.report import CurveReport, Explanation, make_page
from reprod_align.errors import ReprodError
from reprod_align.page.outputs import (
    PAGE_OR_PICTURE,
    add_output_arguments,
    require_outputs,
    write_outputs,
)


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.epilog = fill(
        f"logs that can be read: {', '.join(each.name for each in list_formats())}", 80
    )
    parser.add_argument("reference", type=Path, metavar="A", help="the reference run's log")
    parser.add_argument("other", type=Path, metavar="B", help="the other run's log")
    parser.add_argument(
        "--twin", type=Path, action="append", metavar="LOG",
        help="log of a perturbed run of the reference: measures the noise band; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--float64", type=Path, metavar="LOG",
        help="log of the reference run in float64: one more twin, which shows how rounding grows",
    )  # fmt: skip
    parser.add_argument(
        "--multiple", type=float, default=MULTIPLE,
        help="the band is this many times the twin's largest difference so far (default: %(default)g)",
    )  # fmt: skip
    parser.add_argument(
        "--tolerance", type=float, default=TOLERANCE,
        help="the band without a twin, relative to the largest value so far (default: %(default)g)",
    )  # fmt: skip
    parser.add_argument(
        "--curve", action="append", metavar="NAME",
        help="compare this curve only, such as loss; may be repeated",
    )  # fmt: skip
    add_name_map_argument(parser, "curve names of A -> of B")
    parser.add_argument(
        "--offset", type=int, default=0, metavar="N", help="add N to every step of B"
    )
    parser.add_argument(
        "--explain", type=Path, metavar="FILE.py",
        help="repeat the steps with the trainings in FILE.py, components exchanged, to find the cause",
    )  # fmt: skip
    parser.add_argument(
        "--at", type=int, metavar="STEP",
        help="with --explain: this step, instead of the first outside the band",
    )  # fmt: skip
    parser.add_argument(
        "--replay", type=int, default=200, metavar="N",
        help="with --explain: steps at most from a checkpoint to the gap (default: %(default)s)",
    )  # fmt: skip
    add_output_arguments(parser, ".html, .png or .svg: the curves, their difference and the band")


def run(options: Namespace) -> int:
    """Print the comparison, draw and explain it where asked; return its exit code."""
    require_outputs(options, PAGE_OR_PICTURE)  # before the logs are read, which may take long
    report = compare_curves(
        options.reference,
        options.other,
        options.twin,
        name_map=read_name_map(options.name_map) if options.name_map else None,
        only=options.curve,
        offset=options.offset,
        multiple=options.multiple,
        tolerance=options.tolerance,
        float64=options.float64,
    )
    if not (options.json or options.markdown):
        print(report.summary(), flush=True)  # before the explanation, which may fail
    try:
        explanation = _explain(options, report) if options.explain else None
    except ReprodError:
        write_outputs(options, partial(make_page, report))  # it can be drawn all the same
        raise
    if options.json:
        found = {} if explanation is None else {"explanation": explanation.to_json()}
        print(as_json(report.to_json() | found))
    elif explanation is not None and not options.markdown:
        print(f"\n{explanation.text()}")
    write_outputs(options, partial(make_page, report, explanation))
    return report.exit_code


def _explain(options: Namespace, report: CurveReport) -> Explanation | None:
    """Return which component makes the gap; None if there is none."""
    if report.first is None:
        print("--explain: no curve leaves its band: nothing to explain", file=sys.stderr)
        return None
    from reprod_align.curves.explain import explain  # not above: it needs both frameworks

    return explain(options.explain, report, options.at, options.replay)
