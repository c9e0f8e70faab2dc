"""Checks log_reprod/ as `reprod-align verify` will, and packs it as a zip archive with a manifest.

Ten records, five logs under either naming of the guide, the float64 records and verdicts in strict/, and the
training logs in training/. Nothing is packed if a file is missing, was edited, or is of another run.

exit 0 packed, 1 faults were found, 2 it cannot be done
"""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from reprod_align.base.files import as_json
from reprod_align.commands.verify import add_judging
from reprod_align.errors import MissingInputError, ReprodError, explain_absence, one_line
from reprod_align.submission import examine, pack
from reprod_align.submission.files import (
    GUIDE_FOLDER,
    MANIFEST,
    TRAINING,
    Submission,
    find_root,
    is_known,
    list_files,
)


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "folder", type=Path, nargs="?", default=Path(GUIDE_FOLDER), metavar="DIR",
        help="where the records and logs are (default: log_reprod)",
    )  # fmt: skip
    parser.add_argument(
        "--output", type=Path, default=Path("submission.zip"), metavar="FILE.zip",
        help="the archive to write (default: submission.zip)",
    )  # fmt: skip
    parser.add_argument(
        "--training-log", type=Path, action="append", default=[], metavar="FILE",
        help="a training's log from elsewhere; may be repeated",
    )  # fmt: skip
    add_judging(parser)


def run(options: Namespace) -> int:
    """Check, print what was found, and pack if nothing is wrong."""
    if options.output.suffix.lower() != ".zip":
        raise ReprodError(f"--output {options.output}: expected a name that ends in .zip")
    submission = Submission(options.folder, _collect(options.folder, options.training_log))
    findings = examine(
        submission, threshold=options.threshold, allow_identical=options.allow_identical
    )
    # the manifest is about to be written
    findings.remarks[:] = [each for each in findings.remarks if "manifest" not in each]
    print(as_json(findings.to_json()) if options.json else findings.summary())
    if not findings.passed:
        return 1
    pack(submission.files, options.output)
    if not options.json:
        print(one_line(f"packed {len(submission.files)} files: {options.output}"))
    return 0


def _collect(folder: Path, logs: list[Path]) -> dict[str, Path]:
    """Return the files that belong to a submission, by name; raises ReprodError if there are none."""
    if not folder.is_dir():
        expected = "expected the folder of records and logs"
        if folder.exists():
            raise ReprodError(f"{folder} is not a folder: {expected}")
        raise MissingInputError(f"{folder} is missing: {expected}")
    found = list_files(find_root(folder))
    files = {name: path for name, path in found.items() if is_known(name) and name != MANIFEST}
    for log in logs:
        if not log.is_file():
            raise explain_absence(log, ": --training-log names it")
        name = f"{TRAINING}{log.name}"
        if name in files and not files[name].samefile(log):
            raise ReprodError(
                f"--training-log {log}: {name} is in the submission already: rename it"
            )
        files[name] = log
    return files
