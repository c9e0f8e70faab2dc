"""Writes a skeleton of the five steps into a new folder: a small model, its port, and their checks.

It runs at once (`python run_all.py`); then put your own model and data into it, file by file.

exit 0 written, 1 never, 2 the folder exists already or cannot be written to
"""

import re
from argparse import ArgumentParser, Namespace
from importlib.resources import files
from pathlib import Path

from reprod_align.base.files import whole_folder, write_text
from reprod_align.errors import ReprodError, one_line

_ENDING = ".txt"  # so that no tool takes a template for a module of this library


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("folder", type=Path, metavar="NAME", help="the folder to make")


def run(options: Namespace) -> int:
    """Write the files and say what to run."""
    written = write_skeleton(options.folder)
    print(one_line(f"wrote {len(written)} files: {options.folder}"))
    print(one_line(f"now: cd {options.folder} && python run_all.py"))
    return 0


def list_templates() -> dict[str, str]:
    """Return the text of each file of the skeleton by its name."""
    folder = files(__package__).joinpath("skeleton")
    found = {each.name: each.read_text(encoding="utf-8") for each in folder.iterdir()}
    return {
        name.removesuffix(_ENDING): found[name] for name in sorted(found) if name.endswith(_ENDING)
    }


def write_skeleton(folder: Path) -> list[Path]:
    """Write the files into a new folder, all or none, and return their paths.

    Raises ReprodError if the folder exists and is not empty, if its name is no name for a project, or if
    writing fails.
    """
    if not re.fullmatch(r"[\w.-]+", folder.name):
        raise ReprodError(f"{folder}: expected a name of letters, digits, '_', '-' and '.'")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ReprodError(f"{folder} exists already: give another name, or an empty folder")
    texts = list_templates()
    texts["README.md"] = texts["README.md"].replace("NAME", folder.name)
    with whole_folder(folder) as made:
        for name, text in texts.items():
            write_text(made / name, text)
    return [folder / name for name in texts]
