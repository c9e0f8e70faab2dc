"""Where and why the two sides part: what a failed check goes on to say.

`align` judges the pair of pair_bert.py: the code and the weights that are there now.
"""

import shlex
import sys
from contextlib import redirect_stdout
from importlib.util import find_spec
from typing import Any

from pipeline import pair_bert
from pipeline.run import Part, Run
from pipeline.run.command_line import REPOSITORY
from reprod_align import Report, align
from reprod_align.base.progress import tell
from reprod_align.base.quiet import without_warnings
from reprod_align.base.text import and_more
from reprod_align.errors import describe_error

PACKAGES = ("torch", "transformers", "paddle", "paddlenlp")
SHOWN = 3  # findings; the first is where the two part


def explanation(run: Run, part: Part, again: str) -> list[str]:
    """Return what `align` finds in this run's pair, as lines to print.

    part: what the check is about; what comes after it is not judged. again: the commands that write
    the records. Raises whatever is in the way.
    """
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        return _apart(run, f"{', '.join(missing)} not found")
    pair_bert.home = run.home
    try:
        report = _judged(part)
    except (ImportError, OSError) as error:  # GPU builds of the two often can't share a process
        return _apart(run, describe_error(error))
    found = _findings(report) if report.findings else _nothing(report, again)
    return [*found, f"full report: {_command(run)}"]


def _command(run: Run) -> str:
    home = "" if run.home == REPOSITORY else f"PIPELINE_HOME={shlex.quote(str(run.home))} "
    return f"{home}reprod-align pair pipeline/pair_bert.py"


def _apart(run: Run, why: str) -> list[str]:
    """Return what to say where the frameworks can't be had together."""
    return [
        f"where and why? align needs both frameworks ({why}), each in a Python of its own if need be:",
        f"  {_command(run)} --torch-python PATH --paddle-python PATH",
    ]


def _judged(part: Part) -> Report:
    """Return the report on the padded batch; that on the plain one if only this reveals a fault."""
    tell("align looks for the place")
    try:
        with without_warnings(), redirect_stdout(sys.stderr):
            report = _report(pair_bert.inputs(), part)
            if report.findings:
                return report
            plain = _report(pair_bert.plain_inputs(), "forward")
            return plain if plain.findings else report
    finally:
        tell("")


def _report(inputs: Any, part: Part) -> Report:
    given = {
        "forward": (),
        "loss": ("loss",),
        "training": ("loss", "optimizer", "scheduler"),
    }[part]
    names = [f"{framework}_{name}" for name in given for framework in ("torch", "paddle")]
    return align(
        pair_bert.torch_model(),
        pair_bert.paddle_model(),
        inputs,
        **{name: getattr(pair_bert, name) for name in names},
        steps=pair_bert.steps,
        copy_weights=pair_bert.copy_weights,
    )


def _findings(report: Report) -> list[str]:
    lines = ["where and why the two models part, says align:"]
    shown = report.findings[:SHOWN]
    lines += [f"  {number}. {finding}" for number, finding in enumerate(shown, 1)]
    more = and_more(report.findings, SHOWN)
    return [*lines, f" {more}"] if more else lines


def _nothing(report: Report, again: str) -> list[str]:
    """Return what to say if the pair is sound as it is now."""
    return [
        f"align finds no fault in the models, code and weights as they are now: {report.verdict}",
        *(f"  {remark}" for remark in report.remarks[:SHOWN]),
        f"  so the records come from other code or weights: run {again} again",
        "  (if that changes nothing, what differs is made in these scripts alone)",
    ]
