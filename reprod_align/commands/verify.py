"""Verifies a submission, a zip archive or a folder, without trusting it.

Every verdict is recomputed from the arrays and held against what the logs claim. It says what is missing,
damaged, edited, of different runs, or suspicious: bit-identical floats of two frameworks. An archive that is
unsafe to unpack is refused before anything is written. Needs numpy alone, and runs nothing of the submission.

exit 0 verified, 1 faults were found, 2 refused or missing
"""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from reprod_align.base.json import as_json
from reprod_align.submission.layout import STEPS
from reprod_align.submission.verify import verify


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("submission", type=Path, metavar="ZIP_OR_DIR")
    add_judging(parser)


def add_judging(parser: ArgumentParser) -> None:
    """Declare what `submit` and `verify` judge by."""
    parser.add_argument(
        "--threshold", type=float, metavar="X",
        help="largest difference of Step 5's metrics (default: 0.0015; newer guides use 0.0025)",
    )  # fmt: skip
    parser.add_argument(
        "--allow-identical", action="append", default=[], metavar="STEP",
        choices=[step.name for step in STEPS],
        help="accept bit-identical floats in this step: a very small model can have them",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def run(options: Namespace) -> int:
    """Print what was found; return 0 if the submission is verified, 1 if not."""
    findings = verify(
        options.submission,
        threshold=options.threshold,
        allow_identical=options.allow_identical,
    )
    print(as_json(findings.to_json()) if options.json else findings.summary())
    return 0 if findings.passed else 1
