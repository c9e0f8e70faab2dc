"""Verifies a submission, a zip archive or a folder, without trusting it.

Every verdict is recomputed from the arrays and held against what the logs claim. It says what is missing,
damaged, edited, of different runs, or suspicious: bit-identical floats of two frameworks. An archive that is
unsafe to unpack is refused before anything is written. Needs numpy alone, and runs nothing of the submission.

Files alone cannot show where their numbers come from: Paddle records that are PyTorch's with rounding noise
agree with themselves and with every log. --rerun recomputes steps from the submission's code, weights and
inputs, and compares. This runs its code, with your rights: what will run is shown first, and each script has
a process of its own, a copy of the code without records, a time limit, and no sight of the other framework.

exit 0 verified, 1 faults were found, 2 refused or missing
"""

import shlex
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from reprod_align.base.console import tell
from reprod_align.base.files import as_json
from reprod_align.commands import add_json_argument
from reprod_align.submission import examine
from reprod_align.submission.files import STEPS, open_submission

_NAMES = [step.name for step in STEPS]
_SECONDS = 1800.0


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("submission", type=Path, metavar="ZIP_OR_DIR")
    add_judging(parser)
    add = parser.add_argument
    add("--rerun", nargs="*", choices=_NAMES, metavar="STEP",
        help=f"recompute these steps, all without a name: {', '.join(_NAMES)}")  # fmt: skip
    add("--code", type=Path, metavar="FOLDER",
        help="the submission's code (default: the folder that was handed in)")  # fmt: skip
    add("--arguments", default="", metavar="WORDS", help="given to each script: '--profile tiny'")
    add("--python", default=sys.executable, metavar="PATH", help="runs the scripts")
    add("--seconds", type=float, default=_SECONDS, metavar="N",
        help=f"that a script may take (default: {_SECONDS:g})")  # fmt: skip


def add_judging(parser: ArgumentParser) -> None:
    """Declare what `submit` and `verify` judge by."""
    parser.add_argument(
        "--threshold", type=float, metavar="X",
        help="largest difference of Step 5's metrics (default: 0.0015; newer guides use 0.0025)",
    )  # fmt: skip
    parser.add_argument(
        "--allow-identical", action="append", default=[], metavar="STEP",
        choices=_NAMES,
        help="accept bit-identical floats in this step: a very small model can have them",
    )  # fmt: skip
    add_json_argument(parser)


def run(options: Namespace) -> int:
    """Print what was found; return 0 if the submission is verified, 1 if not."""
    done = None
    with open_submission(options.submission) as submission:
        findings = examine(
            submission, threshold=options.threshold, allow_identical=options.allow_identical
        )
        if options.rerun is not None:
            done = _rerun(options, submission, findings)
    if options.json:
        rows = {} if done is None else {"rerun": done.rows}
        print(as_json(findings.to_json() | rows))
    else:
        print("\n".join([findings.summary(), *([done.summary()] if done else [])]))
    return 0 if findings.passed else 1


def _rerun(options: Namespace, submission: Any, findings: Any) -> Any:
    from reprod_align.contract import rerun  # verifying files needs none of it

    code = rerun.choose_code(options.submission, options.code)
    words = shlex.split(options.arguments)
    commands = rerun.list_commands(code, options.rerun or _NAMES, words)
    print(rerun.announce(code, commands, options.seconds), file=sys.stderr, flush=True)
    try:
        return rerun.rerun(
            submission, code, commands, findings, options.python, options.seconds, tell
        )
    finally:
        tell("")
