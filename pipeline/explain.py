"""Where and why the two sides differ: what a check adds when it fails.

`align` judges the pair of pair_bert.py: the code and the weights that are there now.
"""

import shlex
import sys
from contextlib import redirect_stdout
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from pipeline import pair_bert
from pipeline.run import REPOSITORY, Run
from reprod_align import Report, align
from reprod_align.base.console import tell, without_warnings
from reprod_align.base.files import write_json
from reprod_align.base.text import and_more
from reprod_align.errors import describe_error, one_line
from reprod_align.report.finding import list_finding

Stage = Literal["forward", "loss", "training"]
"""how far `align` follows the models; each holds those before"""

PACKAGES = ("torch", "transformers", "paddle", "paddlenlp")
SHOWN = 3  # findings; the first is where the two begin to differ
GIVEN = {
    "forward": (),
    "loss": ("loss",),
    "training": ("loss", "optimizer", "scheduler"),
}


def explain(run: Run, stage: Stage, again: str, kept: Path) -> list[str]:
    """Return what `align` finds in this run's pair, as lines to print.

    stage: what the check is about; later stages are not judged. again: the commands that write the
    records. kept: the file that keeps the whole report, for a page. Errors of the models pass.
    """
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        return _show_command(run, f"{', '.join(missing)} not found")
    pair_bert.home = run.home
    try:
        report = _align(stage)
    except (ImportError, OSError) as error:  # GPU builds of the two often can't share a process
        return _show_command(run, describe_error(error))
    if report.findings:
        write_json(kept, report)
    found = _list_findings(report) if report.findings else _report_no_fault(report, again)
    return [*found, f"full report: {_command(run)}"]


def _command(run: Run) -> str:
    home = "" if run.home == REPOSITORY else f"PIPELINE_HOME={shlex.quote(str(run.home))} "
    return f"{home}reprod-align pair pipeline/pair_bert.py"


def _show_command(run: Run, why: str) -> list[str]:
    return [
        f"where and why? align needs both frameworks ({why}), each in a Python of its own if need be:",
        f"  {_command(run)} --torch-python PATH --paddle-python PATH",
    ]


def _align(stage: Stage) -> Report:
    """Return the report on the padded batch; that on the plain one if only this reveals a fault."""
    tell("align looks for the place")
    try:
        with without_warnings(), redirect_stdout(sys.stderr):
            report = _align_on(pair_bert.inputs(), stage)
            if report.findings:
                return report
            plain = _align_on(pair_bert.plain_inputs(), "forward")
            return plain if plain.findings else report
    finally:
        tell("")


def _align_on(inputs: Any, stage: Stage) -> Report:
    names = [f"{framework}_{name}" for name in GIVEN[stage] for framework in ("torch", "paddle")]
    return align(
        pair_bert.torch_model(),
        pair_bert.paddle_model(),
        inputs,
        **{name: getattr(pair_bert, name) for name in names},
        steps=pair_bert.steps,
        copy_weights=pair_bert.copy_weights,
    )


def _list_findings(report: Report) -> list[str]:
    lines = ["align says where and why the two models differ:"]
    shown = report.findings[:SHOWN]
    lines += [f"  {line}" for finding in shown for line in map(one_line, list_finding(finding))]
    more = and_more(report.findings, SHOWN)
    return [*lines, f" {more}"] if more else lines


def _report_no_fault(report: Report, again: str) -> list[str]:
    return [
        f"align finds no fault in the models, code and weights as they are now: {report.verdict}",
        *(f"  {remark}" for remark in report.remarks[:SHOWN]),
        *(f"  not judged: {one.what}" for one in report.not_judged[:SHOWN]),
        f"  so the records come from other code or weights: run {again} again",
        "  (if that changes nothing, what differs is made in these scripts alone)",
    ]
