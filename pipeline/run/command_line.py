"""The command line that every script of the pipeline has."""

import argparse
from pathlib import Path

from pipeline.profiles import PROFILES
from pipeline.settings import DTYPES
from pipeline.tasks import SST2, TASKS
from reprod_align.errors import one_line

REPOSITORY = Path(__file__).resolve().parents[2]

DEFAULTS = {
    "profile": "minilm",
    "weights": None,
    "task": SST2.name,
    "data_dir": None,
    "from_hub": False,
    "epochs": None,
    "dtype": "both",
    "home": REPOSITORY,
}


def make_parser(about: str | None) -> argparse.ArgumentParser:
    """Return the parser of the options that every script has; `about` is the script's docstring."""
    parser = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = "; ".join(f"{profile.name}: {profile.about}" for profile in PROFILES.values())
    parser.add_argument("--profile", choices=PROFILES, help=names)
    parser.add_argument(
        "--weights",
        type=folder,
        metavar="DIR",
        help="a Hugging Face BERT checkpoint to export instead of the profile's own",
    )
    parser.add_argument(
        "--task", choices=TASKS, help="what Steps 2 and 5 read and measure (default: sst2)"
    )
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        "--data-dir",
        type=folder,
        metavar="DIR",
        help="the task's train.tsv and dev.tsv, instead of SST-2's built-in sentences",
    )
    source.add_argument(
        "--from-hub",
        action="store_true",
        help="the task's files from the Hugging Face hub, kept in data/ under --home",
    )
    parser.add_argument("--epochs", type=positive, metavar="N", help="epochs of Step 5")
    parser.add_argument("--dtype", choices=(*DTYPES, "both"),
                        help="float32: official records alone (default: both)")  # fmt: skip
    parser.add_argument(
        "--home",
        type=whole_path,
        metavar="DIR",
        help="where inputs and results lie (default: the repository)",
    )
    parser.add_argument(
        "--no-explain",
        action="store_true",
        help="a check that fails does not go on to look for the place",
    )
    parser.add_argument("--quiet", action="store_true", help="do not say what was written")
    parser.set_defaults(**DEFAULTS)
    return parser


def folder(word: str) -> Path:
    """Return a folder's whole path; a type of argument, which argparse refuses in a line."""
    path = whole_path(word)
    if not path.is_dir():
        raise argparse.ArgumentTypeError(f"{one_line(word)} is not a folder")
    return path


def whole_path(word: str) -> Path:
    """Return a path from the root on, no links in it; a type of argument."""
    try:
        path = Path(word).resolve()
        path.exists()  # raises if the name is too long
    except (OSError, RuntimeError) as error:  # links in a ring
        raise argparse.ArgumentTypeError(
            f"{one_line(word)[:100]}: expected a path: {error}"
        ) from error
    return path


def positive(word: str) -> int:
    """Return a whole number above 0; a type of argument."""
    if not word.isdecimal() or int(word) < 1:
        raise argparse.ArgumentTypeError(f"{word} is not a whole number above 0")
    return int(word)
