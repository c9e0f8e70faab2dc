"""`reprod-align pair FILE.py`: judge the pair in a user's file, print and write the report.

With --torch-python or --paddle-python each side runs in a process of its own, whose interpreter is
this one where none is given, and only numpy is needed here.
"""

import argparse
import sys
from contextlib import redirect_stdout
from pathlib import Path

from reprod_align.alignment import compare_sides
from reprod_align.base.progress import tell
from reprod_align.base.quiet import quieten, without_warnings
from reprod_align.errors import one_line
from reprod_align.model.told import told
from reprod_align.pair.file import PairFile, opened, told_at
from reprod_align.pair.remote import RemoteSide
from reprod_align.report import Report


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    command.add_argument("file", type=Path, help="defines torch_model(), paddle_model(), inputs()")
    command.add_argument("--json", action="store_true", help="print the report as JSON")
    command.add_argument("--report", type=Path, metavar="PATH.html", help="write a web page too")
    command.add_argument("--torch-python", metavar="PATH", help="interpreter that has PyTorch")
    command.add_argument("--paddle-python", metavar="PATH", help="interpreter that has Paddle")
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Return 0 if the port is faithful, 1 if not. Raises ReprodError if that can't be told."""
    if options.report:
        from reprod_align.report.html import write_page  # what it needs may be missing: say so now
    quieten()
    with without_warnings(), redirect_stdout(sys.stderr):  # stdout is the report's alone
        report = judged(options)
    lines = report.summary().splitlines()  # names in it are the user's: no control characters
    print(report.to_json() if options.json else "\n".join(map(one_line, lines)))
    if options.report:  # last: if it can't be written, the report is not lost
        write_page(options.report, report, options.file.name)
    return 0 if report.passed else 1


def judged(options: argparse.Namespace) -> Report:
    """Return the report on the pair in the file. Raises ReprodError for whatever is in the way."""
    path: Path = options.file
    try:
        tell("making the models")
        if options.torch_python or options.paddle_python:
            return _judged_apart(path, options.torch_python, options.paddle_python)
        return _judged_here(path)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit too: the file's exit code must not become ours
        raise told_at(error, path) from error
    finally:
        tell("")


def _judged_here(path: Path) -> Report:
    with opened(path, PairFile) as file:
        sides = told(file.side("torch"), tell), told(file.side("paddle"), tell)
        report = compare_sides(*sides, file.inputs(), **file.settings())
        report.remarks += file.remarks()
        return report


def _judged_apart(path: Path, torch_python: str | None, paddle_python: str | None) -> Report:
    """Compare with each side in a process of its own; this one imports no framework."""
    with (
        RemoteSide(torch_python or sys.executable, path, "torch") as reference,
        RemoteSide(paddle_python or sys.executable, path, "paddle") as port,
    ):
        hello = reference.hello
        sides = told(reference, tell), told(port, tell)
        report = compare_sides(*sides, hello.inputs, **hello.settings)
        report.remarks += hello.remarks
        return report
