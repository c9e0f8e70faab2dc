"""Writes a skeleton of the five steps into a new folder: a small model, its port, and their checks.

It runs at once (`python run_all.py`); then put your own model and data into it, file by file.

exit 0 written, 1 never, 2 the folder exists already or cannot be written to
"""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from reprod_align.errors import one_line
from reprod_align.skeleton import write_skeleton


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("folder", type=Path, metavar="NAME", help="the folder to make")


def run(options: Namespace) -> int:
    """Write the files and say what to run."""
    written = write_skeleton(options.folder)
    print(one_line(f"wrote {len(written)} files: {options.folder}"))
    print(one_line(f"now: cd {options.folder} && python run_all.py"))
    return 0
