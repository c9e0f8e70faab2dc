"""Names the first step at which two training runs part, from their logs alone.

Reads JSON lines, a Trainer's trainer_state.json, CSV or TSV, printed lines, TensorBoard, VisualDL
and this library's records, told by their content. The noise band comes from --twin: the log of the
reference run with its weights perturbed by a rounding error; without it, a fixed tolerance.

With both models at hand, --explain FILE.py says which part of a step makes the gap: FILE.py holds
the two trainings (docs/curves.md says how), whose steps are taken again with parts exchanged.

exit 0 the logs agree, 1 they part, 2 they cannot be compared
"""

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path

from reprod_align.base.json import as_json
from reprod_align.curves import compare_curves
from reprod_align.curves.band import MULTIPLE, TOLERANCE
from reprod_align.curves.explanation import Explanation
from reprod_align.curves.log import CurveError
from reprod_align.curves.report import CurveReport
from reprod_align.errors import MissingInputError, ReprodError


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Give the command its arguments, and what it runs."""
    command.add_argument("reference", type=Path, metavar="A", help="the reference run's log")
    command.add_argument("other", type=Path, metavar="B", help="the other run's log")
    command.add_argument(
        "--twin", type=Path, action="append", metavar="LOG",
        help="log of a perturbed run of the reference: measures the noise band; may be repeated",
    )  # fmt: skip
    command.add_argument(
        "--float64", type=Path, metavar="LOG",
        help="log of the reference run in float64: one more twin, and when does rounding grow?",
    )  # fmt: skip
    command.add_argument(
        "--multiple", type=float, default=MULTIPLE,
        help="the band is so many times the twin's largest difference so far (default: %(default)g)",
    )  # fmt: skip
    command.add_argument(
        "--tolerance", type=float, default=TOLERANCE,
        help="the band without a twin, relative to the largest value so far (default: %(default)g)",
    )  # fmt: skip
    command.add_argument(
        "--curve", action="append", metavar="NAME",
        help="compare this curve only, such as loss; may be repeated",
    )  # fmt: skip
    command.add_argument(
        "--name-map", type=Path, metavar="FILE.json", help="curve names of A -> of B"
    )
    command.add_argument(
        "--offset", type=int, default=0, metavar="N", help="add N to every step of B"
    )
    command.add_argument(
        "--report", type=Path, metavar="FILE",
        help="draw the curves, their difference and the band: .html, .png or .svg",
    )  # fmt: skip
    command.add_argument(
        "--explain", type=Path, metavar="FILE.py",
        help="take the steps again with the trainings in FILE.py, parts exchanged: who did it?",
    )  # fmt: skip
    command.add_argument(
        "--at", type=int, metavar="STEP",
        help="with --explain: this step, instead of the first outside the band",
    )  # fmt: skip
    command.add_argument(
        "--replay", type=int, default=200, metavar="N",
        help="with --explain: steps at most from a checkpoint to the gap (default: %(default)s)",
    )  # fmt: skip
    command.add_argument("--json", action="store_true", help="print the result as JSON")
    command.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    if options.report:
        from reprod_align.curves import (
            plot as curve_plot,  # not above: without --report nothing is drawn
        )

        curve_plot.require_kind(options.report)  # before the logs are read, which may take long
    report = compare_curves(
        options.reference,
        options.other,
        options.twin,
        name_map=_name_map(options.name_map) if options.name_map else None,
        only=options.curve,
        offset=options.offset,
        multiple=options.multiple,
        tolerance=options.tolerance,
        float64=options.float64,
    )
    if not options.json:
        print(report.summary(), flush=True)  # before the explanation, which may fail
    try:
        explanation = _explanation(options, report) if options.explain else None
    except ReprodError:
        if options.report:
            curve_plot.write_plot(options.report, report)  # it can be drawn all the same
        raise
    if options.json:
        found = {} if explanation is None else {"explanation": explanation.to_json()}
        print(as_json(report.to_json() | found))
    elif explanation is not None:
        print(f"\n{explanation.text()}")
    if options.report:
        curve_plot.write_plot(options.report, report, explanation)
    return report.exit_code


def _explanation(options: argparse.Namespace, report: CurveReport) -> Explanation | None:
    """Return who makes the gap; None if there is none."""
    if report.first is None:
        print("--explain: no curve leaves its band: nothing to explain", file=sys.stderr)
        return None
    from reprod_align.curves.replay.explain import explained  # not above: it needs both frameworks

    return explained(options.explain, report, options.at, options.replay)


def _name_map(path: Path) -> Mapping[str, str]:
    if not path.is_file():
        raise MissingInputError(f"{path} is missing")
    try:
        names = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError, MemoryError) as error:
        raise ReprodError(f"{path} cannot be read as JSON: {error}") from error
    if not isinstance(names, dict) or not all(isinstance(name, str) for name in names.values()):
        raise CurveError(f"{path}: a JSON object of name -> name expected")
    return names
